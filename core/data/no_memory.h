/* SPDX-License-Identifier: Apache-2.0 */
/* The error for an allocation that failed while data was read. Private to core/data. */
#ifndef SL_DATA_NO_MEMORY_H
#define SL_DATA_NO_MEMORY_H

#include <seqlstm/status.h>

#define SL_DATA_NO_MEMORY(err)                                                                                         \
    seqlstm_error_set((err), SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "memory ran out while reading data")

#endif
