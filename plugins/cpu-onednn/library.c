/* SPDX-License-Identifier: Apache-2.0 */
/* Opens oneDNN. The table `odn` is written once, under the lock, before any operation exists. */
#include "cpu-onednn/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

/* Primitives that the library keeps for itself, so that operations with the same shapes share them. Each takes about
 * 0.15 MB; its default of 1024 is what a process would grow by while ever new shapes come. */
enum { SHARED_MOST = 128 };

struct odn_functions odn;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static char version_text[32];
static int (*get_max_threads)(void);
static void (*set_num_threads)(int);

/* Stores the function in the pointer at `out`. ISO C has no cast between pointers to functions and pointers to data. */
static void find(void *library, const char *name, void *out, const char **missing)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL && *missing == NULL)
        *missing = name;
    memcpy(out, &symbol, sizeof symbol);
}

static seqlstm_status check_build(const dnnl_version_t *version, const char *name, struct seqlstm_error *err)
{
    snprintf(version_text, sizeof version_text, "%d.%d.%d", version->major, version->minor, version->patch);
    if (version->major != DNNL_VERSION_MAJOR)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s is oneDNN %s, expected major version %d", name, version_text,
                     DNNL_VERSION_MAJOR);
    if (version->cpu_runtime != DNNL_RUNTIME_OMP && version->cpu_runtime != DNNL_RUNTIME_SEQ)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "%s (oneDNN %s) runs on TBB or a thread pool, expected a build for OpenMP", name, version_text);
    return SEQLSTM_OK;
}

static seqlstm_status load_locked(const char *file, struct seqlstm_error *err)
{
    const char *name = strcmp(file, "auto") == 0 ? "libdnnl.so." TEXT(DNNL_VERSION_MAJOR) : file;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror();
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "oneDNN cannot be loaded: %s", reason != NULL ? reason : name);
    }
    const char *missing = NULL;
    find(library, "dnnl_version", &odn.version, &missing);
    seqlstm_status status = SEQLSTM_OK;
    if (missing == NULL)
        status = check_build(odn.version(), name, err);
    if (missing == NULL && status == SEQLSTM_OK) {
#define FIND(function) find(library, "dnnl_" #function, &odn.function, &missing);
        ODN_FUNCTIONS(FIND)
#undef FIND
        if (odn.version()->cpu_runtime == DNNL_RUNTIME_OMP) {
            find(library, "omp_get_max_threads", &get_max_threads, &missing);
            find(library, "omp_set_num_threads", &set_num_threads, &missing);
        }
    }
    if (missing != NULL)
        status =
            seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "%s has no function %s", name, missing);
    if (status != SEQLSTM_OK)
        dlclose(library);
    return status;
}

/* The user's own limit stays. */
static void limit_cache(void)
{
    if (getenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY") == NULL && getenv("DNNL_PRIMITIVE_CACHE_CAPACITY") == NULL)
        odn.set_primitive_cache_capacity(SHARED_MOST);
}

seqlstm_status odn_library_load(const char *file, struct seqlstm_error *err)
{
    pthread_mutex_lock(&load_lock);
    seqlstm_status status = loaded ? SEQLSTM_OK : load_locked(file, err);
    if (!loaded && status == SEQLSTM_OK)
        limit_cache();
    loaded = status == SEQLSTM_OK;
    pthread_mutex_unlock(&load_lock);
    return status;
}

const char *odn_library_version(void)
{
    return version_text;
}

int odn_threads_set(int threads)
{
    if (set_num_threads == NULL)
        return 1;
    const int before = get_max_threads();
    if (before != threads)
        set_num_threads(threads);
    return before;
}

static void multiply(void)
{
    enum { N = 64 };
    static float a[N * N], b[N * N], c[N * N];
    (void)odn.sgemm('N', 'N', N, N, N, 1, a, N, b, N, 0, c, N);
    (void)odn.sgemm('N', 'T', N, N, N, 1, a, N, b, N, 1, c, N);
    (void)odn.sgemm('T', 'N', N, N, N, 1, a, N, b, N, 0, c, N);
}

void odn_library_warm_up(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, multiply);
}
