/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings: the slices of a batch with their primitives. */
#include "cpu-onednn/recurrent/recurrent.h"

static void release_calls(struct odn_recurrent_binding *b)
{
    for (int32_t m = 0; b->slices != NULL && m < b->slices_count; m++)
        for (int32_t i = 0; i < b->slices[m].shape_count; i++)
            for (int k = 0; k < ODN_KINDS; k++)
                for (int way = 0; way < ODN_WAYS; way++) {
                    struct odn_calls **calls = &b->slices[m].shapes[i].calls[k][way];
                    odn_calls_release(b->r, *calls);
                    *calls = NULL;
                }
}

void odn_recurrent_unbind(struct seqlstm_binding *binding)
{
    struct odn_recurrent_binding *b = binding->recurrent;
    if (b == NULL)
        return;
    release_calls(b);
    odn_slices_release(b);
    host_release(b->r->op->instance->host, b);
}

static seqlstm_status bind_calls(struct odn_recurrent_binding *b, struct odn_shape *shape,
                                 const struct odn_entry_key *key, bool only_idle, struct seqlstm_error *err)
{
    struct odn_calls *calls = NULL;
    SEQLSTM_TRY(odn_calls_acquire(b->r, key, only_idle, &calls, err));
    odn_calls_release(b->r, shape->calls[key->kind][key->way]);
    shape->calls[key->kind][key->way] = calls;
    return SEQLSTM_OK;
}

static struct odn_entry_key make_key(const struct odn_recurrent_binding *b, const struct odn_shape *shape, int32_t kind,
                                     int32_t way, uint64_t version, const float *scales)
{
    return (struct odn_entry_key){.kind = kind,
                                  .way = way,
                                  .threads = b->threads,
                                  .n = shape->n,
                                  .steps = shape->steps,
                                  .version = version,
                                  .scales = scales};
}

seqlstm_status odn_shape_bind(struct odn_recurrent_binding *b, struct odn_shape *shape, int32_t kind, int32_t way,
                              uint64_t version, const float *scales, struct seqlstm_error *err)
{
    const struct odn_entry_key key = make_key(b, shape, kind, way, version, scales);
    return bind_calls(b, shape, &key, false, err);
}

/* The calls of all shapes. `versions`: of the scales of int8, by way. */
static seqlstm_status bind_shapes(struct odn_recurrent_binding *b, const uint64_t versions[ODN_WAYS], bool only_idle,
                                  struct seqlstm_error *err)
{
    for (int32_t m = 0; m < b->slices_count; m++)
        for (int32_t i = 0; i < b->slices[m].shape_count; i++)
            for (int32_t k = 0; k < b->r->kinds; k++)
                for (int32_t d = 0; d < b->r->directions; d++) {
                    struct odn_shape *shape = &b->slices[m].shapes[i];
                    const int32_t way = odn_way_of(b->r, d);
                    const struct odn_entry_key key = make_key(b, shape, k, way, versions[way], NULL);
                    SEQLSTM_TRY(bind_calls(b, shape, &key, only_idle, err));
                }
    return SEQLSTM_OK;
}

static seqlstm_status check_axis(const struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    const struct seqlstm_desc *head = &binding->op->desc.head;
    const struct seqlstm_axis *axis = binding->bind.axis;
    if (axis->sequences > head->max_sequences || axis->steps > head->max_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a recurrent layer needs an axis within its descriptor");
    return SEQLSTM_OK;
}

/* Reads the shape of the binding. */
static void read_shape(const struct seqlstm_bind *bind, struct odn_recurrent_binding *b)
{
    const int64_t sequences = bind->axis->batch_sizes[bind->t0];
    b->axis = bind->axis;
    b->t0 = bind->t0;
    b->t1 = bind->t1;
    b->rows = bind->rows;
    b->slices_count = sequences < b->slices_room ? (int32_t)sequences : b->slices_room;
    b->in_place = b->slices_count == 1 && b->r->elem.type == dnnl_f32;
}

static seqlstm_status place(struct odn_recurrent_binding *b, struct seqlstm_error *err)
{
    const struct seqlstm_sizes *sizes = &b->r->op->sizes;
    uint64_t reserve, workspace;
    odn_recurrent_place(b, &reserve, &workspace);
    if (reserve > sizes->reserve_bytes || workspace > sizes->workspace_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                     "a batch needs %llu and %llu bytes of reserve and workspace, beyond the bounds of %llu and %llu",
                     (unsigned long long)reserve, (unsigned long long)workspace,
                     (unsigned long long)sizes->reserve_bytes, (unsigned long long)sizes->workspace_bytes);
    return SEQLSTM_OK;
}

seqlstm_status odn_recurrent_bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                  struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    const uint64_t none[ODN_WAYS] = {0};
    SEQLSTM_TRY(check_axis(binding, err));
    struct odn_recurrent_binding *b = host_allocate(op->instance->host, sizeof *b);
    if (b == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the binding of a recurrent layer");
    binding->recurrent = b;
    b->r = op->recurrent;
    b->slices_room = queue->members < b->r->slices_max ? queue->members : b->r->slices_max;
    b->threads = 1;
    if (op->exclusive)
        b->threads = queue->members < op->instance->members_max ? queue->members : op->instance->members_max;
    read_shape(&binding->bind, b);
    SEQLSTM_TRY(odn_slices_make(b, err));
    SEQLSTM_TRY(odn_slices_cut(b, err));
    SEQLSTM_TRY(bind_shapes(b, none, false, err));
    return place(b, err);
}

/* Primitives have one shape each, and making one allocates: those of the new shape must be there. So the first binding
 * of a shape is a new one, and when it ends its calls are left for others. */
seqlstm_status odn_recurrent_rebind(struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    struct odn_recurrent_binding *b = binding->recurrent;
    uint64_t versions[ODN_WAYS] = {0};
    SEQLSTM_TRY(check_axis(binding, err));
    for (int32_t d = 0; d < b->r->directions && b->r->quantized; d++) {
        const int32_t way = odn_way_of(b->r, d);
        versions[way] = b->slices[0].shapes[0].calls[0][way]->entry->version;
    }
    release_calls(b);
    read_shape(&binding->bind, b);
    SEQLSTM_TRY(odn_slices_cut(b, err));
    SEQLSTM_TRY(bind_shapes(b, versions, true, err));
    return place(b, err);
}
