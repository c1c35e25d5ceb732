/* SPDX-License-Identifier: Apache-2.0 */
/* Layout and bindings of recurrent stacks. See recurrent.h. */
#include <string.h>

#include "common/align.h"
#include "cuda-generic/gemm/gemm.h"
#include "cuda-generic/ops/product.h"
#include "cuda-generic/recurrent/kernels/prepare.h"
#include "cuda-generic/recurrent/recurrent.h"
#include "cuda-generic/rows/rows.h"
#include "cuda-generic/recurrent/kernels/step_tile.h"

static int64_t count_exchange_words(const struct seqlstm_op *op, bool training)
{
    int64_t most = 0;
    for (int back = 0; op->variant == CG_RESIDENT && back <= training; back++) {
        const int64_t words = cg_resident_exchange_words(&op->resident[back], op->desc.head.max_sequences);
        most = words > most ? words : most;
    }
    return most;
}

/* Segments of few rows would convert W_x again and again. A folded projection needs both products with W_h. */
static void choose_narrow(const struct seqlstm_op *op, struct cg_stack *s)
{
    const int64_t rows = s->desc->head.max_rows, gh = s->gh;
    if (!op->lt || (s->desc->options & SEQLSTM_BIT_RECURRENT_STEPWISE))
        return;
    s->narrow[CG_LT_INPUT] = cg_product_is_narrow(s->compute, rows, s->desc->input, gh);
    s->narrow[CG_LT_BETWEEN] = s->layers > 1 && cg_product_is_narrow(s->compute, rows, s->merged, gh);
    s->narrow[CG_LT_HIDDEN] =
        s->training && !s->late && !s->folded && cg_product_is_narrow(s->compute, rows, s->out, gh);
}

struct cg_stack cg_stack_make(const struct seqlstm_op *op)
{
    const struct seqlstm_recurrent_desc *d = &op->desc.recurrent;
    struct cg_stack s = {.desc = d,
                         .training = d->head.mode == SEQLSTM_MODE_TRAINING,
                         .stepwise =
                             d->head.mode == SEQLSTM_MODE_TRAINING && (d->options & SEQLSTM_BIT_RECURRENT_STEPWISE),
                         .lstm = d->cell == SEQLSTM_CELL_LSTM,
                         .reset_after = (d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER) != 0,
                         .normed = (d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) != 0,
                         .compute = d->head.dtype_compute,
                         .layers = d->layers,
                         .directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1,
                         .gates = d->cell == SEQLSTM_CELL_LSTM  ? 4
                                  : d->cell == SEQLSTM_CELL_GRU ? 3
                                                                : 1,
                         .hidden = d->hidden,
                         .out = d->projection > 0 ? d->projection : d->hidden};
    s.late = d->cell == SEQLSTM_CELL_GRU && !s.reset_after;
    s.lone = !s.late && !s.normed && d->projection == 0;
    s.folded = d->projection > 0 && op->variant != CG_STEP_GRAPH;
    s.masks_dy = s.directions == 1 && (op->variant == CG_STEP_GRAPH || s.folded);
    s.gh = s.gates * s.hidden;
    s.merged = s.directions == 2 && d->merge == SEQLSTM_KIND_MERGE_CONCAT ? 2 * s.out : s.out;
    s.widest = s.layers > 1 && s.merged > d->input ? s.merged : d->input;
    choose_narrow(op, &s);
    s.parts = s.directions;
    s.slots = s.training ? s.layers * s.directions : s.parts;
    s.exchange = count_exchange_words(op, s.training);
    return s;
}

/* Reserves `floats` at *at, in units of 64 bytes; -1 if there is nothing to hold. */
static int64_t take(int64_t *at, bool wanted, int64_t floats)
{
    if (!wanted)
        return -1;
    const int64_t offset = *at;
    *at += align_floats(floats);
    return offset;
}

