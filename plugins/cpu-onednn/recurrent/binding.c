/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings: the slices of a batch with their primitives. */
#include "cpu-onednn/recurrent/recurrent.h"

void odn_recurrent_unbind(struct seqlstm_binding *binding)
{
    struct odn_recurrent_binding *b = binding->recurrent;
    if (b == NULL)
        return;
    for (int32_t m = 0; b->slices != NULL && m < b->slices_count; m++)
        for (int32_t i = 0; i < b->slices[m].shape_count; i++) {
            struct odn_shape *shape = &b->slices[m].shapes[i];
            for (int32_t c = 0; shape->calls != NULL && c < odn_calls_count(b->r); c++)
                odn_call_deinit(&shape->calls[c]);
            for (int k = 0; k < ODN_KINDS; k++)
                for (int way = 0; way < ODN_WAYS; way++)
                    odn_entry_release(b->r, shape->entries[k][way]);
        }
    odn_slices_release(b);
    host_release(b->r->op->instance->host, b->slices);
    host_release(b->r->op->instance->host, b);
}

seqlstm_status odn_shape_bind(struct odn_recurrent_binding *b, struct odn_shape *shape, int32_t kind, int32_t way,
                              uint64_t version, const float *scales, struct seqlstm_error *err)
{
    struct odn_recurrent *r = b->r;
    const struct odn_entry_key key = {.kind = kind,
                                      .way = way,
                                      .threads = b->threads,
                                      .n = shape->n,
                                      .steps = shape->steps,
                                      .version = version,
                                      .scales = scales};
    struct odn_entry *entry = NULL;
    SEQLSTM_TRY(odn_entry_acquire(r, &key, &entry, err));
    odn_entry_release(r, shape->entries[kind][way]);
    shape->entries[kind][way] = entry;
    for (int p = 0; p < odn_passes(r); p++) {
        struct odn_call *call = odn_shape_call(r, shape, kind, way, p);
        odn_call_deinit(call);
        SEQLSTM_TRY(odn_call_init(call, r->op->instance->engine, entry->pd[p], entry->primitive[p], err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status bind_shape(struct odn_recurrent_binding *b, struct odn_shape *shape, struct seqlstm_error *err)
{
    for (int32_t k = 0; k < b->r->kinds; k++)
        for (int32_t d = 0; d < b->r->directions; d++)
            SEQLSTM_TRY(odn_shape_bind(b, shape, k, odn_way_of(b->r, d), 0, NULL, err));
    return SEQLSTM_OK;
}

seqlstm_status odn_recurrent_bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                  struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    struct odn_recurrent *r = op->recurrent;
    const struct seqlstm_axis *axis = binding->bind.axis;
    if (axis->sequences > r->desc->head.max_sequences || axis->steps > r->desc->head.max_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a recurrent layer needs an axis within its descriptor");
    struct odn_recurrent_binding *b = host_allocate(op->instance->host, sizeof *b);
    if (b == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the binding of a recurrent layer");
    binding->recurrent = b;
    b->r = r;
    b->axis = axis;
    b->t0 = binding->bind.t0;
    b->t1 = binding->bind.t1;
    b->rows = binding->bind.rows;
    const int64_t sequences = axis->batch_sizes[b->t0];
    b->slices_count = queue->members < r->slices_max ? queue->members : r->slices_max;
    if (sequences < b->slices_count)
        b->slices_count = (int32_t)sequences;
    b->in_place = b->slices_count == 1 && r->elem.type == dnnl_f32;
    b->slices = host_allocate(op->instance->host, (uint64_t)b->slices_count * sizeof *b->slices);
    if (b->slices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the slices of a batch");
    SEQLSTM_TRY(odn_slices_cut(b, err));
    SEQLSTM_TRY(odn_slices_make_calls(b, err));
    b->threads = 1;
    if (op->exclusive)
        b->threads = queue->members < op->instance->members_max ? queue->members : op->instance->members_max;
    for (int32_t m = 0; m < b->slices_count; m++)
        for (int32_t i = 0; i < b->slices[m].shape_count; i++)
            SEQLSTM_TRY(bind_shape(b, &b->slices[m].shapes[i], err));
    uint64_t reserve, workspace;
    odn_recurrent_place(b, &reserve, &workspace);
    if (reserve > op->sizes.reserve_bytes || workspace > op->sizes.workspace_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                     "a batch needs %llu and %llu bytes of reserve and workspace, beyond the bounds of %llu and %llu",
                     (unsigned long long)reserve, (unsigned long long)workspace,
                     (unsigned long long)op->sizes.reserve_bytes, (unsigned long long)op->sizes.workspace_bytes);
    return SEQLSTM_OK;
}
