/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a runner's calls have left: values, damage, a hash. See runner_private.h. */
#include "judge/runner_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/hash.h"
#include "base/value/text.h"

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

/* Returns true if an input no longer holds what was stored. */
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

/* Returns true if a gradient was written that the last backward was not asked for. */
static bool wrote_unasked(const struct sl_runner *r, int32_t k, char *text, size_t capacity)
{
    if (!r->has_backward || !(sl_runner_get_part(r, k) & r->unasked_parts) || !r->grads[k].data ||
        sl_guarded_find_written(&r->grads[k], 0, r->grads[k].bytes) < 0)
        return false;
    sl_text_snprintf(text, capacity, "wrote d%s, which was not asked for", r->data->slots[k].name);
    return true;
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
            report_damage(&r->grads[k], name, text, capacity_bytes) || input_changed(r, k, text, capacity_bytes) ||
            wrote_unasked(r, k, text, capacity_bytes))
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
    const struct sl_footprint footprint = {
        .table = r->subject.table, .instance = r->subject.instance, .op = r->op, .sizes = &r->sizes};
    const struct seqlstm_axis *axis = r->data->axis.steps > 0 ? &r->data->axis : NULL;
    if (r->idle.workspace.at == NULL)
        SEQLSTM_TRY(sl_idle_init(&r->idle, err));
    SEQLSTM_TRY(sl_footprint_ask_idle(&footprint, axis, &r->idle, err));
    r->watches_idle = true;
    *out_any = r->idle.workspace.count + r->idle.reserve.count > 0;
    return SEQLSTM_OK;
}

static bool is_busy(const struct sl_guarded *buffer, const struct seqlstm_ranges *idle, const char *name, char *text,
                    size_t capacity)
{
    for (uint32_t i = 0; i < idle->count; i++) {
        const struct seqlstm_range range = idle->at[i];
        const int64_t at = sl_guarded_find_written(buffer, range.begin, range.end);
        if (at < 0)
            continue;
        sl_text_snprintf(text, capacity,
                         "calls touched byte %lld of %s: idle_ranges said that %llu to %llu of its %llu are idle",
                         (long long)at, name, (unsigned long long)range.begin, (unsigned long long)range.end,
                         (unsigned long long)buffer->bytes);
        return true;
    }
    return false;
}

bool sl_runner_find_busy(const struct sl_runner *r, char *text, size_t capacity_bytes)
{
    return is_busy(&r->workspace, &r->idle.workspace, "workspace", text, capacity_bytes) ||
           is_busy(&r->segments[0].reserve, &r->idle.reserve, "reserve", text, capacity_bytes);
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
