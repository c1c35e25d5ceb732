/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of one layer and direction of one slice.
 *
 * Gradients of activations are float32 throughout. The buffers of a layer's dy and of the dx below it are swapped from
 * layer to layer; the dx of the second direction is added to that of the first. */
#include <string.h>

#include "cpu-onednn/recurrent/recurrent.h"

/* The address of the layer's dy within the slice; `out_given`: in the caller's own rows. */
static void *layer_dy(const struct odn_run *run, int32_t m, int32_t layer)
{
    const struct odn_recurrent *r = run->b->r;
    const bool plain = r->directions == 1 || r->concat;
    if (layer == r->layers - 1 && run->b->in_place && plain && run->grads[SEQLSTM_SLOT_RECURRENT_Y] != NULL)
        return run->grads[SEQLSTM_SLOT_RECURRENT_Y];
    return odn_at(run->workspace, run->b->slices[m].dy[layer & 1]);
}

static bool wants_dx(const struct odn_run *run)
{
    return (run->parts & SEQLSTM_BIT_BACKWARD_INPUTS) != 0 && run->grads[SEQLSTM_SLOT_RECURRENT_X] != NULL;
}

static void *layer_dx(const struct odn_run *run, int32_t m, int32_t layer)
{
    if (layer == 0 && run->b->in_place && wants_dx(run))
        return run->grads[SEQLSTM_SLOT_RECURRENT_X];
    return odn_at(run->workspace, run->b->slices[m].dy[(layer & 1) ^ 1]);
}

/* Copies dy of the highest layer into the slice. With merge sum, both directions get the whole gradient; with ave, half
 * of it. */
static void load_dy(const struct odn_run *run, int32_t m, int32_t layer)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const int64_t width = odn_y_width(r);
    const float *given = run->grads[SEQLSTM_SLOT_RECURRENT_Y];
    float *dy = layer_dy(run, m, layer);
    if (layer == r->layers - 1) {
        if (given == NULL)
            memset(dy, 0, (size_t)(s->rows * width) * sizeof *dy);
        else if (dy != given)
            odn_rows_in(run->b, m, width, given, &odn_float32, dy);
    }
    if (r->directions == 2 && r->desc->merge == SEQLSTM_KIND_MERGE_AVE)
        for (int64_t i = 0; i < s->rows * width; i++)
            dy[i] *= 0.5f;
}

/* Loads the gradients of the final states of sequences [from, to). */
static void load_grads(const struct odn_run *run, int32_t m, const float *given, int64_t width, int64_t from,
                       int64_t to, float *out)
{
    for (int64_t j = from; j < to; j++)
        if (given != NULL)
            memcpy(out + j * width, given + (m + j * run->b->slices_count) * width, (size_t)width * sizeof *out);
        else
            memset(out + j * width, 0, (size_t)width * sizeof *out);
}

static void store_grads(const struct odn_run *run, int32_t m, const float *from_rows, int64_t width, int64_t from,
                        int64_t to, float *out)
{
    for (int64_t j = from; out != NULL && j < to; j++)
        memcpy(out + (m + j * run->b->slices_count) * width, from_rows + j * width, (size_t)width * sizeof *out);
}

struct states {
    float *h, *c;
};

static struct states states_at(const struct odn_run *run, int32_t m, int which)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const int64_t each = s->sequences * (r->output + r->hidden);
    float *base = odn_at(run->workspace, s->states);
    return (struct states){base + which * each, base + which * each + s->sequences * r->output};
}

static struct states state_grads(const struct odn_run *run, int32_t l, int32_t d, int h, int c, bool wanted)
{
    const struct odn_recurrent *r = run->b->r;
    if (!wanted)
        return (struct states){NULL, NULL};
    return (struct states){run->grads[odn_state_slot(r, l, d, h)],
                           r->lstm ? run->grads[odn_state_slot(r, l, d, c)] : NULL};
}

static void set_values(struct odn_run *run, int32_t m, int32_t l, int32_t d, const struct odn_rectangle *now,
                       struct odn_call *call)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const int32_t k = odn_kind_of(r, l), way = odn_way_of(r, d);
    const struct odn_kind *kind = &r->kind[k];
    const uint64_t elem = r->elem.bytes, layer = (uint64_t)(l * r->directions + d);
    const uint64_t h = s->h + layer * s->h_stride, c = s->c + layer * s->c_stride;
    const uint64_t h_bytes = (uint64_t)r->output * elem, c_bytes = (uint64_t)r->hidden * sizeof(float);
    const uint64_t packed = odn_packed_of(r, l, d);
    odn_call_set(call, DNNL_ARG_SRC_LAYER,
                 odn_at(odn_layer_input(run, m, l), (uint64_t)(now->row * kind->input) * elem));
    odn_call_set(call, DNNL_ARG_SRC_ITER, odn_at(run->reserve, h + (uint64_t)now->in_row[way] * h_bytes));
    odn_call_set(call, DNNL_ARG_SRC_ITER_C, odn_at(run->reserve, c + (uint64_t)now->in_row[way] * c_bytes));
    odn_call_set(call, DNNL_ARG_WEIGHTS_LAYER, odn_weights(run, l, d, ODN_BACKWARD, ODN_WEIGHT_X));
    odn_call_set(call, DNNL_ARG_WEIGHTS_ITER, odn_weights(run, l, d, ODN_BACKWARD, ODN_WEIGHT_H));
    odn_call_set(call, DNNL_ARG_WEIGHTS_PEEPHOLE, odn_param(r, run->slots, l, d, SEQLSTM_PARAM_PEEPHOLE));
    odn_call_set(call, DNNL_ARG_BIAS, odn_at(run->packed, packed + kind->bias));
    odn_call_set(call, DNNL_ARG_DST_LAYER,
                 odn_at(odn_layer_output(run, m, l, d), (uint64_t)(now->row * odn_y_width(r)) * elem));
    odn_call_set(call, DNNL_ARG_DST_ITER, odn_at(run->reserve, h + (uint64_t)now->out_row[way] * h_bytes));
    odn_call_set(call, DNNL_ARG_DST_ITER_C, odn_at(run->reserve, c + (uint64_t)now->out_row[way] * c_bytes));
    odn_call_set(call, DNNL_ARG_WORKSPACE, odn_at(run->reserve, odn_ws_place(r, s, l, d) + now->ws[k]));
    odn_call_set(call, DNNL_ARG_SCRATCHPAD, odn_at(run->workspace, s->scratch));
    void *grads = odn_at(run->workspace, s->grads);
    odn_call_set(call, DNNL_ARG_DIFF_WEIGHTS_LAYER, odn_at(grads, kind->grad_place[ODN_WEIGHT_X]));
    odn_call_set(call, DNNL_ARG_DIFF_WEIGHTS_ITER, odn_at(grads, kind->grad_place[ODN_WEIGHT_H]));
    odn_call_set(call, DNNL_ARG_DIFF_BIAS, odn_at(grads, kind->grad_bias));
    odn_call_set(call, DNNL_ARG_DIFF_WEIGHTS_PEEPHOLE, odn_at(grads, kind->grad_peephole));
}

