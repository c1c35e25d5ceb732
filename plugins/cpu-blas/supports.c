/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend runs. Values and bits whose meaning the headers do not define are refused by
 * <seqlstm/desc_check.h>; what follows is what cpu-blas itself does not offer, which is little. */
#include "plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <seqlstm/desc_check.h>

static const struct blas_operation *const operations[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_EMBEDDING] = &blas_embedding,
    [SEQLSTM_OP_DENSE] = &blas_dense,
    [SEQLSTM_OP_ACTIVATION] = &blas_activation,
    [SEQLSTM_OP_DROPOUT] = &blas_dropout,
    [SEQLSTM_OP_LAYER_NORM] = &blas_layer_norm,
    [SEQLSTM_OP_POOL] = &blas_pool,
    [SEQLSTM_OP_MERGE] = &blas_merge,
    [SEQLSTM_OP_GATHER] = &blas_gather,
    [SEQLSTM_OP_SCATTER] = &blas_scatter,
    [SEQLSTM_OP_CAST] = &blas_cast,
    [SEQLSTM_OP_LOSS] = &blas_loss,
    [SEQLSTM_OP_DENSE_LOSS] = &blas_dense_loss,
    [SEQLSTM_OP_TOP_K] = &blas_top_k,
    [SEQLSTM_OP_FINITE_CHECK] = &blas_finite_check,
    [SEQLSTM_OP_SQUARED_NORM] = &blas_squared_norm,
    [SEQLSTM_OP_OPTIMIZER] = &blas_optimizer,
    [SEQLSTM_OP_VECTOR] = &blas_vector,
    [SEQLSTM_OP_ATTENTION] = &blas_attention,
};

const uint32_t blas_desc_bytes[SEQLSTM_OP_COUNT] = {
    [SEQLSTM_OP_RECURRENT] = sizeof(struct seqlstm_recurrent_desc),
    [SEQLSTM_OP_EMBEDDING] = sizeof(struct seqlstm_embedding_desc),
    [SEQLSTM_OP_DENSE] = sizeof(struct seqlstm_dense_desc),
    [SEQLSTM_OP_ACTIVATION] = sizeof(struct seqlstm_activation_desc),
    [SEQLSTM_OP_DROPOUT] = sizeof(struct seqlstm_dropout_desc),
    [SEQLSTM_OP_LAYER_NORM] = sizeof(struct seqlstm_layer_norm_desc),
    [SEQLSTM_OP_POOL] = sizeof(struct seqlstm_pool_desc),
    [SEQLSTM_OP_MERGE] = sizeof(struct seqlstm_merge_desc),
    [SEQLSTM_OP_GATHER] = sizeof(struct seqlstm_gather_desc),
    [SEQLSTM_OP_SCATTER] = sizeof(struct seqlstm_gather_desc),
    [SEQLSTM_OP_CAST] = sizeof(struct seqlstm_cast_desc),
    [SEQLSTM_OP_LOSS] = sizeof(struct seqlstm_loss_desc),
    [SEQLSTM_OP_DENSE_LOSS] = sizeof(struct seqlstm_dense_loss_desc),
    [SEQLSTM_OP_TOP_K] = sizeof(struct seqlstm_top_k_desc),
    [SEQLSTM_OP_FINITE_CHECK] = sizeof(struct seqlstm_reduce_desc),
    [SEQLSTM_OP_SQUARED_NORM] = sizeof(struct seqlstm_reduce_desc),
    [SEQLSTM_OP_OPTIMIZER] = sizeof(struct seqlstm_optimizer_desc),
    [SEQLSTM_OP_VECTOR] = sizeof(struct seqlstm_vector_desc),
    [SEQLSTM_OP_ATTENTION] = sizeof(struct seqlstm_attention_desc),
};

const struct blas_operation *blas_operation_get(uint32_t op)
{
    return op < SEQLSTM_OP_COUNT ? operations[op] : NULL;
}

/* ---- answers ---------------------------------------------------------------------------------- */

