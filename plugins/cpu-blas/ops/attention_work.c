/* SPDX-License-Identifier: Apache-2.0 */
/* See attention_work.h. */
#include "cpu-blas/ops/attention_work.h"

static void *take(unsigned char *base, uint64_t *at, int64_t elems, uint64_t size)
{
    void *p = base != NULL ? base + *at : NULL;
    *at += align_bytes((uint64_t)elems * size);
    return p;
}

struct blas_sorted blas_attention_place_sorted(const struct seqlstm_attention_desc *d, bool training, void *base)
{
    struct blas_sorted s = {.bytes = 0};
    s.pairs = take(base, &s.bytes, d->head.max_sequences + 1, sizeof *s.pairs);
    s.starts = take(base, &s.bytes, d->head.max_sequences + 1, sizeof *s.starts);
    s.order = take(base, &s.bytes, d->head.max_rows, sizeof *s.order);
    if (training)
        s.weights = take(base, &s.bytes, d->head.max_rows * d->head.max_steps, sizeof *s.weights);
    return s;
}

struct blas_tile blas_attention_place_tile(const struct seqlstm_attention_desc *d, bool training, void *base)
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

void blas_attention_sort(const struct blas_call *call, struct blas_attention_work *w)
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
        .sorted = blas_attention_place_sorted(d, training, training ? call->reserve : call->workspace),
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
    const uint64_t each = blas_attention_place_tile(w->d, call->op->training, NULL).bytes;
    return blas_attention_place_tile(w->d, call->op->training, w->tiles + (uint64_t)part * each);
}
