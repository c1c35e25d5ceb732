/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu-blas/multiply.h"

#include "cpu-blas/gemm/gemm.h"

static bool has_products(uint32_t operation)
{
    return operation == SEQLSTM_OP_DENSE || operation == SEQLSTM_OP_DENSE_LOSS;
}

const char *blas_multiply_tiles(const struct seqlstm_desc *desc, bool tiles)
{
    return tiles && desc->dtype_compute == SEQLSTM_DTYPE_FLOAT32 ? BLAS_TILES : NULL;
}

seqlstm_status blas_multiply_choose(struct seqlstm_op *op, struct seqlstm_error *err)
{
    const uint32_t dtype = op->desc.head.dtype_compute;
    const bool int8 = dtype == SEQLSTM_DTYPE_INT8, tf32 = dtype == SEQLSTM_DTYPE_TF32;
    const bool narrow = int8 || tf32 || dtype == SEQLSTM_DTYPE_BFLOAT16;
    if (!narrow && !op->on_tiles)
        return SEQLSTM_OK;
    op->tiled = (struct blas_tiled){int8 ? blas_int8_get(op->instance->isa, op->instance->tiles) : blas_bf16_get(),
                                    tf32     ? BLAS_TF32_PARTS
                                    : narrow ? 1
                                             : BLAS_BF16_PARTS};
    if (op->tiled.kernels == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s needs AMX, which the system refuses to this process",
                     tf32     ? "tf32"
                     : narrow ? "bfloat16"
                              : "variant " BLAS_TILES);
    return SEQLSTM_OK;
}

uint64_t blas_multiply_bytes(const struct seqlstm_op *op)
{
    return op->tiled.kernels && has_products(op->desc.head.op) ? (uint64_t)op->instance->members_max * BLAS_GEMM_SCRATCH
                                                               : 0;
}

void blas_multiply(const struct blas_call *call, int32_t part, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    const struct blas_tiled *by = &call->op->tiled;
    if (by->kernels == NULL || (by->parts > 1 && m < by->kernels->product_rows_min))
        blas_gemm(call->math, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
    else
        blas_tiles_gemm(by, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc,
                        (uint16_t *)(void *)((char *)call->tiles + (uint64_t)part * BLAS_GEMM_SCRATCH));
}
