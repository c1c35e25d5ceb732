/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the error model, and the comparison. */
#include "judge/tolerance.h"

#include <math.h>

struct line {
    uint32_t op;
    double forward, backward; /* c */
};

/* Inputs are exact, and the reference computes in float64. What remains is the backend's rounding, its order of
 * summation and its approximations of exp and tanh. */
static const struct line table[] = {
    /* One GEMM of length I + H, then four transcendental functions with errors of up to 4 ulp each, multiplied by
     * the gates; repeated in each step (growth). Backward adds a second GEMM for each step, and dW sums over rows. */
    {SEQLSTM_OP_RECURRENT, 8, 16},
    /* Rows are copied; gradients are sums over the rows of one id. */
    {SEQLSTM_OP_EMBEDDING, 1, 4},
    /* One GEMM and one function. */
    {SEQLSTM_OP_DENSE, 8, 16},
    /* One function of up to 4 ulp. Softmax divides by a sum of as many terms as there are features. */
    {SEQLSTM_OP_ACTIVATION, 12, 24},
    /* One product. */
    {SEQLSTM_OP_DROPOUT, 2, 2},
    /* Mean, variance, a root and a quotient. Backward subtracts two more means, with cancellation. */
    {SEQLSTM_OP_LAYER_NORM, 16, 48},
    /* Sums over at most T steps. */
    {SEQLSTM_OP_POOL, 4, 4},
    /* At most eight terms or factors. */
    {SEQLSTM_OP_MERGE, 8, 16},
    {SEQLSTM_OP_GATHER, 1, 4},
    {SEQLSTM_OP_SCATTER, 1, 4},
    /* Must be exact: nearest even has only one answer. */
    {SEQLSTM_OP_CAST, 0, 0},
    /* Exponentials of up to 4 ulp in a logarithm, summed over C. Sums over rows are in float64. */
    {SEQLSTM_OP_LOSS, 16, 16},
    /* The same after a GEMM. */
    {SEQLSTM_OP_DENSE_LOSS, 24, 32},
    /* Values are copies; log-probabilities of a draw are a softmax. */
    {SEQLSTM_OP_TOP_K, 12, 12},
    {SEQLSTM_OP_FINITE_CHECK, 0, 0},
    /* Squares of float32 are exact in float64, and so is the sum, nearly. float32 partial sums are allowed. */
    {SEQLSTM_OP_SQUARED_NORM, 8, 8},
    /* A dozen operations, a root and a quotient. */
    {SEQLSTM_OP_OPTIMIZER, 16, 16},
    /* A product and a sum. */
    {SEQLSTM_OP_VECTOR, 2, 2},
    /* Scores are sums over K, with tanh of up to 4 ulp in each term. Their error enters the exponent, where it
     * becomes a relative error of the weight. Contexts are means over a memory. Backward goes through the softmax
     * again, where two sums are subtracted, with cancellation. */
    {SEQLSTM_OP_ATTENTION, 16, 48},
};

/* The length of the sums that produce one element of a slot. */
static double sum_length(const struct sl_data *d, const struct sl_slot *slot, bool gradient)
{
    const union seqlstm_any_desc *u = &d->c.desc;
    double rows = gradient && slot->role == SL_SLOT_PARAM ? (double)d->rows : 0;
    switch (u->head.op) {
    case SEQLSTM_OP_RECURRENT: {
        double in = (double)(u->recurrent.input + u->recurrent.hidden);
        return rows + (gradient ? 4 * in : in);
    }
    case SEQLSTM_OP_DENSE:
        return rows + (double)(gradient ? u->dense.output : u->dense.input);
    case SEQLSTM_OP_DENSE_LOSS:
        return rows + (double)(u->dense_loss.input + u->dense_loss.output);
    case SEQLSTM_OP_LOSS:
        return (double)u->loss.features;
    case SEQLSTM_OP_ACTIVATION:
        return u->activation.activation.kind >= SEQLSTM_ACT_SOFTMAX ? (double)u->activation.features : 1;
    case SEQLSTM_OP_LAYER_NORM:
        return rows + (double)u->layer_norm.features;
    case SEQLSTM_OP_POOL:
        return (double)d->axis.steps;
    case SEQLSTM_OP_EMBEDDING:
        return rows + 1;
    case SEQLSTM_OP_GATHER:
        return gradient ? (double)d->rows : 1;
    case SEQLSTM_OP_TOP_K:
        return (double)u->top_k.features;
    case SEQLSTM_OP_SQUARED_NORM:
        return (double)d->rows;
    case SEQLSTM_OP_ATTENTION: /* gradients of the memory and of SCORE also sum over queries */
        return (double)(u->attention.key + u->head.max_steps) + (gradient ? (double)(u->attention.value + d->rows) : 0);
    default:
        return 1;
    }
}