static void take_gradients(const struct cg_stack *s, struct cg_layout *l, int64_t *at)
{
    const struct seqlstm_recurrent_desc *d = s->desc;
    const int64_t r = d->head.max_rows, h = s->hidden, gh = s->gh;
    l->dh_new = take(at, d->projection > 0, r * s->out);
    l->out_rows = take(at, d->projection > 0 && !s->folded, r * h);
    l->reset_rows = take(at, s->late, r * h);
    l->pre_u = take(at, true, r * gh);
    l->pre_v = s->reset_after ? take(at, true, r * gh) : l->pre_u;
    l->du = s->normed ? take(at, true, r * gh) : l->pre_u;
    l->dv = s->normed ? take(at, true, r * gh) : l->pre_v;
    l->gain_u = take(at, s->normed, r * gh);
    l->gain_v = take(at, s->normed, r * gh);
    l->gain_c = take(at, s->normed && s->lstm, r * h);
    l->bias_c = take(at, s->normed && s->lstm, r * h);
    l->peep = take(at, (d->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE) != 0, r * 3 * h);
}

enum { H_ALIGNMENT = 16 }; /* kernels may load four values at once */

/* Room for the parts of any gradient of weights. */
static int64_t count_parts_room(const struct cg_stack *s)
{
    const int64_t rows = s->desc->head.max_rows;
    const int64_t sizes[][2] = {{s->gh, s->desc->input}, {s->gh, s->merged},  {s->gh, s->out},
                                {2 * s->hidden, s->out}, {s->hidden, s->out}, {s->out, s->hidden}};
    int64_t most = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int64_t room = cg_gemm_count_room(sizes[k][0], sizes[k][1], rows);
        most = room > most ? room : most;
    }
    return most;
}

/* The widest input of a layer that is converted to 16 bits; 0: none is. Widths are multiples of 8. */
static int64_t get_narrow_width(const struct cg_stack *s)
{
    const int64_t first = s->narrow[CG_LT_INPUT] ? s->desc->input : 0;
    const int64_t others = s->narrow[CG_LT_BETWEEN] ? s->merged : 0;
    return first > others ? first : others;
}

struct cg_layout cg_layout_make(const struct cg_stack *s)
{
    const struct seqlstm_recurrent_desc *d = s->desc;
    const int64_t r = d->head.max_rows, b = d->head.max_sequences, h = s->hidden, gh = s->gh, out = s->out;
    const int64_t widest = s->folded && h > out ? h : out; /* what kernels of all steps take for h */
    const int64_t narrow = get_narrow_width(s);
    const bool projection = d->projection > 0, drops = s->training && d->dropout > 0;
    struct cg_layout l = {0};
    int64_t at = 0;
    l.z = take(&at, true, r * gh);
    l.n = take(&at, s->reset_after, r * h);
    l.c_raw = take(&at, s->lstm, r * h);
    l.c = take(&at, s->lstm, r * h);
    l.h = take(&at, true, r * out);
    l.u = take(&at, s->normed, r * gh);
    l.v = take(&at, s->normed, r * gh);
    l.moments = take(&at, s->normed, r * 4);
    l.x16 = take(&at, narrow > 0, r * narrow / 2);
    l.w16 = take(&at, narrow > 0, gh * narrow / 2);
    l.fold = take(&at, s->folded, gh * h);
    l.raw_rows = take(&at, s->folded, r * h);
    if (s->stepwise)
        take_gradients(s, &l, &at);
    l.record = at;
    at *= s->slots;
    l.merged = at;
    l.merged_floats = s->directions == 2 ? align_floats(r * s->merged) : 0;
    at += l.merged_floats * (s->training ? s->layers : 1);
    l.reserve = at;

    at = 0; /* now in the own part of one loop */
    l.tile_weights = take(&at, s->lone, cg_tile_weights_most(h, s->gates));
    l.tile_exchange = take(&at, s->lone, cg_tile_exchange_most(h, s->gates, b));
    int64_t back = at;
    l.hm0 = take(&at, true, b * out);
    l.hm1 = take(&at, true, b * out);
    l.product = take(&at, true, b * gh);
    l.raw = take(&at, projection, b * h);
    l.projected = take(&at, projection, b * out);
    l.reset = take(&at, s->late, b * h);
    l.direct = take(&back, s->training, b * widest);
    l.back = take(&back, s->training, b * widest);
    l.dc = take(&back, s->training, b * h);
    l.dout = take(&back, s->training && projection, b * h);
    l.dreset = take(&back, s->training && s->late, b * h);
    l.dr = take(&back, s->training && s->folded, r * h);
    if (s->training && !s->stepwise)
        take_gradients(s, &l, &back);
    l.own_floats = at > back ? at : back;

