/* SPDX-License-Identifier: Apache-2.0 */
/* Packs canonical weights into the layouts of the kernels, and copies gradients back.
 *
 * The forward panels need the transposed weights (16 x 16 blocks at a time). Those of backward are rows of the
 * canonical matrices in another order. Members share the panels; no two members write the same one. */
#include "cpu-blas/recurrent/pack.h"

#include <string.h>

#include "cpu-blas/recurrent/int8.h"
#include "cpu-blas/recurrent/recurrent.h"
#include "cpu-blas/recurrent/tiles.h"

static void copy_one(const struct blas_recurrent *op, const float *x, int64_t n, float *y)
{
    op->kernels->copy(&(struct blas_rows){.rows = 1, .n = n, .x = x, .y = y});
}

static void add_one(const struct blas_recurrent *op, const float *x, int64_t n, float *y)
{
    op->kernels->add(&(struct blas_rows){.rows = 1, .n = n, .x = x, .y = y});
}

/* Packs [rows, columns], row-major, as B of a product with K = rows, N = columns, both padded. */
static void pack_plain(const float *w, int64_t rows, int64_t rows_pad, int64_t columns, int64_t columns_pad, float *out)
{
    for (int64_t k = 0; k < rows_pad; k++)
        for (int64_t n = 0; n < columns_pad; n++) {
            int64_t panel = n / PANEL * PANEL, wide = blas_min(PANEL, columns_pad - panel);
            out[panel * rows_pad + k * wide + (n - panel)] = k < rows && n < columns ? w[k * columns + n] : 0.0f;
        }
}

/* The same for the transposed matrix: K = columns, N = rows. */
static void pack_transposed(const struct blas_recurrent *op, const float *w, int64_t rows, int64_t rows_pad,
                            int64_t columns, int64_t columns_pad, float *out)
{
    for (int64_t n = 0; n < rows_pad; n += GROUP) {
        int64_t panel = n / PANEL * PANEL, wide = blas_min(PANEL, rows_pad - panel);
        int real = (int)(rows - n < GROUP ? rows - n : GROUP);
        for (int64_t k = 0; k < columns_pad; k += GROUP) {
            int64_t left = columns - k;
            op->kernels->transpose16(w + n * columns + k, columns, real < 0 ? 0 : real,
                                     left < GROUP ? (left < 0 ? 0 : (int)left) : GROUP,
                                     out + panel * columns_pad + k * wide + (n - panel), wide);
        }
    }
}

static void pack_vectors(const struct blas_recurrent *op, const float *bias, const float *peephole, const float *norm,
                         struct blas_packed *p)
{
    const int64_t up = op->units_pad, h = op->units;
    const int64_t columns = (int64_t)op->panels * PANEL;
    for (int64_t at = 0; at < columns; at += GROUP) {
        const int32_t *rows = op->rows_bias + at;
        const int64_t count = bias ? blas_group_rows(rows) : 0;
        memset(p->bias + at, 0, GROUP * sizeof *p->bias);
        if (count > 0)
            memcpy(p->bias + at, bias + rows[0], (size_t)count * sizeof *bias);
    }
    for (int64_t at = 0; op->norm && at < columns; at++) {
        int64_t u = op->rows_x[at], v = op->rows_h[at];
        p->valid_u[at] = u >= 0 ? 1.0f : 0.0f;
        p->valid_v[at] = v >= 0 ? 1.0f : 0.0f;
        p->gain_u[at] = u >= 0 ? norm[u] : 0.0f;
        p->gain_v[at] = v >= 0 ? norm[op->gate_rows + v] : 0.0f;
    }
    for (int64_t i = 0; op->peephole && i < 3 * up; i++)
        p->peephole[i] = i % up < h ? peephole[i / up * h + i % up] : 0.0f;
    for (int64_t i = 0; op->norm && op->lstm && i < up; i++) {
        p->gain_c[i] = i < h ? norm[2 * op->gate_rows + i] : 0.0f;
        p->bias_c[i] = i < h ? norm[2 * op->gate_rows + h + i] : 0.0f;
    }
}

static void pack_forward(const struct blas_recurrent *op, bool tiles, const struct blas_pack *p)
{
    if (tiles)
        blas_tiles_pack_forward(op, p);
    else
        op->kernels->pack_forward(p);
}

