/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that lie one after another in a block begin at multiples of SEQLSTM_ALIGNMENT. [any thread] */
#ifndef SL_BASE_MEMORY_ALIGNMENT_H
#define SL_BASE_MEMORY_ALIGNMENT_H

#include <stdint.h>

#include <seqlstm/backend.h>

/* `bytes` rounded up to a multiple of SEQLSTM_ALIGNMENT. Not negative, and not near INT64_MAX: sizes that were not
 * checked go through sl_checked_round_up_size. */
static inline int64_t sl_align(int64_t bytes)
{
    return (bytes + SEQLSTM_ALIGNMENT - 1) / SEQLSTM_ALIGNMENT * SEQLSTM_ALIGNMENT;
}

#endif
