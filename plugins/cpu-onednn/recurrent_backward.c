/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of one layer and direction of one slice, and the sum of the slices' weight gradients.
 *
 * Gradients of activations are float32 throughout. dy of a layer and dx below it change places from layer to
 * layer; the second direction's dx is added to the first's.
 */
#include <string.h>

#include "recurrent.h"

/* Where dy of the layer lies within the slice; `out_given`: in the caller's own rows. */
static void *layer_dy(const struct odn_run *run, int32_t m, int32_t layer)
{
    const struct odn_recurrent *r = run->b->r;
    const bool plain = r->directions == 1 || r->concat;
    if (layer == r->layers - 1 && run->b->in_place && plain && run->grads[SEQLSTM_RECURRENT_Y] != NULL)
        return run->grads[SEQLSTM_RECURRENT_Y];
    return odn_at(run->workspace, run->b->slices[m].dy[layer & 1]);
}

static bool wants_dx(const struct odn_run *run)
{
    return (run->parts & SEQLSTM_BACKWARD_INPUTS) != 0 && run->grads[SEQLSTM_RECURRENT_X] != NULL;
}

static void *layer_dx(const struct odn_run *run, int32_t m, int32_t layer)
{
    if (layer == 0 && run->b->in_place && wants_dx(run))
        return run->grads[SEQLSTM_RECURRENT_X];
    return odn_at(run->workspace, run->b->slices[m].dy[(layer & 1) ^ 1]);
}

/* dy of the uppermost layer into the slice. A sum hands its gradient to both directions, a mean half of it. */
static void load_dy(const struct odn_run *run, int32_t m, int32_t layer)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_slice *s = &run->b->slices[m];
    const int64_t width = odn_y_width(r);
    const float *given = run->grads[SEQLSTM_RECURRENT_Y];
    float *dy = layer_dy(run, m, layer);
    if (layer == r->layers - 1) {
        if (given == NULL)
            memset(dy, 0, (size_t)(s->rows * width) * sizeof *dy);
        else if (dy != given)
            odn_rows_in(run->b, m, width, given, &odn_float32, dy);
    }
    if (r->directions == 2 && r->desc->merge == SEQLSTM_MERGE_AVE)
        for (int64_t i = 0; i < s->rows * width; i++)
            dy[i] *= 0.5f;
}

