/* SPDX-License-Identifier: Apache-2.0 */
/* A fake cuBLASLt that needs no GPU: products with epilogues as NVIDIA documents them, on the emulated device, computed
 * in float64. Column-major, float32 in memory, or A and B in 16 bits; float32 factors are rounded as the compute type
 * allows. An algorithm is valid
 * only for the product, alignment and workspace for which it was chosen; the workspace is overwritten.
 *
 *   FAKE_CUBLASLT_BROKEN=1    cublasLtCreate fails
 *   FAKE_CUBLASLT_REFUSE=E    there is no algorithm with epilogue E
 *   FAKE_CUBLASLT_COLUMNS=N   there is none for results with N columns
 *   FAKE_CUBLASLT_WIDE=1      there is none for A and B in 16 bits
 *   FAKE_CUBLASLT_LOG=FILE    appends a line to FILE: "heuristic" or "product", with 16 behind it if
 *                             A and B have 16 bits, then rows, columns and depth
 *
 * A handle is for the device that was current when it was created, and is destroyed there.
 *
 * Tests find three more functions with dlsym, which do what those of fake_cudnn.h do: fake_cublaslt_fail_at,
 * fake_cublaslt_disarm and fake_cublaslt_count_alive. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#include "common/half.h"
#include "emulated_device.h"

#define API __attribute__((visibility("default")))

/* ---- for tests -------------------------------------------------------------------------------------------------- */

static _Atomic int calls_left; /* the call that takes the last one fails; 0: none does */
static _Atomic bool has_failed;
static _Atomic int alive; /* handles, descriptors, layouts and preferences */

void fake_cublaslt_fail_at(int n);
int fake_cublaslt_disarm(void);
int fake_cublaslt_count_alive(void);

API void fake_cublaslt_fail_at(int n)
{
    has_failed = false;
    calls_left = n;
}

API int fake_cublaslt_disarm(void)
{
    calls_left = 0;
    return has_failed;
}

API int fake_cublaslt_count_alive(void)
{
    return alive;
}

static bool fails_in_turn(void)
{
    const bool now = calls_left > 0 && --calls_left == 0;
    has_failed = has_failed || now;
    return now;
}

/* ---- types ------------------------------------------------------------------------------------------------------ */

struct handle {
    int device;
};

struct desc {
    int compute, scale;
    int op_a, op_b, epilogue;
    void *bias;
};

struct layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
};

struct preference {
    uint64_t workspace;
    uint32_t alignment[4]; /* A, B, C, D */
};

/* What an algorithm was chosen for, stored in its 64 opaque bytes. */
struct algorithm {
    uint64_t form;
    uint64_t workspace;
    uint32_t alignment[4];
};
_Static_assert(sizeof(struct algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm is 64 bytes");

API size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

API const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED     ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == CUBLAS_STATUS_INVALID_VALUE   ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == CUBLAS_STATUS_NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
                                                     : "CUBLAS_STATUS_INTERNAL_ERROR";
}

static cublasStatus_t give(void **out, const void *value, size_t bytes)
{
    *out = malloc(bytes);
    if (*out == NULL)
        return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(*out, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* The same for what lives until it is destroyed. */
static cublasStatus_t make(void **out, const void *value, size_t bytes)
{
    if (fails_in_turn())
        return CUBLAS_STATUS_INTERNAL_ERROR;
    alive++;
    return give(out, value, bytes);
}

static cublasStatus_t drop(void *made)
{
    alive -= made != NULL;
    free(made);
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    const struct handle made = {emulated_get_device(NULL)};
    return getenv("FAKE_CUBLASLT_BROKEN") != NULL ? CUBLAS_STATUS_NOT_INITIALIZED
                                                  : make((void **)handle, &made, sizeof made);
}

API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    if (handle != NULL && ((struct handle *)(void *)handle)->device != emulated_get_device(NULL))
        return CUBLAS_STATUS_INVALID_VALUE; /* it stays */
    return drop(handle);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------ */

static cublasStatus_t set(void *to, size_t wanted, const void *from, size_t bytes)
{
    if (fails_in_turn())
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (from == NULL || bytes != wanted)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

API cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                            cudaDataType_t scale)
{
    const struct desc d = {(int)compute, (int)scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL};
    return make((void **)out, &d, sizeof d);
}

API cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return drop(desc);
}

API cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                                  const void *value, size_t bytes)
{
    struct desc *d = (struct desc *)(void *)desc;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&d->op_a, sizeof d->op_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&d->op_b, sizeof d->op_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&d->epilogue, sizeof d->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&d->bias, sizeof d->bias, value, bytes);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

API cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type, uint64_t rows,
                                              uint64_t columns, int64_t ld)
{
    const struct layout l = {(int)type, rows, columns, ld};
    return make((void **)out, &l, sizeof l);
}

API cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return drop(layout);
}

API cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    const struct preference p = {0, {256, 256, 256, 256}};
    return make((void **)out, &p, sizeof p);
}

API cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return drop(preference);
}

API cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                        cublasLtMatmulPreferenceAttributes_t attribute,
                                                        const void *value, size_t bytes)
{
    struct preference *p = (struct preference *)(void *)preference;
    const int k = (int)attribute - (int)CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return set(&p->workspace, sizeof p->workspace, value, bytes);
    return k >= 0 && k < 4 ? set(&p->alignment[k], sizeof p->alignment[k], value, bytes) : CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- algorithms ------------------------------------------------------------------------------------------------- */

/* A queued call: everything by value. */
struct run {
    struct desc desc;
    struct layout a, b, c, d;
    struct algorithm algorithm;
    float alpha, beta;
    const void *a_values, *b_values;
    const float *c_values;
    float *d_values;
    void *workspace;
};

static uint64_t op_rows(const struct layout *l, int op)
{
    return op == CUBLAS_OP_T ? l->columns : l->rows;
}

static uint64_t op_columns(const struct layout *l, int op)
{
    return op == CUBLAS_OP_T ? l->rows : l->columns;
}

static bool is_narrow(int type)
{
    return type == CUDA_R_16BF || type == CUDA_R_16F;
}

static bool fits(const struct run *r)
{
    const struct layout *const all[] = {&r->a, &r->b, &r->c, &r->d};
    for (int k = 0; k < 4; k++)
        if ((all[k]->type != CUDA_R_32F && (k >= 2 || !is_narrow(all[k]->type))) || all[k]->rows == 0 ||
            all[k]->columns == 0 || all[k]->ld < (int64_t)all[k]->rows)
            return false;
    const bool narrow = is_narrow(r->a.type);
    if (r->a.type != r->b.type || (narrow && r->desc.compute != CUBLAS_COMPUTE_32F))
        return false;
    return r->desc.scale == CUDA_R_32F && op_columns(&r->a, r->desc.op_a) == op_rows(&r->b, r->desc.op_b) &&
           op_rows(&r->a, r->desc.op_a) == r->d.rows && op_columns(&r->b, r->desc.op_b) == r->d.columns &&
           memcmp(&r->c, &r->d, sizeof r->c) == 0;
}

static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t k = 0; k < bytes; k++)
        h = (h ^ p[k]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t hash_form(const struct run *r)
{
    const uint64_t form[] = {(uint64_t)r->desc.compute,
                             (uint64_t)r->desc.op_a,
                             (uint64_t)r->desc.op_b,
                             (uint64_t)r->desc.epilogue,
                             r->a.rows,
                             r->a.columns,
                             r->b.rows,
                             r->b.columns,
                             (uint64_t)r->a.type};
    return hash(1469598103934665603u, form, sizeof form);
}

static bool knows(const struct desc *d)
{
    const char *refused = getenv("FAKE_CUBLASLT_REFUSE");
    const bool computes = d->compute == CUBLAS_COMPUTE_32F || d->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                          d->compute == CUBLAS_COMPUTE_32F_FAST_16BF || d->compute == CUBLAS_COMPUTE_32F_FAST_16F;
    const bool ends = d->epilogue == CUBLASLT_EPILOGUE_DEFAULT || d->epilogue == CUBLASLT_EPILOGUE_RELU ||
                      d->epilogue == CUBLASLT_EPILOGUE_BIAS || d->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
                      d->epilogue == CUBLASLT_EPILOGUE_BGRADB;
    const bool vector = d->epilogue & ((int)CUBLASLT_EPILOGUE_BIAS | (int)CUBLASLT_EPILOGUE_BGRADB);
    return computes && ends && (!vector || d->bias != NULL) &&
           (refused == NULL || strtol(refused, NULL, 10) != d->epilogue);
}

static void note(const char *what, const struct run *r)
{
    const char *path = getenv("FAKE_CUBLASLT_LOG");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL)
        return;
    fprintf(file, "%s%s %llu %llu %llu\n", what, is_narrow(r->a.type) ? "16" : "", (unsigned long long)r->d.rows,
            (unsigned long long)r->d.columns, (unsigned long long)op_columns(&r->a, r->desc.op_a));
    fclose(file);
}

