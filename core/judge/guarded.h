/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that notice writes beside them.
 *
 *   [ front band | payload | rear band ]      payload aligned to SEQLSTM_ALIGNMENT; the rear band begins
 *                                             at its very next byte
 *
 * Bands and fresh payloads are filled with bytes that are NaN in every floating-point type, so that reading
 * beside a buffer, or reading what was never written, shows in the results.
 *
 * Buffers made for a device have twins there, of the whole blocks: calls get a twin's address, sl_twins_upload goes
 * before them and sl_twins_download behind, bands included.
 */
#ifndef SL_JUDGE_GUARDED_H
#define SL_JUDGE_GUARDED_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "registry/domain.h"

enum { SL_GUARD_BYTES = 256 };

struct sl_guarded {
    unsigned char *block; /* NULL: none */
    void *data;           /* payload, on the host; NULL when absent */
    uint64_t bytes;
    uint64_t block_bytes;
    unsigned char *twin; /* of block; NULL on the host */
    struct sl_twins *twins;
    struct sl_guarded *next;
};

/* All buffers of one device that are moved together. */
struct sl_twins {
    struct sl_domain *domain; /* NULL: the host; there are no twins */
    struct sl_guarded *first;
};

/* `twins` NULL: of the host. All payload bytes are poisoned. 0 bytes: data is NULL, yet the bands exist. NO_MEMORY. */
seqlstm_status sl_guarded_init(struct sl_guarded *buffer, struct sl_twins *twins, uint64_t bytes,
                               struct seqlstm_error *err);
/* The twins as a whole have come to their end, too: none is moved afterwards. */
void sl_guarded_deinit(struct sl_guarded *buffer);

/* The payload's address for calls; NULL when absent. */
void *sl_guarded_get_address(const struct sl_guarded *buffer);

/* To and from the device. Errors: DEVICE. */
seqlstm_status sl_twins_upload(const struct sl_twins *twins, struct seqlstm_error *err);
seqlstm_status sl_twins_download(const struct sl_twins *twins, struct seqlstm_error *err);

/* Fills the payload with NaN again. */
void sl_guarded_poison(struct sl_guarded *buffer);

/* The first byte of [begin, end) of the payload that has been written; -1: none. */
int64_t sl_guarded_find_written(const struct sl_guarded *buffer, uint64_t begin, uint64_t end);

/* Distance to the payload of the nearest overwritten byte: negative before it, positive behind it (1 is
 * the first byte behind); 0: intact. */
int64_t sl_guarded_check(const struct sl_guarded *buffer);

#endif
