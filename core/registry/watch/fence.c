/* SPDX-License-Identifier: Apache-2.0 */
/* See fence.h. */
#include "registry/watch/fence.h"

#include <stdio.h>
#include <string.h>

#include "registry/watch/watch.h"

void sl_fence_begin(struct sl_fence *fence, const void *buffer, uint64_t bytes)
{
    fence->behind = buffer ? (const unsigned char *)buffer + bytes : NULL;
    fence->bytes = bytes;
    if (buffer)
        memcpy(fence->kept, fence->behind, SL_FENCE_BYTES);
}

seqlstm_status sl_fence_fail(const struct seqlstm_backend *table, enum sl_plugin_function function, const char *damage,
                             struct seqlstm_error *err)
{
    struct seqlstm_error own = SEQLSTM_ERROR_INIT;
    seqlstm_error_set(&own, SEQLSTM_INTERNAL, __FILE__, __LINE__, "the backend %s is faulty: its %s %s", table->id,
                      sl_plugin_function_name(function), damage);
    sl_watch_note_damage(own.message);
    if (err)
        *err = own;
    return own.code;
}

seqlstm_status sl_fence_end(const struct sl_fence *fence, const struct seqlstm_backend *table,
                            enum sl_plugin_function function, const char *name, struct seqlstm_error *err)
{
    char damage[160];
    if (!fence->behind || memcmp(fence->behind, fence->kept, SL_FENCE_BYTES) == 0)
        return SEQLSTM_OK;
    snprintf(damage, sizeof damage, "wrote beyond the %llu bytes of %s that its op_sizes asked for",
             (unsigned long long)fence->bytes, name);
    return sl_fence_fail(table, function, damage, err);
}

enum { FILLING = 0xA5 };

void sl_fence_fill(void *gap)
{
    if (gap)
        memset(gap, FILLING, SL_FENCE_BYTES);
}

bool sl_fence_is_filled(const void *gap)
{
    uint64_t words[SL_FENCE_BYTES / 8], other = 0;
    if (gap == NULL)
        return true;
    memcpy(words, gap, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        other |= words[i] ^ UINT64_C(0xA5A5A5A5A5A5A5A5);
    return other == 0;
}
