/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION, one memory at a time. All queries of a memory are brought together, in whatever order they come. Scores,
 * contexts and gradients are then small matrix products over rows which stay in the caches.
 *
 *   sort      queries by memory, in their order (a counting sort)
 *   forward   E = Q K', A = softmax(scale E), C = A V                       in tiles of 32 queries
 *   backward  dA = dC V', dE = scale softmax'(A, dA), dV += A' dC, dQ = dE K, dK += dE' Q
 *
 * Additive scores are not a matrix product: rowmath's tanh_scores computes them. Members share whole memories, so
 * that each has about the same number of multiply-adds; the gradients of a memory are sums in the order of its
 * queries. Training keeps the order of the queries and A in the reserve. Each part sums its gradient of SCORE; these
 * sums are then added in the order of the parts. */
#include "cpu-blas/ops/attention.h"

static void sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    const struct seqlstm_attention_desc *d = &op->desc.attention;
    const uint64_t sorted = blas_attention_place_sorted(d, op->training, NULL).bytes;
    sizes->workspace_bytes =
        (uint64_t)op->instance->members_max * blas_attention_place_tile(d, op->training, NULL).bytes;
    if (op->training)
        sizes->reserve_bytes = sorted;
    else
        sizes->workspace_bytes += sorted;
}

/* ---- one tile ------------------------------------------------------------------------------------ */

/* Computes A of `count` queries over the `length` rows of keys. */
static void weigh(const struct blas_call *call, const struct blas_attention_work *w, int64_t count, int64_t length,
                  const float *query, const float *keys, float *a)
{
    const int64_t key = w->d->key;
    if (w->score != NULL)
        for (int64_t i = 0; i < count; i++)
            call->math->tanh_scores(length, key, query + i * key, keys, w->score, a + i * length);
    else
        call->math->product_dots(count, length, key, query, key, keys, key, false, a, length);
    if (w->score == NULL && w->d->scale != 1.0f)
        call->math->scale_shift(count * length, w->d->scale, 0.0f, a);
    for (int64_t i = 0; i < count; i++)
        call->math->softmax(length, a + i * length, a + i * length, false);
}

/* ---- forward ------------------------------------------------------------------------------------- */

static void attend(const struct blas_call *call, struct blas_attention_work *w, int64_t m, const struct blas_tile *tile)
{
    const int64_t value = w->d->value, longest = w->d->head.max_steps, first = w->offsets[m];
    const int64_t length = w->offsets[m + 1] - first;
    const float *keys = w->keys + first * w->d->key, *values = w->values + first * value;
    float *contexts = call->slots[SEQLSTM_SLOT_ATTENTION_CONTEXT],
          *report = call->slots[SEQLSTM_SLOT_ATTENTION_WEIGHTS];
    for (int64_t q = w->sorted.starts[m]; length > 0 && q < w->sorted.starts[m + 1]; q += BLAS_ATTENTION_TILE) {
        const int64_t left = w->sorted.starts[m + 1] - q,
                      count = left < BLAS_ATTENTION_TILE ? left : BLAS_ATTENTION_TILE;
        const int32_t *order = w->sorted.order + q;
        float *a = tile->weight;
        if (w->sorted.weights != NULL)
            a = w->sorted.weights + w->sorted.pairs[m] + (q - w->sorted.starts[m]) * length;
        weigh(call, w, count, length, blas_rows_collect(order, count, w->queries, w->d->key, tile->query), keys, a);
        float *context = blas_rows_aim(order, count, contexts, value, tile->context);
        call->math->product_rows(count, value, length, a, length, 1, values, value, false, context, value);
        blas_rows_place(order, count, contexts, value, context);
        for (int64_t i = 0; report != NULL && i < count; i++)
            memcpy(report + order[i] * longest, a + i * length, (size_t)length * sizeof *a);
    }
}

static void attend_part(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)begin;
    (void)end;
    struct blas_attention_work *w = context;
    const struct blas_tile tile = blas_attention_tile(call, w, part);
    for (int64_t m = 0; m < w->d->head.max_sequences; m++)
        if (blas_attention_is_of(w, m, part))
            attend(call, w, m, &tile);
}

static seqlstm_status forward(const struct blas_call *call, struct seqlstm_error *err)
{
    (void)err;
    struct blas_attention_work w = blas_attention_begin(call);
    const int32_t *memory_of = call->slots[SEQLSTM_SLOT_ATTENTION_MEMORY_OF];
    float *contexts = call->slots[SEQLSTM_SLOT_ATTENTION_CONTEXT],
          *report = call->slots[SEQLSTM_SLOT_ATTENTION_WEIGHTS];
    const int64_t value = w.d->value, longest = w.d->head.max_steps;
    blas_attention_sort(call, &w);
    for (int64_t q = 0; q < call->bind->rows; q++) {
        const int64_t length = blas_attention_length(&w, memory_of[q]);
        if (length == 0)
            memset(contexts + q * value, 0, (size_t)value * sizeof *contexts);
        if (report != NULL)
            memset(report + q * longest + length, 0, (size_t)(longest - length) * sizeof *report);
    }
    blas_attention_share(call, &w, attend_part);
    return SEQLSTM_OK;
}

const struct blas_operation blas_attention = {
    .slots = SEQLSTM_SLOT_ATTENTION_COUNT,
    .sizes = sizes,
    .forward = forward,
    .backward = blas_attention_backward,
};
