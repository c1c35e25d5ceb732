/* SPDX-License-Identifier: Apache-2.0 */
/* See lt_product.h. cuBLASLt is column-major: our row-major [rows, n] is its n by rows, so each product is written
 * transposed.
 *
 *   y  = x W'    output by rows   = (input by output)' (input by rows)
 *   dx = dz W    input by rows    = (input by output) (output by rows)
 *   dW = dz' x   input by output  = (input by rows) (output by rows)' */
#include "cuda-generic/ops/lt_product.h"

#include <string.h>

#include "common/host_memory.h"
#include "cuda-generic/cublaslt/handles.h"
#include "cuda-generic/cublaslt/library.h"
#include "cuda-generic/plugin.h"

/* ---- one product ------------------------------------------------------------------------------------------------ */

struct product {
    bool usable; /* false: cuBLASLt has no algorithm for it */
    int epilogue;
    struct cg_lt_desc *desc;
    struct cg_lt_layout *a, *b, *d;
    struct cg_lt_algorithm algorithm;
};

enum { FORWARD, INPUTS, WEIGHTS, WEIGHTS_AND_BIAS, PRODUCTS };

struct cg_lt_layer {
    struct cg_lt_context *handle;
    struct cg_lt_handles *handles;
    uint32_t device;
    uint32_t alignment; /* of all buffers, in bytes */
    bool narrow;
    struct product products[PRODUCTS];
};

/* Sizes of A and B in memory (column-major), and which of them is transposed. */
struct form {
    int64_t a_rows, a_columns, b_rows, b_columns;
    int a_op, b_op;
};

/* The type of A and B. */
static int get_type(const struct cg_lt_shape *s)
{
    return !s->narrow ? CG_LT_R_32F : s->compute == SEQLSTM_DTYPE_FLOAT16 ? CG_LT_R_16F : CG_LT_R_16BF;
}

static int get_compute(uint32_t dtype)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_TF32:
        return CG_LT_COMPUTE_TF32;
    case SEQLSTM_DTYPE_BFLOAT16:
        return CG_LT_COMPUTE_BF16;
    case SEQLSTM_DTYPE_FLOAT16:
        return CG_LT_COMPUTE_F16;
    default:
        return CG_LT_COMPUTE_F32;
    }
}

#define LT_TRY(call, what) SEQLSTM_TRY(cg_lt_check((call), (what), err))

static seqlstm_status set(struct cg_lt_desc *desc, int attribute, const void *value, size_t bytes,
                          struct seqlstm_error *err)
{
    return cg_lt_check(cg_lt.MatmulDescSetAttribute(desc, attribute, value, bytes), "MatmulDescSetAttribute", err);
}

static seqlstm_status describe(struct product *p, const struct form *f, int compute, int type,
                               struct seqlstm_error *err)
{
    /* Before the call it only matters whether there is a vector and how it is aligned. */
    const uintptr_t somewhere = 256;
    const int64_t rows = f->a_op == CG_LT_OP_T ? f->a_columns : f->a_rows;
    const int64_t columns = f->b_op == CG_LT_OP_T ? f->b_rows : f->b_columns;
    LT_TRY(cg_lt.MatmulDescCreate(&p->desc, compute, CG_LT_R_32F), "MatmulDescCreate");
    SEQLSTM_TRY(set(p->desc, CG_LT_DESC_TRANSA, &f->a_op, sizeof f->a_op, err));
    SEQLSTM_TRY(set(p->desc, CG_LT_DESC_TRANSB, &f->b_op, sizeof f->b_op, err));
    SEQLSTM_TRY(set(p->desc, CG_LT_DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue, err));
    if (p->epilogue & (CG_LT_EPILOGUE_BIAS | CG_LT_EPILOGUE_BGRADB))
        SEQLSTM_TRY(set(p->desc, CG_LT_DESC_BIAS_POINTER, &somewhere, sizeof somewhere, err));
    LT_TRY(cg_lt.MatrixLayoutCreate(&p->a, type, (uint64_t)f->a_rows, (uint64_t)f->a_columns, f->a_rows),
           "MatrixLayoutCreate");
    LT_TRY(cg_lt.MatrixLayoutCreate(&p->b, type, (uint64_t)f->b_rows, (uint64_t)f->b_columns, f->b_rows),
           "MatrixLayoutCreate");
    LT_TRY(cg_lt.MatrixLayoutCreate(&p->d, CG_LT_R_32F, (uint64_t)rows, (uint64_t)columns, rows), "MatrixLayoutCreate");
    return SEQLSTM_OK;
}

