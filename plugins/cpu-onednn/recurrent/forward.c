/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of one slice: by layer, by direction, by rectangle. */
#include <math.h>
#include <string.h>

#include "cpu-onednn/recurrent/recurrent.h"

static int32_t layer_slot(const struct odn_recurrent *r, int32_t layer)
{
    return r->training ? layer : layer & 1;
}

static bool writes_y(const struct odn_run *run, int32_t layer)
{
    const struct odn_recurrent *r = run->b->r;
    return run->b->in_place && layer == r->layers - 1 && (r->directions == 1 || r->concat) &&
           run->slots[SEQLSTM_SLOT_RECURRENT_Y] != NULL;
}

void *odn_layer_output(const struct odn_run *run, int32_t m, int32_t layer, int32_t direction)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const uint64_t elem = r->elem.bytes, output = (uint64_t)r->output;
    void *base = writes_y(run, layer) ? run->slots[SEQLSTM_SLOT_RECURRENT_Y]
                                      : odn_at(run->reserve, s->y + (uint64_t)layer_slot(r, layer) * s->y_stride);
    const uint64_t apart = r->concat ? output : (uint64_t)s->rows * output;
    return odn_at(base, (uint64_t)direction * apart * elem);
}

/* The output of a layer: the layer above reads it; at the end of the stack, it is the result. */
static void *layer_result(const struct odn_run *run, int32_t m, int32_t layer)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    if (r->directions == 1 || r->concat)
        return odn_layer_output(run, m, layer, 0);
    return odn_at(run->reserve, s->merged + (uint64_t)layer_slot(r, layer) * s->merged_stride);
}

void *odn_layer_input(const struct odn_run *run, int32_t m, int32_t layer)
{
    if (layer > 0)
        return layer_result(run, m, layer - 1);
    return run->b->in_place ? run->slots[SEQLSTM_SLOT_RECURRENT_X] : odn_at(run->reserve, run->b->slices[m].x);
}

/* Loads the states of sequences [from, to) of the slice from a slot of the call; zeros if there is none. */
static void load_states(const struct odn_run *run, int32_t m, const float *slot, int64_t width, int64_t from,
                        int64_t to, const struct odn_elem *elem, void *out_rows)
{
    const uint64_t bytes = (uint64_t)width * elem->bytes;
    if (slot == NULL && to > from)
        memset(odn_at(out_rows, (uint64_t)from * bytes), elem->type == dnnl_u8 ? (int)rintf(elem->shift) : 0,
               (size_t)((uint64_t)(to - from) * bytes));
    for (int64_t j = from; slot != NULL && j < to; j++)
        odn_convert_in(elem, width, slot + (m + j * run->b->slices_count) * width,
                       odn_at(out_rows, (uint64_t)j * bytes));
}

static void store_states(const struct odn_run *run, int32_t m, const void *rows, int64_t width, int64_t from,
                         int64_t to, const struct odn_elem *elem, float *slot)
{
    const uint64_t bytes = (uint64_t)width * elem->bytes;
    for (int64_t j = from; slot != NULL && j < to; j++)
        odn_convert_out(elem, width, odn_at(rows, (uint64_t)j * bytes), slot + (m + j * run->b->slices_count) * width);
}

static const float *initial(const struct odn_run *run, int32_t l, int32_t d, int which)
{
    const struct odn_recurrent *r = run->b->r;
    return r->desc->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE ? run->slots[odn_state_slot(r, l, d, which)] : NULL;
}

static float * final(const struct odn_run *run, int32_t l, int32_t d, int which)
{
    const struct odn_recurrent *r = run->b->r;
    return r->desc->options & SEQLSTM_BIT_RECURRENT_FINAL_STATE ? run->slots[odn_state_slot(r, l, d, which)] : NULL;
}

