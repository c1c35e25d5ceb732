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

static void *take(unsigned char *base, uint64_t *at, int64_t elems, uint64_t size)
{
    void *p = base != NULL ? base + *at : NULL;
    *at += align_bytes((uint64_t)elems * size);
    return p;
}

static struct blas_sorted place_sorted(const struct seqlstm_attention_desc *d, bool training, void *base)
{
    struct blas_sorted s = {.bytes = 0};
    s.pairs = take(base, &s.bytes, d->head.max_sequences + 1, sizeof *s.pairs);
    s.starts = take(base, &s.bytes, d->head.max_sequences + 1, sizeof *s.starts);
    s.order = take(base, &s.bytes, d->head.max_rows, sizeof *s.order);
    if (training)
        s.weights = take(base, &s.bytes, d->head.max_rows * d->head.max_steps, sizeof *s.weights);
    return s;
}

static struct blas_tile place_tile(const struct seqlstm_attention_desc *d, bool training, void *base)
{
    struct blas_tile t = {.bytes = 0};
    t.query = take(base, &t.bytes, BLAS_ATTENTION_TILE * d->key, sizeof(float));
    t.context = take(base, &t.bytes, BLAS_ATTENTION_TILE * d->value, sizeof(float));
    t.weight = take(base, &t.bytes, BLAS_ATTENTION_TILE * d->head.max_steps, sizeof(float));
    if (!training)
        return t;
    t.dquery = take(base, &t.bytes, BLAS_ATTENTION_TILE * d->key, sizeof(float));
    if (d->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE) {
        t.dscore = take(base, &t.bytes, d->key, sizeof(float));
        t.dkeys = take(base, &t.bytes, d->head.max_steps * d->key, sizeof(float));
    }
    return t;
}

static void sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes)
{
    const struct seqlstm_attention_desc *d = &op->desc.attention;
    const uint64_t sorted = place_sorted(d, op->training, NULL).bytes;
    sizes->workspace_bytes = (uint64_t)op->instance->members_max * place_tile(d, op->training, NULL).bytes;
    if (op->training)
        sizes->reserve_bytes = sorted;
    else
        sizes->workspace_bytes += sorted;
}

/* ---- sorting and sharing ----------------------------------------------------------------------- */

static void sort_queries(const struct blas_call *call, struct blas_attention_work *w)
{
    const int64_t memories = w->d->head.max_sequences, rows = call->bind->rows;
    const int32_t *memory_of = call->slots[SEQLSTM_SLOT_ATTENTION_MEMORY_OF];
    int32_t *starts = w->sorted.starts;
    memset(starts, 0, (size_t)(memories + 1) * sizeof *starts);
    for (int64_t q = 0; q < rows; q++)
        if (memory_of[q] >= 0)
            starts[memory_of[q]]++;
    int32_t before = 0;
    for (int64_t m = 0; m <= memories; m++) {
        const int32_t count = starts[m];
        starts[m] = before;
        before += count;
    }
    for (int64_t q = 0; q < rows; q++) /* now starts[m] is where memory m + 1 begins */
        if (memory_of[q] >= 0)
            w->sorted.order[starts[memory_of[q]]++] = (int32_t)q;
    memmove(starts + 1, starts, (size_t)memories * sizeof *starts);
    starts[0] = 0;
    w->sorted.pairs[0] = 0;
    for (int64_t m = 0; m < memories; m++)
        w->sorted.pairs[m + 1] =
            w->sorted.pairs[m] + (int64_t)(starts[m + 1] - starts[m]) * (w->offsets[m + 1] - w->offsets[m]);
}

/* Multiply-adds of all memories before m. A tanh counts as about 16. An empty memory counts a little, since its
 * gradients are cleared. */
static double cost_before(const struct blas_attention_work *w, int64_t m)
{
    const double tanhs = w->d->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE ? 16.0 : 1.0;
    return (double)w->sorted.pairs[m] * ((double)w->d->key * tanhs + (double)w->d->value) +
           (double)w->offsets[m] * (double)w->d->value;
}

struct blas_attention_work blas_attention_begin(const struct blas_call *call)
{
    const struct seqlstm_attention_desc *d = &call->op->desc.attention;
    const bool training = call->op->training, shared = d->options & SEQLSTM_BIT_ATTENTION_SHARED;
    struct blas_attention_work w = {
        .d = d,
        .sorted = place_sorted(d, training, training ? call->reserve : call->workspace),
        .tiles = call->workspace,
        .queries = call->slots[SEQLSTM_SLOT_ATTENTION_QUERIES],
        .keys = call->slots[SEQLSTM_SLOT_ATTENTION_KEYS],
        .values = call->slots[shared ? SEQLSTM_SLOT_ATTENTION_KEYS : SEQLSTM_SLOT_ATTENTION_VALUES],
        .score = call->slots[SEQLSTM_SLOT_ATTENTION_SCORE],
        .offsets = call->slots[SEQLSTM_SLOT_ATTENTION_OFFSETS]};
    if (!training)
        w.tiles += w.sorted.bytes;
    return w;
}

void blas_attention_share(const struct blas_call *call, struct blas_attention_work *w, blas_part_fn *fn)
{
    const double all = cost_before(w, w->d->head.max_sequences);
    const double grains = all / BLAS_GRAIN_PRODUCTS;
    const int64_t most = grains < 1.0 ? 1 : grains < (double)call->members ? (int64_t)grains : call->members;
    w->parts = (int32_t)most;
    w->share = all / (double)most;
    const struct blas_division division = {most, 1, (int32_t)most};
    blas_share(call, &division, fn, w);
}

bool blas_attention_is_of(const struct blas_attention_work *w, int64_t m, int32_t part)
{
    const double before = cost_before(w, m);
    return (before >= (double)part * w->share || part == 0) &&
           (before < (double)(part + 1) * w->share || part == w->parts - 1);
}

struct blas_tile blas_attention_tile(const struct blas_call *call, const struct blas_attention_work *w, int32_t part)
{
    const uint64_t each = place_tile(w->d, call->op->training, NULL).bytes;
    return place_tile(w->d, call->op->training, w->tiles + (uint64_t)part * each);
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
    sort_queries(call, &w);
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
