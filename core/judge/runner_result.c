/* SPDX-License-Identifier: Apache-2.0 */
/* What a runner's calls left behind: values, damage, a digest. See runner_private.h. */
#include "judge/runner_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/hash.h"
#include "base/value/text.h"
#include "dispatch/memory/idle.h"

bool sl_runner_read(const struct sl_runner *r, int32_t slot, bool gradient, double *out)
{
    const struct sl_guarded *buffer = gradient ? &r->grads[slot] : &r->values[slot];
    enum sl_slot_role role = r->data->slots[slot].role;
    bool is_result = gradient ? r->has_backward && (role == SL_SLOT_INPUT || role == SL_SLOT_PARAM)
                              : role == SL_SLOT_OUTPUT || role == SL_SLOT_INOUT;
    if (!buffer->data || !is_result)
        return false;
    sl_dtype_load(r->dtypes[slot], buffer->data, out, r->data->elems[slot]);
    return true;
}

static bool report_damage(const struct sl_guarded *buffer, const char *name, char *text, size_t capacity)
{
    int64_t at = sl_guarded_check(buffer);
    if (at == 0)
        return false;
    sl_text_snprintf(text, capacity, "wrote %lld byte%s %s %s (%llu bytes)", (long long)(at < 0 ? -at : at),
                     at == 1 || at == -1 ? "" : "s", at < 0 ? "before" : "behind the end of", name,
                     (unsigned long long)buffer->bytes);
    return true;
}

/* An input must still hold what was stored. */
static bool input_changed(const struct sl_runner *r, int32_t k, char *text, size_t capacity)
{
    enum sl_slot_role role = r->data->slots[k].role;
    if (role != SL_SLOT_INPUT && role != SL_SLOT_PARAM && role != SL_SLOT_CONST)
        return false;
    size_t one = (size_t)sl_dtype_bytes(r->dtypes[k]);
    for (int64_t i = 0; i < r->data->elems[k]; i++) {
        unsigned char expected[8];
        sl_dtype_store(r->dtypes[k], expected, &r->data->values[k][i], 1);
        if (memcmp(expected, (const unsigned char *)r->values[k].data + (size_t)i * one, one) != 0) {
            sl_text_snprintf(text, capacity, "changed element %lld of the input %s", (long long)i,
                             r->data->slots[k].name);
            return true;
        }
    }
    return false;
}

bool sl_runner_find_damage(const struct sl_runner *r, char *text, size_t capacity_bytes)
{
    for (int32_t k = 0; k < r->count; k++) {
        char name[64];
        const char *slot = r->data->slots[k].name;
        if (!r->values[k].block)
            continue;
        sl_text_snprintf(name, sizeof name, "d%s", slot);
        if (report_damage(&r->values[k], slot, text, capacity_bytes) ||
            report_damage(&r->grads[k], name, text, capacity_bytes) || input_changed(r, k, text, capacity_bytes))
            return true;
    }
    for (int32_t p = 0; p < r->segment_count; p++) {
        const struct sl_runner_segment *segment = &r->segments[p];
        if (report_damage(&segment->reserve, "the reserve", text, capacity_bytes))
            return true;
        for (int32_t k = 0; k < r->count; k++)
            if (report_damage(&segment->middle[k], "a state between segments", text, capacity_bytes) ||
                report_damage(&segment->middle_grad[k], "a state's gradient between segments", text, capacity_bytes))
                return true;
    }
    return report_damage(&r->workspace, "the workspace", text, capacity_bytes) ||
           report_damage(&r->packed, "the packed weights", text, capacity_bytes);
}

seqlstm_status sl_runner_ask_idle(struct sl_runner *r, bool *out_any, struct seqlstm_error *err)
{
    if (r->workspace_idle == NULL)
        r->workspace_idle = malloc(2 * SL_IDLE_ROOM * sizeof *r->workspace_idle);
    if (r->workspace_idle == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for what calls leave idle");
    r->reserve_idle = r->workspace_idle + SL_IDLE_ROOM;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes,
                                  .members = r->subject.queue->members,
                                  .axis = r->data->axis.steps > 0 ? &r->data->axis : NULL,
                                  .workspace_idle = r->workspace_idle,
                                  .reserve_idle = r->reserve_idle,
                                  .idle_room = SL_IDLE_ROOM};
    SEQLSTM_TRY(r->subject.table->op_sizes(r->op, &sizes, err));
    SEQLSTM_TRY(
        sl_idle_check(r->workspace_idle, sizes.workspace_idle_count, r->sizes.workspace_bytes, "workspace", err));
    SEQLSTM_TRY(sl_idle_check(r->reserve_idle, sizes.reserve_idle_count, r->sizes.reserve_bytes, "reserve", err));
    r->watches_idle = true;
    r->workspace_idle_count = sizes.workspace_idle_count;
    r->reserve_idle_count = sizes.reserve_idle_count;
    *out_any = sizes.workspace_idle_count + sizes.reserve_idle_count > 0;
    return SEQLSTM_OK;
}

static bool is_busy(const struct sl_guarded *buffer, const struct seqlstm_span *idle, uint32_t count, const char *name,
                    char *text, size_t capacity)
{
    for (uint32_t i = 0; i < count; i++) {
        const int64_t at = sl_guarded_find_written(buffer, idle[i].begin, idle[i].end);
        if (at < 0)
            continue;
        sl_text_snprintf(text, capacity,
                         "calls touched byte %lld of %s: op_sizes said that %llu to %llu of its %llu are idle",
                         (long long)at, name, (unsigned long long)idle[i].begin, (unsigned long long)idle[i].end,
                         (unsigned long long)buffer->bytes);
        return true;
    }
    return false;
}

bool sl_runner_find_busy(const struct sl_runner *r, char *text, size_t capacity_bytes)
{
    return is_busy(&r->workspace, r->workspace_idle, r->workspace_idle_count, "workspace", text, capacity_bytes) ||
           is_busy(&r->segments[0].reserve, r->reserve_idle, r->reserve_idle_count, "reserve", text, capacity_bytes);
}

uint64_t sl_runner_digest(const struct sl_runner *r)
{
    uint64_t digest = 0;
    for (int32_t k = 0; k < r->count; k++) {
        enum sl_slot_role role = r->data->slots[k].role;
        if (role == SL_SLOT_OUTPUT || role == SL_SLOT_INOUT)
            digest = sl_hash_bytes(r->values[k].data, (size_t)r->values[k].bytes, digest + 1);
        else if (r->has_backward && r->grads[k].data)
            digest = sl_hash_bytes(r->grads[k].data, (size_t)r->grads[k].bytes, digest + 1);
    }
    return digest;
}
