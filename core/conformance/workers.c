/* SPDX-License-Identifier: Apache-2.0 */
/* Spawning, feeding and burying workers. Processes are spawned, never forked: by the time a case runs,
 * shared objects with threads of their own are loaded.
 *
 * Invariants:
 *  1. pid is 0 exactly while both descriptors are -1.
 *  2. A worker that was killed or died has been waited for.
 */
#include "conformance/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/value/text.h"

extern char **environ;

enum { LINE_BYTES = 2048, WALL_TIMES = 10, LOOK_MS = 200 };

struct sl_workers {
    const char *const *argv;
    int64_t timeout_ns;
    pid_t pid;
    int to, from;
};

seqlstm_status sl_workers_create(const char *const *argv, int64_t timeout_ns, struct sl_workers **out_workers,
                                 struct seqlstm_error *err)
{
    struct sl_workers *w = calloc(1, sizeof *w);
    if (!w)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the workers");
    w->argv = argv;
    w->timeout_ns = timeout_ns > 0 ? timeout_ns : INT64_C(60000000000);
    w->to = w->from = -1;
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
    bool fine = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
    if (fine) {
        /* Our ends are beyond the numbers that the worker uses, whatever was free before. */
        int far_in = fcntl(in[0], F_DUPFD_CLOEXEC, 16), far_out = fcntl(out[1], F_DUPFD_CLOEXEC, 16);
        fine = far_in >= 0 && far_out >= 0 && posix_spawn_file_actions_adddup2(&actions, far_in, SL_WORKER_IN) == 0 &&
               posix_spawn_file_actions_adddup2(&actions, far_out, SL_WORKER_OUT) == 0 &&
               posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) == 0 &&
               posix_spawn(&w->pid, w->argv[0], &actions, NULL, (char *const *)(uintptr_t)w->argv, environ) == 0;
        if (far_in >= 0)
            close(far_in);
        if (far_out >= 0)
            close(far_out);
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

/* Closes the pipes and waits; `kill_first` for one that hangs. Returns the status of waitpid. */
static int stop(struct sl_workers *w, bool kill_first)
{
    int status = 0;
    if (w->pid == 0)
        return 0;
    if (kill_first)
        kill(w->pid, SIGKILL);
    close(w->to);
    close(w->from);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {
    }
    w->pid = 0;
    w->to = w->from = -1;
    return status;
}

void sl_workers_destroy(struct sl_workers *workers)
{
    if (!workers)
        return;
    stop(workers, false);
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

/* How long an answer may take. Zeroed: any time. */
struct limit {
    pid_t pid;       /* whose processor time counts */
    int64_t cpu_ns;  /* what it may have used at the end; 0: no limit */
    int64_t wall_ns; /* when it ends by the clock */
};

/* Processor time of a process and its threads; 0 when it cannot be known. */
static int64_t get_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (int64_t)t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* One line without its newline; longer ones are cut. */
static enum read_outcome read_line(int fd, const struct limit *limit, char line[LINE_BYTES])
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
        if (length + 1 < LINE_BYTES)
            line[length++] = c;
    }
}

/* Cuts the next field off a line. */
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

void sl_workers_run(struct sl_workers *w, const char *name, struct sl_check_result *out_result)
{
    char line[LINE_BYTES];
    memset(out_result, 0, sizeof *out_result);
    out_result->verdict = SL_VERDICT_CRASH;
    if (w->pid == 0 && !start(w)) {
        sl_text_snprintf(out_result->detail, sizeof out_result->detail, "the worker %s could not be started",
                         w->argv[0]);
        return;
    }
    int length = sl_text_snprintf(line, sizeof line, "%s\n", name);
    enum read_outcome outcome = READ_END;
    const struct limit limit = {.pid = w->pid,
                                .cpu_ns = get_cpu_ns(w->pid) + w->timeout_ns,
                                .wall_ns = sl_clock_ns() + WALL_TIMES * w->timeout_ns};
    if (write_all(w->to, line, (size_t)length))
        outcome = read_line(w->from, &limit, line);
    if (outcome == READ_LINE && parse_result(line, out_result))
        return;
    int status = stop(w, outcome != READ_END);
    out_result->verdict = SL_VERDICT_CRASH;
    if (outcome == READ_LATE)
        sl_text_snprintf(out_result->detail, sizeof out_result->detail,
                         "no answer within %lld ms of processor time; the worker was killed",
                         (long long)(w->timeout_ns / 1000000));
    else if (outcome == READ_STUCK)
        sl_text_snprintf(out_result->detail, sizeof out_result->detail,
                         "no answer within %lld ms, mostly waiting; the worker was killed",
                         (long long)(WALL_TIMES * w->timeout_ns / 1000000));
    else if (WIFSIGNALED(status))
        sl_text_snprintf(out_result->detail, sizeof out_result->detail, "the worker died of signal %d (%s)",
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        sl_text_snprintf(out_result->detail, sizeof out_result->detail, "the worker ended with exit status %d",
                         WEXITSTATUS(status));
}

/* ---- the worker's side ------------------------------------------------------------------------------ */

seqlstm_status sl_worker_serve(struct sl_bench *bench, int in, int out, struct seqlstm_error *err)
{
    char line[LINE_BYTES];
    const struct limit none = {0};
    while (read_line(in, &none, line) == READ_LINE) {
        struct sl_check_result result;
        struct sl_case c;
        char worst[SL_TEXT_NUMBER_BYTES], answer[LINE_BYTES];
        struct seqlstm_error why = SEQLSTM_ERROR_INIT;
        memset(&result, 0, sizeof result);
        if (sl_case_parse(line, &c, &why) != SEQLSTM_OK) {
            result.verdict = SL_VERDICT_FAIL;
            sl_text_snprintf(result.detail, sizeof result.detail, "%.500s", why.message);
        } else {
            sl_check_case(bench, &c, &result);
        }
        for (char *p = result.detail; *p; p++)
            if (*p == '\n' || *p == '\t')
                *p = ' ';
        sl_text_print_float64(worst, result.worst);
        int length = sl_text_snprintf(answer, sizeof answer, "%s\t%s\t%s\t%s\n", sl_verdict_name(result.verdict), worst,
                                      result.variant, result.detail);
        if (!write_all(out, answer, (size_t)length))
            SEQLSTM_FAIL(err, SEQLSTM_IO, "the other side has closed the pipe");
    }
    return SEQLSTM_OK;
}
