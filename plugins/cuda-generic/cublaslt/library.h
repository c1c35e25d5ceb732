/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt, loaded when the backend is opened if it is installed. Its functions are members of `cg_lt`, named without
 * their prefix `cublasLt`.
 *
 * We declare the part of its interface that we use, so the plugin builds without its headers and runs on machines
 * without it. tests/gpu/vendor/test_cublaslt.c checks these declarations against the real header and library. */
#ifndef CG_LT_LIBRARY_H
#define CG_LT_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

/* An opaque type of cuBLASLt. */
struct cg_lt_context;
struct cg_lt_desc;
struct cg_lt_layout;
struct cg_lt_preference;

enum { CG_LT_SUCCESS = 0, CG_LT_ALLOCATION_FAILED = 3, CG_LT_NOT_SUPPORTED = 15 }; /* cublasStatus_t */
enum { CG_LT_COMPUTE_F32 = 68, CG_LT_COMPUTE_F16 = 74, CG_LT_COMPUTE_BF16 = 75, CG_LT_COMPUTE_TF32 = 77 };
enum { CG_LT_R_32F = 0, CG_LT_R_16F = 2, CG_LT_R_16BF = 14 }; /* cudaDataType_t */
enum { CG_LT_OP_N = 0, CG_LT_OP_T = 1 };
enum { CG_LT_DESC_TRANSA = 3, CG_LT_DESC_TRANSB = 4, CG_LT_DESC_EPILOGUE = 7, CG_LT_DESC_BIAS_POINTER = 8 };
enum {
    CG_LT_EPILOGUE_DEFAULT = 1,
    CG_LT_EPILOGUE_RELU = 2,
    CG_LT_EPILOGUE_BIAS = 4,
    CG_LT_EPILOGUE_RELU_BIAS = 6,
    CG_LT_EPILOGUE_BGRADB = 512
};
enum {
    CG_LT_PREF_WORKSPACE = 1,
    CG_LT_PREF_ALIGNMENT_A = 5,
    CG_LT_PREF_ALIGNMENT_B = 6,
    CG_LT_PREF_ALIGNMENT_C = 7,
    CG_LT_PREF_ALIGNMENT_D = 8
};

struct cg_lt_algorithm {
    uint64_t data[8];
};

struct cg_lt_heuristic {
    struct cg_lt_algorithm algorithm;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};

#define CG_LT_FUNCTIONS(X)                                                                                             \
    X(size_t, GetVersion, (void))                                                                                      \
    X(const char *, GetStatusName, (int status))                                                                       \
    X(int, Create, (struct cg_lt_context * *handle))                                                                   \
    X(int, Destroy, (struct cg_lt_context * handle))                                                                   \
    X(int, MatmulDescCreate, (struct cg_lt_desc * *desc, int compute, int scale))                                      \
    X(int, MatmulDescDestroy, (struct cg_lt_desc * desc))                                                              \
    X(int, MatmulDescSetAttribute, (struct cg_lt_desc * desc, int attribute, const void *value, size_t bytes))         \
    X(int, MatrixLayoutCreate, (struct cg_lt_layout * *layout, int type, uint64_t rows, uint64_t columns, int64_t ld)) \
    X(int, MatrixLayoutDestroy, (struct cg_lt_layout * layout))                                                        \
    X(int, MatmulPreferenceCreate, (struct cg_lt_preference * *preference))                                            \
    X(int, MatmulPreferenceDestroy, (struct cg_lt_preference * preference))                                            \
    X(int, MatmulPreferenceSetAttribute,                                                                               \
      (struct cg_lt_preference * preference, int attribute, const void *value, size_t bytes))                          \
    X(int, MatmulAlgoGetHeuristic,                                                                                     \
      (struct cg_lt_context * handle, struct cg_lt_desc * desc, struct cg_lt_layout * a, struct cg_lt_layout * b,      \
       struct cg_lt_layout * c, struct cg_lt_layout * d, struct cg_lt_preference * preference, int most,               \
       struct cg_lt_heuristic *results, int *count))                                                                   \
    X(int, Matmul,                                                                                                     \
      (struct cg_lt_context * handle, struct cg_lt_desc * desc, const void *alpha, const void *a_values,               \
       struct cg_lt_layout *a, const void *b_values, struct cg_lt_layout *b, const void *beta, const void *c_values,   \
       struct cg_lt_layout *c, void *d_values, struct cg_lt_layout *d, const struct cg_lt_algorithm *algorithm,        \
       void *workspace, size_t workspace_bytes, void *stream))

#define CG_LT_MEMBER(type, name, arguments) type(*name) arguments;
struct cg_lt_functions {
    CG_LT_FUNCTIONS(CG_LT_MEMBER)
};
#undef CG_LT_MEMBER
extern struct cg_lt_functions cg_lt;

/* Opens the library on the first call that names one. `place`: as for vendor_library_open, or "none". UNAVAILABLE, with
 * the reason, if it is absent, has another major version or lacks a function. A library that was loaded stays.
 * [control] */
seqlstm_status cg_lt_load(const char *place, struct seqlstm_error *err);

/* Such as "13.1.0"; "" if it is not loaded. */
const char *cg_lt_version(void);

/* Translates a status of cuBLASLt: UNSUPPORTED, NO_MEMORY or DEVICE, with the name and the code of the status. */
seqlstm_status cg_lt_check(int status, const char *what, struct seqlstm_error *err);

/* A part of a call's workspace. NVIDIA recommends this size for Hopper. */
#ifndef CG_LT_WORKSPACE_BYTES
#define CG_LT_WORKSPACE_BYTES ((uint64_t)32 << 20)
#endif
enum { CG_LT_WORKSPACE_ALIGNMENT = 256 };

#endif