    at = 0;
    l.own = take(&at, true, s->parts * l.own_floats);
    l.x_masked_floats = align_floats(r * s->widest);
    l.x_masked = take(&at, drops, s->directions * l.x_masked_floats);
    l.mask_h_floats = align_floats(b * out);
    l.mask_h = take(&at, s->training && d->recurrent_dropout > 0, s->layers * s->directions * l.mask_h_floats);
    l.dy_mask_floats = align_floats(b * s->merged);
    l.dy_mask = take(&at, drops && s->layers > 1 && s->masks_dy, (s->layers - 1) * l.dy_mask_floats);
    l.exchange = take(&at, s->exchange > 0, s->exchange);
    l.inference = take(&at, !s->training, l.reserve);
    l.h_rows = take(&at, s->training, r * out);
    l.below0 = take(&at, s->training && s->layers > 1, r * s->merged);
    l.below1 = take(&at, s->training && s->layers > 1, r * s->merged);
    l.dw_masked = take(&at, s->training && d->weight_drop > 0, gh * out);
    l.parts = take(&at, s->training && count_parts_room(s) > 0, count_parts_room(s));
    l.du16 = take(&at, s->training && (narrow > 0 || s->narrow[CG_LT_HIDDEN]), r * gh / 2);
    l.dv16 = take(&at, s->narrow[CG_LT_HIDDEN] && (s->reset_after || s->normed), r * gh / 2);
    l.h16 = take(&at, s->narrow[CG_LT_HIDDEN], r * out / 2);
    l.workspace = at;
    return l;
}

static void recurrent_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    const struct cg_stack s = cg_stack_make(op);
    const struct cg_layout l = cg_layout_make(&s);
    sizes->workspace_bytes = (uint64_t)l.workspace * sizeof(float);
    sizes->reserve_bytes = s.training ? (uint64_t)l.reserve * sizeof(float) : 0;
    if (s.training && s.desc->weight_drop > 0)
        sizes->packed_bytes = (uint64_t)(s.layers * s.directions * s.gh * s.out) * sizeof(float);
}

const struct cg_family cg_recurrent = {
    .sizes = recurrent_sizes, .forward = cg_recurrent_forward, .backward = cg_recurrent_backward};

/* ---- bindings ------------------------------------------------------------------------------------------------- */

static uint64_t count_device_bytes(const struct cg_recurrent_binding *r)
{
    return (r->run != r->host ? 4 : 2) * (uint64_t)r->count * sizeof(struct cg_layer);
}

