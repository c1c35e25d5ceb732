/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up the process, finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/nvtx.h"
#include "base/system/path.h"
#include "base/value/printable.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "registry/watch/watch.h"

static struct sl_interrupt interrupt_flags; /* the one thing a signal handler may touch */

static volatile sig_atomic_t saves; /* this command saves before it exits */

void cli_save_on_signals(void)
{
    saves = 1;
}

/* First SIGINT, SIGTERM or SIGHUP: finish the update, save, exit. Second: exit at once. SIGUSR1: save and continue.
 * SIGQUIT keeps the action of the system, which ends the program at once: the way out where saving hangs. */
static void on_signal(int number)
{
    if (number == SIGUSR1) {
        atomic_store(&interrupt_flags.save, 1);
        return;
    }
    int before = 0;
    if (!saves || !atomic_compare_exchange_strong(&interrupt_flags.stop, &before, number))
        cli_leave(128 + number);
}

/* A signal that is ignored when the program starts stays ignored: that of `nohup`, those of a job in the background. */
static void handle(int number, const struct sigaction *action)
{
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, action, NULL);
}

static void install_handlers(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    handle(SIGINT, &action);
    handle(SIGTERM, &action);
    handle(SIGHUP, &action);
    handle(SIGUSR1, &action);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* writing beyond `ulimit -f` then fails with an error, as on a full disk */
}

static const char *own_variables[4]; /* set by the program, not by the user */
static int own_count;

static void set_variable(const char *name, const char *value)
{
    if (getenv(name) == NULL && setenv(name, value, 0) == 0)
        own_variables[own_count++] = name;
}

/* Thread variables of vendors' libraries, set before any thread or library exists: the cores belong to our thread pool.
 * Idle threads of a library must not spin for long, because they would slow down what runs next. libgomp's threads spin
 * for about 0.1 ms, which is longer than the pause between two parallel regions of one primitive: if they slept there,
 * a training step of 2 x 650 on two threads would take 25 % longer. */
static void set_vendor_threads(void)
{
    if (getenv("OMP_WAIT_POLICY") == NULL)
        set_variable("GOMP_SPINCOUNT", "3000");
    set_variable("OPENBLAS_NUM_THREADS", "1");
    set_variable("OMP_NUM_THREADS", "1");
    set_variable("OMP_WAIT_POLICY", "passive");
}

bool cli_has_set(const char *variable)
{
    for (int k = 0; k < own_count; k++)
        if (strcmp(own_variables[k], variable) == 0)
            return true;
    return false;
}

/* What the program is doing, on a terminal; the next message takes its place. */
static void show_status(const struct cli_context *cli, const char *message)
{
    char line[512];
    if (!cli_draws_line(cli))
        return;
    const size_t width = (size_t)cli_get_width() - 1,
                 bytes = sl_printable_copy(line, sizeof line, message, strlen(message), "");
    fprintf(stderr, "\r\033[K%.*s", (int)(bytes < width ? bytes : width), line);
    fflush(stderr);
    cli_set_line();
}

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    const struct cli_context *cli = context;
    if (level == SL_LOG_STATUS) {
        show_status(cli, message);
        return;
    }
    cli_clear_line();
    static const char *const colors[] = {"\033[1;31m", "\033[1;33m", "\033[1;36m", "\033[2m", "\033[2m"};
    if (level != SL_LOG_INFO)
        fprintf(stderr, "%s%s%s: ", cli->color ? colors[level] : "", sl_log_level_name(level),
                cli->color ? "\033[0m" : "");
    cli_print_text(cli, message);
    fputc('\n', stderr);
}

static bool wants_color(const struct cli_context *cli, int descriptor)
{
    const char *when = cli_get(cli, "color"), *force = getenv("FORCE_COLOR"), *term = getenv("TERM");
    if (when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    const char *none = getenv("NO_COLOR");
    if (none && *none)
        return false;
    if (force && *force)
        return true;
    return isatty(descriptor) && term && strcmp(term, "dumb") != 0;
}

static int read_common(struct cli_context *cli)
{
    static const char *const kinds[] = {"auto", "bar", "lines", "none"};
    const char *progress = cli_get(cli, "progress"), *color = cli_get(cli, "color");
    char said[CLI_GIVEN_BYTES];
    if (color && strcmp(color, "auto") && strcmp(color, "always") && strcmp(color, "never")) {
        cli_format_given(cli, "color", said);
        return cli_usage_error(cli, "`%s`: expected auto, always or never", said);
    }
    int kind = 0;
    while (progress && kind < 4 && strcmp(progress, kinds[kind]) != 0)
        kind++;
    if (kind == 4) {
        cli_format_given(cli, "progress", said);
        return cli_usage_error(cli, "`%s`: expected auto, bar, lines or none", said);
    }
    cli->progress = (enum cli_progress)kind;
    cli->json = cli_has(cli, "json");
    cli->color = wants_color(cli, STDERR_FILENO);
    for (int i = 0; i < cli->values.count; i++)
        cli->verbosity += strcmp(cli->values.items[i].flag->name, "verbose") == 0;
    if (cli_has(cli, "quiet"))
        cli->verbosity = -1;
    cli->log = (struct sl_log){.write = write_log,
                               .context = cli,
                               .level = cli->verbosity < 0    ? SL_LOG_ERROR
                                        : cli->verbosity == 0 ? SL_LOG_INFO
                                        : cli->verbosity == 1 ? SL_LOG_DEBUG
                                                              : SL_LOG_TRACE};
    return CLI_OK;
}

static seqlstm_status name_path(struct cli_context *cli, const char *given, struct seqlstm_error *err)
{
    char *absolute = NULL;
    if (given == NULL || given[0] == '/' || !sl_file_exists(given))
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_path_absolute(given, &absolute, err));
    sl_diagnostics_add_path(cli->diagnostics, absolute, given);
    free(absolute);
    return SEQLSTM_OK;
}

