/* SPDX-License-Identifier: Apache-2.0 */
/* Weights into the layouts of the primitives. Each matrix is one job, done by one of the host's threads. */
#include <string.h>

#include "recurrent.h"

struct packing {
    const struct odn_recurrent *r;
    void *const *slots;
    void *packed;
    _Atomic int32_t failed;
};

static const int params[ODN_WEIGHTS] = {SEQLSTM_PARAM_W_X, SEQLSTM_PARAM_W_H, SEQLSTM_PARAM_PROJECTION};

/* Gates in the library's order, into `out`. */
static void permute(const struct odn_recurrent *r, int32_t gates, int64_t elems, const float *from, float *out)
{
    for (int32_t g = 0; g < gates; g++)
        memcpy(out + g * elems, from + r->gate_map[g] * elems, (size_t)elems * sizeof *out);
}

static dnnl_status_t reorder(const struct odn_recurrent *r, const struct odn_kind *kind, int p, int w,
                             const void *from, void *to)
{
    const dnnl_primitive_desc_t pd = kind->reorder_pd[p][w];
    const dnnl_engine_t engine = r->op->instance->engine;
    dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    dnnl_status_t status = odn.memory_create(
        &arguments[0].memory, odn.primitive_desc_query_md(pd, dnnl_query_src_md, 0), engine, odn_at(from, 0));
    if (status == dnnl_success)
        status = odn.memory_create(&arguments[1].memory, odn.primitive_desc_query_md(pd, dnnl_query_dst_md, 0),
                                   engine, to);
    if (status == dnnl_success)
        status = odn.primitive_execute(kind->reorder[p][w], r->op->instance->stream, 2, arguments);
    for (int i = 0; i < 2; i++)
        if (arguments[i].memory != NULL)
            odn.memory_destroy(arguments[i].memory);
    return status;
}

static void pack_bias(const struct odn_recurrent *r, const struct odn_kind *kind, const float *bias, void *packed)
{
    float *out = odn_at(packed, kind->bias);
    if ((r->desc->options & SEQLSTM_RECURRENT_USE_BIAS) && bias != NULL)
        permute(r, r->bias_gates, r->hidden, bias, out);
    else
        memset(out, 0, (size_t)(r->bias_gates * r->hidden) * sizeof *out);
}

/* Matrices of a layer and direction, equal in work but for a projection. */
static int64_t matrices(const struct odn_recurrent *r)
{
    return r->projection ? ODN_WEIGHTS : ODN_WEIGHTS - 1;
}

/* Job = ((l, d), w): both passes' layouts of one matrix; W_x also packs the bias. */
static void pack_range(void *argument, int64_t begin, int64_t end)
{
    struct packing *packing = argument;
    const struct odn_recurrent *r = packing->r;
    const int before = odn_threads_set(1);
    for (int64_t job = begin; job < end; job++) {
        const int w = (int)(job % matrices(r));
        const int32_t n = (int32_t)(job / matrices(r)), l = n / r->directions, d = n % r->directions;
        const struct odn_kind *kind = &r->kind[odn_kind_of(r, l)];
        void *packed = odn_at(packing->packed, odn_packed_of(r, l, d));
        if (w == ODN_WEIGHT_X)
            pack_bias(r, kind, odn_param(r, packing->slots, l, d, SEQLSTM_PARAM_BIAS), packed);
        if (r->quantized && w == ODN_WEIGHT_X) {
            const dnnl_status_t status = odn_quantized_pack(r, packing->slots, d, packed);
            if (status != dnnl_success)
                packing->failed = (int32_t)status;
        }
        if (r->quantized)
            continue;
        const float *from = odn_param(r, packing->slots, l, d, params[w]);
        if (r->gate_map[0] != 0 && w != ODN_WEIGHT_P) {
            float *permuted = odn_at(packed, kind->permuted[w]);
            permute(r, r->gates, r->hidden * kind->dims[w][2], from, permuted);
            from = permuted;
        }
        for (int p = 0; p < (r->training ? ODN_PASSES : 1); p++) {
            const dnnl_status_t status = reorder(r, kind, p, w, from, odn_at(packed, kind->packed[p][w]));
            if (status != dnnl_success)
                packing->failed = (int32_t)status;
        }
    }
    odn_threads_set(before);
}

seqlstm_status odn_recurrent_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                  void *packed, struct seqlstm_error *err)
{
    const struct odn_recurrent *r = op->recurrent;
    struct packing packing = {.r = r, .slots = slots, .packed = packed};
    queue->services->parallel_for(queue, (int64_t)r->layers * r->directions * matrices(r), 1, pack_range, &packing);
    return odn_check((dnnl_status_t)packing.failed, "a change of weight layout", err);
}