void blas_pack_back(const struct blas_recurrent *op, bool tiles, const struct blas_pack *p)
{
    if (tiles)
        blas_tiles_pack_back(op, p);
    else
        op->kernels->pack_back(p);
}

struct pack_call {
    const struct blas_recurrent *op;
    void *const *slots;
    struct blas_packed_all packed;
    const struct seqlstm_step *step;
    struct seqlstm_queue *queue;
};

/* The weights of layer and direction `n` in one panel. */
static void pack_panel(const struct pack_call *call, int32_t n, const struct blas_packed *p, int64_t panel)
{
    const struct blas_recurrent *op = call->op;
    const int32_t ld = op->layer_count * op->directions;
    const struct blas_recurrent_layer *layer = &op->layers[n / op->directions];
    const float *w_x = call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_W_X)];
    const float *w_h = p->masked ? p->masked : call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_W_H)];
    const int64_t columns = (int64_t)op->panels * PANEL, x_floats = blas_x_floats(op, layer->input_pad);
    const int64_t strip = blas_strip_floats(op, layer->input_pad);
    struct blas_pack x = {.k0 = panel * PANEL, .k_all = columns, .strip = strip, .stream = op->weights_large}, h = x;
    x.w = w_x;
    x.width = layer->input;
    x.width_pad = layer->input_pad;
    x.map = op->rows_x + panel * PANEL;
    x.out = p->forward + panel * (x_floats + blas_h_floats(op));
    h.w = w_h;
    h.width = op->out;
    h.width_pad = op->out_pad;
    h.map = op->rows_h + panel * PANEL;
    h.out = x.out + (op->strips ? layer->input_pad * GROUP : x_floats);
    float factors[PANEL];
    if (op->int8) {
        blas_int8_factors(op, panel, layer->input, w_x, w_h, factors);
        x.factors = h.factors = factors;
    }
    if (!op->x_in_time)
        pack_forward(op, op->tile_kernels, &x);
    pack_forward(op, op->tiled_steps, &h);
    if (op->int8)
        blas_int8_offsets(op, p, layer->input_pad, panel, factors,
                          call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_BIAS)]);
    x.out = p->x_back;
    h.out = p->h_back;
    if (x.out)
        blas_pack_back(op, op->tile_kernels, &x);
    if (h.out)
        blas_pack_back(op, op->tiled_steps, &h);
}

/* The parameters of layer and direction `n` that are not in panels. */
static void pack_rest(const struct pack_call *call, int32_t n, const struct blas_packed *p)
{
    const struct blas_recurrent *op = call->op;
    const int32_t ld = op->layer_count * op->directions;
    struct blas_packed vectors = *p;
    pack_vectors(op, call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_BIAS)],
                 call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_PEEPHOLE)],
                 call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_NORM)], &vectors);
    if (op->projection) {
        const float *w = call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_PROJECTION)];
        pack_transposed(op, w, op->out, op->out_pad, op->units, op->units_pad, p->projection);
        if (op->training)
            pack_plain(w, op->out, op->out_pad, op->units, op->units_pad, p->projection_back);
    }
    if (op->gru_before) {
        const float *w_h = p->masked ? p->masked : call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_W_H)];
        const float *w = w_h + 2 * op->units * op->out;
        pack_transposed(op, w, op->units, op->units_pad, op->out, op->out_pad, p->rh);
        if (op->training)
            pack_plain(w, op->units, op->units_pad, op->out, op->out_pad, p->rh_back);
    }
}

/* Packs into copy `copy`, which `members` members share. */
static void pack_one(const struct pack_call *call, int32_t n, int32_t copy, int32_t member, int32_t members)
{
    const struct blas_packed own = blas_packed_own(call->op, &call->packed, n, copy);
    int64_t first, last;
    blas_share(call->op->panels, member, members, &first, &last);
    for (int64_t panel = first; panel < last; panel++)
        pack_panel(call, n, &own, panel);
    if (member == 0)
        pack_rest(call, n, &own);
}