/* Messages name paths as they were given on the command line, also where a library has made them absolute. */
static int name_paths(struct cli_context *cli)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_diagnostics_create(&cli->diagnostics, &err);
    for (int i = 0; i < cli->values.operand_count && status == SEQLSTM_OK; i++)
        status = name_path(cli, cli->values.operands[i], &err);
    for (int i = 0; i < cli->values.count && status == SEQLSTM_OK; i++)
        status = name_path(cli, cli->values.items[i].value, &err);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(cli, status, &err);
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
    struct cli_context *cli = calloc(1, sizeof *cli);
    if (cli == NULL)
        return CLI_NO_MEMORY;
    cli->command = command;
    cli->interrupt = &interrupt_flags;
    int code = cli_parse(cli, argc, argv);
    if (code == CLI_OK)
        code = read_common(cli);
    if (code == CLI_OK)
        code = name_paths(cli);
    if (code == CLI_OK && cli_has(cli, "help"))
        cli_print_help(command, stdout);
    else if (code == CLI_OK)
        code = command->run(cli);
    cli_release(cli);
    free(cli);
    return code;
}

/* Names of commands in other programs. */
static const char *find_other_name(const char *name)
{
    static const char *const others[][2] = {
        {"train", "run"},         {"fit", "run"},           {"start", "run"},        {"test", "eval"},
        {"evaluate", "eval"},     {"score", "eval"},        {"validate", "check"},   {"lint", "check"},
        {"infer", "predict"},     {"inference", "predict"}, {"forecast", "predict"}, {"classify", "predict"},
        {"translate", "predict"}, {"decode", "predict"},    {"sample", "generate"},  {"continue", "resume"},
        {"restart", "resume"},    {"compare", "ab"},        {"init", "new model"},   {"create", "new model"},
        {"convert", "import"},    {"load", "import"},       {"save", "export"},      {"show", "inspect"},
        {"summary", "inspect"},   {"devices", "backends"},  {"plugins", "backends"}, {"encode", "embed"},
        {"tune", "plan"},         {"stats", "data stats"},  {"list", "runs"},        {"ls", "runs"},
        {"tensorboard", "watch"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i][0]) == 0)
            return others[i][1];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (sl_text_closest(name, others[i], 1) != NULL)
            return others[i][1];
    return NULL;
}

int cli_refuse_command(const char *name)
{
    const struct cli_context plain = {.diagnostics = NULL};
    const char *names[64];
    size_t count = 0, words = strlen(name);
    const char *near = NULL;
    for (const struct cli_command *const *command = cli_get_commands(); *command; command++) {
        names[count++] = (*command)->name;
        if (strncmp((*command)->name, name, words) == 0 && (*command)->name[words] == ' ')
            near = (*command)->name; /* `name` is the first of two words */
    }
    if (near == NULL)
        near = sl_text_closest(name, names, count);
    if (near == NULL)
        near = find_other_name(name);
    if (near)
        return cli_usage_error(&plain, "no such command: `%s`\n  = help: did you mean `seqlstm %s`?", name, near);
    if (strstr(name, ".yaml") || strstr(name, ".yml"))
        return cli_usage_error(&plain, "no such command: `%s`\n  = help: `seqlstm run %s` trains it", name, name);
    return cli_usage_error(&plain, "no such command: `%s`\n  = help: `seqlstm help` lists the commands", name);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
        cli_print_overview(argc < 2 ? stderr : stdout);
        return argc < 2 ? CLI_USAGE : CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return run_command(cli_find_command("version"), 0, NULL);
    const struct cli_command *command = NULL;
    if (argc > 2 && argv[2][0] != '-') { /* commands of two words */
        char two[64];
        snprintf(two, sizeof two, "%.30s %.30s", argv[1], argv[2]);
        command = cli_find_command(two);
        if (command)
            return run_command(command, argc - 3, argv + 3);
    }
    command = cli_find_command(argv[1]);
    return command ? run_command(command, argc - 2, argv + 2) : cli_refuse_command(argv[1]);
}

/* If one of the first three descriptors is closed, the next file that is opened would get its number, and messages
 * would be written into that file. Opens /dev/null there: reading yields nothing, and writing to stdout fails. */
static void open_standard_files(void)
{
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    open_standard_files();
    set_vendor_threads();
    install_handlers();
    cli_trap_plugins();
    sl_nvtx_attach();
    int code = dispatch(argc, argv);
    int error = fflush(stdout) != 0 ? errno : sl_watch_get_output_error();
    if (error != 0 && error != EPIPE && code == CLI_OK) {
        fprintf(stderr, "error[E0608]: cannot write to stdout: %s\n", strerror(error));
        code = CLI_FAILURE;
    }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    cli_exit(code);
#else
    fflush(stderr);
    cli_leave(code); /* plugins stay mapped: do not run their destructors */
#endif
}
