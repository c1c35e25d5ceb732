/* SPDX-License-Identifier: Apache-2.0 */
/* See product.h. */
#include "cuda-generic/ops/product.h"

#include "cuda-generic/ops/lt_product.h"
#include "common/cuda_cast.h"
#include "cuda-generic/gemm/gemm.h"
#include "cuda-generic/rows/rows.h"

/* Converting to 16 bits costs time, too: what large products alone gain. A value for tests. */
#ifndef CG_NARROW_PRODUCTS
#define CG_NARROW_PRODUCTS ((int64_t)1 << 33)
#endif
enum { NARROW_MULTIPLE = 8 }; /* of widths: rows are then aligned to 16 bytes */

bool cg_product_is_narrow(uint32_t compute, int64_t rows, int64_t input, int64_t output)
{
    return (compute == SEQLSTM_DTYPE_BFLOAT16 || compute == SEQLSTM_DTYPE_FLOAT16) && input % NARROW_MULTIPLE == 0 &&
           output % NARROW_MULTIPLE == 0 && rows >= CG_NARROW_PRODUCTS / input / output;
}

static int64_t get_stride(const struct cg_product *p)
{
    return p->stride > 0 ? p->stride : p->output;
}

/* What all products of a call have in common. */
static struct cg_gemm make_gemm(const struct cg_call *call)
{
    return (struct cg_gemm){.compute = call->desc->head.dtype_compute,
                            .f16x3 = call->op->f16x3,
                            .shared_most = call->op->instance->domain.devices[call->op->device].shared_bytes};
}

static seqlstm_status launch(const struct cg_call *call, const struct cg_gemm *g, const char *what,
                             struct seqlstm_error *err)
{
    return gpu_check_launch(call->op->ordinal, cg_gemm_launch(call->stream, g), what, err);
}

/* Do cuBLASLt's operands have 16 bits? */
static bool is_narrow(const struct cg_product *p)
{
    return p->lt != NULL && p->x16 != NULL;
}

/* x and W, as far as they are not ready, in one launch. */
static seqlstm_status convert_operands(const struct cg_call *call, const struct cg_product *p, const float *x,
                                       const float *w, struct seqlstm_error *err)
{
    struct gpu_cast_part parts[2];
    int64_t count = 0;
    if (!p->x_ready)
        parts[count++] = (struct gpu_cast_part){x, p->x16, p->rows * p->input};
    if (!p->w_ready)
        parts[count++] = (struct gpu_cast_part){w, p->w16, p->output * p->input};
    if (count == 0)
        return SEQLSTM_OK;
    CG_START(call, "operands in 16 bits",
             gpu_cast_parts(call->stream, SEQLSTM_DTYPE_FLOAT32, call->desc->head.dtype_compute, parts, count, 0));
    return SEQLSTM_OK;
}

seqlstm_status cg_product_convert_gradient(const struct cg_call *call, const struct cg_product *p, const float *dz,
                                           struct seqlstm_error *err)
{
    if (is_narrow(p))
        CG_START(call, "a gradient in 16 bits",
                 gpu_cast(call->stream, SEQLSTM_DTYPE_FLOAT32, call->desc->head.dtype_compute, p->rows * p->output, dz,
                          p->dz16));
    return SEQLSTM_OK;
}

/* The operand that cuBLASLt reads. */
static const void *choose(const struct cg_product *p, const uint16_t *narrow, const float *wide)
{
    return is_narrow(p) ? (const void *)narrow : (const void *)wide;
}

seqlstm_status cg_product_forward(const struct cg_call *call, const struct cg_product *p, const float *x,
                                  const float *w, const float *bias, float *y, bool *out_lt, struct seqlstm_error *err)
{
    struct cg_gemm g = make_gemm(call);
    *out_lt = false;
    if (is_narrow(p))
        SEQLSTM_TRY(convert_operands(call, p, x, w, err));
    if (p->lt != NULL)
        SEQLSTM_TRY(cg_lt_forward(p->lt, call, choose(p, p->x16, x), choose(p, p->w16, w), bias, y, out_lt, err));
    if (*out_lt)
        return SEQLSTM_OK;
    g.m = p->rows;
    g.n = p->output;
    g.depth = p->input;
    g.a = x;
    g.a_row = p->input;
    g.a_column = 1;
    g.b = w;
    g.b_row = 1;
    g.b_column = p->input;
    g.c = y;
    g.c_row = p->output;
    g.bias = bias;
    return launch(call, &g, "a product", err);
}

seqlstm_status cg_product_inputs(const struct cg_call *call, const struct cg_product *p, const float *dz,
                                 const float *w, float *dx, bool add, struct seqlstm_error *err)
{
    struct cg_gemm g = make_gemm(call);
    bool done = false;
    if (p->lt != NULL && p->stride == 0)
        SEQLSTM_TRY(cg_lt_inputs(p->lt, call, choose(p, p->dz16, dz), choose(p, p->w16, w), dx, add, &done, err));
    if (done)
        return SEQLSTM_OK;
    g.m = p->rows;
    g.n = p->input;
    g.depth = p->output;
    g.a = dz;
    g.a_row = get_stride(p);
    g.a_column = 1;
    g.b = w;
    g.b_row = p->input;
    g.b_column = 1;
    g.c = dx;
    g.c_row = p->input;
    g.add = add;
    return launch(call, &g, "a gradient of inputs", err);
}

static seqlstm_status find_dw(const struct cg_call *call, const struct cg_product *p, const float *dz, const float *x,
                              float *dw, bool add, struct seqlstm_error *err)
{
    struct cg_gemm g = make_gemm(call);
    g.m = p->output;
    g.n = p->input;
    g.depth = p->rows;
    g.a = dz;
    g.a_row = 1;
    g.a_column = get_stride(p);
    g.b = x;
    g.b_row = p->input;
    g.b_column = 1;
    g.c = dw;
    g.c_row = p->input;
    g.add = add;
    g.parts = p->parts;
    return launch(call, &g, "a gradient of weights", err);
}

seqlstm_status cg_product_weights(const struct cg_call *call, const struct cg_product *p, const float *dz,
                                  const float *x, float *dw, float *db, bool add, struct seqlstm_error *err)
{
    const struct cg_lt_layer *lt = dw != NULL && p->stride == 0 ? p->lt : NULL;
    /* cuBLASLt can write these sums, but cannot add them; and it would sum rounded values */
    float *together = add || is_narrow(p) ? NULL : db;
    const void *lt_dz = choose(p, p->dz16, dz), *lt_x = choose(p, p->x16, x);
    bool done = false;
    if (lt != NULL)
        SEQLSTM_TRY(cg_lt_weights(lt, call, lt_dz, lt_x, dw, together, add, &done, err));
    if (lt != NULL && !done && together != NULL) { /* cuBLASLt cannot do both in one pass */
        together = NULL;
        SEQLSTM_TRY(cg_lt_weights(lt, call, lt_dz, lt_x, dw, NULL, add, &done, err));
    }
    if (dw != NULL && !done)
        SEQLSTM_TRY(find_dw(call, p, dz, x, dw, add, err));
    if (db != NULL && !(done && together != NULL))
        CG_START(call, "sums of rows", cg_column_sums(call->stream, p->rows, p->output, dz, get_stride(p), db, add));
    return SEQLSTM_OK;
}
