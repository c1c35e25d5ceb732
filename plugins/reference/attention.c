/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION: for each query a softmax over the scores of its memory, and the mean of the values weighted by it.
 * Backward computes the weights again, so nothing is kept. */
#include <math.h>

#include "reference.h"

static bool is_shared(const union seqlstm_any_desc *desc)
{
    return desc->attention.options & SEQLSTM_BIT_ATTENTION_SHARED;
}

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_attention_desc *d = &desc->attention;
    const int64_t rows = extent->rows, memory = extent->rows_in;
    ref_slot_set(&slot[SEQLSTM_SLOT_ATTENTION_QUERIES], REF_INPUT, rows * d->key);
    ref_slot_set(&slot[SEQLSTM_SLOT_ATTENTION_KEYS], REF_INPUT, memory * d->key);
    ref_slot_set(&slot[SEQLSTM_SLOT_ATTENTION_VALUES], REF_INPUT, is_shared(desc) ? 0 : memory * d->value);
    ref_slot_set(&slot[SEQLSTM_SLOT_ATTENTION_CONTEXT], REF_OUTPUT, rows * d->value);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_ATTENTION_OFFSETS], REF_CONST, SEQLSTM_DTYPE_INT32,
                       d->head.max_sequences + 1);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_ATTENTION_MEMORY_OF], REF_CONST, SEQLSTM_DTYPE_INT32, rows);
    ref_slot_set(&slot[SEQLSTM_SLOT_ATTENTION_WEIGHTS], REF_OUTPUT,
                 d->options & SEQLSTM_BIT_ATTENTION_WEIGHTS ? rows * d->head.max_steps : 0);
    ref_slot_set(&slot[SEQLSTM_SLOT_ATTENTION_SCORE], REF_PARAM,
                 d->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE ? d->key : 0);
    return SEQLSTM_SLOT_ATTENTION_COUNT;
}

/* The weights of one query, and their gradients. */
static int64_t scratch_elems(const union seqlstm_any_desc *desc, const struct ref_extent *extent)
{
    (void)extent;
    return 2 * desc->head.max_steps;
}

/* One query, the rows of its memory, and where to write their gradients (NULL: not wanted). */
struct look {
    const struct seqlstm_attention_desc *d;
    int64_t length; /* S; 0: no memory */
    const double *query, *keys, *values, *score;
    double *dquery, *dkeys, *dvalues, *dscore;
};

static double *offset_by(double *from, int64_t elems)
{
    return from ? from + elems : NULL;
}

static seqlstm_status find_memory(const struct ref_call *call, int64_t q, struct look *look, struct seqlstm_error *err)
{
    const struct seqlstm_attention_desc *d = &call->desc->attention;
    const int32_t *offsets = call->values[SEQLSTM_SLOT_ATTENTION_OFFSETS];
    const int32_t *memory_of = call->values[SEQLSTM_SLOT_ATTENTION_MEMORY_OF];
    const int values = is_shared(call->desc) ? SEQLSTM_SLOT_ATTENTION_KEYS : SEQLSTM_SLOT_ATTENTION_VALUES;
    const int64_t m = memory_of[q];
    *look = (struct look){.d = d};
    if (m < 0)
        return SEQLSTM_OK;
    if (m >= d->head.max_sequences)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "query %lld uses memory %lld, but there are %lld", (long long)q,
                     (long long)m, (long long)d->head.max_sequences);
    const int64_t first = offsets[m], length = offsets[m + 1] - first;
    if (first < 0 || length < 0 || length > d->head.max_steps || first + length > call->extent->rows_in)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "memory %lld has %lld rows from row %lld on, but there are %lld",
                     (long long)m, (long long)length, (long long)first, (long long)call->extent->rows_in);
    look->length = length;
    look->query = (const double *)call->values[SEQLSTM_SLOT_ATTENTION_QUERIES] + q * d->key;
    look->keys = (const double *)call->values[SEQLSTM_SLOT_ATTENTION_KEYS] + first * d->key;
    look->values = (const double *)call->values[values] + first * d->value;
    look->score = call->values[SEQLSTM_SLOT_ATTENTION_SCORE];
    if (call->grads) {
        look->dquery = offset_by(call->grads[SEQLSTM_SLOT_ATTENTION_QUERIES], q * d->key);
        look->dkeys = offset_by(call->grads[SEQLSTM_SLOT_ATTENTION_KEYS], first * d->key);
        look->dvalues = offset_by(call->grads[values], first * d->value);
        look->dscore = call->grads[SEQLSTM_SLOT_ATTENTION_SCORE];
    }
    return SEQLSTM_OK;
}