static void pack_masked(const struct pack_call *call, int32_t n)
{
    const struct blas_recurrent *op = call->op;
    const struct blas_packed own = blas_packed_own(op, &call->packed, n, 0), *p = &own;
    const int32_t ld = op->layer_count * op->directions;
    const int64_t elements = op->gate_rows * op->out;
    uint64_t key = blas_mask_key(op, call->step, n / op->directions, n % op->directions, SEQLSTM_MASK_WEIGHT);
    const uint64_t sequence = SEQLSTM_WEIGHT_SEQUENCE;
    p->drop_bits[blas_round(elements, PANEL) / GROUP] = 0;
    op->kernels->keep_apply(&(struct blas_keep){.key = key,
                                                .steps = 1,
                                                .rows = 1,
                                                .sequence = &sequence,
                                                .step = call->step->weight_mask_step,
                                                .elements = elements,
                                                .rate = op->desc.weight_drop,
                                                .bits = p->drop_bits},
                            call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, SEQLSTM_PARAM_W_H)], p->masked);
}

static void pack_member(void *argument, int32_t member, int32_t members)
{
    const struct pack_call *call = argument;
    const struct blas_recurrent *op = call->op;
    const int32_t ld = op->layer_count * op->directions;
    uint32_t saved = blas_flush_denormals_enter();
    if (op->training && op->desc.weight_drop > 0.0f) {
        for (int32_t n = member; n < ld; n += members)
            pack_masked(call, n);
        if (members > 1)
            call->queue->services->team_barrier(call->queue);
    }
    for (int32_t n = 0; n < ld; n++)
        pack_one(call, n, 0, member, members);
    blas_flush_denormals_leave(saved);
}

/* Each member packs a copy of its own. */
static void pack_own(void *argument, int32_t member, int32_t members)
{
    const struct pack_call *call = argument;
    const struct blas_recurrent *op = call->op;
    (void)members;
    uint32_t saved = blas_flush_denormals_enter();
    for (int32_t n = 0; member < call->packed.copies && n < op->layer_count * op->directions; n++)
        pack_one(call, n, member, 0, 1);
    blas_flush_denormals_leave(saved);
}

seqlstm_status blas_recurrent_weights_pack(const struct blas_recurrent *op, struct seqlstm_queue *queue,
                                           void *const *slots, void *packed, const struct seqlstm_step *step,
                                           struct seqlstm_error *err)
{
    struct pack_call call = {.op = op, .slots = slots, .step = step, .queue = queue};
    if (!packed)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "packed is NULL, a buffer of op_sizes was expected");
    const int32_t copies = blas_packed_copies(op, queue->members);
    memcpy(packed, &copies, sizeof copies);
    blas_packed_open(op, packed, &call.packed);
    /* For a small layer, waking the other members costs more than packing. */
    if (copies > 1)
        queue->services->team(queue, pack_own, &call);
    else if (queue->members > 1 && call.packed.bytes > 2 << 20)
        queue->services->team(queue, pack_member, &call);
    else
        pack_member(&call, 0, 1);
    return SEQLSTM_OK;
}

/* ---- gradients back into the canonical layout ------------------------------------------------------ */

/* Rows of dst (+)= sums over sources of `rows` rows at `offset`, in the order of the members. */
static void reduce_rows(const struct blas_recurrent *op, const struct blas_reduce *reduce, int64_t offset, int64_t rows,
                        int64_t row, int64_t n, float *dst, int64_t dst_row)
{
    struct blas_rows part = {
        .rows = rows, .n = n, .x = reduce->first + offset, .x_row = row, .y = dst, .y_row = dst_row};
    (reduce->accumulate ? op->kernels->add : op->kernels->copy)(&part);
    for (int32_t m = 1; m < reduce->sources; m++) {
        part.x += reduce->stride;
        op->kernels->add(&part);
    }
}

/* The same for one row of `count` floats. */
static void reduce_row(const struct blas_recurrent *op, const struct blas_reduce *reduce, int64_t offset, int64_t count,
                       float *dst)
{
    reduce_rows(op, reduce, offset, 1, 0, count, dst, 0);
}

/* Rows of dW_h under the weight mask: summed in place first, then masked. */
static void reduce_masked_row(const struct blas_recurrent *op, const struct blas_reduce *reduce,
                              const struct blas_packed *packed, int64_t offset, int64_t row, float *dst)
{
    float *sum = reduce->first + offset;
    for (int32_t m = 1; m < reduce->sources; m++)
        add_one(op, sum + m * reduce->stride, op->out, sum);
    op->kernels->mask_apply(sum, packed->drop_bits, row * op->out, seqlstm_mask_scale(op->desc.weight_drop), op->out,
                            sum);
    if (reduce->accumulate)
        add_one(op, sum, op->out, dst);
    else
        copy_one(op, sum, op->out, dst);
}

