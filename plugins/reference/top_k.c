/* SPDX-License-Identifier: Apache-2.0 */
/* TOP_K: the k best of a row, or one drawn from it. */
#include <math.h>

#include "reference.h"

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_top_k_desc *d = &desc->top_k;
    ref_slot_set(&slot[SEQLSTM_SLOT_TOP_K_X], REF_CONST, extent->rows * d->features);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_TOP_K_INDEX], REF_OUTPUT, SEQLSTM_DTYPE_INT32, extent->rows * d->k);
    ref_slot_set(&slot[SEQLSTM_SLOT_TOP_K_VALUE], REF_OUTPUT, extent->rows * d->k);
    return SEQLSTM_SLOT_TOP_K_COUNT;
}

/* Does element a come before b? Larger first, ties by lower index. */
static bool before(const double *x, int64_t a, int64_t b)
{
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

/* The element that follows `last` in this order; with last < 0 the first; -1: none. */
static int64_t next_best(const double *x, int64_t n, int64_t last)
{
    int64_t best = -1;
    for (int64_t k = 0; k < n; k++)
        if ((last < 0 || before(x, last, k)) && (best < 0 || before(x, k, best)))
            best = k;
    return best;
}

/* Draws by walking through the elements, best first; u in [0, 1). */
static void draw(const struct seqlstm_top_k_desc *d, const double *x, double u, int32_t *out_index, double *out_value)
{
    const int64_t n = d->features, limit = d->top_k > 0 && d->top_k < n ? d->top_k : n;
    const double temperature = (double)d->temperature;
    const double most = x[next_best(x, n, -1)];
    double total = 0; /* of all elements that top_k keeps */
    int64_t k = -1;
    for (int64_t rank = 0; rank < limit; rank++) {
        k = next_best(x, n, k);
        total += exp((x[k] - most) / temperature);
    }
    double kept = 0; /* of those that top_p keeps */
    int64_t count = 0;
    k = -1;
    while (count < limit && (count == 0 || kept < (double)d->top_p * total)) {
        k = next_best(x, n, k);
        kept += exp((x[k] - most) / temperature);
        count++;
    }
    double passed = 0;
    k = -1;
    for (int64_t rank = 0; rank < count; rank++) {
        k = next_best(x, n, k);
        passed += exp((x[k] - most) / temperature);
        if (u * kept < passed)
            break;
    }
    *out_index = (int32_t)k;
    *out_value = (x[k] - most) / temperature - log(kept);
}

static void draw_row(const struct ref_call *call, uint64_t key, int64_t row, int64_t b, uint32_t step)
{
    const struct seqlstm_top_k_desc *d = &call->desc->top_k;
    const double u = (double)seqlstm_uniform(key, 0, step, call->bind->axis->sequence_id[b]);
    draw(d, (const double *)call->values[SEQLSTM_SLOT_TOP_K_X] + row * d->features, u,
         (int32_t *)call->values[SEQLSTM_SLOT_TOP_K_INDEX] + row,
         (double *)call->values[SEQLSTM_SLOT_TOP_K_VALUE] + row);
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_top_k_desc *d = &call->desc->top_k;
    const double *x = call->values[SEQLSTM_SLOT_TOP_K_X];
    double *value = call->values[SEQLSTM_SLOT_TOP_K_VALUE];
    int32_t *index = call->values[SEQLSTM_SLOT_TOP_K_INDEX];
    for (int64_t k = 0; k < call->extent->rows * d->features; k++)
        if (isnan(x[k]))
            SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "row %lld of top_k holds NaN", (long long)(k / d->features));
    if (d->kind == SEQLSTM_KIND_TOP_K_SAMPLE) {
        const uint64_t key = seqlstm_mix64(call->step->seed, d->stream, call->step->epoch);
        const struct seqlstm_axis *axis = call->bind->axis;
        int64_t row = 0;
        if (call->bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES)
            for (; row < call->extent->rows; row++)
                draw_row(call, key, row, row, 0);
        else
            for (int64_t t = call->bind->t0; t < call->bind->t1; t++)
                for (int64_t b = 0; b < axis->batch_sizes[t]; b++, row++)
                    draw_row(call, key, row, b, axis->position0[b] + (uint32_t)t);
        return SEQLSTM_OK;
    }
    for (int64_t r = 0; r < call->extent->rows; r++) {
        int64_t best = -1;
        for (int64_t rank = 0; rank < d->k; rank++) {
            best = next_best(x + r * d->features, d->features, best);
            index[r * d->k + rank] = (int32_t)best;
            value[r * d->k + rank] = x[r * d->features + best];
        }
    }
    return SEQLSTM_OK;
}

const struct ref_family ref_top_k = {.slots = slots, .forward = forward};
