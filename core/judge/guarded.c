/* SPDX-License-Identifier: Apache-2.0 */
/* Guard bands and poison. */
#include "judge/guarded.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/backend.h>

#include "base/value/checked.h"

#define POISON 0xFF /* NaN in float16, bfloat16, float32 and float64; -1 as an integer */

seqlstm_status sl_guarded_init(struct sl_guarded *buffer, struct sl_twins *twins, uint64_t bytes,
                               struct seqlstm_error *err)
{
    size_t rounded;
    memset(buffer, 0, sizeof *buffer);
    if (!sl_checked_round_up_size(bytes, SEQLSTM_ALIGNMENT, &rounded) || rounded > SIZE_MAX - 2 * SL_GUARD_BYTES)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "a buffer of %llu bytes is too large", (unsigned long long)bytes);
    buffer->block = aligned_alloc(SEQLSTM_ALIGNMENT, rounded + 2 * SL_GUARD_BYTES);
    if (!buffer->block)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a buffer of %llu bytes", (unsigned long long)bytes);
    memset(buffer->block, POISON, rounded + 2 * SL_GUARD_BYTES);
    buffer->bytes = bytes;
    buffer->block_bytes = rounded + 2 * SL_GUARD_BYTES;
    buffer->data = bytes ? buffer->block + SL_GUARD_BYTES : NULL;
    if (twins && twins->domain) {
        void *twin = NULL;
        SEQLSTM_TRY(sl_domain_allocate(twins->domain, (int64_t)buffer->block_bytes, &twin, err));
        buffer->twin = twin;
        buffer->twins = twins;
        buffer->next = twins->first;
        twins->first = buffer;
    }
    return SEQLSTM_OK;
}

void *sl_guarded_get_address(const struct sl_guarded *buffer)
{
    return buffer->data && buffer->twin ? buffer->twin + SL_GUARD_BYTES : buffer->data;
}

seqlstm_status sl_twins_upload(const struct sl_twins *twins, struct seqlstm_error *err)
{
    for (const struct sl_guarded *b = twins->first; b; b = b->next)
        SEQLSTM_TRY(sl_domain_upload(twins->domain, b->twin, b->block, (int64_t)b->block_bytes, err));
    return SEQLSTM_OK;
}

seqlstm_status sl_twins_download(const struct sl_twins *twins, struct seqlstm_error *err)
{
    for (const struct sl_guarded *b = twins->first; b; b = b->next)
        SEQLSTM_TRY(sl_domain_download(twins->domain, b->block, b->twin, (int64_t)b->block_bytes, err));
    return SEQLSTM_OK;
}

void sl_guarded_deinit(struct sl_guarded *buffer)
{
    if (buffer->twin)
        sl_domain_release(buffer->twins->domain, buffer->twin);
    free(buffer->block);
    memset(buffer, 0, sizeof *buffer);
}

void sl_guarded_poison(struct sl_guarded *buffer)
{
    if (buffer->data)
        memset(buffer->data, POISON, (size_t)buffer->bytes);
}

int64_t sl_guarded_find_written(const struct sl_guarded *buffer, uint64_t begin, uint64_t end)
{
    const unsigned char *bytes = buffer->data;
    for (uint64_t i = begin; bytes && i < end && i < buffer->bytes; i++)
        if (bytes[i] != POISON)
            return (int64_t)i;
    return -1;
}

int64_t sl_guarded_check(const struct sl_guarded *buffer)
{
    if (!buffer->block)
        return 0;
    const unsigned char *end = buffer->block + SL_GUARD_BYTES + buffer->bytes;
    for (int64_t i = 0; i < SL_GUARD_BYTES; i++) {
        if (end[i] != POISON)
            return i + 1;
        if (buffer->block[SL_GUARD_BYTES - 1 - i] != POISON)
            return -(i + 1);
    }
    return 0;
}
