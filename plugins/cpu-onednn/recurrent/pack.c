/* SPDX-License-Identifier: Apache-2.0 */
/* Packs weights into the layouts of the primitives, unless these read ours.
 *
 * float32 layouts without blocks are written here, for both passes while the rows that they are made of are in the
 * cache. The library reorders the other layouts, and writes zeros to their padding. The gaps between rows of the former
 * belong to no row: the library does not read them, and its reorders do not write them. */
#include "cpu-onednn/recurrent/recurrent.h"
#include "cpu-onednn/recurrent/turn.h"

static const int params[ODN_WEIGHTS] = {SEQLSTM_PARAM_W_X, SEQLSTM_PARAM_W_H, SEQLSTM_PARAM_PROJECTION};

static int64_t gates_of(const struct odn_kind *kind, int w)
{
    return kind->n_dims[w] == 5 ? kind->dims[w][3] : 1;
}

static int64_t outputs_of(const struct odn_kind *kind, int w)
{
    return kind->dims[w][kind->n_dims[w] - 1];
}

static int64_t elements_of(const struct odn_kind *kind, int w)
{
    return gates_of(kind, w) * outputs_of(kind, w) * kind->dims[w][2];
}

/* ---- making ----------------------------------------------------------------------------------------------- */

/* How to make the layout from ours. The backward pass uses ours if the library does not pad rows: if they are whole
 * cache lines and not a multiple of 256 elements. */
static struct odn_fill find_fill(const struct odn_recurrent *r, const struct odn_kind *kind, int p, int w)
{
    int64_t strides[DNNL_MAX_NDIMS];
    const int n = kind->n_dims[w];
    if (r->weight_type != dnnl_f32 || !odn_md_plain(odn_layout_get(&kind->weights[p][w]), strides))
        return (struct odn_fill){.how = ODN_REORDERED};
    struct odn_fill fill = {.how = strides[n - 1] == 1 ? ODN_TURNED
                                   : strides[2] == 1   ? ODN_COPIED
                                                       : ODN_REORDERED,
                            .input = strides[2],
                            .gate = n == 5 ? strides[3] : 0,
                            .output = strides[n - 1]};
    const int64_t inputs = kind->dims[w][2];
    if (fill.how == ODN_COPIED && r->gate_map[0] == 0 && fill.output == inputs &&
        fill.gate == inputs * outputs_of(kind, w))
        fill.how = ODN_SAME;
    return fill;
}

/* Creates the library's reorder for one matrix, and reserves room for its gates in the library's order. */
static dnnl_status_t make_reorder(struct odn_recurrent *r, struct odn_kind *kind, int p, int w)
{
    const dnnl_engine_t engine = r->op->instance->engine;
    struct odn_layout ours = {0};
    dnnl_status_t status =
        odn_plain_layout(&ours, kind, w, dnnl_f32, !r->quantized) ? dnnl_success : dnnl_out_of_memory;
    if (status == dnnl_success && !r->quantized) { /* the others are created when the scales are known */
        status = odn.reorder_primitive_desc_create(&kind->reorder_pd[p][w], odn_layout_get(&ours), engine,
                                                   odn_layout_get(&kind->weights[p][w]), engine, NULL);
        if (status == dnnl_success)
            status = odn.primitive_create(&kind->reorder[p][w], kind->reorder_pd[p][w]);
    }
    if (status == dnnl_success && kind->permuted[w] == 0 && (r->quantized || r->gate_map[0] != 0))
        kind->permuted[w] = odn_take(&kind->packed_bytes, odn.memory_desc_get_size(odn_layout_get(&ours)));
    odn_layout_deinit(&ours);
    return status;
}

seqlstm_status odn_packing_make(struct odn_recurrent *r, int32_t k, struct seqlstm_error *err)
{
    struct odn_kind *kind = &r->kind[k];
    const int before = odn_threads_set(1); /* they run on one thread */
    dnnl_status_t status = dnnl_success;
    for (int w = 0; w < ODN_WEIGHTS && status == dnnl_success; w++)
        for (int p = 0; odn_has_weight(r, w) && p < odn_passes(r) && status == dnnl_success; p++) {
            const odn_md md = odn_layout_get(&kind->weights[p][w]);
            kind->fill[p][w] = find_fill(r, kind, p, w);
            if (kind->fill[p][w].how != ODN_SAME)
                kind->packed[p][w] = odn_take(&kind->packed_bytes, odn.memory_desc_get_size(md));
            if (kind->fill[p][w].how == ODN_REORDERED)
                status = make_reorder(r, kind, p, w);
        }
    odn_threads_set(before);
    kind->bias = odn_take(&kind->packed_bytes, (uint64_t)(r->bias_gates * r->hidden) * sizeof(float));
    if (r->quantized)
        kind->scales =
            odn_take(&kind->packed_bytes, sizeof(uint64_t) + (uint64_t)(r->gates * r->hidden) * sizeof(float));
    return odn_check(status, "a change of weight layout", err);
}