static dnnl_status_t run_layer(struct odn_run *run, int32_t m, int32_t l, int32_t d)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const int32_t k = odn_kind_of(r, l), way = odn_way_of(r, d), count = s->rectangle_count;
    const uint64_t elem = r->elem.bytes, layer = r->training ? (uint64_t)(l * r->directions + d) : 0;
    const uint64_t x_bytes = (uint64_t)r->kind[k].input * elem, y_bytes = (uint64_t)odn_y_width(r) * elem;
    const uint64_t h_bytes = (uint64_t)r->output * elem, c_bytes = (uint64_t)r->hidden * sizeof(float);
    const void *x = odn_layer_input(run, m, l), *y = odn_layer_output(run, m, l, d);
    void *h = odn_at(run->reserve, s->h + layer * s->h_stride), *c = odn_at(run->reserve, s->c + layer * s->c_stride);
    const uint64_t ws = odn_ws_place(r, s, l, d);
    const void *packed = odn_at(run->packed, odn_packed_of(r, l, d));
    const struct odn_kind *kind = &r->kind[k];
    const float *h0 = initial(run, l, d, SEQLSTM_STATE_H0), *c0 = initial(run, l, d, SEQLSTM_STATE_C0);
    for (int32_t i = 0; i < count; i++) {
        const struct odn_rectangle *now = &s->rectangles[way ? count - 1 - i : i];
        const struct odn_rectangle *before = i > 0 ? &s->rectangles[way ? count - i : i - 1] : NULL;
        const struct odn_rectangle *after = i + 1 < count ? &s->rectangles[way ? count - 2 - i : i + 1] : NULL;
        void *h_in = odn_at(h, (uint64_t)now->in_row[way] * h_bytes);
        void *c_in = odn_at(c, (uint64_t)now->in_row[way] * c_bytes);
        void *h_out = odn_at(h, (uint64_t)now->out_row[way] * h_bytes);
        void *c_out = odn_at(c, (uint64_t)now->out_row[way] * c_bytes);
        const int64_t begun = before != NULL ? before->n : 0;
        load_states(run, m, h0, r->output, begun, now->n, &r->elem, h_in);
        if (r->lstm)
            load_states(run, m, c0, r->hidden, begun, now->n, &odn_float32, c_in);
        struct odn_call *call = &s->shapes[now->shape].calls[k][way]->pass[ODN_FORWARD];
        odn_call_set(call, DNNL_ARG_SRC_LAYER, odn_at(x, (uint64_t)now->row * x_bytes));
        odn_call_set(call, DNNL_ARG_SRC_ITER, h_in);
        odn_call_set(call, DNNL_ARG_SRC_ITER_C, c_in);
        odn_call_set(call, DNNL_ARG_WEIGHTS_LAYER, odn_weights(run, l, d, ODN_FORWARD, ODN_WEIGHT_X));
        odn_call_set(call, DNNL_ARG_WEIGHTS_ITER, odn_weights(run, l, d, ODN_FORWARD, ODN_WEIGHT_H));
        odn_call_set(call, DNNL_ARG_WEIGHTS_PROJECTION, odn_weights(run, l, d, ODN_FORWARD, ODN_WEIGHT_P));
        odn_call_set(call, DNNL_ARG_WEIGHTS_PEEPHOLE, odn_param(r, run->slots, l, d, SEQLSTM_PARAM_PEEPHOLE));
        odn_call_set(call, DNNL_ARG_BIAS, odn_at(packed, kind->bias));
        odn_call_set(call, DNNL_ARG_DST_LAYER, odn_at(y, (uint64_t)now->row * y_bytes));
        odn_call_set(call, DNNL_ARG_DST_ITER, h_out);
        odn_call_set(call, DNNL_ARG_DST_ITER_C, c_out);
        odn_call_set(call, DNNL_ARG_WORKSPACE, odn_at(run->reserve, ws + now->ws[k]));
        odn_call_set(call, DNNL_ARG_SCRATCHPAD, odn_at(run->workspace, s->scratch));
        const dnnl_status_t status = odn_call_run(call, r->op->instance->stream);
        if (status != dnnl_success)
            return status;
        const int64_t living = after == NULL ? 0 : way ? now->n : after->n;
        store_states(run, m, h_out, r->output, living, now->n, &r->elem, final(run, l, d, SEQLSTM_STATE_HN));
        if (r->lstm)
            store_states(run, m, c_out, r->hidden, living, now->n, &odn_float32, final(run, l, d, SEQLSTM_STATE_CN));
    }
    return dnnl_success;
}

void odn_forward_slice(struct odn_run *run, int32_t m)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const bool merges = r->directions == 2 && !r->concat;
    const float scale = r->desc->merge == SEQLSTM_KIND_MERGE_AVE ? 0.5f : 1.0f;
    if (!run->b->in_place)
        odn_rows_in(run->b, m, r->kind[0].input, run->slots[SEQLSTM_SLOT_RECURRENT_X], &r->elem,
                    odn_at(run->reserve, s->x));
    for (int32_t l = 0; l < r->layers; l++) {
        for (int32_t d = 0; d < r->directions; d++) {
            const dnnl_status_t status = run_layer(run, m, l, d);
            if (status != dnnl_success) {
                run->failed = (int32_t)status;
                return;
            }
        }
        if (merges)
            odn_add(r->elem.type, s->rows * r->output, scale, odn_layer_output(run, m, l, 0),
                    odn_layer_output(run, m, l, 1), layer_result(run, m, l));
    }
    float *y = run->slots[SEQLSTM_SLOT_RECURRENT_Y];
    if (y != NULL && !writes_y(run, r->layers - 1))
        odn_rows_out(run->b, m, odn_y_width(r), &r->elem, layer_result(run, m, r->layers - 1), y);
}
