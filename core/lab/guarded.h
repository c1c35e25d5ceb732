/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that notice who writes beside them.
 *
 *   [ front band | payload | rear band ]      payload aligned to SEQLSTM_ALIGNMENT; the rear band begins
 *                                             at its very next byte
 *
 * Bands and fresh payloads are filled with bytes that are NaN in every floating-point type, so that reading
 * beside a buffer, or reading what nobody wrote, shows in the results.
 */
#ifndef SL_LAB_GUARDED_H
#define SL_LAB_GUARDED_H

#include <stdint.h>

#include <seqlstm/status.h>

enum { SL_GUARD_BYTES = 256 };

struct sl_guarded {
    unsigned char *block; /* NULL: none */
    void *data;           /* payload; NULL when absent */
    uint64_t bytes;
};

/* All payload bytes are poisoned. 0 bytes: data is NULL, yet the bands exist. NO_MEMORY. */
seqlstm_status sl_guarded_init(struct sl_guarded *buffer, uint64_t bytes, struct seqlstm_error *err);
void sl_guarded_deinit(struct sl_guarded *buffer);

/* Fills the payload with NaN again. */
void sl_guarded_poison(struct sl_guarded *buffer);

/* Distance to the payload of the nearest overwritten byte: negative before it, positive behind it (1 is
 * the first byte behind); 0: intact. */
int64_t sl_guarded_check(const struct sl_guarded *buffer);

#endif
