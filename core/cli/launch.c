/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the ranks of a training on this machine, as processes of this program with the same arguments, and ends all of
 * them when one has failed. Signals go on to the ranks, which are a process group of their own.
 *
 * With --restarts, ranks of which one was killed are started again, to resume the run from its newest checkpoint. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "cli/restart.h"
#include "session/run_folder/run_name.h"

extern char **environ;

enum { ARGUMENTS_MOST = 1024, LOOK_MS = 100 };
static const int64_t second_ns = 1000000000;

struct launch {
    const struct cli_context *cli;
    int32_t ranks, alive;
    pid_t *pids; /* 0: it has ended */
    pid_t group;
    int code;          /* of the first rank that failed by itself */
    int64_t failed_ns; /* when a rank failed; 0: none has */
    bool killed;
    int folder_pipe[2]; /* through which rank 0 tells the folder of the run; -1: not wanted */
    bool was_killed;    /* the first failure is the death of a rank */
    bool stopped;       /* by a signal to this process */
    int64_t restarts;   /* that are left */
};

/* The arguments of this process; the strings lie behind each other in *out_text. */
static bool read_arguments(char **out_text, char **arguments)
{
    size_t bytes = 0;
    int count = 0;
    if (sl_file_read("/proc/self/cmdline", 1 << 24, out_text, &bytes, NULL) != SEQLSTM_OK)
        return false;
    for (size_t at = 0; at < bytes && count < ARGUMENTS_MOST; at += strlen(*out_text + at) + 1)
        arguments[count++] = *out_text + at;
    arguments[count] = NULL;
    return count > 0;
}

static bool set_number(const char *name, int64_t value)
{
    char text[24];
    sl_text_snprintf(text, sizeof text, "%lld", (long long)value);
    return setenv(name, text, 1) == 0;
}

static bool start_rank(struct launch *l, int32_t rank, char **arguments)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigset_t none;
    sigemptyset(&none);
    if (!set_number("SEQLSTM_RANK", rank) || posix_spawnattr_init(&attributes) != 0)
        return false;
    bool fine = posix_spawn_file_actions_init(&actions) == 0;
    if (fine) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setpgroup(&attributes, l->group);
        posix_spawnattr_setsigmask(&attributes, &none);
        if (rank > 0)
            fine = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0;
        fine = fine && posix_spawn(&l->pids[rank], "/proc/self/exe", &actions, &attributes, arguments, environ) == 0;
        posix_spawn_file_actions_destroy(&actions);
    }
    posix_spawnattr_destroy(&attributes);
    l->group = fine && rank == 0 ? l->pids[0] : l->group;
    l->alive += fine;
    return fine;
}

static bool start_all(struct launch *l, char **arguments)
{
    char job[64];
    sl_text_snprintf(job, sizeof job, "%d-%lld", (int)getpid(), (long long)sl_clock_ns());
    bool fine = set_number("SEQLSTM_RANKS", l->ranks) && set_number("SEQLSTM_LAUNCHER", getpid()) &&
                setenv("SEQLSTM_JOB", job, 1) == 0;
    for (int32_t r = 0; fine && r < l->ranks; r++) {
        if (r == 0 && l->restarts > 0)
            fine = cli_open_folder_pipe(l->folder_pipe);
        fine = fine && start_rank(l, r, arguments);
        if (r == 0)
            cli_keep_folder_pipe(l->folder_pipe);
    }
    return fine;
}

static void send_all(struct launch *l, int number)
{
    for (int32_t r = 0; r < l->ranks; r++)
        if (l->pids[r] > 0)
            kill(l->pids[r], number);
}

static void note_end(struct launch *l, int32_t rank, int status)
{
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    l->pids[rank] = 0;
    l->alive--;
    if (code == 0)
        return;
    if (l->failed_ns == 0)
        l->failed_ns = sl_clock_ns();
    if (l->code != 0 || code == CLI_OTHER_RANK || (WIFSIGNALED(status) && l->killed))
        return;
    l->code = code;
    l->was_killed = WIFSIGNALED(status);
    if (WIFSIGNALED(status) && (l->restarts == 0 || l->stopped)) {
        char said[200];
        sl_text_snprintf(said, sizeof said,
                         "rank %d was ended by signal %d (%s), so all ranks end; use `seqlstm resume`, which goes on "
                         "from the last checkpoint",
                         rank, WTERMSIG(status), strsignal(WTERMSIG(status)));
        cli_print_error(l->cli, "E0615", NULL, said);
    } else if (WIFSIGNALED(status)) {
        cli_clear_line();
        sl_log_printf(&l->cli->log, SL_LOG_WARN,
                      "rank %d was ended by signal %d (%s), so all ranks start again; %lld restart%s left after that",
                      rank, WTERMSIG(status), strsignal(WTERMSIG(status)), (long long)l->restarts - 1,
                      l->restarts == 2 ? " is" : "s are");
    }
}

/* A rank that does not end by itself, after the first failure: the user looks for its state, which is lost. */
static void say_killed(const struct launch *l, int64_t grace_ns)
{
    for (int32_t r = 0; r < l->ranks; r++)
        if (l->pids[r] > 0) {
            cli_clear_line();
            sl_log_printf(&l->cli->log, SL_LOG_WARN,
                          "rank %d did not end within %lld s after another one had, and was killed", r,
                          (long long)(grace_ns / second_ns));
        }
}

