/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of ATTENTION: see attention.c. */
#include "cpu-blas/ops/attention.h"

/* The gradient of an input, NULL where it is not wanted. */
static float *input_grad(const struct blas_call *call, int slot)
{
    return call->parts & SEQLSTM_BIT_BACKWARD_INPUTS ? call->grads[slot] : NULL;
}

/* Computes dE of a tile, in `tile->weight`. */
static void back_weights(const struct blas_call *call, const struct blas_attention_work *w, int64_t count,
                         int64_t length, const float *a, const float *values, const float *dcontext, float *de)
{
    const int64_t value = w->d->value;
    call->math->product_dots(count, length, value, dcontext, value, values, value, false, de, length);
    for (int64_t i = 0; i < count; i++)
        call->math->softmax_backward(length, a + i * length, de + i * length, de + i * length, false);
    if (w->score == NULL && w->d->scale != 1.0f)
        call->math->scale_shift(count * length, w->d->scale, 0.0f, de);
}

/* Backward of memory m. dkeys and dvalues are its rows and hold zeros; NULL where not wanted. */
static void attend_back(const struct blas_call *call, struct blas_attention_work *w, int64_t m,
                        const struct blas_tile *tile, float *dkeys, float *dvalues)
{
    const int64_t key = w->d->key, value = w->d->value, first = w->offsets[m], length = w->offsets[m + 1] - first;
    const float *keys = w->keys + first * key, *values = w->values + first * value;
    const float *dcontexts = call->grads[SEQLSTM_SLOT_ATTENTION_CONTEXT];
    float *dqueries = input_grad(call, SEQLSTM_SLOT_ATTENTION_QUERIES);
    for (int64_t q = w->sorted.starts[m]; length > 0 && q < w->sorted.starts[m + 1]; q += BLAS_ATTENTION_TILE) {
        const int64_t left = w->sorted.starts[m + 1] - q,
                      count = left < BLAS_ATTENTION_TILE ? left : BLAS_ATTENTION_TILE;
        const int32_t *order = w->sorted.order + q;
        const float *a = w->sorted.weights + w->sorted.pairs[m] + (q - w->sorted.starts[m]) * length;
        const float *query = blas_rows_collect(order, count, w->queries, key, tile->query);
        const float *dcontext = blas_rows_collect(order, count, dcontexts, value, tile->context);
        float *de = tile->weight,
              *dquery = dqueries ? blas_rows_aim(order, count, dqueries, key, tile->dquery) : tile->dquery;
        back_weights(call, w, count, length, a, values, dcontext, de);
        if (dvalues != NULL)
            call->math->product_rows(length, value, count, a, 1, length, dcontext, value, true, dvalues, value);
        if (w->score != NULL) {
            for (int64_t i = 0; i < count; i++)
                call->math->tanh_scores_back(length, key, query + i * key, keys, w->score, de + i * length,
                                             dquery + i * key, dkeys != NULL ? dkeys : tile->dkeys, tile->dscore);
        } else {
            if (dqueries != NULL)
                call->math->product_rows(count, key, length, de, length, 1, keys, key, false, dquery, key);
            if (dkeys != NULL)
                call->math->product_rows(length, key, count, de, 1, length, query, key, true, dkeys, key);
        }
        if (dqueries != NULL)
            blas_rows_place(order, count, dqueries, key, dquery);
    }
}

static void attend_back_part(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)begin;
    (void)end;
    struct blas_attention_work *w = context;
    const struct seqlstm_attention_desc *d = w->d;
    const bool shared = d->options & SEQLSTM_BIT_ATTENTION_SHARED;
    float *dkeys = input_grad(call, SEQLSTM_SLOT_ATTENTION_KEYS);
    float *dvalues = shared ? dkeys : input_grad(call, SEQLSTM_SLOT_ATTENTION_VALUES);
    const struct blas_tile own = blas_attention_tile(call, w, part);
    if (own.dscore != NULL) {
        memset(own.dscore, 0, (size_t)d->key * sizeof(float));
        memset(own.dkeys, 0, (size_t)(d->head.max_steps * d->key) * sizeof(float));
    }
    for (int64_t m = 0; m < d->head.max_sequences; m++) {
        if (!blas_attention_is_of(w, m, part))
            continue;
        const int64_t first = w->offsets[m], length = w->offsets[m + 1] - first;
        float *keys = dkeys != NULL ? dkeys + first * d->key : NULL;
        float *values = dvalues != NULL ? dvalues + first * d->value : NULL;
        if (keys != NULL)
            memset(keys, 0, (size_t)(length * d->key) * sizeof *keys);
        if (values != NULL && !shared)
            memset(values, 0, (size_t)(length * d->value) * sizeof *values);
        attend_back(call, w, m, &own, keys, values);
    }
}

static void clear(float *grad, int64_t elems)
{
    if (grad != NULL)
        memset(grad, 0, (size_t)elems * sizeof *grad);
}

/* There is no gradient of the output, so all gradients are zero. */
static void clear_all(const struct blas_call *call, const struct seqlstm_attention_desc *d, float *dscore)
{
    clear(input_grad(call, SEQLSTM_SLOT_ATTENTION_QUERIES), call->bind->rows * d->key);
    clear(input_grad(call, SEQLSTM_SLOT_ATTENTION_KEYS), call->bind->rows_in * d->key);
    if (!(d->options & SEQLSTM_BIT_ATTENTION_SHARED))
        clear(input_grad(call, SEQLSTM_SLOT_ATTENTION_VALUES), call->bind->rows_in * d->value);
    if (!(call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE))
        clear(dscore, d->key);
}

seqlstm_status blas_attention_backward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_attention_desc *d = &call->op->desc.attention;
    const bool additive = d->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE;
    float *dscore = additive && blas_wants(call, SEQLSTM_BIT_BACKWARD_WEIGHTS, SEQLSTM_SLOT_ATTENTION_SCORE)
                        ? call->grads[SEQLSTM_SLOT_ATTENTION_SCORE]
                        : NULL;
    if (call->grads[SEQLSTM_SLOT_ATTENTION_CONTEXT] == NULL ||
        (!additive && !(call->parts & SEQLSTM_BIT_BACKWARD_INPUTS))) {
        clear_all(call, d, dscore);
        return SEQLSTM_OK;
    }
    struct blas_attention_work w = blas_attention_begin(call);
    const int32_t *memory_of = call->slots[SEQLSTM_SLOT_ATTENTION_MEMORY_OF];
    float *dqueries = input_grad(call, SEQLSTM_SLOT_ATTENTION_QUERIES);
    for (int64_t q = 0; dqueries != NULL && q < call->bind->rows; q++)
        if (blas_attention_length(&w, memory_of[q]) == 0)
            clear(dqueries + q * d->key, d->key);
    blas_attention_share(call, &w, attend_back_part);
    if (dscore != NULL && !(call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE))
        clear(dscore, d->key);
    for (int32_t part = 0; dscore != NULL && part < w.parts; part++)
        call->math->add(d->key, blas_attention_tile(call, &w, part).dscore, dscore);
    return SEQLSTM_OK;
}
