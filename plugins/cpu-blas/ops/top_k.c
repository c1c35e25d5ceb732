/* SPDX-License-Identifier: Apache-2.0 */
/* TOP_K: the k best elements of a row, or one drawn from it.
 *
 * If k is small, the best elements are kept in a sorted list while the row is read once. Otherwise, and for a draw,
 * a heap of indices in the workspace returns the elements best first, as many as are asked for: a draw rarely needs
 * more than a few. */
#include <math.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "cpu-blas/share.h"

enum { LIST_MAX = 16 };

/* A heap of the indices of a row, the best remaining one in front. Indices that were taken are behind it, the last
 * one first. */
struct heap {
    const float *x;
    int32_t *index;
    int64_t n, rest;
};

/* Orders by larger value, then by lower index. */
static bool before(const float *x, int32_t a, int32_t b)
{
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

static void sift(struct heap *h, int64_t at)
{
    const int32_t moved = h->index[at];
    for (int64_t child; (child = 2 * at + 1) < h->rest; at = child) {
        if (child + 1 < h->rest && before(h->x, h->index[child + 1], h->index[child]))
            child++;
        if (!before(h->x, h->index[child], moved))
            break;
        h->index[at] = h->index[child];
    }
    h->index[at] = moved;
}

static void heap_init(struct heap *h, const float *x, int64_t n, int32_t *index)
{
    *h = (struct heap){x, index, n, n};
    for (int64_t i = 0; i < n; i++)
        index[i] = (int32_t)i;
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift(h, i);
}

/* The element of this rank. Ranks may be asked for in any order; each new one costs log n. */
static int32_t heap_rank(struct heap *h, int64_t rank)
{
    while (h->n - h->rest <= rank) {
        const int32_t best = h->index[0];
        h->rest--;
        h->index[0] = h->index[h->rest];
        if (h->rest > 0)
            sift(h, 0);
        h->index[h->rest] = best;
    }
    return h->index[h->n - 1 - rank];
}

/* Returns false if the row contains NaN. */
static bool best_of_list(const struct blas_rowmath *math, const float *x, int64_t n, int64_t k, int32_t *index,
                         float *value)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (count == k)
            i = math->find_above(n, x, i, value[k - 1]);
        if (i == n)
            break;
        if (x[i] != x[i])
            return false;
        int64_t at = count < k ? count++ : k - 1;
        for (; at > 0 && x[i] > value[at - 1]; at--) {
            value[at] = value[at - 1];
            index[at] = index[at - 1];
        }
        value[at] = x[i];
        index[at] = (int32_t)i;
    }
    return true;
}

static bool has_nan(const struct blas_rowmath *math, const float *x, int64_t n)
{
    for (int64_t i = 0; (i = math->find_above(n, x, i, INFINITY)) < n; i++)
        if (x[i] != x[i])
            return true;
    return false;
}

/* Goes through the elements, best first, until their sum reaches the share `u` of what top_k and top_p leave. */
static void draw(const struct seqlstm_top_k_desc *d, struct heap *h, double u, int32_t *out_index, float *out_value)
{
    const int64_t n = h->n, limit = d->top_k > 0 && (int64_t)d->top_k < n ? (int64_t)d->top_k : n;
    const double temperature = (double)d->temperature, most = (double)h->x[heap_rank(h, 0)];
    double total = 0.0;
    for (int64_t i = 0; i < limit; i++)
        total += exp(((double)h->x[limit < n ? heap_rank(h, i) : i] - most) / temperature);
    double kept = total;
    int64_t count = limit;
    if (d->top_p < 1.0f) {
        kept = 0.0;
        for (count = 0; count < limit && (count == 0 || kept < (double)d->top_p * total); count++)
            kept += exp(((double)h->x[heap_rank(h, count)] - most) / temperature);
    }
    double passed = 0.0;
    int32_t chosen = 0;
    for (int64_t rank = 0; rank < count; rank++) {
        chosen = heap_rank(h, rank);
        passed += exp(((double)h->x[chosen] - most) / temperature);
        if (u * kept < passed)
            break;
    }
    *out_index = chosen;
    *out_value = (float)(((double)h->x[chosen] - most) / temperature - log(kept));
}

static void sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out)
{
    const uint64_t members = (uint64_t)op->instance->members_max;
    /* A flag and a heap for each part. */
    out->workspace_bytes = align_bytes(members * (1 + (uint64_t)op->desc.top_k.features) * sizeof(int32_t));
}

static void choose_rows(const struct blas_call *call, void *context, int32_t part, int64_t begin, int64_t end)
{
    (void)context;
    const struct seqlstm_top_k_desc *d = &call->op->desc.top_k;
    const struct seqlstm_bind *bind = call->bind;
    const int64_t n = d->features, k = d->k;
    int32_t *flags = call->workspace, *places = flags + call->op->instance->members_max + part * n;
    int32_t *index = call->slots[SEQLSTM_SLOT_TOP_K_INDEX];
    float *value = call->slots[SEQLSTM_SLOT_TOP_K_VALUE];
    const bool drawn = d->kind == SEQLSTM_KIND_TOP_K_SAMPLE,
               on_steps = (bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES) == 0;
    const uint64_t key = drawn ? seqlstm_mix64(call->step->seed, d->stream, call->step->epoch) : 0;
    int64_t t = bind->t0;
    flags[part] = 0;
    for (int64_t r = begin; r < end; r++) {
        const float *x = (const float *)call->slots[SEQLSTM_SLOT_TOP_K_X] + r * n;
        struct heap heap;
        if (!drawn && k <= LIST_MAX) {
            if (best_of_list(call->math, x, n, k, index + r * k, value + r * k))
                continue;
            flags[part] = 1;
            return;
        }
        if (has_nan(call->math, x, n)) {
            flags[part] = 1;
            return;
        }
        if (drawn) {
            int64_t b = r;
            uint32_t step = 0;
            if (on_steps) {
                const int64_t row = bind->axis->row_offsets[bind->t0] + r;
                while (row >= bind->axis->row_offsets[t + 1])
                    t++;
                b = row - bind->axis->row_offsets[t];
                step = bind->axis->position0[b] + (uint32_t)t;
            }
            heap_init(&heap, x, n, places);
            draw(d, &heap, (double)seqlstm_uniform(key, 0, step, bind->axis->sequence_id[b]), index + r, value + r);
        } else {
            heap_init(&heap, x, n, places);
            for (int64_t rank = 0; rank < k; rank++) {
                index[r * k + rank] = heap_rank(&heap, rank);
                value[r * k + rank] = x[index[r * k + rank]];
            }
        }
    }
}

static seqlstm_status forward(const struct blas_call *call, struct seqlstm_error *err)
{
    if (call->bind->rows == 0)
        return SEQLSTM_OK;
    struct blas_division rows = blas_divide(
        call->bind->rows, 1,
        blas_grain_rows((call->op->desc.top_k.k <= LIST_MAX ? 1 : 8) * call->op->desc.top_k.features), call->members);
    blas_share(call, &rows, choose_rows, NULL);
    for (int32_t part = 0; part < rows.parts; part++)
        if (((int32_t *)call->workspace)[part] != 0)
            SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "a row of top_k holds NaN");
    return SEQLSTM_OK;
}

const struct blas_operation blas_top_k = {
    .slots = SEQLSTM_SLOT_TOP_K_COUNT,
    .sizes = sizes,
    .forward = forward,
};
