/* SPDX-License-Identifier: Apache-2.0 */
/* A case whose ranks another program starts, such as mpirun. Each rank writes what it finds to a file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/text.h"
#include "conformance/collectives/kit.h"

extern char **environ;

enum { ARGUMENTS_MOST = 64, TEXT_BYTES = 2200 };
static const int64_t second_ns = 1000000000;
static const int64_t end_ns = INT64_C(5) * 1000000000; /* in which all end after the death of a rank */

/* The files of a case. */
struct place {
    char folder[PATH_MAX - 32];
    char program[PATH_MAX];
    char ranks[16];
};

static void name_file(const char *folder, const char *name, char out[PATH_MAX])
{
    sl_text_snprintf(out, PATH_MAX, "%s/%s", folder, name);
}

static void name_result(const char *folder, int32_t rank, char out[PATH_MAX])
{
    char name[16];
    sl_text_snprintf(name, sizeof name, "%d", rank);
    name_file(folder, name, out);
}

/* ---- as a rank -------------------------------------------------------------------------------------------------- */

/* A launcher ends all ranks when one has ended without an end of MPI: so none leaves before all have written. */
static void wait_for_others(const char *folder, int32_t ranks)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const int64_t begin = sl_clock_ns();
    char path[PATH_MAX];
    for (int32_t r = 0; r < ranks && sl_clock_ns() - begin < 3 * second_ns; nanosleep(&pause, NULL)) {
        for (name_result(folder, r, path); r < ranks && sl_file_exists(path); name_result(folder, r, path))
            r++;
        name_file(folder, "died", path);
        r = r == ranks - 1 && sl_file_exists(path) ? ranks : r;
    }
}

seqlstm_status sl_trial_write(const struct sl_trial *trial, const char *folder, struct seqlstm_error *err)
{
    char path[PATH_MAX], text[TEXT_BYTES];
    name_result(folder, trial->rank, path);
    sl_text_snprintf(text, sizeof text, "%s%s\n%s", trial->failed ? "fail " : "pass", trial->detail, trial->report);
    SEQLSTM_TRY(sl_file_write(path, text, strlen(text), err));
    wait_for_others(folder, trial->ranks);
    return SEQLSTM_OK;
}

void sl_trial_note_death(const struct sl_trial *trial)
{
    char path[PATH_MAX], text[32];
    if (!trial->results)
        return;
    name_file(trial->results, "died", path);
    sl_text_snprintf(text, sizeof text, "%lld", (long long)sl_clock_ns());
    sl_file_write(path, text, strlen(text), NULL);
}

/* ---- the launcher ----------------------------------------------------------------------------------------------- */

static bool start(const struct sl_collectives_kit_request *request, const struct place *place, const char *name,
                  const char *job, pid_t *out_pid)
{
    const char *arguments[ARGUMENTS_MOST];
    char log[PATH_MAX];
    int n = 0;
    posix_spawn_file_actions_t actions;
    for (int k = 0; request->launcher[k] && n < ARGUMENTS_MOST / 2; k++)
        arguments[n++] = request->launcher[k];
    arguments[n++] = "-n";
    arguments[n++] = place->ranks;
    arguments[n++] = place->program;
    for (int k = 1; request->worker[k] && n < ARGUMENTS_MOST - 8; k++)
        arguments[n++] = request->worker[k];
    const char *more[] = {"--job", job, "--case", name, "--results", place->folder, NULL};
    memcpy(arguments + n, more, sizeof more);
    name_file(place->folder, "log", log);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    int code = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    code = code ? code : posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    code = code ? code : posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    code =
        code ? code : posix_spawnp(out_pid, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    errno = code;
    return code == 0;
}

/* Waits for the launcher; false: it had to be ended. A launcher that gets SIGTERM ends its ranks. */
static bool wait_for_end(pid_t pid, int64_t last_ns, const struct sl_interrupt *interrupt)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    bool told = false;
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        const int64_t now = sl_clock_ns();
        if (!told && (now > last_ns || sl_interrupt_get_stop(interrupt))) {
            told = true;
            last_ns = now;
            kill(pid, SIGTERM);
        } else if (told && now > last_ns + 5 * second_ns) {
            kill(pid, SIGKILL);
        }
        nanosleep(&pause, NULL);
    }
    return !told;
}

/* ---- verdicts --------------------------------------------------------------------------------------------------- */