void *odn_weights(const struct odn_run *run, int32_t l, int32_t d, int32_t pass, int w)
{
    const struct odn_recurrent *r = run->b->r;
    const struct odn_kind *kind = &r->kind[odn_kind_of(r, l)];
    if (kind->fill[pass][w].how == ODN_SAME)
        return odn_param(r, run->slots, l, d, params[w]);
    return odn_at(run->packed, odn_packed_of(r, l, d) + kind->packed[pass][w]);
}

void odn_packing_release(struct odn_kind *kind)
{
    for (int p = 0; p < ODN_PASSES; p++)
        for (int w = 0; w < ODN_WEIGHTS; w++) {
            if (kind->reorder[p][w] != NULL)
                odn.primitive_destroy(kind->reorder[p][w]);
            if (kind->reorder_pd[p][w] != NULL)
                odn.primitive_desc_destroy(kind->reorder_pd[p][w]);
        }
}

/* ---- packing ------------------------------------------------------------------------------------------------ */

struct packing {
    const struct odn_recurrent *r;
    void *const *slots;
    void *packed;
    bool streams;
    _Atomic int32_t failed;
};

/* A matrix of one layer and direction. */
struct matrix {
    const struct packing *packing;
    const struct odn_kind *kind;
    int w;
    const float *ours;
    void *packed; /* of the layer and direction */
};

/* Packs outputs [begin, end) of a gate, at most a line, into the plain layouts. */
static void pack_outputs(const struct matrix *x, int64_t gate, int64_t begin, int64_t end)
{
    const struct odn_recurrent *r = x->packing->r;
    const int64_t inputs = x->kind->dims[x->w][2], first = r->gate_map[gate] * outputs_of(x->kind, x->w);
    const float *rows = x->ours + (first + begin) * inputs;
    for (int32_t p = odn_passes(r) - 1; p >= 0; p--) { /* backward first: mostly copies in order */
        const struct odn_fill *fill = &x->kind->fill[p][x->w];
        float *to = (float *)odn_at(x->packed, x->kind->packed[p][x->w]) + gate * fill->gate + begin * fill->output;
        if (fill->how == ODN_TURNED)
            odn_rows_turn(rows, inputs, end - begin, inputs, x->packing->streams, to, fill->input);
        for (int64_t o = begin; fill->how == ODN_COPIED && o < end; o++)
            odn_row_copy(rows + (o - begin) * inputs, inputs, x->packing->streams, to + (o - begin) * fill->output);
    }
}

/* Packs lines [begin, end) of the outputs of all gates; the first line of a gate may begin before the gate. */
static void pack_lines(const struct matrix *x, int64_t lines_of_gate, int64_t begin, int64_t end)
{
    const struct odn_fill *fill = &x->kind->fill[ODN_FORWARD][x->w];
    const int64_t outputs = outputs_of(x->kind, x->w);
    for (int64_t line = begin; line < end; line++) {
        const int64_t gate = line / lines_of_gate, into = fill->how == ODN_TURNED ? gate * fill->gate % ODN_LINE : 0;
        const int64_t from = line % lines_of_gate * ODN_LINE - into, to = from + ODN_LINE;
        if (from < outputs)
            pack_outputs(x, gate, from < 0 ? 0 : from, to < outputs ? to : outputs);
    }
}

/* Copies the gates into `out`, in the library's order. */
static void permute(const struct odn_recurrent *r, int64_t gates, int64_t elems, const float *from, float *out)
{
    for (int64_t g = 0; g < gates; g++)
        memcpy(out + g * elems, from + r->gate_map[g] * elems, (size_t)elems * sizeof *out);
}

static dnnl_status_t reorder(const struct matrix *x, int p, const float *from)
{
    const dnnl_primitive_desc_t pd = x->kind->reorder_pd[p][x->w];
    const struct seqlstm_instance *instance = x->packing->r->op->instance;
    dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    dnnl_status_t status = odn.memory_create(
        &arguments[0].memory, odn.primitive_desc_query_md(pd, dnnl_query_src_md, 0), instance->engine, odn_at(from, 0));
    if (status == dnnl_success)
        status = odn.memory_create(&arguments[1].memory, odn.primitive_desc_query_md(pd, dnnl_query_dst_md, 0),
                                   instance->engine, odn_at(x->packed, x->kind->packed[p][x->w]));
    if (status == dnnl_success)
        status = odn.primitive_execute(x->kind->reorder[p][x->w], instance->stream, 2, arguments);
    for (int i = 0; i < 2; i++)
        if (arguments[i].memory != NULL)
            odn.memory_destroy(arguments[i].memory);
    return status;
}

