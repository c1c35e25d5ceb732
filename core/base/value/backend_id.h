/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a backend's id. */
#ifndef SL_BASE_VALUE_BACKEND_ID_H
#define SL_BASE_VALUE_BACKEND_ID_H

#include <stdbool.h>

/* A lower-case letter, then lower-case letters, digits and dashes, shorter than SEQLSTM_MAX_ID_BYTES in all. */
bool sl_backend_id_is_valid(const char *id);

#endif
