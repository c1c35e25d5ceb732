/* SPDX-License-Identifier: Apache-2.0 */
/* See fence.h. */
#include "registry/watch/fence.h"

#include <string.h>

#include "registry/watch/watch.h"

void sl_fence_begin(struct sl_fence *fence, const void *buffer, uint64_t bytes)
{
    fence->behind = buffer ? (const unsigned char *)buffer + bytes : NULL;
    fence->bytes = bytes;
    if (buffer)
        memcpy(fence->kept, fence->behind, SL_FENCE_BYTES);
}

seqlstm_status sl_fence_end(const struct sl_fence *fence, const struct seqlstm_backend *table,
                            enum sl_plugin_function function, const char *name, struct seqlstm_error *err)
{
    struct seqlstm_error own = SEQLSTM_ERROR_INIT;
    if (!fence->behind || memcmp(fence->behind, fence->kept, SL_FENCE_BYTES) == 0)
        return SEQLSTM_OK;
    seqlstm_error_set(&own, SEQLSTM_INTERNAL, __FILE__, __LINE__,
                      "the backend %s is faulty: its %s wrote beyond the %llu bytes of %s that its op_sizes asked for",
                      table->id, sl_plugin_function_name(function), (unsigned long long)fence->bytes, name);
    sl_watch_note_damage(own.message);
    if (err)
        *err = own;
    return own.code;
}
