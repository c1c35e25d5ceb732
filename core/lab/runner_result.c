/* SPDX-License-Identifier: Apache-2.0 */
/* What a runner's calls left behind: values, damage, a digest. See runner_private.h. */
#include "lab/runner_private.h"

#include <string.h>

#include "base/hash.h"
#include "base/text.h"

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
            report_damage(&r->grads[k], name, text, capacity_bytes) ||
            input_changed(r, k, text, capacity_bytes))
            return true;
    }
    for (int32_t p = 0; p < r->piece_count; p++) {
        const struct sl_runner_piece *piece = &r->pieces[p];
        if (report_damage(&piece->reserve, "the reserve", text, capacity_bytes))
            return true;
        for (int32_t k = 0; k < r->count; k++)
            if (report_damage(&piece->middle[k], "a state between pieces", text, capacity_bytes) ||
                report_damage(&piece->middle_grad[k], "a state's gradient between pieces", text, capacity_bytes))
                return true;
    }
    return report_damage(&r->workspace, "the workspace", text, capacity_bytes) ||
           report_damage(&r->packed, "the packed weights", text, capacity_bytes);
}

seqlstm_status sl_runner_ask_idle(struct sl_runner *r, uint64_t *out_workspace, uint64_t *out_reserve,
                                  struct seqlstm_error *err)
{
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes, .members = r->subject.queue->members,
                                  .axis = r->data->axis.steps > 0 ? &r->data->axis : NULL};
    SEQLSTM_TRY(r->subject.table->op_sizes(r->op, &sizes, err));
    if (sizes.workspace_idle_bytes > r->sizes.workspace_bytes || sizes.reserve_idle_bytes > r->sizes.reserve_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                     "it says that calls leave %llu of %llu bytes of workspace and %llu of %llu of reserve idle",
                     (unsigned long long)sizes.workspace_idle_bytes, (unsigned long long)r->sizes.workspace_bytes,
                     (unsigned long long)sizes.reserve_idle_bytes, (unsigned long long)r->sizes.reserve_bytes);
    r->watches_idle = true;
    *out_workspace = sizes.workspace_idle_bytes;
    *out_reserve = sizes.reserve_idle_bytes;
    return SEQLSTM_OK;
}

static bool is_busy(const struct sl_guarded *buffer, uint64_t idle, const char *name, char *text, size_t capacity)
{
    const uint64_t untouched = sl_guarded_count_untouched(buffer, 2u << 20);
    if (untouched >= idle)
        return false;
    sl_text_snprintf(text, capacity,
                     "calls touched what op_sizes said they would not: %llu of the %llu bytes of %s were to be idle, "
                     "%llu are, in runs of 2 MiB and more",
                     (unsigned long long)idle, (unsigned long long)buffer->bytes, name, (unsigned long long)untouched);
    return true;
}

bool sl_runner_find_busy(const struct sl_runner *r, uint64_t workspace, uint64_t reserve, char *text,
                         size_t capacity_bytes)
{
    return is_busy(&r->workspace, workspace, "workspace", text, capacity_bytes) ||
           is_busy(&r->pieces[0].reserve, reserve, "reserve", text, capacity_bytes);
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
