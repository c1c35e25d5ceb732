/* SPDX-License-Identifier: Apache-2.0 */
/* What cuda-generic accepts: rules over descriptors, without a device. */
#include <stdio.h>

#include <seqlstm/desc_check.h>

#include "one_block.h"
#include "plugin.h"

/* Operands of products may be rounded to a narrower type; what crosses the boundary of an operation is float32. */
static int32_t accept_dtypes(const struct seqlstm_desc *d, struct seqlstm_answer *answer)
{
    const uint32_t roles[5] = {d->dtype_activation, d->dtype_activation_grad, d->dtype_state, d->dtype_weight,
                               d->dtype_weight_grad};
    const bool products = d->op == SEQLSTM_OP_RECURRENT || d->op == SEQLSTM_OP_DENSE || d->op == SEQLSTM_OP_DENSE_LOSS;
    bool fine = d->dtype_compute <= (products ? SEQLSTM_FLOAT16 : SEQLSTM_FLOAT32);
    for (int k = 0; k < 5; k++)
        fine = fine && roles[k] == SEQLSTM_FLOAT32;
    if (fine)
        return 1;
    seqlstm_answer_no(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL,
                      products ? "cuda-generic multiplies in float32, tf32, bfloat16 or float16; all else is float32"
                               : "cuda-generic computes this operation in float32");
    snprintf(answer->hint, sizeof answer->hint, "precision: float32");
    return 0;
}

static int32_t accept_cast(const struct seqlstm_cast_desc *d, struct seqlstm_answer *answer)
{
    const uint32_t ends[2] = {d->from, d->to};
    for (int k = 0; k < 2; k++)
        if (ends[k] == SEQLSTM_TF32 || ends[k] > SEQLSTM_FLOAT64)
            return seqlstm_answer_no(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, NULL,
                                     "cast knows float32, float64, float16 and bfloat16");
    return 1;
}

static int32_t accept_body(const union seqlstm_any_desc *d, struct seqlstm_answer *answer)
{
    const bool flat = d->head.op >= SEQLSTM_OP_FINITE_CHECK;
    if (!flat && d->head.max_rows > INT32_MAX)
        return seqlstm_answer_no(answer, SEQLSTM_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE, NULL,
                                 "cuda-generic takes up to 2^31 - 1 rows a batch");
    return d->head.op == SEQLSTM_OP_CAST ? accept_cast(&d->cast, answer) : 1;
}

bool cg_fits_one_block(const struct seqlstm_recurrent_desc *d)
{
    const bool late = d->cell == SEQLSTM_CELL_GRU && !(d->options & SEQLSTM_RECURRENT_RESET_AFTER);
    return d->hidden <= CG_ONE_BLOCK_MOST && d->projection == 0 && !late &&
           !(d->options & SEQLSTM_RECURRENT_LAYER_NORM);
}

seqlstm_status cg_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                           struct seqlstm_error *err)
{
    (void)err;
    const int32_t capability = gpu_parse_class(device_class);
    if (capability < GPU_CAPABILITY_MIN) {
        seqlstm_answer_no(answer, SEQLSTM_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, device_class,
                          capability == 0 ? "cuda-generic runs on CUDA devices only"
                                          : "the device is older than this backend was built for");
        return SEQLSTM_OK;
    }
    const union seqlstm_any_desc *d = (const union seqlstm_any_desc *)(const void *)desc;
    if (!seqlstm_desc_check(desc, answer) || !accept_dtypes(desc, answer) || !accept_body(d, answer))
        return SEQLSTM_OK;
    answer->accepted = 1;
    const bool recurrent = desc->op == SEQLSTM_OP_RECURRENT;
    if (recurrent && cg_fits_one_block(&d->recurrent))
        snprintf(answer->variants[answer->variant_count++], sizeof answer->variants[0], "one_block");
    snprintf(answer->variants[answer->variant_count++], sizeof answer->variants[0], "%s",
             recurrent ? "step_graph" : "kernels");
    return SEQLSTM_OK;
}