/* How long ranks may go on after the first failure. While every rank that has ended did so because of another one, that
 * one is still on its way out, and its exit code is wanted. */
static int64_t get_grace_ns(const struct launch *l)
{
    return (l->code != 0 ? 2 : 20) * second_ns;
}

static void reap(struct launch *l)
{
    int status;
    for (int32_t r = 0; r < l->ranks; r++)
        if (l->pids[r] > 0 && waitpid(l->pids[r], &status, WNOHANG) == l->pids[r])
            note_end(l, r, status);
    const int64_t grace_ns = get_grace_ns(l);
    if (l->alive > 0 && l->failed_ns > 0 && !l->killed && sl_clock_ns() - l->failed_ns > grace_ns) {
        l->killed = true;
        say_killed(l, grace_ns);
        send_all(l, SIGKILL);
    }
}

/* Ctrl-Z stops the ranks, too. */
static void stop_all(struct launch *l)
{
    send_all(l, SIGSTOP);
    raise(SIGSTOP);
    send_all(l, SIGCONT);
}

static void watch(struct launch *l, const sigset_t *signals)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    while (l->alive > 0) {
        siginfo_t info;
        const int number = sigtimedwait(signals, &info, &look);
        if (number == SIGTSTP)
            stop_all(l);
        else if (number > 0 && number != SIGCHLD) {
            l->stopped |= number != SIGUSR1;
            send_all(l, number);
        }
        reap(l);
    }
}

/* Starts all ranks and waits for their end. */
static void run_once(struct launch *l, char **arguments, const sigset_t *signals)
{
    l->group = 0;
    l->code = 0;
    l->failed_ns = 0;
    l->killed = l->was_killed = false;
    if (!start_all(l, arguments)) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_error_set(&err, SEQLSTM_IO, __FILE__, __LINE__, "the ranks cannot be started: %s", strerror(errno));
        l->code = cli_fail(l->cli, SEQLSTM_IO, &err);
        l->killed = true;
        send_all(l, SIGKILL);
    }
    watch(l, signals);
}

/* As long as ranks die and restarts are left. The first start has the arguments of this process. */
static void run_all(struct launch *l, const sigset_t *signals)
{
    char *text = NULL, *arguments[ARGUMENTS_MOST + 1], folder[CLI_FOLDER_BYTES] = "";
    const char *out = cli_get(l->cli, "out");
    if (!read_arguments(&text, arguments)) {
        l->code = cli_fail_memory(l->cli, "the arguments of ranks");
        return;
    }
    run_once(l, arguments, signals);
    while (l->was_killed && l->restarts > 0 && !l->stopped) {
        cli_read_folder(l->folder_pipe, folder);
        if (!folder[0] && out && sl_run_folder_is_run(out))
            sl_text_snprintf(folder, sizeof folder, "%s", out);
        l->restarts--;
        char **again = folder[0] ? cli_make_resume(l->cli, folder) : NULL;
        run_once(l, again ? again : arguments, signals);
        free(again);
    }
    cli_read_folder(l->folder_pipe, folder);
    free(text);
}

/* A blocked signal waits for sigtimedwait even if it is ignored, so those that are ignored stay out. */
static void block_signals(sigset_t *signals)
{
    static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGTSTP, SIGCHLD};
    struct sigaction action;
    sigemptyset(signals);
    for (size_t k = 0; k < sizeof passed / sizeof *passed; k++)
        if (sigaction(passed[k], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(signals, passed[k]);
    sigprocmask(SIG_BLOCK, signals, NULL);
}

int cli_launch_ranks(const struct cli_context *cli, int32_t ranks, int64_t restarts)
{
    struct launch l = {.cli = cli,
                       .ranks = ranks,
                       .pids = calloc((size_t)ranks, sizeof(pid_t)),
                       .folder_pipe = {-1, -1},
                       .restarts = restarts};
    sigset_t signals;
    if (!l.pids)
        return cli_fail_memory(cli, "the list of ranks");
    block_signals(&signals);
    run_all(&l, &signals);
    free(l.pids);
    return l.code != 0 ? l.code : l.failed_ns > 0 ? CLI_FAILURE : CLI_OK;
}

/* A rank ends with its launcher. */
static void follow_launcher(int32_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        cli_leave(CLI_FAILURE);
}

static const char *get_variable(const char *name)
{
    return getenv(name);
}

void cli_find_rank(struct cli_context *cli)
{
    cli->is_rank = sl_rank_identity_find(get_variable, &cli->rank);
    if (cli->is_rank && cli->rank.parent > 0)
        follow_launcher(cli->rank.parent);
}

void cli_begin_rank(struct cli_context *cli, const struct sl_model *model)
{
    const bool divided = sl_parallel_is_divided(&model->parallel);
    if (cli->is_rank && !divided && cli->rank.ranks > 1)
        sl_log_printf(&cli->log, SL_LOG_WARN,
                      "this is rank %d of %d that %s started, but the model has no `parallel`: each trains by itself",
                      cli->rank.rank, cli->rank.ranks, cli->rank.launcher);
    cli->is_rank = cli->is_rank && divided;
    if (!cli->is_rank || cli->rank.rank == 0)
        return;
    cli->verbosity = -1;
    cli->json = false;
    cli->log.level = SL_LOG_ERROR;
    cli->progress = CLI_PROGRESS_NONE;
}
