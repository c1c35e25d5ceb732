/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION: kernels over queries and over rows of the memories.
 *
 *   reserve    a [max_rows, longest]                    training only; in inference a lies in the workspace
 *   workspace  training: de [max_rows, longest] | additive: dscores [max_rows, K] */
#include "cuda-generic/rows/attention.h"
#include "common/align.h"
#include "cuda-generic/plugin.h"
#include "cuda-generic/rows/rows.h"

static uint64_t weight_bytes(const struct seqlstm_attention_desc *d)
{
    return align_bytes((uint64_t)d->head.max_rows * (uint64_t)d->head.max_steps * sizeof(float));
}

static void sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    const struct seqlstm_attention_desc *d = &op->desc.attention;
    sizes->workspace_bytes = weight_bytes(d);
    if (d->head.mode != SEQLSTM_MODE_TRAINING)
        return;
    sizes->reserve_bytes = weight_bytes(d);
    if (d->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE)
        sizes->workspace_bytes += (uint64_t)(d->head.max_rows * d->key) * sizeof(float);
}

static struct cg_attention describe(const struct cg_call *call)
{
    const struct seqlstm_attention_desc *d = &call->desc->attention;
    const bool shared = d->options & SEQLSTM_BIT_ATTENTION_SHARED;
    return (struct cg_attention){
        .queries = call->rows,
        .rows = call->binding->bind.rows_in,
        .memories = d->head.max_sequences,
        .longest = d->head.max_steps,
        .key = d->key,
        .value = d->value,
        .scale = d->scale,
        .query = cg_slot(call, SEQLSTM_SLOT_ATTENTION_QUERIES),
        .keys = cg_slot(call, SEQLSTM_SLOT_ATTENTION_KEYS),
        .values = cg_slot(call, shared ? SEQLSTM_SLOT_ATTENTION_KEYS : SEQLSTM_SLOT_ATTENTION_VALUES),
        .score = d->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE ? cg_slot(call, SEQLSTM_SLOT_ATTENTION_SCORE) : NULL,
        .offsets = call->slots[SEQLSTM_SLOT_ATTENTION_OFFSETS],
        .memory_of = call->slots[SEQLSTM_SLOT_ATTENTION_MEMORY_OF],
    };
}

static seqlstm_status forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct cg_attention w = describe(call);
    const struct seqlstm_attention_desc *d = &call->desc->attention;
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING;
    float *report = d->options & SEQLSTM_BIT_ATTENTION_WEIGHTS ? cg_slot(call, SEQLSTM_SLOT_ATTENTION_WEIGHTS) : NULL;
    CG_START(call, "attention",
             cg_attend(call->stream, &w, (float *)(void *)(training ? call->reserve : call->workspace), report,
                       cg_slot(call, SEQLSTM_SLOT_ATTENTION_CONTEXT)));
    return SEQLSTM_OK;
}

static seqlstm_status clear(const struct cg_call *call, float *grad, int64_t elems, struct seqlstm_error *err)
{
    return grad ? cg_clear(call, grad, elems, err) : SEQLSTM_OK;
}

static seqlstm_status backward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct cg_attention w = describe(call);
    const struct seqlstm_attention_desc *d = &call->desc->attention;
    const bool shared = d->options & SEQLSTM_BIT_ATTENTION_SHARED;
    const float *dcontext = cg_grad(call, SEQLSTM_SLOT_ATTENTION_CONTEXT, 0);
    float *dquery = cg_grad(call, SEQLSTM_SLOT_ATTENTION_QUERIES, SEQLSTM_BIT_BACKWARD_INPUTS);
    float *dkeys = cg_grad(call, SEQLSTM_SLOT_ATTENTION_KEYS, SEQLSTM_BIT_BACKWARD_INPUTS);
    float *dvalues = shared ? dkeys : cg_grad(call, SEQLSTM_SLOT_ATTENTION_VALUES, SEQLSTM_BIT_BACKWARD_INPUTS);
    float *dscore = w.score ? cg_grad(call, SEQLSTM_SLOT_ATTENTION_SCORE, SEQLSTM_BIT_BACKWARD_WEIGHTS) : NULL;
    if (dcontext == NULL) {
        SEQLSTM_TRY(clear(call, dquery, w.queries * w.key, err));
        SEQLSTM_TRY(clear(call, dkeys, w.rows * w.key, err));
        SEQLSTM_TRY(shared ? SEQLSTM_OK : clear(call, dvalues, w.rows * w.value, err));
        return call->add ? SEQLSTM_OK : clear(call, dscore, w.key, err);
    }
    const float *a = (const float *)(const void *)call->reserve;
    float *de = (float *)(void *)call->workspace;
    float *dscores = dscore ? (float *)(void *)(call->workspace + weight_bytes(d)) : NULL;
    CG_START(call, "attention, backward to the queries",
             cg_attend_back_queries(call->stream, &w, a, dcontext, de, dquery, dscores));
    if (dkeys || dvalues)
        CG_START(call, "attention, backward to the memories",
                 cg_attend_back_rows(call->stream, &w, a, de, dcontext, dkeys, dvalues));
    if (dscore)
        CG_START(call, "attention, gradient of the score",
                 cg_column_sums(call->stream, w.queries, w.key, dscores, w.key, dscore, call->add));
    return SEQLSTM_OK;
}

const struct cg_family cg_attention_family = {.sizes = sizes, .forward = forward, .backward = backward};
