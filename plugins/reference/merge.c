/* SPDX-License-Identifier: Apache-2.0 */
/* MERGE: several inputs with equally many rows become one, concatenated or element by element. */
#include "reference.h"

static int64_t output_width(const struct seqlstm_merge_desc *d)
{
    int64_t width = 0;
    for (uint32_t k = 0; k < d->inputs; k++)
        width += d->widths[k];
    return d->kind == SEQLSTM_KIND_MERGE_CONCAT ? width : d->widths[0];
}

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_merge_desc *d = &desc->merge;
    ref_slot_set(&slot[SEQLSTM_SLOT_MERGE_Y], REF_OUTPUT, extent->rows * output_width(d));
    for (uint32_t k = 0; k < SEQLSTM_MAX_MERGE_INPUTS; k++)
        ref_slot_set(&slot[SEQLSTM_SLOT_MERGE_X + k], REF_INPUT, extent->rows * d->widths[k]);
    return SEQLSTM_SLOT_MERGE_COUNT;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_merge_desc *d = &call->desc->merge;
    const int64_t width = output_width(d);
    double *y = call->values[SEQLSTM_SLOT_MERGE_Y];
    for (int64_t r = 0; r < call->extent->rows; r++) {
        int64_t first = 0;
        for (uint32_t k = 0; k < d->inputs; k++) {
            const double *x = (const double *)call->values[SEQLSTM_SLOT_MERGE_X + k] + r * d->widths[k];
            double *out = y + r * width + first;
            for (int64_t j = 0; j < d->widths[k]; j++) {
                if (d->kind == SEQLSTM_KIND_MERGE_CONCAT || k == 0)
                    out[j] = x[j];
                else
                    out[j] = d->kind == SEQLSTM_KIND_MERGE_MUL ? out[j] * x[j] : out[j] + x[j];
            }
            first += d->kind == SEQLSTM_KIND_MERGE_CONCAT ? d->widths[k] : 0;
        }
        for (int64_t j = 0; d->kind == SEQLSTM_KIND_MERGE_AVE && j < width; j++)
            y[r * width + j] /= d->inputs;
    }
    return SEQLSTM_OK;
}

/* d y / d x_k at element `at` of an element-wise merge */
static double slope(const struct ref_call *call, uint32_t k, int64_t at)
{
    const struct seqlstm_merge_desc *d = &call->desc->merge;
    if (d->kind == SEQLSTM_KIND_MERGE_AVE)
        return 1.0 / d->inputs;
    double product = 1;
    for (uint32_t other = 0; d->kind == SEQLSTM_KIND_MERGE_MUL && other < d->inputs; other++)
        if (other != k)
            product *= ((const double *)call->values[SEQLSTM_SLOT_MERGE_X + other])[at];
    return product;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_merge_desc *d = &call->desc->merge;
    const bool concat = d->kind == SEQLSTM_KIND_MERGE_CONCAT;
    const int64_t width = output_width(d);
    const double *dy = call->grads[SEQLSTM_SLOT_MERGE_Y];
    int64_t first = 0;
    for (uint32_t k = 0; dy && k < d->inputs; k++) {
        double *dx = call->grads[SEQLSTM_SLOT_MERGE_X + k];
        const int64_t n = d->widths[k];
        for (int64_t r = 0; dx && r < call->extent->rows; r++)
            for (int64_t j = 0; j < n; j++)
                dx[r * n + j] += dy[r * width + first + j] * (concat ? 1 : slope(call, k, r * n + j));
        first += concat ? n : 0;
    }
    return SEQLSTM_OK;
}

const struct ref_family ref_merge = {.slots = slots, .forward = forward, .backward = backward};
