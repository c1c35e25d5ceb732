/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of streams on one thread neither allocate memory, nor take a lock, nor make a system call: the program counts
 * the calls of the allocator and of locks itself, and a child process takes its steps where the kernel ends it at the
 * first system call. On cpu-onednn no code of ours allocates, while oneDNN does in each call. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/seqlstm.h>

#include "ok.h"
#include "scratch.h"

/* ---- counted calls ---------------------------------------------------------------------------------------------- */

static _Thread_local bool counts;
static _Thread_local int64_t allocations, locks;
static _Thread_local int64_t of_onednn; /* allocations by oneDNN, which is in C++ */

static void count_allocation(const void *caller)
{
    Dl_info info;
    if (!counts)
        return;
    counts = false; /* below */
    const bool known = dladdr(caller, &info) != 0;
    counts = true;
    if (known && (strstr(info.dli_fname, "libdnnl") || strstr(info.dli_fname, "libstdc++")))
        of_onednn++;
    else
        allocations++;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    count_allocation(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    count_allocation(__builtin_return_address(0));
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    count_allocation(__builtin_return_address(0));
    return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count_allocation(__builtin_return_address(0));
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    count_allocation(__builtin_return_address(0));
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    if (real == NULL) {
        void *found = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        memcpy(&real, &found, sizeof real);
    }
    locks += counts;
    return real(mutex);
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

enum { STREAMS = 24, WIDTH = 16, CALLS = 20000 };

/* What every test uses. */
struct prepared {
    struct seqlstm_session *session;
    struct seqlstm_predictor *predictor;
    struct seqlstm_context *context;
    struct seqlstm_stream *streams[STREAMS];
};

/* A run of its own for each list of backends. */
static void prepare_on(const char *backends, struct prepared *p)
{
    static int runs;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_predictor_options wanted = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    char out[256];
    FILE *file = fopen(scratch_path("m.yaml"), "w");
    assert_non_null(file);
    fprintf(file,
            "seqlstm: 1\nseed: 1\ndata:\n  type: generator\n  name: adding_problem\n  length: [5, 9]\n"
            "  train: {size: 32}\n  batch_size: 8\nmodel:\n  - {type: lstm, units: 20, return_sequences: true}\n"
            "  - {type: gru, units: 17}\n  - {type: dense, units: 9, activation: tanh}\n  - {type: dense, units: "
            "from_target}\ntrain: {epochs: 1, loss: mse}\nbackends: [%s]\ndispatch: {policy: order}\n",
            backends);
    fclose(file);
    snprintf(out, sizeof out, "%s-%d", scratch_path("run"), runs++);
    options.out_dir = out;
    options.threads = 1;
    wanted.streams = WIDTH;
    wanted.stream_steps = 4;
    ok(seqlstm_open_model(scratch_path("m.yaml"), &options, &p->session, &err), &err);
    ok(seqlstm_train(p->session, NULL, NULL, &err), &err);
    ok(seqlstm_predictor_open(p->session, &wanted, &p->predictor, &err), &err);
    ok(seqlstm_context_open(p->predictor, &p->context, &err), &err);
    for (int s = 0; s < STREAMS; s++)
        ok(seqlstm_stream_open(p->predictor, &p->streams[s], &err), &err);
}

static void close_all(struct prepared *p)
{
    for (int s = 0; s < STREAMS; s++)
        seqlstm_stream_close(p->streams[s]);
    seqlstm_context_close(p->context);
    seqlstm_predictor_close(p->predictor);
    seqlstm_close(p->session);
}

static int prepare(void **state)
{
    static struct prepared p;
    scratch_make(state);
    prepare_on("cpu-blas", &p);
    *state = &p;
    return 0;
}

static int finish(void **state)
{
    close_all(*state);
    return scratch_remove(state);
}

/* Steps of every kind. Returns false at the first error. */
static bool run(const struct prepared *p, int calls)
{
    static const float x[STREAMS * 2] = {0.5f, 1};
    static float y[STREAMS];
    for (int c = 0; c < calls; c++) {
        if (seqlstm_stream_step(p->context, p->streams[c % STREAMS], x, 1, y, NULL) != SEQLSTM_OK ||
            seqlstm_stream_step(p->context, p->streams[0], x, 6, y, NULL) != SEQLSTM_OK)
            return false;
        if (c % 16 == 0 && seqlstm_streams_step(p->context, p->streams, STREAMS, x, y, NULL) != SEQLSTM_OK)
            return false;
    }
    return true;
}

static void steps_do_not_allocate(void **state)
{
    const struct prepared *p = *state;
    assert_true(run(p, 2)); /* every shape that comes below */
    counts = true;
    void *volatile block = malloc(1);
    free(block);
    assert_int_equal(allocations, 1); /* it does count */
    allocations = locks = 0;
    const bool well = run(p, CALLS);
    counts = false;
    assert_true(well);
    assert_int_equal(allocations, 0);
    assert_int_equal(locks, 0);
}

/* ---- oneDNN ------------------------------------------------------------------------------------------------------ */

/* Before calls 1, 2, 4, 8, … of a function with a new shape, the host notes the state of the process: a few allocations
 * each time. */
enum { CHECKED_STEPS = 4000, CHECKS_MOST = 100 };

/* More widths in turn than shapes are kept, so that bindings change. */
static bool step_in_widths(const struct prepared *p, int calls)
{
    static const float x[STREAMS * 2] = {0.5f, 1};
    static float y[STREAMS];
    for (int c = 0; c < calls; c++)
        if (seqlstm_streams_step(p->context, p->streams, 1 + c % WIDTH, x, y, NULL) != SEQLSTM_OK)
            return false;
    return true;
}

static bool has_onednn(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/backends/libseqlstm_backend_cpu-onednn.so",
             getenv("SEQLSTM_BUILD") ? getenv("SEQLSTM_BUILD") : "build");
    return access(path, R_OK) == 0 && dlopen("libdnnl.so.2", RTLD_NOW) != NULL;
}

static void steps_on_onednn_allocate_nothing_of_ours(void **state)
{
    (void)state;
    struct prepared p = {NULL};
    if (!has_onednn()) {
        print_message("no cpu-onednn here: not tested\n");
        return;
    }
    prepare_on("cpu-onednn, cpu-blas", &p);
    assert_true(step_in_widths(&p, 4 * WIDTH));
    allocations = of_onednn = 0;
    counts = true;
    const bool well = step_in_widths(&p, CHECKED_STEPS);
    counts = false;
    assert_true(well);
    print_message("# oneDNN itself allocated %.1f times a step\n", (double)of_onednn / CHECKED_STEPS);
    assert_true(of_onednn > 0); /* the calls did run on it */
    assert_in_range(allocations, 0, CHECKS_MOST);
    close_all(&p);
}

/* ---- system calls ----------------------------------------------------------------------------------------------- */

/* From now on only exit_group is allowed; the kernel ends the process at any other. False: not on this machine. */
static bool forbid_calls(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { NOT_HERE = 77 };

/* The status of a child that runs under the rules. `writes`: it makes a system call. */
static int run_child(const struct prepared *p, bool writes)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (!forbid_calls())
            _exit(NOT_HERE);
        if (writes)
            (void)getppid();
        _exit(run(p, CALLS) ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void steps_make_no_system_call(void **state)
{
    const struct prepared *p = *state;
    assert_true(run(p, 2));
    const int caught = run_child(p, true);
    if (WIFEXITED(caught) && WEXITSTATUS(caught) == NOT_HERE) {
        print_message("no rules for system calls on this machine: not tested\n");
        return;
    }
    assert_true(WIFSIGNALED(caught) && WTERMSIG(caught) == SIGSYS); /* the rules do hold */
    const int status = run_child(p, false);
    if (WIFSIGNALED(status))
        fail_msg("a step made a system call (signal %d)", WTERMSIG(status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_do_not_allocate),
        cmocka_unit_test(steps_make_no_system_call),
        cmocka_unit_test(steps_on_onednn_allocate_nothing_of_ours),
    };
    return cmocka_run_group_tests(tests, prepare, finish);
}
