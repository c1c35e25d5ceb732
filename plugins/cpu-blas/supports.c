/* SPDX-License-Identifier: Apache-2.0 */
/* What this backend accepts. <seqlstm/desc_check.h> refuses values and bits that the headers do not define. This
 * file refuses the few things that cpu-blas itself does not support. */
#include "cpu-blas/plugin.h"

#include <seqlstm/desc_check.h>
#include <string.h>

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

static bool answer_narrow(struct seqlstm_answer *answer, const struct seqlstm_desc *head, bool tiles,
                          const char *reason, const char *dtype)
{
    if (!tiles)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, reason, "precision: float32", "%s",
                         dtype);
    return answer_float32_edges(answer, BLAS_ID, head);
}

/* On tiles, products may be in bfloat16 or tf32; those of recurrent layers may be in int8 anywhere. */
static bool answer_precision(struct seqlstm_answer *answer, const struct seqlstm_desc *head, bool tiles)
{
    const bool products =
        head->op == SEQLSTM_OP_RECURRENT || head->op == SEQLSTM_OP_DENSE || head->op == SEQLSTM_OP_DENSE_LOSS;
    if (products && head->dtype_compute == SEQLSTM_DTYPE_BFLOAT16)
        return answer_narrow(answer, head, tiles,
                             "cpu-blas computes in bfloat16 on processors with AMX alone, with `instructions: auto`.",
                             "bfloat16");
    if (products && head->dtype_compute == SEQLSTM_DTYPE_TF32)
        return answer_narrow(answer, head, tiles,
                             "cpu-blas computes in tf32 on processors with AMX alone, with `instructions: auto`.",
                             "tf32");
    if (head->op == SEQLSTM_OP_RECURRENT && head->dtype_compute == SEQLSTM_DTYPE_INT8)
        return answer_float32_edges(answer, BLAS_ID, head);
    return answer_float32(answer, BLAS_ID, head);
}

void blas_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer)
{
    const size_t length = strlen(device_class), end = strlen(BLAS_CLASS_TILES);
    union seqlstm_any_desc copy;
    answer->accepted = 0;
    if (answer_on_cpu(answer, BLAS_ID, device_class))
        blas_answer(length > end && strcmp(device_class + length - end, BLAS_CLASS_TILES) == 0, desc, answer, &copy);
}

void blas_answer(bool tiles, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                 union seqlstm_any_desc *out_desc)
{
    static const char *const plain[] = {"default", NULL};
    answer->accepted = 0;
    if (desc->op >= SEQLSTM_OP_COUNT || blas_desc_bytes[desc->op] == 0) {
        answer_no(answer, SEQLSTM_BIT_REFUSED_OPERATION, SEQLSTM_OPTION_NONE,
                  "This operation is not among those of cpu-blas.", "", "%u", (unsigned)desc->op);
        return;
    }
    if (!seqlstm_desc_check(desc, answer))
        return;
    seqlstm_desc_copy(desc, out_desc);
    /* OpenBLAS counts rows and columns in 32 bits. */
    if (!answer_precision(answer, &out_desc->head, tiles) || !answer_rows_in_32_bits(answer, BLAS_ID, &out_desc->head))
        return;
    if (desc->op == SEQLSTM_OP_RECURRENT)
        blas_recurrent_supports(&out_desc->recurrent, tiles, answer);
    else if (operations[desc->op]->supports != NULL)
        operations[desc->op]->supports(out_desc, tiles, answer);
    else
        answer_yes(answer, plain);
}