API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                                  cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                  cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                  cublasLtMatmulPreference_t preference, int most,
                                                  cublasLtMatmulHeuristicResult_t results[], int *count)
{
    const struct preference *p = (const struct preference *)(const void *)preference;
    struct run r = {.desc = *(struct desc *)(void *)desc,
                    .a = *(struct layout *)(void *)a,
                    .b = *(struct layout *)(void *)b,
                    .c = *(struct layout *)(void *)c,
                    .d = *(struct layout *)(void *)d};
    *count = 0;
    if (fails_in_turn())
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (handle == NULL || most < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    const char *columns = getenv("FAKE_CUBLASLT_COLUMNS");
    if (is_narrow(r.a.type) && getenv("FAKE_CUBLASLT_WIDE") != NULL)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!fits(&r) || !knows(&r.desc) || (columns != NULL && strtoull(columns, NULL, 10) == r.d.columns))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    r.algorithm = (struct algorithm){hash_form(&r), p->workspace < 4096 ? p->workspace : 4096, {0}};
    memcpy(r.algorithm.alignment, p->alignment, sizeof p->alignment);
    memset(results, 0, sizeof *results);
    memcpy(&results->algo, &r.algorithm, sizeof r.algorithm);
    results->workspaceSize = (size_t)r.algorithm.workspace;
    results->state = CUBLAS_STATUS_SUCCESS;
    note("heuristic", &r);
    *count = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products --------------------------------------------------------------------------------------------------- */

static double factor(int compute, float x)
{
    switch (compute) {
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        return (double)gpu_bits_float(gpu_round_fraction(gpu_float_bits(x), 13));
    case CUBLAS_COMPUTE_32F_FAST_16BF:
        return (double)gpu_from_bf16(gpu_to_bf16(x));
    case CUBLAS_COMPUTE_32F_FAST_16F:
        return (double)gpu_from_f16(gpu_to_f16(x));
    default:
        return (double)x;
    }
}

static float at(const void *values, const struct layout *l, int op, uint64_t row, uint64_t column)
{
    const uint64_t r = op == CUBLAS_OP_T ? column : row, c = op == CUBLAS_OP_T ? row : column;
    const uint64_t place = r + c * (uint64_t)l->ld;
    return l->type == CUDA_R_32F    ? ((const float *)values)[place]
           : l->type == CUDA_R_16BF ? gpu_from_bf16(((const uint16_t *)values)[place])
                                    : gpu_from_f16(((const uint16_t *)values)[place]);
}

static int run_work(void *context, char *failure, size_t capacity)
{
    const struct run *r = context;
    const struct desc *d = &r->desc;
    const uint64_t depth = op_columns(&r->a, d->op_a);
    float *bias = d->bias;
    (void)failure;
    (void)capacity;
    memset(r->workspace, 0xFF, (size_t)r->algorithm.workspace); /* the caller's data does not survive there */
    for (uint64_t j = 0; j < r->d.columns; j++) {
        double column_sum = 0;
        for (uint64_t k = 0; k < depth; k++)
            column_sum += (double)at(r->b_values, &r->b, d->op_b, k, j);
        for (uint64_t i = 0; i < r->d.rows; i++) {
            const uint64_t place = i + j * (uint64_t)r->d.ld;
            double sum = 0;
            for (uint64_t k = 0; k < depth; k++)
                sum += factor(d->compute, at(r->a_values, &r->a, d->op_a, i, k)) *
                       factor(d->compute, at(r->b_values, &r->b, d->op_b, k, j));
            sum *= (double)r->alpha;
            if (r->beta != 0) /* else C is not read */
                sum += (double)r->beta * (double)r->c_values[place];
            if (d->epilogue & (int)CUBLASLT_EPILOGUE_BIAS)
                sum += (double)bias[i];
            r->d_values[place] = (float)(d->epilogue & (int)CUBLASLT_EPILOGUE_RELU && sum < 0 ? 0 : sum);
        }
        if (d->epilogue == CUBLASLT_EPILOGUE_BGRADB)
            bias[j] = (float)column_sum;
    }
    return 0;
}

static size_t get_bytes(const struct layout *l)
{
    return (size_t)((uint64_t)l->ld * (l->columns - 1) + l->rows) *
           (is_narrow(l->type) ? sizeof(uint16_t) : sizeof(float));
}

static bool is_good(const void *pointer, const struct layout *l, uint32_t alignment)
{
    return pointer != NULL && emulated_owns(pointer, get_bytes(l)) && (uintptr_t)pointer % alignment == 0;
}

API cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                                  const void *a_values, cublasLtMatrixLayout_t a, const void *b_values,
                                  cublasLtMatrixLayout_t b, const void *beta, const void *c_values,
                                  cublasLtMatrixLayout_t c, void *d_values, cublasLtMatrixLayout_t d,
                                  const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                                  cudaStream_t stream)
{
    struct run r = {.desc = *(struct desc *)(void *)desc,
                    .a = *(struct layout *)(void *)a,
                    .b = *(struct layout *)(void *)b,
                    .c = *(struct layout *)(void *)c,
                    .d = *(struct layout *)(void *)d,
                    .alpha = *(const float *)alpha,
                    .beta = *(const float *)beta,
                    .a_values = a_values,
                    .b_values = b_values,
                    .c_values = c_values,
                    .d_values = d_values,
                    .workspace = workspace};
    const size_t bias = (size_t)(r.desc.epilogue == CUBLASLT_EPILOGUE_BGRADB ? r.d.columns : r.d.rows) * sizeof(float);
    const bool vector = r.desc.epilogue & ((int)CUBLASLT_EPILOGUE_BIAS | (int)CUBLASLT_EPILOGUE_BGRADB);
    if (fails_in_turn())
        return CUBLAS_STATUS_INTERNAL_ERROR;
    if (handle == NULL || algorithm == NULL || !fits(&r) ||
        ((struct handle *)(void *)handle)->device != emulated_get_device(stream))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&r.algorithm, algorithm, sizeof r.algorithm);
    if (r.algorithm.form != hash_form(&r) || workspace_bytes < r.algorithm.workspace ||
        (uintptr_t)workspace % 256 != 0 || !emulated_owns(workspace, workspace_bytes) ||
        !is_good(a_values, &r.a, r.algorithm.alignment[0]) || !is_good(b_values, &r.b, r.algorithm.alignment[1]) ||
        !is_good(c_values, &r.c, r.algorithm.alignment[2]) || !is_good(d_values, &r.d, r.algorithm.alignment[3]) ||
        c_values != d_values || (vector && !emulated_owns(r.desc.bias, bias)))
        return CUBLAS_STATUS_INVALID_VALUE;
    void *context = NULL;
    if (give(&context, &r, sizeof r) != CUBLAS_STATUS_SUCCESS)
        return CUBLAS_STATUS_ALLOC_FAILED;
    note("product", &r);
    emulated_submit(stream, run_work, context, free);
    return CUBLAS_STATUS_SUCCESS;
}