/* Gradients of the final states of sequences [from, to). */
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
    odn_call_set(call, DNNL_ARG_WEIGHTS_LAYER, odn_at(run->packed, packed + kind->packed[ODN_BACKWARD][ODN_WEIGHT_X]));
    odn_call_set(call, DNNL_ARG_WEIGHTS_ITER, odn_at(run->packed, packed + kind->packed[ODN_BACKWARD][ODN_WEIGHT_H]));
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
                                           (r->desc->options & SEQLSTM_RECURRENT_FINAL_STATE) != 0);
    const struct states first = state_grads(run, l, d, SEQLSTM_STATE_H0, SEQLSTM_STATE_C0,
                                            (run->parts & SEQLSTM_BACKWARD_STATES) != 0 &&
                                                (r->desc->options & SEQLSTM_RECURRENT_INITIAL_STATE) != 0);
    struct states out = states_at(run, m, 0), in = states_at(run, m, 1);
    for (int32_t i = count - 1; i >= 0; i--) { /* i counts in order of execution of forward */
        const struct odn_rectangle *now = &s->rectangles[way ? count - 1 - i : i];
        const struct odn_rectangle *before = i > 0 ? &s->rectangles[way ? count - i : i - 1] : NULL;
        const struct odn_rectangle *after = i + 1 < count ? &s->rectangles[way ? count - 2 - i : i + 1] : NULL;
        const int64_t living = after == NULL ? 0 : way ? now->n : after->n;
        load_grads(run, m, last.h, r->output, living, now->n, out.h);
        if (r->lstm)
            load_grads(run, m, last.c, r->hidden, living, now->n, out.c);
        struct odn_call *call = &run->b->slices[m].shapes[now->shape].calls[k][way][ODN_BACKWARD];
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

/* The library adds to what is there. */
void odn_zero_grads(struct odn_run *run, int32_t m, int32_t layer, int64_t begin, int64_t end)
{
    const struct odn_recurrent *r = run->b->r;
    const uint64_t floats = r->kind[odn_kind_of(r, layer)].grad_bytes / sizeof(float);
    const uint64_t from = floats * (uint64_t)begin / ODN_SHARES, to = floats * (uint64_t)end / ODN_SHARES;
    memset(odn_at(run->workspace, run->b->slices[m].grads + from * sizeof(float)), 0,
           (size_t)(to - from) * sizeof(float));
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
    if (l == 0 && d == r->directions - 1 && wants_dx(run) && dx != run->grads[SEQLSTM_RECURRENT_X])
        odn_rows_out(run->b, m, kind->input, &odn_float32, dx, run->grads[SEQLSTM_RECURRENT_X]);
}

/* ---- gradients of weights ------------------------------------------------------------------------------- */

/* One gate of ours [outputs, inputs] from theirs, where input i of output o stands at i * stride + o. */
struct transposition {
    const struct odn_run *run;
    uint64_t place; /* within a slice's gradients */
    int64_t inputs, outputs, stride;
    float *ours;
    bool accumulate;
};

/* A band of inputs at a time, one line of ours wide. Theirs is read along its rows, which the processor fetches ahead
 * by itself; the lines of ours, a row apart, are asked for AHEAD outputs before they are written: without it most of
 * the time is spent waiting for them. */
enum { BAND = 16, LANES = 4, AHEAD = 16 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

static inline lanes load(const float *from)
{
    lanes value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void add_or_store(bool accumulate, float *to, lanes value)
{
    value = accumulate ? load(to) + value : value;
    memcpy(to, &value, sizeof value);
}

static inline const float *theirs(const struct transposition *t, int32_t m)
{
    return odn_at(t->run->workspace, t->run->b->slices[m].grads + t->place);
}

/* Made anew for each call, in which `slices` and `accumulate` are constants. */
#define EXPANDED static inline __attribute__((always_inline))

/* Four outputs by four inputs, summed over slices. */
EXPANDED void transpose_block(const struct transposition *t, const float *first, int32_t slices, bool accumulate,
                              int64_t o, int64_t i)
{
    const int64_t stride = t->stride, inputs = t->inputs;
    const float *from = first + i * stride + o;
    lanes row0 = load(from), row1 = load(from + stride);
    lanes row2 = load(from + 2 * stride), row3 = load(from + 3 * stride);
    for (int32_t m = 1; m < slices; m++) {
        from = theirs(t, m) + i * stride + o;
        row0 += load(from);
        row1 += load(from + stride);
        row2 += load(from + 2 * stride);
        row3 += load(from + 3 * stride);
    }
    const lanes low01 = __builtin_shufflevector(row0, row1, 0, 4, 1, 5);
    const lanes high01 = __builtin_shufflevector(row0, row1, 2, 6, 3, 7);
    const lanes low23 = __builtin_shufflevector(row2, row3, 0, 4, 1, 5);
    const lanes high23 = __builtin_shufflevector(row2, row3, 2, 6, 3, 7);
    float *to = t->ours + o * inputs + i;
    add_or_store(accumulate, to, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
    add_or_store(accumulate, to + inputs, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
    add_or_store(accumulate, to + 2 * inputs, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
    add_or_store(accumulate, to + 3 * inputs, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
}

static void transpose_element(const struct transposition *t, int64_t o, int64_t i)
{
    float sum = 0.0f, *to = t->ours + o * t->inputs + i;
    for (int32_t m = 0; m < t->run->b->slices_count; m++)
        sum += theirs(t, m)[i * t->stride + o];
    *to = t->accumulate ? *to + sum : sum;
}

/* Inputs [i0, i1). */
EXPANDED void transpose_inputs(const struct transposition *t, int32_t slices, bool accumulate, int64_t i0, int64_t i1)
{
    const float *first = theirs(t, 0);
    const int64_t whole_o = t->outputs / LANES * LANES, whole_i = i0 + (i1 - i0) / LANES * LANES;
    for (int64_t o = 0; o < whole_o; o += LANES) {
        for (int64_t next = o + AHEAD; next < o + AHEAD + LANES && next < t->outputs; next++)
            __builtin_prefetch(t->ours + next * t->inputs + i1 - 1, 1);
        for (int64_t i = i0; i < whole_i; i += LANES)
            transpose_block(t, first, slices, accumulate, o, i);
    }
    for (int64_t o = 0; o < t->outputs; o++)
        for (int64_t i = o < whole_o ? whole_i : i0; i < i1; i++)
            transpose_element(t, o, i);
}

static void transpose_band(const struct transposition *t, int64_t band)
{
    const int32_t slices = t->run->b->slices_count;
    const int64_t i0 = band * BAND, i1 = i0 + BAND < t->inputs ? i0 + BAND : t->inputs;
    if (slices == 1 && !t->accumulate)
        transpose_inputs(t, 1, false, i0, i1);
    else
        transpose_inputs(t, slices, t->accumulate, i0, i1);
}

static void reduce_vector(const struct odn_run *run, uint64_t place, int64_t count, float *ours)
{
    const bool accumulate = (run->parts & SEQLSTM_BACKWARD_ACCUMULATE) != 0;
    for (int64_t i = 0; i < count; i++) {
        float sum = 0.0f;
        for (int32_t m = 0; m < run->b->slices_count; m++)
            sum += ((const float *)odn_at(run->workspace, run->b->slices[m].grads + place))[i];
        ours[i] = accumulate ? ours[i] + sum : sum;
    }
}

void odn_reduce_grads(struct odn_run *run, int32_t l, int32_t d, int64_t begin, int64_t end)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_kind *kind = &r->kind[odn_kind_of(r, l)];
    static const int params[2] = {SEQLSTM_PARAM_W_X, SEQLSTM_PARAM_W_H};
    const int64_t h = r->hidden;
    if (!(run->parts & SEQLSTM_BACKWARD_WEIGHTS) || run->failed != 0)
        return;
    for (int w = 0; w < 2; w++) {
        float *ours = odn_param(r, run->grads, l, d, params[w]);
        const int64_t *strides = kind->grad_strides[w], inputs = kind->dims[w][2];
        const int64_t bands = (inputs + BAND - 1) / BAND;
        for (int64_t band = bands * begin / ODN_SHARES; ours != NULL && band < bands * end / ODN_SHARES; band++)
            for (int32_t g = 0; g < r->gates; g++) {
                const struct transposition t = {
                    .run = run,
                    .place = kind->grad_place[w] + (uint64_t)(g * strides[3]) * sizeof(float),
                    .inputs = inputs,
                    .outputs = h,
                    .stride = strides[2],
                    .ours = ours + r->gate_map[g] * h * inputs,
                    .accumulate = (run->parts & SEQLSTM_BACKWARD_ACCUMULATE) != 0,
                };
                transpose_band(&t, band);
            }
    }
    if (begin != 0)
        return;
    float *bias = odn_param(r, run->grads, l, d, SEQLSTM_PARAM_BIAS);
    for (int32_t g = 0; bias != NULL && (r->desc->options & SEQLSTM_RECURRENT_USE_BIAS) && g < r->bias_gates; g++)
        reduce_vector(run, kind->grad_bias + (uint64_t)(g * h) * sizeof(float), h, bias + r->gate_map[g] * h);
    float *peephole = odn_param(r, run->grads, l, d, SEQLSTM_PARAM_PEEPHOLE);
    if (r->peephole && peephole != NULL)
        reduce_vector(run, kind->grad_peephole, 3 * h, peephole);
}
