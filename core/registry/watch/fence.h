/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes behind buffers that a plugin asked for in op_sizes: did a call write beyond what it asked for?
 *
 *   struct sl_fence fence;
 *   sl_fence_begin(&fence, workspace, sizes.workspace_bytes);
 *   ... the call ...
 *   status = sl_fence_end(&fence, table, SL_FUNCTION_FORWARD, "workspace", err);
 *
 * Only for buffers in the host's memory, with SL_FENCE_BYTES of the host's own behind each. It takes a few nanoseconds.
 */
#ifndef SL_REGISTRY_WATCH_FENCE_H
#define SL_REGISTRY_WATCH_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "registry/watch/running.h"

/* SL_FENCE_ROOM: what an allocation has behind its last buffer, so that a larger overrun damages nothing else. */
enum { SL_FENCE_BYTES = 64, SL_FENCE_ROOM = 32 << 10 };

struct sl_fence {
    const unsigned char *behind; /* NULL: there is no buffer */
    uint64_t bytes;              /* of the buffer */
    unsigned char kept[SL_FENCE_BYTES];
};

/* Where the bytes behind a buffer belong to nothing else, they need not be kept: they are filled before a call and
 * looked at after it. `gap`: SL_FENCE_BYTES, or NULL. */
void sl_fence_fill(void *gap);
bool sl_fence_is_filled(const void *gap);
/* What to answer to damage ("wrote beyond its output `x`"): INTERNAL, with a message that names plugin and function. */
seqlstm_status sl_fence_fail(const struct seqlstm_backend *table, enum sl_plugin_function function, const char *damage,
                             struct seqlstm_error *err);

/* `buffer` may be NULL. */
void sl_fence_begin(struct sl_fence *fence, const void *buffer, uint64_t bytes);

/* Errors: INTERNAL, with a message that names plugin, function and buffer. */
seqlstm_status sl_fence_end(const struct sl_fence *fence, const struct seqlstm_backend *table,
                            enum sl_plugin_function function, const char *name, struct seqlstm_error *err);

#endif