/* Packs into the layouts that are not plain. */
static dnnl_status_t reorder_passes(const struct matrix *x)
{
    const struct odn_recurrent *r = x->packing->r;
    const float *from = x->ours;
    dnnl_status_t status = dnnl_success;
    for (int32_t p = 0; p < odn_passes(r) && status == dnnl_success; p++) {
        if (x->kind->fill[p][x->w].how != ODN_REORDERED)
            continue;
        if (r->gate_map[0] != 0 && from == x->ours) {
            float *permuted = odn_at(x->packed, x->kind->permuted[x->w]);
            permute(r, gates_of(x->kind, x->w), outputs_of(x->kind, x->w) * x->kind->dims[x->w][2], from, permuted);
            from = permuted;
        }
        status = reorder(x, p, from);
    }
    return status;
}

static void pack_bias(const struct odn_recurrent *r, const struct odn_kind *kind, const float *bias, void *packed)
{
    float *out = odn_at(packed, kind->bias);
    if ((r->desc->options & SEQLSTM_BIT_RECURRENT_USE_BIAS) && bias != NULL)
        permute(r, r->bias_gates, r->hidden, bias, out);
    else
        memset(out, 0, (size_t)(r->bias_gates * r->hidden) * sizeof *out);
}

/* Packs the share [begin, end) of the matrix's elements. Work that cannot be divided is done with the middle element,
 * so that it is distributed too. For W_x this includes the bias, and in int8 the whole layer. */
static void pack_matrix(struct packing *packing, int32_t l, int32_t d, int w, int64_t begin, int64_t end)
{
    const struct odn_recurrent *r = packing->r;
    const struct odn_kind *kind = &r->kind[odn_kind_of(r, l)];
    const struct matrix x = {packing, kind, w, odn_param(r, packing->slots, l, d, params[w]),
                             odn_at(packing->packed, odn_packed_of(r, l, d))};
    const int64_t elements = elements_of(kind, w);
    const bool middle = begin <= elements / 2 && elements / 2 < end;
    dnnl_status_t status = dnnl_success;
    if (middle && w == ODN_WEIGHT_X)
        pack_bias(r, kind, odn_param(r, packing->slots, l, d, SEQLSTM_PARAM_BIAS), x.packed);
    if (middle && w == ODN_WEIGHT_X && r->quantized)
        status = odn_quantized_pack(r, packing->slots, d, x.packed);
    else if (middle && !r->quantized)
        status = reorder_passes(&x);
    if (status != dnnl_success)
        packing->failed = (int32_t)status;
    if (kind->fill[ODN_FORWARD][w].how == ODN_REORDERED && kind->fill[ODN_BACKWARD][w].how == ODN_REORDERED)
        return;
    const int64_t lines_of_gate = (outputs_of(kind, w) + ODN_LINE - 1) / ODN_LINE + 1;
    const int64_t lines = lines_of_gate * gates_of(kind, w);
    pack_lines(&x, lines_of_gate, lines * begin / elements, lines * end / elements);
}

/* [begin, end) counts the elements of all matrices, one after another. */
static void pack_range(void *argument, int64_t begin, int64_t end)
{
    struct packing *packing = argument;
    const struct odn_recurrent *r = packing->r;
    const int before = odn_threads_set(1);
    int64_t first = 0;
    for (int32_t n = 0; n < r->layers * r->directions; n++)
        for (int w = 0; w < ODN_WEIGHTS; w++) {
            if (!odn_has_weight(r, w))
                continue;
            const int32_t l = n / r->directions, d = n % r->directions;
            const int64_t count = elements_of(&r->kind[odn_kind_of(r, l)], w);
            const int64_t from = begin > first ? begin - first : 0, to = end - first < count ? end - first : count;
            if (from < to)
                pack_matrix(packing, l, d, w, from, to);
            first += count;
        }
    odn_streams_end();
    odn_threads_set(before);
}

seqlstm_status odn_recurrent_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                  void *packed, struct seqlstm_error *err)
{
    enum { GRAIN = 4096 };
    const struct odn_recurrent *r = op->recurrent;
    struct packing packing = {.r = r, .slots = slots, .packed = packed, .streams = odn_streams(op->sizes.packed_bytes)};
    int64_t elements = 0;
    for (int32_t l = 0; l < r->layers; l++)
        for (int w = 0; w < ODN_WEIGHTS; w++)
            if (odn_has_weight(r, w))
                elements += r->directions * elements_of(&r->kind[odn_kind_of(r, l)], w);
    queue->services->parallel_for(queue, elements, GRAIN, pack_range, &packing);
    return odn_check((dnnl_status_t)packing.failed, "a change of weight layout", err);
}