static seqlstm_status prefer(struct cg_lt_preference *preference, uint32_t alignment, struct seqlstm_error *err)
{
    static const int buffers[] = {CG_LT_PREF_ALIGNMENT_A, CG_LT_PREF_ALIGNMENT_B, CG_LT_PREF_ALIGNMENT_C,
                                  CG_LT_PREF_ALIGNMENT_D};
    const uint64_t workspace = CG_LT_WORKSPACE_BYTES;
    LT_TRY(cg_lt.MatmulPreferenceSetAttribute(preference, CG_LT_PREF_WORKSPACE, &workspace, sizeof workspace),
           "MatmulPreferenceSetAttribute");
    for (size_t k = 0; k < sizeof buffers / sizeof *buffers; k++)
        LT_TRY(cg_lt.MatmulPreferenceSetAttribute(preference, buffers[k], &alignment, sizeof alignment),
               "MatmulPreferenceSetAttribute");
    return SEQLSTM_OK;
}

/* Takes the first algorithm that cuBLASLt suggests. It is asked once for each product. */
static seqlstm_status choose(const struct cg_lt_layer *layer, struct product *p, const struct form *f, int compute,
                             int type, struct seqlstm_error *err)
{
    const struct cg_lt_key key = {.a_rows = f->a_rows,
                                  .a_columns = f->a_columns,
                                  .b_rows = f->b_rows,
                                  .b_columns = f->b_columns,
                                  .a_op = f->a_op,
                                  .b_op = f->b_op,
                                  .compute = compute | type << 16,
                                  .epilogue = p->epilogue,
                                  .alignment = layer->alignment,
                                  .device = layer->device};
    p->usable = cg_lt_handles_recall(layer->handles, &key, &p->algorithm);
    if (p->usable)
        return SEQLSTM_OK;
    struct cg_lt_preference *preference = NULL;
    struct cg_lt_heuristic best = {.status = CG_LT_NOT_SUPPORTED};
    int count = 0;
    LT_TRY(cg_lt.MatmulPreferenceCreate(&preference), "MatmulPreferenceCreate");
    seqlstm_status status = prefer(preference, layer->alignment, err);
    if (status == SEQLSTM_OK) {
        const int code =
            cg_lt.MatmulAlgoGetHeuristic(layer->handle, p->desc, p->a, p->b, p->d, p->d, preference, 1, &best, &count);
        status = cg_lt_check(code != CG_LT_SUCCESS ? code
                             : count > 0           ? best.status
                                                   : CG_LT_NOT_SUPPORTED,
                             "MatmulAlgoGetHeuristic", err);
    }
    cg_lt.MatmulPreferenceDestroy(preference);
    p->algorithm = best.algorithm;
    p->usable = status == SEQLSTM_OK;
    if (p->usable)
        cg_lt_handles_remember(layer->handles, &key, &p->algorithm);
    return status;
}

static seqlstm_status open_product(struct cg_lt_layer *layer, const struct cg_lt_shape *s, const struct form *form,
                                   int epilogue, struct product *p, struct seqlstm_error *err)
{
    const int type = get_type(s), compute = s->narrow ? CG_LT_COMPUTE_F32 : get_compute(s->compute);
    p->epilogue = epilogue;
    SEQLSTM_TRY(describe(p, form, compute, type, err));
    return choose(layer, p, form, compute, type, err);
}

static void close_product(struct product *p)
{
    if (p->d != NULL)
        cg_lt.MatrixLayoutDestroy(p->d);
    if (p->b != NULL)
        cg_lt.MatrixLayoutDestroy(p->b);
    if (p->a != NULL)
        cg_lt.MatrixLayoutDestroy(p->a);
    if (p->desc != NULL)
        cg_lt.MatmulDescDestroy(p->desc);
}

/* ---- a layer ---------------------------------------------------------------------------------------------------- */

static seqlstm_status open_layer(struct cg_lt_layer *layer, const struct cg_lt_shape *s, struct seqlstm_error *err)
{
    const struct form forms[PRODUCTS] = {
        [FORWARD] = {s->input, s->output, s->input, s->rows, CG_LT_OP_T, CG_LT_OP_N},
        [INPUTS] = {s->input, s->output, s->output, s->rows, CG_LT_OP_N, CG_LT_OP_N},
        [WEIGHTS] = {s->input, s->rows, s->output, s->rows, CG_LT_OP_N, CG_LT_OP_T},
        [WEIGHTS_AND_BIAS] = {s->input, s->rows, s->output, s->rows, CG_LT_OP_N, CG_LT_OP_T}};
    const int plain = CG_LT_EPILOGUE_DEFAULT;
    const int activation = s->relu ? CG_LT_EPILOGUE_RELU : 0, bias = s->bias ? CG_LT_EPILOGUE_BIAS : 0;
    const int epilogues[PRODUCTS] = {activation + bias != 0 ? activation | bias : plain, plain, plain,
                                     CG_LT_EPILOGUE_BGRADB};
    /* The host aligns buffers; rows inside them are aligned as their widths allow. */
    layer->alignment = s->input % 4 == 0 && s->output % 4 == 0 ? 16 : 4;
    /* In 16 bits the sums of dz would be sums of rounded values. */
    const bool wanted[PRODUCTS] = {s->forward, s->inputs, s->weights, s->weights && s->sums && !s->narrow};
    if (s->forward)
        SEQLSTM_TRY(open_product(layer, s, &forms[FORWARD], epilogues[FORWARD], &layer->products[FORWARD], err));
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    bool any = s->forward;
    for (int k = INPUTS; k < PRODUCTS; k++) {
        if (!wanted[k])
            continue;
        const seqlstm_status status = open_product(layer, s, &forms[k], epilogues[k], &layer->products[k], &why);
        if (status != SEQLSTM_OK && status != SEQLSTM_UNSUPPORTED) {
            if (err != NULL)
                *err = why;
            return status;
        }
        any = any || status == SEQLSTM_OK;
    }
    if (!any && err != NULL)
        *err = why;
    return any ? SEQLSTM_OK : SEQLSTM_UNSUPPORTED;
}

