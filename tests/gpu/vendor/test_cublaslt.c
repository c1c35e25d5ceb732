/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what cublaslt/library.h declares of cuBLASLt with NVIDIA's header and, as far as that is possible without a
 * device, with the library: it opens, has every function, accepts our attributes with our sizes and returns them.
 * Skipped without cuBLASLt. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <cublasLt.h>

#include "cuda-generic/cublaslt/library.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(CG_LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(CG_LT_ALLOCATION_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(CG_LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CG_LT_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(CG_LT_COMPUTE_F16, CUBLAS_COMPUTE_32F_FAST_16F);
SAME(CG_LT_COMPUTE_BF16, CUBLAS_COMPUTE_32F_FAST_16BF);
SAME(CG_LT_COMPUTE_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(CG_LT_R_32F, CUDA_R_32F);
SAME(CG_LT_R_16F, CUDA_R_16F);
SAME(CG_LT_R_16BF, CUDA_R_16BF);
SAME(CG_LT_OP_N, CUBLAS_OP_N);
SAME(CG_LT_OP_T, CUBLAS_OP_T);
SAME(CG_LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CG_LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CG_LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CG_LT_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CG_LT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT);
SAME(CG_LT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU);
SAME(CG_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(CG_LT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(CG_LT_EPILOGUE_BGRADB, CUBLASLT_EPILOGUE_BGRADB);
SAME(CG_LT_PREF_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CG_LT_PREF_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CG_LT_PREF_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(CG_LT_PREF_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(CG_LT_PREF_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(sizeof(struct cg_lt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(struct cg_lt_heuristic), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(struct cg_lt_heuristic, workspace_bytes), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(struct cg_lt_heuristic, status), offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(sizeof(cublasOperation_t), sizeof(int));
SAME(sizeof(cublasLtEpilogue_t), sizeof(int));

static int checks, wrong;

static void expect(int fine, const char *what)
{
    checks++;
    wrong += !fine;
    if (!fine)
        printf("# %s\n", what);
}

typedef cublasStatus_t get_fn(const void *object, int attribute, void *value, size_t bytes, size_t *written);

/* Sets an attribute and reads it; one byte less must be refused. */
static void check_attribute(int (*set)(void *object, int attribute, const void *value, size_t bytes), get_fn *get,
                            void *object, int attribute, const void *value, size_t bytes, const char *what)
{
    unsigned char back[16] = {0};
    size_t written = 0;
    expect(set(object, attribute, value, bytes) == CG_LT_SUCCESS, what);
    expect(get(object, attribute, back, bytes, &written) == CUBLAS_STATUS_SUCCESS, what);
    expect(written == bytes && memcmp(back, value, bytes) == 0, what);
    expect(set(object, attribute, value, bytes - 1) == CUBLAS_STATUS_INVALID_VALUE, what);
}

static int set_desc(void *object, int attribute, const void *value, size_t bytes)
{
    return cg_lt.MatmulDescSetAttribute(object, attribute, value, bytes);
}

static int set_preference(void *object, int attribute, const void *value, size_t bytes)
{
    return cg_lt.MatmulPreferenceSetAttribute(object, attribute, value, bytes);
}

/* A function of the loaded library that the plugin does not use. */
static get_fn *find_getter(const char *name)
{
    Dl_info info = {0};
    void *loaded;
    memcpy(&loaded, &cg_lt.GetVersion, sizeof loaded);
    void *library = dladdr(loaded, &info) != 0 ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    void *symbol = library != NULL ? dlsym(library, name) : NULL;
    get_fn *getter;
    memcpy(&getter, &symbol, sizeof getter);
    return getter;
}

static void check_all(get_fn *get_desc, get_fn *get_preference)
{
    static const int computes[] = {CG_LT_COMPUTE_F32, CG_LT_COMPUTE_TF32, CG_LT_COMPUTE_BF16, CG_LT_COMPUTE_F16};
    static const int epilogues[] = {CG_LT_EPILOGUE_DEFAULT, CG_LT_EPILOGUE_RELU, CG_LT_EPILOGUE_BIAS,
                                    CG_LT_EPILOGUE_RELU_BIAS, CG_LT_EPILOGUE_BGRADB};
    struct cg_lt_preference *preference = NULL;
    for (int c = 0; c < 4; c++)
        for (int e = 0; e < 5; e++) {
            struct cg_lt_desc *desc = NULL;
            struct cg_lt_layout *layout = NULL;
            const int transposed = CG_LT_OP_T;
            const uintptr_t bias = 256;
            expect(cg_lt.MatmulDescCreate(&desc, computes[c], CG_LT_R_32F) == CG_LT_SUCCESS, "MatmulDescCreate");
            check_attribute(set_desc, get_desc, desc, CG_LT_DESC_TRANSA, &transposed, sizeof transposed, "TRANSA");
            check_attribute(set_desc, get_desc, desc, CG_LT_DESC_TRANSB, &transposed, sizeof transposed, "TRANSB");
            check_attribute(set_desc, get_desc, desc, CG_LT_DESC_EPILOGUE, &epilogues[e], sizeof epilogues[e],
                            "EPILOGUE");
            check_attribute(set_desc, get_desc, desc, CG_LT_DESC_BIAS_POINTER, &bias, sizeof bias, "BIAS_POINTER");
            expect(cg_lt.MatrixLayoutCreate(&layout, CG_LT_R_32F, 5, 7, 5) == CG_LT_SUCCESS, "MatrixLayoutCreate");
            expect(cg_lt.MatrixLayoutDestroy(layout) == CG_LT_SUCCESS, "MatrixLayoutDestroy");
            expect(cg_lt.MatmulDescDestroy(desc) == CG_LT_SUCCESS, "MatmulDescDestroy");
        }
    const uint64_t workspace = (uint64_t)32 << 20;
    const uint32_t alignment = 16;
    expect(cg_lt.MatmulPreferenceCreate(&preference) == CG_LT_SUCCESS, "MatmulPreferenceCreate");
    check_attribute(set_preference, get_preference, preference, CG_LT_PREF_WORKSPACE, &workspace, sizeof workspace,
                    "MAX_WORKSPACE_BYTES");
    for (int k = CG_LT_PREF_ALIGNMENT_A; k <= CG_LT_PREF_ALIGNMENT_D; k++)
        check_attribute(set_preference, get_preference, preference, k, &alignment, sizeof alignment, "MIN_ALIGNMENT");
    expect(cg_lt.MatmulPreferenceDestroy(preference) == CG_LT_SUCCESS, "MatmulPreferenceDestroy");
}

int main(void)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = cg_lt_load("auto", &err);
    if (status != SEQLSTM_OK && strstr(err.message, "cannot be loaded") != NULL) {
        printf("1..0 # SKIP %s\n", err.message);
        return 0;
    }
    printf("1..2\n%s 1 - cuBLASLt %s %s\n", status == SEQLSTM_OK ? "ok" : "not ok", cg_lt_version(),
           status == SEQLSTM_OK ? "has every function" : err.message);
    if (status != SEQLSTM_OK)
        return 1;
    get_fn *get_desc = find_getter("cublasLtMatmulDescGetAttribute");
    get_fn *get_preference = find_getter("cublasLtMatmulPreferenceGetAttribute");
    expect(get_desc != NULL && get_preference != NULL, "no functions that read attributes");
    if (wrong == 0)
        check_all(get_desc, get_preference);
    printf("%s 2 - descriptors: %d checks, %d wrong\n", wrong == 0 && checks > 300 ? "ok" : "not ok", checks, wrong);
    return wrong != 0;
}
