/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that runs recurrent layers (the plain loop) and does one thing that no plugin may do: MISDEED=FUNCTION:WHAT
 * in the environment says where, and which. Without it the plugin is sound. test_misdeeds.py has the list. */
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <seqlstm/prim_loop_backend.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static const struct seqlstm_host *services;

/* Is `what` to be done in `function`? */
static int is_wanted(const char *function, const char *what)
{
    const char *wanted = getenv("MISDEED");
    size_t length = strlen(function);
    return wanted && strncmp(wanted, function, length) == 0 && wanted[length] == ':' &&
           strcmp(wanted + length + 1, what) == 0;
}

static void take_signal(int number)
{
    (void)number;
}

static void *wait_forever(void *argument)
{
    for (;;)
        pause();
    return argument;
}

static void change_numbers(const char *f)
{
    if (is_wanted(f, "round"))
        fesetround(FE_UPWARD);
    if (is_wanted(f, "traps"))
        feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
#if defined(__x86_64__)
    unsigned short single = 0x007F;
    if (is_wanted(f, "flush"))
        _mm_setcsr(_mm_getcsr() | 0x8040);
    if (is_wanted(f, "x87"))
        __asm__ volatile("fldcw %0" : : "m"(single));
#endif
}

static void change_process(const char *f)
{
    sigset_t all;
    sigfillset(&all);
    const struct rlimit few = {64, 64};
    if (is_wanted(f, "handler")) {
        signal(SIGTERM, take_signal);
        signal(SIGINT, SIG_IGN);
        signal(SIGSEGV, take_signal);
    }
    if (is_wanted(f, "pipe"))
        signal(SIGPIPE, SIG_DFL);
    if (is_wanted(f, "mask"))
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (is_wanted(f, "locale"))
        setlocale(LC_ALL, "C.UTF-8");
    if (is_wanted(f, "thread_locale"))
        uselocale(newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0));
    if (is_wanted(f, "folder") && chdir("/") != 0)
        abort();
    if (is_wanted(f, "environment"))
        setenv("HOME", "/nowhere", 1);
    if (is_wanted(f, "no_environment"))
        clearenv();
    if (is_wanted(f, "umask"))
        umask(0);
    if (is_wanted(f, "limit"))
        setrlimit(RLIMIT_NOFILE, &few);
    const struct itimerval soon = {.it_value = {.tv_sec = 3600}};
    if (is_wanted(f, "timer"))
        setitimer(ITIMER_REAL, &soon, NULL);
    if (is_wanted(f, "close"))
        close(STDERR_FILENO);
    for (int k = 0; is_wanted(f, "close_all") && k < 3; k++)
        close(k);
    for (int k = 3; is_wanted(f, "close_others") && k < 1024; k++)
        close(k);
    if (is_wanted(f, "close_stream"))
        fclose(stdout);
    if (is_wanted(f, "print")) {
        printf("{\"printed\": \"\033[31m%s\"}\n", f);
        fflush(stdout);
    }
    if (is_wanted(f, "complain"))
        fprintf(stderr, "slow path in %s\n", f);
}

/* Until the stack is full. */
static int dive(int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth > 0 ? dive(depth + 1) + room[0] : 0;
}

static void *leave_late(void *argument)
{
    usleep(20000); /* by then, `open` has returned */
    exit(0);
    return argument;
}

static void end_process(const char *f)
{
    volatile int *volatile nowhere = NULL;
    if (is_wanted(f, "crash"))
        *nowhere = 1;
    if (is_wanted(f, "abort"))
        abort();
    if (is_wanted(f, "exit"))
        exit(0);
    if (is_wanted(f, "_exit"))
        _exit(0);
    if (is_wanted(f, "quick_exit"))
        quick_exit(0);
    if (is_wanted(f, "at_exit"))
        atexit(abort);
    if (is_wanted(f, "exec"))
        execl("/bin/true", "true", (char *)NULL);
    if (is_wanted(f, "thread_exit"))
        pthread_exit(NULL);
    if (is_wanted(f, "fork"))
        (void)!fork();
    if (is_wanted(f, "deep"))
        dive(1);
}