/* Reads a small file of the folder; empty if there is none. */
static void read_file(const char *path, char out[TEXT_BYTES])
{
    FILE *file = fopen(path, "re");
    const size_t bytes = file ? fread(out, 1, TEXT_BYTES - 1, file) : 0;
    out[bytes] = 0;
    if (file)
        fclose(file);
}

static void fail(struct sl_collectives_result *result, enum sl_verdict verdict, int32_t rank, const char *text)
{
    result->verdict = verdict;
    sl_text_snprintf(result->detail, sizeof result->detail, "rank %d: %.480s", rank, text);
}

/* After the death of the last rank, the launcher may have ended the others before they wrote. */
static void check_death(const struct place *place, int32_t ranks, struct sl_collectives_result *result)
{
    char path[PATH_MAX], text[TEXT_BYTES];
    name_file(place->folder, "died", path);
    read_file(path, text);
    if (text[0] == 0)
        fail(result, SL_VERDICT_FAIL, ranks - 1, "it has not died");
    else if (sl_clock_ns() - strtoll(text, NULL, 10) > end_ns)
        fail(result, SL_VERDICT_FAIL, ranks - 1, "its death was noticed too late");
}

static void judge(const struct sl_collectives_kit_request *request, const struct sl_trial_case *c,
                  const struct place *place, struct sl_collectives_result *result)
{
    char path[PATH_MAX], text[TEXT_BYTES];
    const bool dies = c->kind == SL_TRIAL_LAST_DIES;
    for (int32_t r = 0; r < request->ranks && result->verdict == SL_VERDICT_PASS; r++) {
        name_result(place->folder, r, path);
        read_file(path, text);
        const size_t line = strcspn(text, "\n");
        if (r == 0 && text[line])
            sl_text_snprintf(result->report, sizeof result->report, "%s", text + line + 1);
        text[line] = 0;
        if (strncmp(text, "fail ", 5) == 0) {
            fail(result, SL_VERDICT_FAIL, r, text + 5);
        } else if (strcmp(text, "pass") != 0 && !dies) {
            name_file(place->folder, "log", path);
            read_file(path, text);
            fail(result, SL_VERDICT_CRASH, r, text[0] ? text : "it wrote no result");
        }
    }
    if (dies && result->verdict == SL_VERDICT_PASS)
        check_death(place, request->ranks, result);
}

static bool make_place(struct place *place, int32_t ranks)
{
    const char *folder = getenv("TMPDIR");
    sl_text_snprintf(place->folder, sizeof place->folder, "%s/seqlstm-ranks-XXXXXX", folder ? folder : "/tmp");
    sl_text_snprintf(place->ranks, sizeof place->ranks, "%d", ranks);
    const ssize_t bytes = readlink("/proc/self/exe", place->program, sizeof place->program - 1);
    return bytes > 0 && mkdtemp(place->folder) != NULL;
}

static void remove_place(const struct place *place, int32_t ranks)
{
    char path[PATH_MAX];
    for (int32_t r = 0; r < ranks; r++) {
        name_result(place->folder, r, path);
        unlink(path);
    }
    name_file(place->folder, "died", path);
    unlink(path);
    name_file(place->folder, "log", path);
    unlink(path);
    rmdir(place->folder);
}

seqlstm_status sl_trial_launch(const struct sl_collectives_kit_request *request, const struct sl_trial_case *c,
                               struct sl_collectives_result *result, struct seqlstm_error *err)
{
    struct place place = {.folder = ""};
    char job[64];
    pid_t pid = 0;
    const int64_t begin = sl_clock_ns();
    sl_text_snprintf(job, sizeof job, "conformance-%d-%lld", (int)getpid(), (long long)begin);
    if (!make_place(&place, request->ranks))
        SEQLSTM_FAIL(err, SEQLSTM_IO, "no folder for the results of the ranks: %s", strerror(errno));
    const bool started = start(request, &place, c->name, job, &pid);
    const int code = errno;
    const bool ended = started && wait_for_end(pid, begin + request->timeout_ns, request->connection.interrupt);
    result->took_ns = sl_clock_ns() - begin;
    if (ended)
        judge(request, c, &place, result);
    remove_place(&place, request->ranks);
    if (!started)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "`%s` cannot be started: %s", request->launcher[0], strerror(code));
    if (sl_interrupt_get_stop(request->connection.interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the conformance test was interrupted");
    if (!ended) {
        result->verdict = SL_VERDICT_CRASH;
        sl_text_snprintf(result->detail, sizeof result->detail, "not all ranks had ended after %lld s",
                         (long long)(request->timeout_ns / second_ns));
    }
    return SEQLSTM_OK;
}