seqlstm_status cg_lt_layer_create(const struct seqlstm_op *op, const struct cg_lt_shape *shape,
                                  struct cg_lt_layer **out_layer, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = &op->instance->domain.host;
    struct cg_lt_context *handle = NULL;
    SEQLSTM_TRY(cg_lt_handles_find(op->instance->lt_handles, op->device, op->ordinal, &handle, err));
    struct cg_lt_layer *layer = host_allocate(host, sizeof *layer);
    if (layer == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the products of a layer");
    layer->handle = handle;
    layer->handles = op->instance->lt_handles;
    layer->device = op->device;
    layer->narrow = shape->narrow;
    const seqlstm_status status = open_layer(layer, shape, err);
    if (status != SEQLSTM_OK) {
        cg_lt_layer_destroy(host, layer);
        return status;
    }
    *out_layer = layer;
    return SEQLSTM_OK;
}

bool cg_lt_layer_is_narrow(const struct cg_lt_layer *layer)
{
    return layer != NULL && layer->narrow;
}

void cg_lt_layer_destroy(const struct seqlstm_host *host, struct cg_lt_layer *layer)
{
    if (layer == NULL)
        return;
    for (int k = 0; k < PRODUCTS; k++)
        close_product(&layer->products[k]);
    host_release(host, layer);
}

void cg_lt_close(struct seqlstm_binding *binding)
{
    for (int k = 0; k < CG_LT_LAYERS; k++) {
        cg_lt_layer_destroy(&binding->op->instance->domain.host, binding->lt[k]);
        binding->lt[k] = NULL;
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static seqlstm_status run(const struct cg_lt_layer *layer, int which, const struct cg_call *call, const void *a,
                          const void *b, float beta, float *d, void *bias, bool *out_done, struct seqlstm_error *err)
{
    const struct product *p = &layer->products[which];
    const float alpha = 1;
    const uintptr_t all = (uintptr_t)a | (uintptr_t)b | (uintptr_t)d;
    *out_done = p->usable && all % layer->alignment == 0 && (uintptr_t)bias % sizeof(float) == 0;
    if (!*out_done)
        return SEQLSTM_OK;
    if (bias != NULL)
        SEQLSTM_TRY(set(p->desc, CG_LT_DESC_BIAS_POINTER, &bias, sizeof bias, err));
    return cg_lt_check(cg_lt.Matmul(layer->handle, p->desc, &alpha, a, p->a, b, p->b, &beta, d, p->d, d, p->d,
                                    &p->algorithm, call->lt_workspace, (size_t)CG_LT_WORKSPACE_BYTES, call->stream),
                       "Matmul", err);
}

seqlstm_status cg_lt_forward(const struct cg_lt_layer *layer, const struct cg_call *call, const void *x, const void *w,
                             const float *bias, float *y, bool *out_done, struct seqlstm_error *err)
{
    void *vector = NULL;
    memcpy(&vector, &bias, sizeof vector); /* only read */
    return run(layer, FORWARD, call, w, x, 0, y, vector, out_done, err);
}

seqlstm_status cg_lt_inputs(const struct cg_lt_layer *layer, const struct cg_call *call, const void *dz, const void *w,
                            float *dx, bool add, bool *out_done, struct seqlstm_error *err)
{
    return run(layer, INPUTS, call, w, dz, add ? 1 : 0, dx, NULL, out_done, err);
}

seqlstm_status cg_lt_weights(const struct cg_lt_layer *layer, const struct cg_call *call, const void *dz, const void *x,
                             float *dw, float *db, bool add, bool *out_done, struct seqlstm_error *err)
{
    return run(layer, db != NULL ? WEIGHTS_AND_BIAS : WEIGHTS, call, x, dz, add ? 1 : 0, dw, db, out_done, err);
}