static void allocate(const char *f)
{
    pthread_t thread;
    if (is_wanted(f, "keep") && services)
        (void)!services->allocate(services->context, 4096);
    if (is_wanted(f, "malloc"))
        free(memset(malloc(4096), 1, 4096));
    if (is_wanted(f, "late_exit"))
        pthread_create(&thread, NULL, leave_late, NULL);
    if (is_wanted(f, "thread"))
        pthread_create(&thread, NULL, wait_forever, NULL);
}

/* Does what is wanted in this function. Returns nonzero for "error": the function fails. */
static int misbehave(const char *function)
{
    change_numbers(function);
    change_process(function);
    end_process(function);
    allocate(function);
    return is_wanted(function, "error");
}

#define MISBEHAVE(function)                                                                                            \
    if (misbehave(function))                                                                                           \
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the %s is out of order", function)

/* ---- the functions ---------------------------------------------------------------------------------------------- */

static const struct seqlstm_prim prims[] = {{"plain", NULL, NULL, NULL, NULL}};

__attribute__((constructor)) static void load(void)
{
    misbehave("load");
}

static seqlstm_status open_it(const struct seqlstm_host *host, const struct seqlstm_setting *settings, uint32_t count,
                              struct seqlstm_instance **out_instance, struct seqlstm_error *err)
{
    services = host;
    MISBEHAVE("open");
    return is_wanted("open", "null") ? SEQLSTM_OK : seqlstm_prim_open(host, settings, count, out_instance, err);
}

static void close_it(struct seqlstm_instance *instance)
{
    misbehave("close");
    seqlstm_prim_close(instance);
}

static seqlstm_status device_count(struct seqlstm_instance *instance, uint32_t *out_count, struct seqlstm_error *err)
{
    MISBEHAVE("device_count");
    return seqlstm_prim_device_count(instance, out_count, err);
}

static seqlstm_status device_info(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_device_info *info,
                                  struct seqlstm_error *err)
{
    MISBEHAVE("device_info");
    SEQLSTM_TRY(seqlstm_prim_device_info(instance, device, info, err));
    if (is_wanted("device_info", "escape"))
        snprintf(info->name, sizeof info->name, "CPU \033[31mred\033]0;title\007");
    return SEQLSTM_OK;
}

static seqlstm_status supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                               struct seqlstm_error *err)
{
    MISBEHAVE("supports");
    if (is_wanted("supports", "escape")) {
        seqlstm_answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_NONE, "\033[31m", "no \033[2Jway");
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(seqlstm_prim_table_supports(prims, 1, device_class, desc, answer));
    if (is_wanted("supports", "variants"))
        answer->variant_count = SEQLSTM_MAX_VARIANTS + 1;
    return SEQLSTM_OK;
}

static seqlstm_status op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                                const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    MISBEHAVE("op_create");
    if (is_wanted("op_create", "null"))
        return SEQLSTM_OK;
    if (is_wanted("op_create", "refuse"))
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "it has changed its mind");
    return seqlstm_prim_table_create(prims, 1, instance, device, desc, variant, out_op, err);
}

static seqlstm_status op_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    MISBEHAVE("op_sizes");
    seqlstm_status status = seqlstm_prim_op_sizes(op, sizes, err);
    if (is_wanted("op_sizes", "most"))
        sizes->workspace_bytes = UINT64_MAX;
    if (is_wanted("op_sizes", "wrap"))
        sizes->reserve_bytes = UINT64_MAX - 100;
    if (is_wanted("op_sizes", "huge"))
        sizes->packed_bytes = (uint64_t)1 << 62;
    if (is_wanted("op_sizes", "large"))
        sizes->workspace_bytes = (uint64_t)1 << 44;
    if (is_wanted("op_sizes", "none"))
        sizes->workspace_bytes = sizes->reserve_bytes = 0;
    if (is_wanted("op_sizes", "half"))
        sizes->workspace_bytes /= 2;
    if (is_wanted("op_sizes", "half_reserve"))
        sizes->reserve_bytes /= 2;
    if (is_wanted("op_sizes", "capture"))
        sizes->capture = 77;
    return status;
}