static dnnl_status_t run_layer(struct odn_run *run, int32_t m, int32_t l, int32_t d, const float *dy, float *dx)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const int32_t k = odn_kind_of(r, l), way = odn_way_of(r, d), count = s->rectangle_count;
    const struct states last = state_grads(run, l, d, SEQLSTM_STATE_HN, SEQLSTM_STATE_CN,
                                           (r->desc->options & SEQLSTM_BIT_RECURRENT_FINAL_STATE) != 0);
    const struct states first = state_grads(run, l, d, SEQLSTM_STATE_H0, SEQLSTM_STATE_C0,
                                            (run->parts & SEQLSTM_BIT_BACKWARD_STATES) != 0 &&
                                                (r->desc->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE) != 0);
    struct states out = states_at(run, m, 0), in = states_at(run, m, 1);
    for (int32_t i = count - 1; i >= 0; i--) { /* i counts in forward's order of execution */
        const struct odn_rectangle *now = &s->rectangles[way ? count - 1 - i : i];
        const struct odn_rectangle *before = i > 0 ? &s->rectangles[way ? count - i : i - 1] : NULL;
        const struct odn_rectangle *after = i + 1 < count ? &s->rectangles[way ? count - 2 - i : i + 1] : NULL;
        const int64_t living = after == NULL ? 0 : way ? now->n : after->n;
        load_grads(run, m, last.h, r->output, living, now->n, out.h);
        if (r->lstm)
            load_grads(run, m, last.c, r->hidden, living, now->n, out.c);
        struct odn_call *call = &s->shapes[now->shape].calls[k][way]->pass[ODN_BACKWARD];
        set_values(run, m, l, d, now, call);
        odn_call_set(call, DNNL_ARG_DIFF_DST_LAYER, dy + now->row * odn_y_width(r));
        odn_call_set(call, DNNL_ARG_DIFF_DST_ITER, out.h);
        odn_call_set(call, DNNL_ARG_DIFF_DST_ITER_C, out.c);
        odn_call_set(call, DNNL_ARG_DIFF_SRC_LAYER, dx + now->row * r->kind[k].input);
        odn_call_set(call, DNNL_ARG_DIFF_SRC_ITER, in.h);
        odn_call_set(call, DNNL_ARG_DIFF_SRC_ITER_C, in.c);
        const dnnl_status_t status = odn_call_run(call, r->op->instance->stream);
        if (status != dnnl_success)
            return status;
        const int64_t begun = before == NULL ? 0 : before->n; /* sequences that began earlier */
        store_grads(run, m, in.h, r->output, begun, now->n, first.h);
        if (r->lstm)
            store_grads(run, m, in.c, r->hidden, begun, now->n, first.c);
        const struct states swap = out;
        out = in;
        in = swap;
    }
    return dnnl_success;
}

void odn_backward_layer(struct odn_run *run, int32_t m, int32_t l, int32_t d)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const struct odn_kind *kind = &r->kind[odn_kind_of(r, l)];
    if (run->failed != 0)
        return;
    if (d == 0)
        load_dy(run, m, l);
    const float *dy = (const float *)layer_dy(run, m, l) + (r->concat ? d * r->output : 0);
    float *dx = layer_dx(run, m, l), *own = d == 0 ? dx : odn_at(run->workspace, s->dx);
    const dnnl_status_t status = run_layer(run, m, l, d, dy, own);
    if (status != dnnl_success) {
        run->failed = (int32_t)status;
        return;
    }
    if (d == 1)
        odn_add(dnnl_f32, s->rows * kind->input, 1.0f, dx, own, dx);
    if (l == 0 && d == r->directions - 1 && wants_dx(run) && dx != run->grads[SEQLSTM_SLOT_RECURRENT_X])
        odn_rows_out(run->b, m, kind->input, &odn_float32, dx, run->grads[SEQLSTM_SLOT_RECURRENT_X]);
}