static void reduce_panel(const struct blas_recurrent *op, const struct blas_reduce *reduce,
                         const struct blas_packed *packed, int32_t layer, int32_t panel, float *const *grads)
{
    const struct blas_recurrent_layer *dims = &op->layers[layer];
    const int64_t row = dims->input_pad + op->out_pad;
    for (int32_t c = panel * PANEL; c < (panel + 1) * PANEL; c += GROUP) {
        const int32_t *map_x = op->rows_x + c, *map_h = op->rows_h + c;
        float *dw_x = grads[SEQLSTM_PARAM_W_X], *dw_h = grads[SEQLSTM_PARAM_W_H];
        const int64_t rows_x = dw_x ? blas_group_rows(map_x) : 0, rows_h = dw_h ? blas_group_rows(map_h) : 0;
        const int64_t at_h = c * row + dims->input_pad;
        if (rows_x > 0)
            reduce_rows(op, reduce, c * row, rows_x, row, dims->input, dw_x + map_x[0] * dims->input, dims->input);
        if (rows_h > 0 && !packed->drop_bits)
            reduce_rows(op, reduce, at_h, rows_h, row, op->out, dw_h + map_h[0] * op->out, op->out);
        for (int64_t i = 0; i < rows_h && packed->drop_bits; i++)
            reduce_masked_row(op, reduce, packed, at_h + i * row, map_h[i], dw_h + map_h[i] * op->out);
    }
}

/* A panel of gradients in the layout of tiles: sums over the sources in place, then transposes 16 x 16 blocks. */
static void reduce_across(const struct blas_recurrent *op, const struct blas_reduce *reduce,
                          const struct blas_packed *packed, int32_t layer, int32_t panel, float *const *grads)
{
    const struct blas_recurrent_layer *dims = &op->layers[layer];
    const int64_t k_all = dims->input_pad + op->out_pad;
    float *sum = reduce->first + panel * k_all * PANEL, block[GROUP * GROUP];
    for (int32_t m = 1; m < reduce->sources; m++)
        add_one(op, sum + m * reduce->stride, k_all * PANEL, sum);
    for (int part = 0; part < 2; part++, sum += dims->input_pad * PANEL) {
        const int64_t width = part == 0 ? dims->input : op->out;
        const int32_t *map = (part == 0 ? op->rows_x : op->rows_h) + panel * PANEL;
        float *grad = grads[part == 0 ? SEQLSTM_PARAM_W_X : SEQLSTM_PARAM_W_H];
        const uint16_t *drop = part == 1 ? packed->drop_bits : NULL;
        for (int32_t g = 0; grad && g < PANEL; g += GROUP) {
            const int64_t rows = blas_group_rows(map + g);
            for (int64_t k = 0; rows > 0 && k < width; k += GROUP) {
                const int64_t n = blas_min(GROUP, width - k), at = map[g] * width + k;
                const bool whole = rows == GROUP && n == GROUP && !reduce->accumulate && !drop;
                op->kernels->transpose16(sum + k * PANEL + g, PANEL, GROUP, GROUP, whole ? grad + at : block,
                                         whole ? width : GROUP);
                for (int64_t i = 0; drop && i < rows; i++)
                    op->kernels->mask_apply(block + i * GROUP, drop, at + i * width,
                                            seqlstm_mask_scale(op->desc.weight_drop), n, block + i * GROUP);
                const struct blas_rows join = {
                    .rows = rows, .n = n, .x = block, .x_row = GROUP, .y = grad + at, .y_row = width};
                if (!whole && reduce->accumulate)
                    op->kernels->add(&join);
                else if (!whole)
                    op->kernels->copy(&join);
            }
        }
    }
}

static void reduce_scalar(const struct blas_reduce *reduce, const float *at, float *dst)
{
    int64_t offset = at - reduce->first;
    float sum = reduce->accumulate ? *dst : 0.0f;
    for (int32_t m = 0; m < reduce->sources; m++)
        sum += reduce->first[offset + m * reduce->stride];
    *dst = sum;
}

/* Copies the sums of all columns at `from` to their rows in dst, which `map` names. Does nothing if dst is NULL. */
static void reduce_groups(const struct blas_recurrent *op, const struct blas_reduce *reduce, const float *from,
                          const int32_t *map, float *dst)
{
    for (int64_t at = 0; dst && at < (int64_t)op->panels * PANEL; at += GROUP) {
        const int64_t count = blas_group_rows(map + at);
        if (count > 0)
            reduce_row(op, reduce, from + at - reduce->first, count, dst + map[at]);
    }
}