static seqlstm_status op_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue, const struct seqlstm_bind *bind,
                              struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    MISBEHAVE("op_bind");
    return is_wanted("op_bind", "null") ? SEQLSTM_OK : seqlstm_prim_op_bind(op, queue, bind, out_binding, err);
}

static void flush_member(void *argument, int32_t member, int32_t members)
{
    (void)argument;
    (void)members;
    if (member > 0)
        change_numbers("member");
}

static seqlstm_status forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    MISBEHAVE("forward");
    queue->services->team(queue, flush_member, NULL);
    if (is_wanted("forward", "status"))
        return 4711;
    seqlstm_status status = seqlstm_prim_table_forward(binding, queue, args, err);
    if (is_wanted("forward", "beyond"))
        memset((float *)args->workspace + binding->scratch.elems, 0x5A, 256);
    float *h = args->slots[SEQLSTM_SLOT_RECURRENT_STATE(0, SEQLSTM_STATE_HN)];
    if (is_wanted("forward", "beyond_output"))
        memset(h + binding->axis->sequences * binding->op->desc.hidden, 0x5A, 4096);
    if (is_wanted("forward", "change_input"))
        *(float *)args->slots[SEQLSTM_SLOT_RECURRENT_X] += 1;
    if (is_wanted("forward", "nan"))
        h[0] = NAN;
    if (is_wanted("forward", "wrong"))
        h[0] += 0.25f;
    return status;
}

static seqlstm_status backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                               const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    MISBEHAVE("backward");
    seqlstm_status status = seqlstm_prim_table_backward(binding, queue, args, err);
    if (is_wanted("backward", "change_weight"))
        *(float *)args->slots[SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_X)] = 0;
    float *dx = args->grads[SEQLSTM_SLOT_RECURRENT_X];
    if (is_wanted("backward", "beyond_grad") && dx)
        memset(dx + binding->op->desc.head.max_rows * binding->op->desc.input, 0x5A, 4096);
    return status;
}

static void binding_destroy(struct seqlstm_binding *binding)
{
    misbehave("binding_destroy");
    seqlstm_prim_binding_destroy(binding);
}

static void op_destroy(struct seqlstm_op *op)
{
    misbehave("op_destroy");
    seqlstm_prim_op_destroy(op);
}

static const struct seqlstm_backend table = {.struct_size = (uint32_t)sizeof(struct seqlstm_backend),
                                             .magic = SEQLSTM_MAGIC,
                                             .abi_major = SEQLSTM_ABI_MAJOR,
                                             .abi_minor_needed = SEQLSTM_ABI_MINOR,
                                             .id = "misdeeds",
                                             .version = "0.1",
                                             .vendor = "seqlstm",
                                             .license = "Apache-2.0",
                                             .build = "plain C",
                                             .desc_count = SEQLSTM_OP_RECURRENT + 1,
                                             .desc_bytes = seqlstm_prim_desc_bytes,
                                             .open = open_it,
                                             .close = close_it,
                                             .device_count = device_count,
                                             .device_info = device_info,
                                             .supports = supports,
                                             .op_create = op_create,
                                             .op_sizes = op_sizes,
                                             .op_bind = op_bind,
                                             .forward = forward,
                                             .binding_destroy = binding_destroy,
                                             .op_destroy = op_destroy,
                                             .backward = backward};

SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);
SEQLSTM_EXPORT const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor)
{
    (void)host_minor;
    misbehave("query");
    return is_wanted("query", "null") ? NULL : &table;
}