void blas_accept(struct seqlstm_answer *answer, const char *const *variants)
{
    uint32_t count = 0;
    for (; count < SEQLSTM_VARIANTS && variants[count] != NULL; count++)
        snprintf(answer->variants[count], sizeof answer->variants[count], "%s", variants[count]);
    answer->accepted = 1;
    answer->variant_count = count;
}

void blas_refuse(struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *reason,
                 const char *hint, const char *value_format, ...)
{
    va_list args;
    va_start(args, value_format);
    vsnprintf(answer->value, sizeof answer->value, value_format, args);
    va_end(args);
    answer->accepted = 0;
    answer->code = code;
    answer->option = option;
    snprintf(answer->reason, sizeof answer->reason, "%s", reason);
    snprintf(answer->hint, sizeof answer->hint, "%s", hint);
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* Zero means float32 in every role; nothing else is computed here (CAST names its dtypes itself). */
static bool check_dtypes(const struct seqlstm_desc *head, struct seqlstm_answer *answer)
{
    static const char *const names[] = {"float32", "tf32",  "bfloat16", "float16",
                                        "float64", "int32", "int8",     "uint8"};
    const uint32_t dtypes[] = {head->dtype_activation, head->dtype_activation_grad, head->dtype_state,
                               head->dtype_compute,    head->dtype_weight,          head->dtype_weight_grad};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (dtypes[i] == SEQLSTM_FLOAT32 || (i == 0 && head->op == SEQLSTM_OP_CAST))
            continue;
        blas_refuse(answer, SEQLSTM_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                    "cpu-blas computes in float32 alone.", "precision: float32", "%s", names[dtypes[i]]);
        return false;
    }
    return true;
}

/* OpenBLAS counts rows and columns in 32 bits; flat vectors do not reach it. */
static bool check_rows(const struct seqlstm_desc *head, struct seqlstm_answer *answer)
{
    if (head->op >= SEQLSTM_OP_FINITE_CHECK || head->max_rows <= INT32_MAX)
        return true;
    blas_refuse(answer, SEQLSTM_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE,
                "cpu-blas runs at most 2147483647 rows a call.", "smaller batches", "%lld",
                (long long)head->max_rows);
    return false;
}

void blas_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                   union seqlstm_any_desc *out_desc)
{
    answer->accepted = 0;
    if (device_class == NULL || strncmp(device_class, "cpu", 3) != 0 ||
        (device_class[3] != '\0' && device_class[3] != ':')) {
        blas_refuse(answer, SEQLSTM_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, "cpu-blas runs on CPUs alone.",
                    "device: cpu", "%s", device_class != NULL ? device_class : "");
        return;
    }
    const uint32_t known = desc->op < SEQLSTM_OP_COUNT ? blas_desc_bytes[desc->op] : 0;
    if (known == 0) {
        blas_refuse(answer, SEQLSTM_REFUSED_OPERATION, SEQLSTM_OPTION_NONE,
                    "This operation is not among those of cpu-blas.", "", "%u", (unsigned)desc->op);
        return;
    }
    for (uint32_t i = known; i < desc->struct_size; i++)
        if (((const unsigned char *)desc)[i] != 0) {
            blas_refuse(answer, SEQLSTM_REFUSED_ABI, SEQLSTM_OPTION_NONE,
                        "The descriptor says something beyond the bytes that this backend reads.", "",
                        "byte %u", (unsigned)i);
            return;
        }
    memset(out_desc, 0, sizeof *out_desc);
    memcpy(out_desc, desc, desc->struct_size < known ? desc->struct_size : known);
    if (!seqlstm_desc_check(desc, answer) || !check_dtypes(&out_desc->head, answer) ||
        !check_rows(&out_desc->head, answer))
        return;
    if (desc->op == SEQLSTM_OP_RECURRENT) {
        blas_recurrent_supports(&out_desc->recurrent, answer);
        return;
    }
    static const char *const plain[] = {"default", NULL};
    if (operations[desc->op]->supports != NULL)
        operations[desc->op]->supports(out_desc, answer);
    else
        blas_accept(answer, plain);
}
