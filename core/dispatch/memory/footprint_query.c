/* SPDX-License-Identifier: Apache-2.0 */
/* See footprint_query.h. */
#include "dispatch/memory/footprint_query.h"

#include <stdlib.h>

#include "registry/plugin.h"
#include "registry/watch/watch.h"

seqlstm_status sl_idle_init(struct seqlstm_idle *idle, struct seqlstm_error *err)
{
    *idle = (struct seqlstm_idle){.struct_size = sizeof *idle};
    struct seqlstm_range *room = malloc(2 * SL_IDLE_ROOM * sizeof *room);
    if (room == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the idle parts of buffers");
    idle->workspace = (struct seqlstm_ranges){.at = room, .room = SL_IDLE_ROOM};
    idle->reserve = (struct seqlstm_ranges){.at = room + SL_IDLE_ROOM, .room = SL_IDLE_ROOM};
    return SEQLSTM_OK;
}

void sl_idle_deinit(struct seqlstm_idle *idle)
{
    free(idle->workspace.at); /* one block for both */
    idle->workspace.at = idle->reserve.at = NULL;
}

/* NULL: the backend does not have the extension. */
static const struct seqlstm_footprint *find_extension(const struct sl_footprint *footprint)
{
    return sl_plugin_get_extension(footprint->table, footprint->instance, SEQLSTM_FOOTPRINT_EXTENSION);
}

static seqlstm_status check_ranges(const char *id, const struct seqlstm_ranges *ranges, uint64_t bytes,
                                   const char *name, struct seqlstm_error *err)
{
    if (ranges->count > SL_IDLE_ROOM)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                     "backend %s: it reports %u idle parts of the %s, more than the %d that there is room for", id,
                     ranges->count, name, SL_IDLE_ROOM);
    uint64_t end = 0;
    for (uint32_t i = 0; i < ranges->count; i++) {
        const struct seqlstm_range range = ranges->at[i];
        if (range.begin < end || range.end < range.begin || range.end > bytes)
            SEQLSTM_FAIL(
                err, SEQLSTM_INTERNAL,
                "backend %s: it reports bytes %llu to %llu of the %s as idle, out of order or outside its %llu bytes",
                id, (unsigned long long)range.begin, (unsigned long long)range.end, name, (unsigned long long)bytes);
        end = range.end;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_footprint_ask_idle(const struct sl_footprint *footprint, const struct seqlstm_axis *axis,
                                     struct seqlstm_idle *idle, struct seqlstm_error *err)
{
    const struct seqlstm_footprint *extension = find_extension(footprint);
    idle->workspace.count = idle->reserve.count = 0;
    if (extension == NULL || !SEQLSTM_HAS(extension, idle_ranges) || extension->idle_ranges == NULL)
        return SEQLSTM_OK;
    struct sl_watched_call call;
    sl_watch_begin(&call, footprint->table->id, SL_FUNCTION_IDLE_RANGES);
    seqlstm_status status = extension->idle_ranges(footprint->op, footprint->sizes, axis, idle, err);
    sl_watch_end(&call);
    SEQLSTM_TRY(sl_plugin_check_status(footprint->table, SL_FUNCTION_IDLE_RANGES, status, err));
    SEQLSTM_TRY(
        check_ranges(footprint->table->id, &idle->workspace, footprint->sizes->workspace_bytes, "workspace", err));
    SEQLSTM_TRY(check_ranges(footprint->table->id, &idle->reserve, footprint->sizes->reserve_bytes, "reserve", err));
    return SEQLSTM_OK;
}

seqlstm_status sl_footprint_ask_own(const struct sl_footprint *footprint, const struct seqlstm_axis *const *batches,
                                    uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                                    struct seqlstm_error *err)
{
    const struct seqlstm_footprint *extension = find_extension(footprint);
    *out_bytes = 0;
    if (extension == NULL || !SEQLSTM_HAS(extension, own_bytes) || extension->own_bytes == NULL)
        return SEQLSTM_OK;
    struct sl_watched_call call;
    sl_watch_begin(&call, footprint->table->id, SL_FUNCTION_OWN_BYTES);
    seqlstm_status status = extension->own_bytes(footprint->op, batches, batch_count, bound_count, out_bytes, err);
    sl_watch_end(&call);
    SEQLSTM_TRY(sl_plugin_check_status(footprint->table, SL_FUNCTION_OWN_BYTES, status, err));
    if (*out_bytes > SL_PLUGIN_BYTES_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                     "the backend %s is faulty: its own_bytes returned %llu bytes, more than any machine has",
                     footprint->table->id, (unsigned long long)*out_bytes);
    return SEQLSTM_OK;
}
