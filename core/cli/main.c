/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up the process, finds the command and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/profilers/profilers.h"
#include "base/system/absolute_path.h"
#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/printable.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "model/explain.h"
#include "registry/watch/watch.h"

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

/* A command that has run for an hour would lose its results. */
static int check_written_files(struct cli_context *cli)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = SEQLSTM_OK;
    for (int i = 0; i < cli->values.count && status == SEQLSTM_OK; i++) {
        struct sl_file_writer *writer = NULL;
        if (!cli->values.items[i].flag->writes)
            continue;
        status = sl_file_writer_open(cli->values.items[i].value, &writer, &err);
        sl_file_writer_abort(writer);
    }
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(cli, status, &err);
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
    struct cli_context *cli = calloc(1, sizeof *cli);
    if (cli == NULL) {
        fprintf(stderr, "error[%s]: no memory for the command\n", sl_explain_get_code(SEQLSTM_NO_MEMORY));
        return CLI_NO_MEMORY;
    }
    cli->command = command;
    cli->interrupt = cli_get_interrupt();
    int code = cli_parse(cli, argc, argv);
    if (code == CLI_OK)
        code = read_common(cli);
    if (code == CLI_OK)
        code = name_paths(cli);
    const bool helps = cli_has(cli, "help");
    if (code == CLI_OK && helps)
        cli_print_help(command, stdout);
    else if (code == CLI_OK)
        code = check_written_files(cli);
    if (code == CLI_OK && !helps)
        code = command->run(cli);
    cli_release(cli);
    free(cli);
    return code;
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
    cli_set_commands(cli_commands);
    cli_set_vendor_threads();
    cli_handle_signals();
    cli_trap_plugins();
    sl_profilers_attach();
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