/* a = softmax of the scores; S >= 1 */
static void weigh(const struct look *look, double *a)
{
    const int64_t key = look->d->key;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < look->length; j++) {
        const double *k = look->keys + j * key;
        a[j] = 0;
        for (int64_t i = 0; i < key; i++)
            a[j] += look->score ? look->score[i] * tanh(look->query[i] + k[i])
                                : (double)look->d->scale * look->query[i] * k[i];
        most = fmax(most, a[j]);
    }
    for (int64_t j = 0; j < look->length; j++) {
        a[j] = exp(a[j] - most);
        sum += a[j];
    }
    for (int64_t j = 0; j < look->length; j++)
        a[j] /= sum;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_attention_desc *d = &call->desc->attention;
    double *context = call->values[SEQLSTM_SLOT_ATTENTION_CONTEXT],
           *weights = call->values[SEQLSTM_SLOT_ATTENTION_WEIGHTS];
    for (int64_t q = 0; q < call->extent->rows; q++) {
        struct look look;
        double *a = call->scratch, *c = context + q * d->value;
        SEQLSTM_TRY(find_memory(call, q, &look, err));
        if (look.length > 0)
            weigh(&look, a);
        for (int64_t i = 0; i < d->value; i++)
            c[i] = 0;
        for (int64_t j = 0; j < look.length; j++)
            ref_axpy(d->value, a[j], look.values + j * d->value, c);
        for (int64_t j = 0; weights && j < d->head.max_steps; j++)
            weights[q * d->head.max_steps + j] = j < look.length ? a[j] : 0;
    }
    return SEQLSTM_OK;
}

/* Backward through the score of row j, whose gradient is `de`. */
static void backward_score(const struct look *look, int64_t j, double de)
{
    const int64_t key = look->d->key;
    for (int64_t i = 0; i < key; i++) {
        const double k = look->keys[j * key + i];
        double dq = de * (double)look->d->scale * k, dk = de * (double)look->d->scale * look->query[i];
        if (look->score) {
            const double t = tanh(look->query[i] + k);
            dq = dk = de * look->score[i] * (1 - t * t);
            if (look->dscore)
                look->dscore[i] += de * t;
        }
        if (look->dquery)
            look->dquery[i] += dq;
        if (look->dkeys)
            look->dkeys[j * key + i] += dk;
    }
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_attention_desc *d = &call->desc->attention;
    const double *dcontext = call->grads[SEQLSTM_SLOT_ATTENTION_CONTEXT];
    double *a = call->scratch, *da = a + d->head.max_steps;
    for (int64_t q = 0; dcontext && q < call->extent->rows; q++) {
        struct look look;
        const double *dc = dcontext + q * d->value;
        double mean = 0;
        SEQLSTM_TRY(find_memory(call, q, &look, err));
        if (look.length > 0)
            weigh(&look, a);
        for (int64_t j = 0; j < look.length; j++) {
            da[j] = ref_dot(d->value, dc, look.values + j * d->value);
            mean += a[j] * da[j];
        }
        for (int64_t j = 0; j < look.length; j++) {
            backward_score(&look, j, a[j] * (da[j] - mean));
            if (look.dvalues)
                ref_axpy(d->value, a[j], dc, look.dvalues + j * d->value);
        }
    }
    return SEQLSTM_OK;
}

const struct ref_family ref_attention = {
    .slots = slots, .scratch_elems = scratch_elems, .forward = forward, .backward = backward};
