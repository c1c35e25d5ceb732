/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, help and exit codes. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/cli.h"

static _Atomic bool line_drawn; /* on the terminal that all messages go to */

void cli_set_line(void)
{
    line_drawn = true;
}

void cli_clear_line(void)
{
    if (atomic_exchange(&line_drawn, false))
        fputs("\r\033[K", stderr);
}

int cli_get_exit(seqlstm_status status)
{
    switch (status) {
    case SEQLSTM_OK:
        return CLI_OK;
    case SEQLSTM_INVALID_ARGUMENT:
    case SEQLSTM_INVALID_CONFIG:
    case SEQLSTM_NOT_FOUND:
        return CLI_USAGE;
    case SEQLSTM_UNSUPPORTED:
    case SEQLSTM_UNAVAILABLE:
    case SEQLSTM_ABI_MISMATCH:
        return CLI_MISSING;
    case SEQLSTM_CORRUPT_DATA:
        return CLI_DATA;
    case SEQLSTM_NUMERIC:
        return CLI_DIVERGED;
    case SEQLSTM_NO_MEMORY:
        return CLI_NO_MEMORY;
    default:
        return CLI_FAILURE;
    }
}

static const char *red(const struct cli_context *cli)
{
    return cli->color ? "\033[1;31merror\033[0m" : "error";
}

int cli_fail(const struct cli_context *cli, seqlstm_status status, const struct seqlstm_error *err)
{
    int stop = sl_interrupt_get_stop(cli->interrupt);
    if (status == SEQLSTM_CANCELLED && stop)
        return 128 + stop;
    if (status == SEQLSTM_IO && err->native_code == EPIPE) /* the reader of stdout has seen enough */
        return CLI_OK;
    cli_clear_line();
    if (cli->diagnostics && sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_ERROR) > 0) {
        cli_show_diagnostics(cli);
        return cli_get_exit(status);
    }
    fprintf(stderr, "%s: %s\n", red(cli), err->message[0] ? err->message : "unknown error");
    /* `where` is a place of the user's for model errors, and one of the program's otherwise */
    bool users = strstr(err->where, ".c:") == NULL;
    if (err->where[0] && (users || cli->verbosity > 0))
        fprintf(stderr, "  --> %s\n", err->where);
    return cli_get_exit(status);
}

int cli_usage_error(const struct cli_context *cli, const char *format, ...)
{
    cli_clear_line();
    fprintf(stderr, "%s: ", red(cli));
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return CLI_USAGE;
}

void cli_note(const struct cli_context *cli, const char *format, ...)
{
    if (cli->verbosity < 0)
        return;
    cli_clear_line();
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void cli_note_lines(const struct cli_context *cli, const char *lines)
{
    for (const char *end; (end = strchr(lines, '\n')) != NULL; lines = end + 1)
        cli_note(cli, "%.*s", (int)(end - lines), lines);
}

void cli_show_diagnostics(const struct cli_context *cli)
{
    struct sl_buf buf = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_ERROR) +
            (cli->verbosity < 0 ? 0 : sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_WARNING)) ==
        0)
        return;
    if (sl_diagnostics_render(cli->diagnostics, cli->color, &buf, &err) == SEQLSTM_OK && buf.data)
        fwrite(buf.data, 1, buf.length_bytes, stderr);
    sl_buf_deinit(&buf);
    sl_diagnostics_forget(cli->diagnostics);
}

bool cli_write_out(const struct cli_context *cli, const struct sl_buf *buf)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status =
        buf->failed ? seqlstm_error_set(&err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the output")
                    : cli_put(buf->data, buf->length_bytes, true, &err);
    return status == SEQLSTM_OK || cli_fail(cli, status, &err) == CLI_OK;
}

seqlstm_status cli_put(const void *data, size_t bytes, bool flush, struct seqlstm_error *err)
{
    if ((bytes == 0 || fwrite(data, 1, bytes, stdout) == bytes) && (!flush || fflush(stdout) == 0))
        return SEQLSTM_OK;
    int code = errno;
    seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "cannot write to stdout: %s", strerror(code));
    if (err)
        err->native_code = code;
    return SEQLSTM_IO;
}

int cli_write_json(const struct cli_context *cli, struct json_t *root)
{
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    struct sl_buf buf = {0};
    if (text)
        sl_buf_printf(&buf, "%s\n", text);
    else
        buf.failed = true;
    free(text);
    int code = cli_write_out(cli, &buf) ? CLI_OK : CLI_FAILURE;
    sl_buf_deinit(&buf);
    return code;
}

int cli_get_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20)
        return size.ws_col;
    return 80;
}

static void print_flags(const char *title, const struct cli_flag *flags, FILE *out)
{
    if (flags == NULL || flags->name == NULL)
        return;
    fprintf(out, "\n%s\n", title);
    for (const struct cli_flag *flag = flags; flag->name; flag++) {
        char left[64];
        int used = flag->letter ? snprintf(left, sizeof left, "  -%c, --%s", flag->letter, flag->name)
                                : snprintf(left, sizeof left, "      --%s", flag->name);
        if (flag->argument)
            snprintf(left + used, sizeof left - (size_t)used, " %s", flag->argument);
        fprintf(out, "%-28s  %s", left, flag->help);
        if (flag->env)
            fprintf(out, "  [%s]", flag->env);
        fputc('\n', out);
    }
}

void cli_print_help(const struct cli_command *command, FILE *out, bool color)
{
    (void)color;
    fprintf(out, "seqlstm %s: %s\n\nUsage: seqlstm %s%s%s\n", command->name, command->summary, command->name,
            command->usage[0] ? " " : "", command->usage);
    if (command->examples)
        fprintf(out, "\nExamples\n%s", command->examples);
    if (command->text)
        fprintf(out, "\n%s", command->text);
    print_flags("Flags", command->flags, out);
    if (command->takes_model_flags)
        print_flags("Model flags", cli_get_model_flags(), out);
    if (command->takes_backend_flags)
        print_flags("Backend flags", cli_get_backend_flags(), out);
    print_flags("Common flags", cli_get_common_flags(), out);
}

void cli_print_overview(FILE *out, bool color)
{
    (void)color;
    fprintf(out, "seqlstm trains and runs sequence LSTM models described in a YAML file.\n\n"
                 "Examples\n"
                 "  seqlstm run model.yaml             train, evaluate, save\n"
                 "  seqlstm plan model.yaml            which backend runs which layer, and why\n"
                 "  seqlstm eval runs/NAME/001         metrics of a saved run\n\n"
                 "Commands\n");
    for (const struct cli_command *const *command = cli_get_commands(); *command; command++)
        fprintf(out, "  %-13s  %s\n", (*command)->name, (*command)->summary);
    fprintf(out, "\n`seqlstm help COMMAND` shows the details of a command.\n");
}
