/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that detect writes outside of them.
 *
 *   [ front band | payload | rear band ]      the payload is aligned to SEQLSTM_ALIGNMENT; the rear band begins
 *                                             at the very next byte
 *
 * Bands and new payloads are filled with bytes that are NaN in every floating-point type. So reading outside of a
 * buffer, or reading what was never written, shows in the results.
 *
 * Buffers for a device have twins there, which include the bands. Calls get the address of a twin. sl_twins_upload
 * copies to the twins before a call, sl_twins_download back after it, bands included. */
#ifndef SL_JUDGE_GUARDED_H
#define SL_JUDGE_GUARDED_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "registry/domain.h"

enum { SL_GUARD_BYTES = 256 };

struct sl_guarded {
    unsigned char *block; /* NULL: none */
    void *data;           /* the payload on the host; NULL if absent */
    uint64_t bytes;
    uint64_t block_bytes;
    unsigned char *twin; /* copy of the block on the device; NULL for the host */
    struct sl_twins *twins;
    struct sl_guarded *next;
};

/* All buffers of one device, which are copied together. */
struct sl_twins {
    struct sl_domain *domain; /* NULL: the host, which needs no twins */
    struct sl_guarded *first;
};

/* `twins` NULL: a buffer of the host. The whole payload is poisoned. With 0 bytes data is NULL, but the bands exist.
 * NO_MEMORY. */
seqlstm_status sl_guarded_init(struct sl_guarded *buffer, struct sl_twins *twins, uint64_t bytes,
                               struct seqlstm_error *err);
/* Also ends the use of its twins: none of them is copied afterwards. */
void sl_guarded_deinit(struct sl_guarded *buffer);

/* The payload's address for calls; NULL if absent. */
void *sl_guarded_get_address(const struct sl_guarded *buffer);

/* Copy to and from the device. Errors: DEVICE. */
seqlstm_status sl_twins_upload(const struct sl_twins *twins, struct seqlstm_error *err);
seqlstm_status sl_twins_download(const struct sl_twins *twins, struct seqlstm_error *err);

/* Fills the payload with NaN again. */
void sl_guarded_poison(struct sl_guarded *buffer);

/* The first byte of [begin, end) of the payload that was written; -1 if none was. */
int64_t sl_guarded_find_written(const struct sl_guarded *buffer, uint64_t begin, uint64_t end);

/* The distance from the payload to the nearest overwritten byte: negative before it, positive behind it (1 is the
 * first byte behind it); 0 if none was overwritten. */
int64_t sl_guarded_check(const struct sl_guarded *buffer);

#endif