static void reduce_vectors(const struct blas_recurrent *op, const struct blas_reduce *reduce, float *const *grads)
{
    const struct blas_gradients *g = &reduce->gradients;
    const int64_t h = op->units, up = op->units_pad;
    reduce_groups(op, reduce, g->bias, op->rows_bias, grads[SEQLSTM_PARAM_BIAS]);
    if (op->norm && grads[SEQLSTM_PARAM_NORM]) {
        reduce_groups(op, reduce, g->norm_u, op->rows_x, grads[SEQLSTM_PARAM_NORM]);
        reduce_groups(op, reduce, g->norm_v, op->rows_h, grads[SEQLSTM_PARAM_NORM] + op->gate_rows);
    }
    for (int64_t u = 0; u < h; u++) {
        for (int k = 0; op->peephole && k < 3 && grads[SEQLSTM_PARAM_PEEPHOLE]; k++)
            reduce_scalar(reduce, g->peephole + k * up + u, grads[SEQLSTM_PARAM_PEEPHOLE] + k * h + u);
        for (int k = 0; g->norm_c && k < 2 && grads[SEQLSTM_PARAM_NORM]; k++)
            reduce_scalar(reduce, g->norm_c + k * up + u, grads[SEQLSTM_PARAM_NORM] + 2 * op->gate_rows + k * h + u);
    }
}

/* Coupled gates do not use the parameters of the forget gate, so their gradient is zero. */
static void clear_unused(const struct blas_recurrent *op, int32_t layer, float *const *grads)
{
    const int64_t h = op->units, input = op->layers[layer].input;
    float *at[] = {grads[SEQLSTM_PARAM_W_X], grads[SEQLSTM_PARAM_W_H], grads[SEQLSTM_PARAM_BIAS],
                   grads[SEQLSTM_PARAM_NORM], grads[SEQLSTM_PARAM_NORM]};
    const int64_t first[] = {h * input, h * op->out, h, h, op->gate_rows + h};
    const int64_t count[] = {h * input, h * op->out, h, h, h};
    for (int i = 0; i < 5; i++)
        if (at[i])
            memset(at[i] + first[i], 0, (size_t)count[i] * sizeof(float));
}

void blas_gradients_reduce(const struct blas_recurrent *op, const struct blas_reduce *reduce,
                           const struct blas_packed *packed, int32_t layer, int32_t member, int32_t members,
                           float *const *grads)
{
    const struct blas_gradients *g = &reduce->gradients;
    int64_t first, last;
    blas_share(op->panels, member, members, &first, &last);
    for (int64_t panel = first; panel < last && !reduce->direct; panel++)
        (op->tile_kernels ? reduce_across : reduce_panel)(op, reduce, packed, layer, (int32_t)panel, grads);
    if (member != 0)
        return;
    if (reduce->direct && packed->drop_bits && grads[SEQLSTM_PARAM_W_H])
        op->kernels->mask_apply(grads[SEQLSTM_PARAM_W_H], packed->drop_bits, 0,
                                seqlstm_mask_scale(op->desc.weight_drop), op->gate_rows * op->out,
                                grads[SEQLSTM_PARAM_W_H]);
    if (op->coupled && !reduce->accumulate)
        clear_unused(op, layer, grads);
    for (int64_t p = 0; op->projection && grads[SEQLSTM_PARAM_PROJECTION] && p < op->out; p++)
        reduce_row(op, reduce, g->projection + p * op->units_pad - reduce->first, op->units,
                   grads[SEQLSTM_PARAM_PROJECTION] + p * op->units);
    for (int64_t u = 0; op->gru_before && grads[SEQLSTM_PARAM_W_H] && u < op->units; u++) {
        int64_t row = 2 * op->units + u, at = g->rh + u * op->out_pad - reduce->first;
        float *dst = grads[SEQLSTM_PARAM_W_H] + row * op->out;
        if (packed->drop_bits)
            reduce_masked_row(op, reduce, packed, at, row, dst);
        else
            reduce_row(op, reduce, at, op->out, dst);
    }
    reduce_vectors(op, reduce, grads);
}
