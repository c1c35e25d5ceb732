/* SPDX-License-Identifier: Apache-2.0 */
/* See kit.h. */
#include "conformance/collectives/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/value/text.h"

extern char **environ;

enum { ARGUMENTS_MOST = 48, TEXT_BYTES = 2200, LOOK_MS = 100, RESULT_FILE = 3 };

/* One rank of a case. */
struct worker {
    pid_t pid; /* 0: it has been waited for, or was not started */
    int from;  /* what it writes; -1: closed */
    int status;
    size_t bytes;
    char text[TEXT_BYTES];
};

/* ---- as a rank -------------------------------------------------------------------------------------------------- */

static const struct sl_trial_case *find_case(const char *name)
{
    for (const struct sl_trial_case *c = sl_trial_cases; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

seqlstm_status sl_collectives_kit_work(const struct sl_collectives_kit_request *request, const char *name, int32_t rank,
                                       const char *job, int out, struct seqlstm_error *err)
{
    const struct sl_trial_case *c = find_case(name);
    if (!c)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no case %.60s", name);
    struct sl_connection_request connection = request->connection;
    struct sl_trial trial = {.rank = rank, .ranks = request->ranks, .seed = request->seed, .results = request->results};
    connection.rank = rank;
    connection.ranks = connection.local_ranks = request->ranks;
    connection.device = rank;
    connection.job = job;
    connection.timeout_ns = request->timeout_ns;
    SEQLSTM_TRY(sl_connection_open(&connection, &trial.connection, err));
    trial.transport = sl_connection_get_transport(trial.connection);
    c->run(&trial);
    sl_connection_close(trial.connection);
    if (request->results)
        return sl_trial_write(&trial, request->results, err);
    dprintf(out, "%s%s\n%s", trial.failed ? "fail " : "pass", trial.detail, trial.report);
    return SEQLSTM_OK;
}

/* ---- the ranks of a case ---------------------------------------------------------------------------------------- */

/* 0, or the number of an error. */
static int start(const struct sl_collectives_kit_request *request, const char *name, int32_t rank, const char *job,
                 struct worker *out)
{
    const char *arguments[ARGUMENTS_MOST];
    char number[16];
    int n = 0, pipes[2];
    posix_spawn_file_actions_t actions;
    while (request->worker[n] && n < ARGUMENTS_MOST - 8) {
        arguments[n] = request->worker[n];
        n++;
    }
    sl_text_snprintf(number, sizeof number, "%d", rank);
    const char *more[] = {"--rank", number, "--job", job, "--case", name, NULL};
    memcpy(arguments + n, more, sizeof more);
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return errno;
    const int far = fcntl(pipes[1], F_DUPFD_CLOEXEC, 16);
    int code = far < 0 ? errno : posix_spawn_file_actions_init(&actions);
    close(pipes[1]);
    if (code == 0) {
        code = posix_spawn_file_actions_adddup2(&actions, far, RESULT_FILE);
        code = code ? code : posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
        if (code == 0)
            code = posix_spawn(&out->pid, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (far >= 0)
        close(far);
    if (code == 0)
        out->from = pipes[0];
    else
        close(pipes[0]);
    return code;
}

static void read_some(struct worker *w)
{
    char rest[64];
    const size_t room = sizeof w->text - 1 - w->bytes;
    const ssize_t n = room > 0 ? read(w->from, w->text + w->bytes, room) : read(w->from, rest, sizeof rest);
    if (n > 0) {
        w->bytes += room > 0 ? (size_t)n : 0;
    } else if (n == 0 || errno != EINTR) {
        close(w->from);
        w->from = -1;
    }
}

/* Reads until all have closed their pipes; false: the time is over. */
static bool collect(struct worker *workers, int32_t count, int64_t end_ns, const struct sl_interrupt *interrupt)
{
    for (;;) {
        bool open = false;
        for (int32_t r = 0; r < count; r++) {
            struct pollfd look = {.fd = workers[r].from, .events = POLLIN};
            if (look.fd >= 0 && poll(&look, 1, 0) > 0)
                read_some(&workers[r]);
            open |= workers[r].from >= 0;
        }
        if (!open)
            return true;
        if (sl_clock_ns() > end_ns || sl_interrupt_get_stop(interrupt))
            return false;
        const struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL);
    }
}

static void end_all(struct worker *workers, int32_t count, bool kills)
{
    for (int32_t r = 0; r < count; r++) {
        if (workers[r].pid > 0 && kills)
            kill(workers[r].pid, SIGKILL);
        while (workers[r].pid > 0 && waitpid(workers[r].pid, &workers[r].status, 0) < 0 && errno == EINTR)
            ;
        if (workers[r].from >= 0)
            close(workers[r].from);
    }
}

/* ---- verdicts --------------------------------------------------------------------------------------------------- */

static void judge(const struct sl_trial_case *c, struct worker *workers, int32_t count,
                  struct sl_collectives_result *result)
{
    for (int32_t r = 0; r < count && result->verdict == SL_VERDICT_PASS; r++) {
        struct worker *w = &workers[r];
        const size_t line = strcspn(w->text, "\n");
        if (r == 0 && w->text[line])
            sl_text_snprintf(result->report, sizeof result->report, "%s", w->text + line + 1);
        w->text[line] = 0;
        const bool killed = WIFSIGNALED(w->status);
        if (c->kind == SL_TRIAL_LAST_DIES && r == count - 1 && killed && WTERMSIG(w->status) == SIGKILL)
            continue;
        if (strncmp(w->text, "fail ", 5) == 0) {
            result->verdict = SL_VERDICT_FAIL;
            sl_text_snprintf(result->detail, sizeof result->detail, "rank %d: %s", r, w->text + 5);
        } else if (killed) {
            result->verdict = SL_VERDICT_CRASH;
            sl_text_snprintf(result->detail, sizeof result->detail, "rank %d ended by signal %d", r,
                             WTERMSIG(w->status));
        } else if (strcmp(w->text, "pass") != 0 || WEXITSTATUS(w->status) != 0) {
            result->verdict = SL_VERDICT_FAIL;
            sl_text_snprintf(result->detail, sizeof result->detail, "rank %d ended with status %d and said '%.200s'", r,
                             WEXITSTATUS(w->status), w->text);
        }
    }
}

static seqlstm_status run_case(const struct sl_collectives_kit_request *request, const struct sl_trial_case *c,
                               struct worker *workers, struct sl_collectives_result *result, struct seqlstm_error *err)
{
    char job[64];
    const int64_t begin = sl_clock_ns();
    int code = 0;
    memset(workers, 0, (size_t)request->ranks * sizeof *workers);
    sl_text_snprintf(job, sizeof job, "conformance-%d-%lld", (int)getpid(), (long long)begin);
    for (int32_t r = 0; r < request->ranks; r++)
        workers[r].from = -1;
    for (int32_t r = 0; code == 0 && r < request->ranks; r++)
        code = start(request, c->name, r, job, &workers[r]);
    const bool ended =
        code == 0 && collect(workers, request->ranks, begin + request->timeout_ns, request->connection.interrupt);
    end_all(workers, request->ranks, !ended);
    result->took_ns = sl_clock_ns() - begin;
    if (sl_interrupt_get_stop(request->connection.interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the conformance test was interrupted");
    if (code != 0)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "a rank cannot be started: %s", strerror(code));
    if (ended) {
        judge(c, workers, request->ranks, result);
    } else {
        result->verdict = SL_VERDICT_CRASH;
        sl_text_snprintf(result->detail, sizeof result->detail, "not all ranks had ended after %lld s",
                         (long long)(request->timeout_ns / 1000000000));
    }
    return SEQLSTM_OK;
}

static bool is_wanted(const struct sl_collectives_kit_request *request, const struct sl_trial_case *c)
{
    for (uint32_t i = 0; i < request->case_count; i++)
        if (strcmp(request->cases[i], c->name) == 0)
            return true;
    if (request->times || c->kind == SL_TRIAL_TIMES)
        return request->times && c->kind == SL_TRIAL_TIMES;
    return request->case_count == 0 && (request->full || c->kind != SL_TRIAL_LARGE);
}

seqlstm_status sl_collectives_kit_run(const struct sl_collectives_kit_request *request, struct seqlstm_error *err)
{
    for (uint32_t i = 0; i < request->case_count; i++)
        if (!find_case(request->cases[i]))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there is no case %.60s", request->cases[i]);
    struct worker *workers = calloc((size_t)request->ranks, sizeof *workers);
    if (!workers)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the ranks");
    seqlstm_status status = SEQLSTM_OK;
    for (const struct sl_trial_case *c = sl_trial_cases; c->name && status == SEQLSTM_OK; c++) {
        if (!is_wanted(request, c))
            continue;
        struct sl_collectives_result result = {.name = c->name, .verdict = SL_VERDICT_PASS};
        status =
            request->launcher ? sl_trial_launch(request, c, &result, err) : run_case(request, c, workers, &result, err);
        if (status == SEQLSTM_OK)
            request->on_result(request->context, &result);
    }
    free(workers);
    return status;
}
