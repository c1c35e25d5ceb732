/* SPDX-License-Identifier: Apache-2.0 */
/* Starts workers, sends them cases and ends them. Processes are spawned, never forked, because shared objects with
 * threads of their own are loaded when a case runs.
 *
 * Invariants:
 *  1. pid is 0 if and only if both descriptors are -1.
 *  2. A worker that was killed or died has been waited for. */
#include "conformance/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/value/text.h"
#include "conformance/named_check.h"
#include "conformance/record_line.h"
#include "registry/watch/running.h"

extern char **environ;

enum { LINE_BYTES = 2048, RECORD_BYTES = 1 << 18, WALL_TIMES = 10, LOOK_MS = 200 };

struct sl_workers {
    const char *const *argv;
    int64_t timeout_ns;
    pid_t pid;
    int to, from;
    int shared;                /* an unnamed file, mapped by both sides */
    _Atomic uint32_t *running; /* in it: the function of the plugin that the worker runs; NULL: there is no such file */
};

static _Atomic uint32_t *map_running(int file)
{
    void *mapped = mmap(NULL, sizeof(_Atomic uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

seqlstm_status sl_workers_create(const char *const *argv, int64_t timeout_ns, struct sl_workers **out_workers,
                                 struct seqlstm_error *err)
{
    struct sl_workers *w = calloc(1, sizeof *w);
    if (!w)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the workers");
    w->argv = argv;
    w->timeout_ns = timeout_ns > 0 ? timeout_ns : INT64_C(60000000000);
    w->to = w->from = -1;
    w->shared = memfd_create("running", MFD_CLOEXEC);
    if (w->shared >= 0 && ftruncate(w->shared, sizeof *w->running) == 0)
        w->running = map_running(w->shared);
    *out_workers = w;
    return SEQLSTM_OK;
}

/* ---- one worker --------------------------------------------------------------------------------- */

static bool start(struct sl_workers *w)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    if (w->running)
        atomic_store(w->running, SL_FUNCTION_NONE);
    bool fine = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
    if (fine) {
        /* Moves our ends to numbers above those that the worker uses. */
        int far_in = fcntl(in[0], F_DUPFD_CLOEXEC, 16), far_out = fcntl(out[1], F_DUPFD_CLOEXEC, 16);
        int far_shared = fcntl(w->shared, F_DUPFD_CLOEXEC, 16);
        fine = far_in >= 0 && far_out >= 0 && posix_spawn_file_actions_adddup2(&actions, far_in, SL_WORKER_IN) == 0 &&
               posix_spawn_file_actions_adddup2(&actions, far_out, SL_WORKER_OUT) == 0 &&
               (far_shared < 0 || posix_spawn_file_actions_adddup2(&actions, far_shared, SL_WORKER_SHARED) == 0) &&
               posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) == 0 &&
               posix_spawn(&w->pid, w->argv[0], &actions, NULL, (char *const *)(uintptr_t)w->argv, environ) == 0;
        if (far_in >= 0)
            close(far_in);
        if (far_out >= 0)
            close(far_out);
        if (far_shared >= 0)
            close(far_shared);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (in[0] >= 0)
        close(in[0]);
    if (out[1] >= 0)
        close(out[1]);
    if (!fine) {
        if (in[1] >= 0)
            close(in[1]);
        if (out[0] >= 0)
            close(out[0]);
        w->pid = 0;
        return false;
    }
    w->to = in[1];
    w->from = out[0];
    return true;
}

/* Waits for a worker whose pipes are closed. One that does not end in time is killed. */
static int wait_for_end(struct sl_workers *w)
{
    int status = 0;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int64_t end = sl_clock_ns() + w->timeout_ns; sl_clock_ns() < end; nanosleep(&pause, NULL))
        if (waitpid(w->pid, &status, WNOHANG) == w->pid)
            return status;
    kill(w->pid, SIGKILL);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/* Closes the pipes and waits, after a kill if `kill_first` (for a worker that hangs). Returns the status of waitpid. */
static int stop(struct sl_workers *w, bool kill_first)
{
    int status = 0;
    if (w->pid == 0)
        return 0;
    if (kill_first)
        kill(w->pid, SIGKILL);
    close(w->to);
    close(w->from);
    status = wait_for_end(w);
    w->pid = 0;
    w->to = w->from = -1;
    return status;
}

void sl_workers_destroy(struct sl_workers *workers)
{
    if (!workers)
        return;
    stop(workers, false);
    if (workers->running)
        munmap((void *)workers->running, sizeof *workers->running);
    if (workers->shared >= 0)
        close(workers->shared);
    free(workers);
}

/* ---- lines ---------------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *text, size_t length)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigaction(SIGPIPE, &ignore, &old);
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        text += n;
        length -= (size_t)n;
    }
    sigaction(SIGPIPE, &old, NULL);
    return length == 0;
}

enum read_outcome { READ_LINE, READ_END, READ_LATE, READ_STUCK };

/* Limits for an answer. All zero: none. */
struct limit {
    pid_t pid;       /* the process of which the processor time counts */
    int64_t cpu_ns;  /* its processor time at the limit; 0: no limit */
    int64_t wall_ns; /* the limit by the clock */
};

/* Processor time of a process and its threads; 0 if it is unknown. */
static int64_t get_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Reads one line without its newline. Longer ones are cut. */
static enum read_outcome read_line(int fd, const struct limit *limit, char *line, size_t capacity_bytes)
{
    size_t length = 0;
    for (;;) {
        if (limit->cpu_ns && get_cpu_ns(limit->pid) >= limit->cpu_ns)
            return READ_LATE;
        if (limit->cpu_ns && sl_clock_ns() >= limit->wall_ns)
            return READ_STUCK;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int ready = poll(&p, 1, LOOK_MS);
        if (ready < 0 && errno != EINTR)
            return READ_END;
        if (ready <= 0)
            continue;
        char c;
        ssize_t n = read(fd, &c, 1);
        if (n == 0 || (n < 0 && errno != EINTR))
            return READ_END;
        if (n < 0)
            continue;
        if (c == '\n') {
            line[length] = 0;
            return READ_LINE;
        }
        if (length + 1 < capacity_bytes)
            line[length++] = c;
    }
}

/* Cuts off the next field of a line. */
static char *next_field(char **line)
{
    char *field = *line, *tab = strchr(field, '\t');
    if (tab) {
        *tab = 0;
        *line = tab + 1;
    } else {
        *line = field + strlen(field);
    }
    return field;
}

static bool parse_result(char *line, struct sl_check_result *out)
{
    char *verdict = next_field(&line), *worst = next_field(&line), *variant = next_field(&line);
    int v = 0;
    while (v < SL_VERDICT_COUNT && strcmp(verdict, sl_verdict_name((enum sl_verdict)v)) != 0)
        v++;
    if (v == SL_VERDICT_COUNT)
        return false;
    out->verdict = (enum sl_verdict)v;
    if (!sl_text_parse_float64(worst, strlen(worst), &out->worst))
        return false;
    sl_text_snprintf(out->variant, sizeof out->variant, "%s", variant);
    sl_text_snprintf(out->detail, sizeof out->detail, "%s", line);
    return true;
}

/* Sends a question to the worker and reads its answer. Starts a worker if there is none. */
static enum read_outcome ask(struct sl_workers *w, const char *name, char *answer, size_t capacity_bytes)
{
    char line[LINE_BYTES];
    int length = sl_text_snprintf(line, sizeof line, "%s\n", name);
    const struct limit limit = {.pid = w->pid,
                                .cpu_ns = get_cpu_ns(w->pid) + w->timeout_ns,
                                .wall_ns = sl_clock_ns() + WALL_TIMES * w->timeout_ns};
    return write_all(w->to, line, (size_t)length) ? read_line(w->from, &limit, answer, capacity_bytes) : READ_END;
}

/* Describes how a worker ended, and in which function of the plugin. */
static void describe_end(const struct sl_workers *w, enum read_outcome outcome, int status, char *text,
                         size_t capacity_bytes)
{
    uint32_t function = w->running ? atomic_load(w->running) : SL_FUNCTION_NONE;
    const char *in = function == SL_FUNCTION_NONE ? "" : " in its function ";
    const char *name = function == SL_FUNCTION_NONE ? "" : sl_plugin_function_name(function);
    if (outcome == READ_LATE)
        sl_text_snprintf(text, capacity_bytes, "no answer within %lld ms of processor time%s%s; the worker was killed",
                         (long long)(w->timeout_ns / 1000000), in, name);
    else if (outcome == READ_STUCK)
        sl_text_snprintf(text, capacity_bytes, "no answer within %lld ms, mostly waiting%s%s; the worker was killed",
                         (long long)(WALL_TIMES * w->timeout_ns / 1000000), in, name);
    else if (WIFSIGNALED(status))
        sl_text_snprintf(text, capacity_bytes, "the worker died of signal %d (%s)%s%s", WTERMSIG(status),
                         strsignal(WTERMSIG(status)), in, name);
    else
        sl_text_snprintf(text, capacity_bytes, "the worker ended with exit status %d%s%s", WEXITSTATUS(status), in,
                         name);
}

static bool is_started(struct sl_workers *w, char *text, size_t capacity_bytes)
{
    if (w->pid != 0 || start(w))
        return true;
    sl_text_snprintf(text, capacity_bytes, "the worker %s could not be started", w->argv[0]);
    return false;
}

void sl_workers_run(struct sl_workers *w, const char *name, struct sl_check_result *out_result)
{
    char line[LINE_BYTES];
    memset(out_result, 0, sizeof *out_result);
    out_result->verdict = SL_VERDICT_CRASH;
    if (!is_started(w, out_result->detail, sizeof out_result->detail))
        return;
    enum read_outcome outcome = ask(w, name, line, sizeof line);
    if (outcome == READ_LINE && parse_result(line, out_result))
        return;
    int status = stop(w, outcome != READ_END);
    out_result->verdict = SL_VERDICT_CRASH;
    describe_end(w, outcome, status, out_result->detail, sizeof out_result->detail);
}

seqlstm_status sl_workers_load(struct sl_workers *w, struct sl_arena *arena, struct sl_backend_record *out_record,
                               struct seqlstm_error *err)
{
    char why[400];
    char *line = malloc(RECORD_BYTES);
    if (line == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the workers");
    enum read_outcome outcome = READ_END;
    bool started = is_started(w, why, sizeof why);
    if (started)
        outcome = ask(w, SL_WORKER_RECORD, line, RECORD_BYTES);
    seqlstm_status status = SEQLSTM_INVALID_ARGUMENT;
    if (outcome == READ_LINE) {
        status = sl_record_line_parse(line, arena, out_record, err);
    } else {
        if (started)
            describe_end(w, outcome, stop(w, outcome != READ_END), why, sizeof why);
        seqlstm_error_set(err, status, __FILE__, __LINE__, "the backend was not loaded and opened: %s", why);
    }
    free(line);
    return status;
}

void sl_workers_end(struct sl_workers *w, struct sl_check_result *out_result)
{
    char line[LINE_BYTES];
    memset(out_result, 0, sizeof *out_result);
    out_result->verdict = SL_VERDICT_CRASH;
    if (!is_started(w, out_result->detail, sizeof out_result->detail))
        return;
    enum read_outcome outcome = ask(w, SL_WORKER_RECORD, line, sizeof line);
    int status = stop(w, outcome == READ_LATE || outcome == READ_STUCK);
    if (outcome == READ_LINE && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        out_result->verdict = SL_VERDICT_PASS;
    else
        describe_end(w, outcome, status, out_result->detail, sizeof out_result->detail);
}

/* ---- the worker's side ------------------------------------------------------------------------------ */

static bool answer_case(const char *name, struct sl_workbench *w, const struct sl_conformance_request *request, int out)
{
    struct sl_check_result result;
    char worst[SL_TEXT_NUMBER_BYTES], answer[LINE_BYTES];
    sl_named_check(w, request, name, &result);
    for (char *p = result.detail; *p; p++)
        if (*p == '\n' || *p == '\t')
            *p = ' ';
    sl_text_print_float64(worst, result.worst);
    int length = sl_text_snprintf(answer, sizeof answer, "%s\t%s\t%s\t%s\n", sl_verdict_name(result.verdict), worst,
                                  result.variant, result.detail);
    return write_all(out, answer, (size_t)length);
}

static bool answer_record(const struct sl_backend_record *record, seqlstm_status status, const char *message, int out)
{
    char *line = sl_record_line_print(record, status, message);
    bool written = line && write_all(out, line, strlen(line));
    free(line);
    return written;
}

void sl_worker_share(void)
{
    _Atomic uint32_t *running = map_running(SL_WORKER_SHARED);
    if (running)
        sl_running_mirror(running);
}

seqlstm_status sl_worker_serve(struct sl_workbench *w, const struct sl_conformance_request *request, int in, int out,
                               struct seqlstm_error *err)
{
    char line[LINE_BYTES];
    const struct limit none = {0};
    while (read_line(in, &none, line, sizeof line) == READ_LINE) {
        bool written = strcmp(line, SL_WORKER_RECORD) == 0 ? answer_record(&w->record, SEQLSTM_OK, "", out)
                                                           : answer_case(line, w, request, out);
        if (!written)
            SEQLSTM_FAIL(err, SEQLSTM_IO, "the other side has closed the pipe");
    }
    return SEQLSTM_OK;
}

bool sl_worker_refuse(const struct sl_backend_record *record, seqlstm_status status, const char *message, int in,
                      int out)
{
    char line[LINE_BYTES];
    const struct limit none = {0};
    return read_line(in, &none, line, sizeof line) == READ_LINE && answer_record(record, status, message, out);
}