seqlstm_status cg_recurrent_open(struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    const struct seqlstm_host *host = &op->instance->domain.host;
    const struct cg_stack s = cg_stack_make(op);
    const int64_t count = s.layers * s.directions, steps = binding->bind.t1 - binding->bind.t0;
    const int64_t structs = (s.folded ? 2 : 1) * count;
    const size_t bytes = sizeof(struct cg_recurrent_binding) + (size_t)structs * sizeof(struct cg_layer) +
                         2 * (size_t)count * (sizeof(void *) + sizeof(int32_t)) + (size_t)steps * sizeof(int32_t);
    struct cg_recurrent_binding *r = host->allocate(host->context, bytes);
    if (r == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding of cuda-generic");
    memset(r, 0, bytes);
    r->count = count;
    r->host = (struct cg_layer *)(void *)(r + 1);
    r->run = r->host + structs - count;
    r->captures = (void **)(void *)(r->host + structs);
    r->runs = (int32_t *)(void *)(r->captures + 2 * count);
    r->batch_sizes = r->runs + 2 * count;
    for (int64_t t = 0; t < steps; t++)
        r->batch_sizes[t] = binding->bind.axis->batch_sizes[binding->bind.t0 + t];
    binding->recurrent = r;
    void *device = NULL;
    SEQLSTM_TRY(
        cg_blocks_take(op->instance->blocks, op->ordinal, binding->stream, count_device_bytes(r), &device, err));
    r->device = device;
    r->device_run = r->device + 2 * (structs - count);
    return SEQLSTM_OK;
}

void cg_recurrent_close(struct seqlstm_binding *binding)
{
    struct cg_recurrent_binding *r = binding->recurrent;
    const struct seqlstm_host *host = &binding->op->instance->domain.host;
    if (r == NULL)
        return;
    for (int64_t k = 0; k < 2 * r->count; k++)
        gpu_capture_destroy(binding->op->ordinal, r->captures[k]);
    cg_blocks_give(binding->op->instance->blocks, binding->op->ordinal, binding->stream, count_device_bytes(r),
                   r->device);
    host->release(host->context, r);
}

static uint64_t get_stream(const struct seqlstm_recurrent_desc *d, int64_t layer, int64_t direction, uint32_t which)
{
    return d->stream_base + (uint64_t)(SEQLSTM_STREAMS_PER_LAYER * layer + 16 * direction) + which;
}

/* Packed: W_h of every layer and direction with the weight mask applied, one after another. */
seqlstm_status cg_recurrent_pack(const struct seqlstm_op *op, void *stream, void *const *slots, float *packed,
                                 const struct seqlstm_step *step, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &op->desc.recurrent;
    const struct cg_stack s = cg_stack_make(op);
    const int64_t count = s.layers * s.directions;
    const struct cg_live live = cg_live_make(step);
    for (int64_t n = 0; n < count; n++) {
        const uint64_t mask = get_stream(d, n / s.directions, n % s.directions, SEQLSTM_MASK_WEIGHT);
        const struct cg_mask drawn = {.live = live, .stream = mask, .rate = d->weight_drop};
        const int code = cg_weight_mask(stream, &drawn, s.gh * s.out,
                                        slots[SEQLSTM_SLOT_RECURRENT_PARAM(count, n, SEQLSTM_PARAM_W_H)],
                                        packed + n * s.gh * s.out, 0);
        SEQLSTM_TRY(gpu_check_launch(op->ordinal, code, "weight mask", err));
    }
    return SEQLSTM_OK;
}

/* ---- where things lie ------------------------------------------------------------------------------------------- */

float *cg_workspace(const struct cg_call *call, int64_t offset)
{
    return offset < 0 ? NULL : (float *)(void *)call->workspace + offset;
}

float *cg_own(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l, int64_t n,
              int64_t offset)
{
    return offset < 0 ? NULL : cg_workspace(call, l->own + n % s->parts * l->own_floats + offset);
}

static float *get_reserve(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l)
{
    return s->training ? (float *)(void *)call->reserve : cg_workspace(call, l->inference);
}

float *cg_record(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l, int64_t n,
                 int64_t offset, int64_t width)
{
    const int64_t slot = s->training ? n : n % s->parts;
    return offset < 0 ? NULL : get_reserve(call, s, l) + slot * l->record + offset + call->row0 * width;
}

/* The record of h. The last of layers in one direction writes to slot Y, which backward finds unchanged. With
 * `stepwise`, records outlive the segment that Y belongs to. */
static float *find_h(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l, int64_t n)
{
    float *y = cg_slot(call, SEQLSTM_SLOT_RECURRENT_Y);
    const bool fits = y != NULL && (uintptr_t)y % H_ALIGNMENT == 0;
    return s->directions == 1 && n == s->layers - 1 && fits && !s->stepwise ? y
                                                                            : cg_record(call, s, l, n, l->h, s->out);
}

float *cg_merged(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l, int64_t layer)
{
    if (s->directions == 1)
        return find_h(call, s, l, layer);
    return get_reserve(call, s, l) + l->merged + (s->training ? layer : 0) * l->merged_floats;
}

const float *cg_layer_input(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                            int64_t layer)
{
    return layer == 0 ? cg_slot(call, SEQLSTM_SLOT_RECURRENT_X) : cg_merged(call, s, l, layer - 1);
}

int64_t cg_layer_width(const struct cg_stack *s, int64_t layer)
{
    return layer == 0 ? s->desc->input : s->merged;
}

void *cg_param(const struct cg_call *call, const struct cg_stack *s, int64_t n, int32_t which)
{
    return call->slots[SEQLSTM_SLOT_RECURRENT_PARAM(s->layers * s->directions, n, which)];
}

struct cg_layer cg_layer_make(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                              int64_t layer, int64_t direction)
{
    const struct seqlstm_recurrent_desc *d = s->desc;
    const int64_t n = layer * s->directions + direction;
    void *const *state = &call->slots[SEQLSTM_SLOT_RECURRENT_STATE(n, 0)];
    struct cg_layer y = {
        .cell = d->cell,
        .options = d->options,
        .training = s->training,
        .reverse = direction == 1 || d->direction == SEQLSTM_DIRECTION_BACKWARD,
        .late = s->late,
        .normed = s->normed,
        .gate = d->activations[SEQLSTM_PLACE_GATE][direction],
        .candidate = d->activations[SEQLSTM_PLACE_CANDIDATE][direction],
        .output = d->activations[SEQLSTM_PLACE_OUTPUT][direction],
        .gate_clip = d->gate_clip,
        .cell_clip = d->cell_clip,
        .zoneout_cell = seqlstm_mask_rate(d->zoneout_cell),
        .zoneout_hidden = seqlstm_mask_rate(d->zoneout_hidden),
        .epsilon = d->layer_norm_epsilon,
        .input = cg_layer_width(s, layer),
        .hidden = s->hidden,
        .out = s->out,
        .gates = s->gates,
        .gh = s->gh,
        .projection = d->projection,
        .zoneout_cell_key = get_stream(d, layer, direction, SEQLSTM_MASK_ZONEOUT_CELL),
        .zoneout_hidden_key = get_stream(d, layer, direction, SEQLSTM_MASK_ZONEOUT_HIDDEN),
        .axis = *call->axis,
        .w_h = cg_param(call, s, n, SEQLSTM_PARAM_W_H),
        .bias = cg_param(call, s, n, SEQLSTM_PARAM_BIAS),
        .peephole = cg_param(call, s, n, SEQLSTM_PARAM_PEEPHOLE),
        .w_p = cg_param(call, s, n, SEQLSTM_PARAM_PROJECTION),
        .norm = cg_param(call, s, n, SEQLSTM_PARAM_NORM),
        .h0 = state[SEQLSTM_STATE_H0],
        .c0 = state[SEQLSTM_STATE_C0],
        .hn = state[SEQLSTM_STATE_HN],
        .cn = state[SEQLSTM_STATE_CN],
        .z = cg_record(call, s, l, n, l->z, s->gh),
        .n = cg_record(call, s, l, n, l->n, s->hidden),
        .c_raw = cg_record(call, s, l, n, l->c_raw, s->hidden),
        .c = cg_record(call, s, l, n, l->c, s->hidden),
        .h = find_h(call, s, l, n),
        .u = cg_record(call, s, l, n, s->normed ? l->u : l->z, s->gh),
        .v = cg_record(call, s, l, n, l->v, s->gh),
        .moments = cg_record(call, s, l, n, l->moments, 4),
        .mask_h = l->mask_h < 0 ? NULL : cg_workspace(call, l->mask_h + n * l->mask_h_floats),
        .tile_weights = (uint32_t *)(void *)cg_own(call, s, l, n, l->tile_weights),
        .tile_exchange = (uint32_t *)(void *)cg_own(call, s, l, n, l->tile_exchange),
    };
    if (s->training && d->weight_drop > 0)
        y.w_h = call->packed + n * s->gh * s->out;
    return y;
}

static struct cg_drop make_drop(const struct cg_call *call, const struct cg_stack *s, int64_t layer, int64_t direction)
{
    return (struct cg_drop){.mask = {.live = call->live,
                                     .stream = get_stream(s->desc, layer, direction, SEQLSTM_MASK_INPUT),
                                     .rate = s->desc->dropout},
                            .rows = call->rows,
                            .n = cg_layer_width(s, layer)};
}

seqlstm_status cg_mask_rows(const struct cg_call *call, const struct cg_drop *drop, struct seqlstm_error *err)
{
    CG_START(call, "input mask", cg_dropout(call->stream, drop, call->axis));
    return SEQLSTM_OK;
}

struct cg_drop cg_drop_gradient(const struct cg_call *call, const struct cg_stack *s, int64_t layer, float *dx,
                                const float *other)
{
    struct cg_drop drop = make_drop(call, s, layer, 0);
    drop.x = dx;
    drop.y = dx;
    drop.other = other;
    drop.other_stream = get_stream(s->desc, layer, 1, SEQLSTM_MASK_INPUT);
    return drop;
}

struct cg_drop cg_drop_input(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                             int64_t layer, int64_t direction)
{
    if (l->x_masked < 0)
        return (struct cg_drop){.rows = 0};
    struct cg_drop drop = make_drop(call, s, layer, direction);
    drop.x = cg_layer_input(call, s, l, layer);
    drop.y = cg_workspace(call, l->x_masked + direction * l->x_masked_floats);
    return drop;
}

seqlstm_status cg_store_layers(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                               bool back, struct seqlstm_error *err)
{
    const struct cg_recurrent_binding *r = call->binding->recurrent;
    const int64_t first = back ? r->count : 0;
    struct cg_prepared prepared = {0};
    for (int64_t direction = 0; !back && direction < s->directions; direction++)
        prepared.drops[direction] = cg_drop_input(call, s, l, 0, direction);
    if (l->mask_h >= 0)
        prepared.tables[CG_TABLES_H] =
            (struct cg_mask_tables){.to = cg_workspace(call, l->mask_h),
                                    .count = r->count,
                                    .directions = s->directions,
                                    .stride = l->mask_h_floats,
                                    .width = s->out,
                                    .stream = get_stream(s->desc, 0, 0, SEQLSTM_MASK_RECURRENT),
                                    .rate = s->desc->recurrent_dropout};
    if (back && l->dy_mask >= 0)
        prepared.tables[CG_TABLES_DY] = (struct cg_mask_tables){.to = cg_workspace(call, l->dy_mask),
                                                                .count = s->layers - 1,
                                                                .directions = 1,
                                                                .stride = l->dy_mask_floats,
                                                                .width = s->merged,
                                                                .stream = get_stream(s->desc, 1, 0, SEQLSTM_MASK_INPUT),
                                                                .rate = s->desc->dropout};
    CG_START(call, "copying the layers' structs",
             cg_layer_prepare(call->stream, r->host, r->count, &call->live, &prepared, r->device + first));
    if (r->run != r->host)
        CG_START(call, "copying the layers' structs",
                 cg_layer_store(call->stream, r->run, r->count, &call->live, r->device_run + first));
    return SEQLSTM_OK;
}

seqlstm_status cg_run_resident(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                               const struct cg_layer *device, bool back, struct seqlstm_error *err)
{
    const struct cg_resident *resident = &call->op->resident[back];
    const int64_t sequences = call->axis->sequences;
    uint32_t *exchange = (uint32_t *)(void *)cg_workspace(call, l->exchange);
    for (int64_t direction = 0; direction < s->directions; direction += resident->together) {
        SEQLSTM_TRY(cg_clear(call, exchange, resident->together * cg_resident_counter_words(resident), err));
        CG_START(call, back ? "all backward steps" : "all steps",
                 back ? cg_resident_backward(call->stream, device + direction, resident, exchange, sequences)
                      : cg_resident_forward(call->stream, device + direction, resident, exchange, sequences));
    }
    return SEQLSTM_OK;
}

seqlstm_status cg_run_loop(const struct cg_call *call, const struct cg_stack *s, int64_t index, cg_loop_fn *loop,
                           struct seqlstm_error *err)
{
    struct cg_recurrent_binding *r = call->binding->recurrent;
    const struct cg_layer *device = r->device + index, *host = &r->host[index % r->count];
    const int32_t ordinal = call->op->ordinal;
    /* in a capture of the host, the loop is a part of that capture */
    if (gpu_is_capturing(ordinal, call->stream) || (r->captures[index] == NULL && r->runs[index]++ == 0))
        return loop(call, s, device, host, err);
    if (r->captures[index] == NULL) {
        SEQLSTM_TRY(gpu_capture_begin(ordinal, call->stream, err));
        seqlstm_status status = loop(call, s, device, host, err);
        void *capture = NULL;
        seqlstm_status ended = gpu_capture_end(ordinal, call->stream, &capture, status == SEQLSTM_OK ? err : NULL);
        if (status != SEQLSTM_OK || ended != SEQLSTM_OK) {
            gpu_capture_destroy(ordinal, capture);
            return status != SEQLSTM_OK ? status : ended;
        }
        r->captures[index] = capture;
    }
    return gpu_capture_launch(ordinal, r->captures[index], call->stream, err);
}