/* Errors of one step reach the next through gates that damp them. They add up like a random walk, not exponentially.
 * Stacks pass them on from layer to layer. */
static double growth(const struct sl_data *d)
{
    if (d->c.desc.head.op != SEQLSTM_OP_RECURRENT)
        return 1;
    double saturated = d->c.saturated ? 8 : 1; /* steep functions with large arguments multiply input errors */
    return sqrt((double)d->axis.steps) * (double)d->c.desc.recurrent.layers * saturated;
}

/* Functions that saturate: outputs come from values in [-1, 1] with an error of that size. Gradients are upstream
 * times slopes such as 1 - y², whose error is relative to 1. A twentieth of that, because sums and products reduce
 * both. Attention in which one row outweighs the others: gradients are products of upstream, value and key. The
 * difference in its softmax leaves almost nothing of them, but the error of the difference stays. */
static double floor_of(const struct sl_data *d, bool gradient)
{
    uint32_t op = d->c.desc.head.op;
    if (op == SEQLSTM_OP_RECURRENT)
        return 0.05;
    if (op == SEQLSTM_OP_ATTENTION && gradient)
        return d->c.saturated ? 0.05 * 6 * 6 * 6 : 0.05;
    return gradient && (op == SEQLSTM_OP_DENSE || op == SEQLSTM_OP_ACTIVATION) ? 0.05 : 0;
}

struct sl_tolerance sl_tolerance_get(const struct sl_data *data, int32_t slot, bool gradient)
{
    const struct sl_slot *s = &data->slots[slot];
    double c = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == data->c.desc.head.op)
            c = gradient ? table[i].backward : table[i].forward;
    double length = sum_length(data, s, gradient);
    double eps = fmax(sl_dtype_eps(s->dtype == SEQLSTM_DTYPE_FLOAT64 ? data->c.dtype : s->dtype),
                      sl_dtype_eps(data->c.desc.head.dtype_compute));
    struct sl_tolerance tolerance = {c * eps * sqrt(length < 1 ? 1 : length) * growth(data), floor_of(data, gradient)};
    return tolerance;
}

void sl_compare(const double *got, const double *expected, const double *movement, int64_t elems,
                struct sl_tolerance tolerance, struct sl_comparison *out_comparison)
{
    struct sl_comparison c = {0};
    double squares = 0;
    for (int64_t i = 0; i < elems; i++)
        if (isfinite(expected[i]))
            squares += expected[i] * expected[i];
    double scale = elems > 0 ? sqrt(squares / (double)elems) : 0;
    for (int64_t i = 0; i < elems; i++) {
        if (got[i] == expected[i] || (isnan(got[i]) && isnan(expected[i])))
            continue;
        double allowed = tolerance.factor * (fabs(expected[i]) + scale + tolerance.floor);
        if (movement)
            allowed += 4 * movement[i];
        double error = fabs(got[i] - expected[i]);
        bool finite = isfinite(got[i]) && isfinite(expected[i]);
        double ratio = finite && allowed > 0 ? error / allowed : (double)INFINITY;
        if (!finite || !(error <= allowed))
            c.failed = true;
        if (!(ratio <= c.worst)) {
            c.worst = ratio;
            c.index = i;
            c.got = got[i];
            c.expected = expected[i];
            c.tolerance = allowed;
        }
    }
    *out_comparison = c;
}
