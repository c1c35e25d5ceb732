/* SPDX-License-Identifier: Apache-2.0 */
/* Opens OpenBLAS and defines the two functions that call into it.
 *
 * Invariants
 * 1. The function pointers below are set once, under the lock, before the first call of an operation. Every later write
 *    would store the same value. They are like entries of a procedure linkage table, not mutable state.
 * 2. The environment is unchanged when blas_openblas_load returns. While the library loads, `environ` points to a copy
 *    with two more entries. The old array is not touched, so a concurrent getenv stays correct. Each opening has its
 *    copy in static storage, since a concurrent reader may keep a pointer to it. */
#include "cpu-blas/gemm/openblas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef void sgemm_fn(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, enum CBLAS_TRANSPOSE, blasint, blasint, blasint, float,
                      const float *, blasint, const float *, blasint, float, float *, blasint);
typedef void sgemv_fn(enum CBLAS_ORDER, enum CBLAS_TRANSPOSE, blasint, blasint, float, const float *, blasint,
                      const float *, blasint, float, float *, blasint);

static _Atomic(sgemm_fn *) sgemm_entry;
static _Atomic(sgemv_fn *) sgemv_entry;
static _Atomic(const char *) core_name;
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

enum { ENVIRONMENT_MAX = 4096 };

/* Opens the library. If the environment is too large to copy, the library is opened under the present one, which is
 * correct but possibly slower. `setting`: "OPENBLAS_CORETYPE=…", or NULL. */
static void *open_library(const char *core, char *setting, char **copy)
{
    static char one_thread[] = "OPENBLAS_NUM_THREADS=1";
    char **old = environ;
    const bool keep = strcmp(core, "environment") == 0;
    int count = 0;
    for (int i = 0; old != NULL && old[i] != NULL; i++) {
        const bool dropped =
            strncmp(old[i], "OPENBLAS_", 9) == 0 && (!keep || strncmp(old[i], "OPENBLAS_NUM_THREADS=", 21) == 0);
        if (dropped)
            continue;
        if (count == ENVIRONMENT_MAX - 3)
            return dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
        copy[count++] = old[i];
    }
    copy[count++] = one_thread;
    if (setting != NULL)
        copy[count++] = setting;
    copy[count] = NULL;
    environ = copy;
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    environ = old;
    return library;
}

/* Stores a function in the pointer at `out`. ISO C has no cast between pointers to functions and pointers to data. */
static void find(void *library, const char *name, void *out, const char **missing)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL && *missing == NULL)
        *missing = name;
    memcpy(out, &symbol, sizeof symbol);
}

struct library {
    void *handle;
    sgemm_fn *sgemm;
    sgemv_fn *sgemv;
    void (*set_threads)(int);
    char *(*get_core)(void);
};

/* The data that a concurrent reader of the environment may still use after the library is open. */
struct opening {
    char setting[64];
    char *environment[ENVIRONMENT_MAX];
};

static seqlstm_status open_as(const char *core, struct opening *opening, struct library *out, struct seqlstm_error *err)
{
    const bool named = strcmp(core, "auto") != 0 && strcmp(core, "environment") != 0;
    static const char key[] = "OPENBLAS_CORETYPE=";
    memcpy(opening->setting, key, sizeof key);
    strncat(opening->setting, core, sizeof opening->setting - sizeof key);
    void *library = open_library(core, named ? opening->setting : NULL, opening->environment);
    if (library == NULL) {
        const char *reason = dlerror();
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "OpenBLAS cannot be loaded: %s",
                     reason != NULL ? reason : "libopenblas.so.0 not found");
    }
    const char *missing = NULL;
    out->handle = library;
    find(library, "cblas_sgemm", &out->sgemm, &missing);
    find(library, "cblas_sgemv", &out->sgemv, &missing);
    find(library, "openblas_set_num_threads", &out->set_threads, &missing);
    find(library, "openblas_get_corename", &out->get_core, &missing);
    if (missing != NULL) {
        dlclose(library);
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "libopenblas.so.0 has no function %s", missing);
    }
    return SEQLSTM_OK;
}

const char *blas_openblas_better(const char *core, enum blas_isa isa)
{
    if (strcasecmp(core, "Prescott") != 0)
        return NULL;
    return isa == BLAS_ISA_AVX512 ? "SKYLAKEX" : isa == BLAS_ISA_AVX2 ? "HASWELL" : NULL;
}

static seqlstm_status load_locked(const char *core, struct seqlstm_error *err)
{
    static struct opening first, second;
    struct library library;
    SEQLSTM_TRY(open_as(core, &first, &library, err));
    const char *better = strcmp(core, "auto") == 0 ? blas_openblas_better(library.get_core(), blas_isa_detect()) : NULL;
    if (better != NULL) {
        dlclose(library.handle);
        SEQLSTM_TRY(open_as(better, &second, &library, err));
    }
    /* Another library may have loaded OpenBLAS with threads. This plugin divides the work itself. */
    library.set_threads(1);
    atomic_store(&core_name, library.get_core());
    atomic_store(&sgemv_entry, library.sgemv);
    atomic_store(&sgemm_entry, library.sgemm);
    return SEQLSTM_OK;
}

seqlstm_status blas_openblas_load(const char *core, struct seqlstm_error *err)
{
    pthread_mutex_lock(&load_lock);
    seqlstm_status status = SEQLSTM_OK;
    if (atomic_load(&sgemm_entry) == NULL)
        status = load_locked(core, err);
    pthread_mutex_unlock(&load_lock);
    if (status != SEQLSTM_OK || strcmp(core, "auto") == 0 || strcmp(core, "environment") == 0)
        return status;
    if (strcasecmp(core, blas_openblas_core()) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "openblas_core is %s, but OpenBLAS was loaded with the kernels of %s",
                     core, blas_openblas_core());
    return SEQLSTM_OK;
}

const char *blas_openblas_core(void)
{
    const char *name = atomic_load(&core_name);
    return name != NULL ? name : "";
}

void cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans_a, enum CBLAS_TRANSPOSE trans_b, blasint m,
                 blasint n, blasint k, float alpha, const float *a, blasint lda, const float *b, blasint ldb,
                 float beta, float *c, blasint ldc)
{
    sgemm_fn *entry = atomic_load_explicit(&sgemm_entry, memory_order_relaxed);
    entry(order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_sgemv(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, blasint m, blasint n, float alpha, const float *a,
                 blasint lda, const float *x, blasint incx, float beta, float *y, blasint incy)
{
    sgemv_fn *entry = atomic_load_explicit(&sgemv_entry, memory_order_relaxed);
    entry(order, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
}
