/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, output on stdout, and exit codes. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <jansson.h>

#include "base/system/file_writer.h"
#include "base/value/json_write.h"
#include "base/value/printable.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "model/explain.h"

static _Atomic bool line_drawn; /* on the terminal, where messages go, too */

bool cli_draws_line(const struct cli_context *cli)
{
    const char *term = getenv("TERM");
    const bool terminal = isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
    return cli->verbosity >= 0 &&
           (cli->progress == CLI_PROGRESS_BAR || (cli->progress == CLI_PROGRESS_AUTO && terminal));
}

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

/* Writes the text with escapes in place of control characters, and frees nothing. Without memory for them, with `?`. */
static void write_shown(FILE *out, char *text, size_t bytes, const char *keep)
{
    struct sl_buf buf = {0};
    sl_printable_append(&buf, text, bytes, keep);
    for (size_t i = 0; buf.failed && i < bytes; i++)
        if (((unsigned char)text[i] < 0x20 || text[i] == 0x7f) && strchr(keep, text[i]) == NULL)
            text[i] = '?';
    fwrite(buf.failed ? text : sl_buf_text(&buf), 1, buf.failed ? bytes : buf.length_bytes, out);
    sl_buf_deinit(&buf);
}

static void say(FILE *out, const char *format, va_list args)
{
    char line[2048], *text = line;
    va_list again;
    va_copy(again, args);
    int length = sl_text_vsnprintf(line, sizeof line, format, args);
    if (length >= (int)sizeof line) {
        text = malloc((size_t)length + 1);
        if (text)
            sl_text_vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    text = text ? text : line;
    write_shown(out, text, strlen(text), "\n\t");
    if (text != line)
        free(text);
}

void cli_say(FILE *out, const char *format, ...)
{
    va_list args;
    if (out == stderr)
        cli_clear_line();
    va_start(args, format);
    say(out, format, args);
    va_end(args);
}

void cli_print_text(const struct cli_context *cli, const char *text)
{
    struct sl_buf named = {0};
    if (cli->diagnostics)
        sl_diagnostics_write_text(cli->diagnostics, text, &named);
    if (named.failed || named.length_bytes == 0)
        cli_say(stderr, "%s", text);
    else
        write_shown(stderr, named.data, named.length_bytes, "\n\t");
    sl_buf_deinit(&named);
}

void cli_print_error(const struct cli_context *cli, const char *code, const char *where, const char *text)
{
    const char *help = strstr(text, "; use ");
    struct sl_buf lines = {0};
    cli_clear_line();
    fprintf(stderr, "%serror[%s]%s: ", cli->color ? "\033[1;31m" : "", code, cli->color ? "\033[0m" : "");
    if (cli->is_rank && cli->rank.ranks > 1)
        sl_buf_printf(&lines, "rank %d: ", cli->rank.rank);
    sl_buf_printf(&lines, "%.*s\n", help ? (int)(help - text) : INT_MAX, text);
    if (where)
        sl_buf_printf(&lines, "  --> %s\n", where);
    if (help)
        sl_buf_printf(&lines, "  = help: %s\n", help + 2);
    cli_print_text(cli, lines.failed ? text : sl_buf_text(&lines));
    sl_buf_deinit(&lines);
}

int cli_fail(const struct cli_context *cli, seqlstm_status status, const struct seqlstm_error *err)
{
    int stop = sl_interrupt_get_stop(cli->interrupt);
    if (cli->is_rank && status == SEQLSTM_CANCELLED && err->native_code > 0)
        return CLI_OTHER_RANK;
    if (status == SEQLSTM_CANCELLED && stop)
        return 128 + stop;
    if (status == SEQLSTM_IO && err->native_code == EPIPE) /* the reader of stdout has closed it */
        return CLI_OK;
    cli_clear_line();
    if (cli->diagnostics && sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_ERROR) > 0) {
        cli_show_diagnostics(cli);
        return cli_get_exit(status);
    }
    /* for errors in a model file, `where` is a place in that file; otherwise in the source code */
    bool users = strstr(err->where, ".c:") == NULL;
    const char *where = err->where[0] && (users || cli->verbosity > 0) ? err->where : NULL;
    struct sl_buf message = {0}; /* one sentence: a line break in it is the data's */
    sl_printable_append(&message, err->message, strlen(err->message), "");
    cli_print_error(cli, sl_explain_get_code(status), where,
                    message.failed         ? "no memory for the message"
                    : message.length_bytes ? sl_buf_text(&message)
                                           : "it gave no reason");
    sl_buf_deinit(&message);
    return cli_get_exit(status);
}

/* The text of a message; freed with sl_buf_deinit. */
static struct sl_buf format_text(const char *format, va_list args)
{
    struct sl_buf text = {0};
    sl_buf_vprintf(&text, format, args);
    return text;
}

int cli_fail_memory(const struct cli_context *cli, const char *what)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    return cli_fail(cli, seqlstm_error_set(&err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", what),
                    &err);
}

int cli_usage_error(const struct cli_context *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct sl_buf text = format_text(format, args);
    va_end(args);
    cli_print_error(cli, "E0601", NULL, sl_buf_text(&text));
    sl_buf_deinit(&text);
    return CLI_USAGE;
}

void cli_note(const struct cli_context *cli, const char *format, ...)
{
    if (cli->verbosity < 0)
        return;
    va_list args;
    va_start(args, format);
    struct sl_buf text = format_text(format, args);
    va_end(args);
    sl_buf_append_char(&text, '\n');
    cli_clear_line();
    cli_print_text(cli, sl_buf_text(&text));
    sl_buf_deinit(&text);
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
    if (cli->mute && sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_ERROR) == 0) {
        sl_diagnostics_forget(cli->diagnostics);
        return;
    }
    if (sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_ERROR) +
            (cli->verbosity < 0 ? 0 : sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_WARNING)) ==
        0)
        return;
    if (sl_diagnostics_render(cli->diagnostics, cli->color, &buf, &err) == SEQLSTM_OK && buf.data)
        fwrite(buf.data, 1, buf.length_bytes, stderr);
    sl_buf_deinit(&buf);
    sl_diagnostics_forget(cli->diagnostics);
}

int cli_write_out(const struct cli_context *cli, const struct sl_buf *buf)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status =
        buf->failed ? seqlstm_error_set(&err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the output")
                    : cli_put_text(sl_buf_text(buf), buf->length_bytes, true, &err);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(cli, status, &err);
}

int cli_write_file(const struct cli_context *cli, const char *path, struct sl_buf *buf)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status =
        buf->failed ? seqlstm_error_set(&err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", path)
                    : sl_file_write(path, buf->data, buf->length_bytes, &err);
    sl_buf_deinit(buf);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(cli, status, &err);
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

seqlstm_status cli_put_text(const char *text, size_t bytes, bool flush, struct seqlstm_error *err)
{
    struct sl_buf shown = {0};
    sl_printable_append(&shown, text, bytes, "\n\t");
    seqlstm_status status =
        shown.failed ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the output")
                     : cli_put(shown.data, shown.length_bytes, flush, err);
    sl_buf_deinit(&shown);
    return status;
}

int cli_write_json(const struct cli_context *cli, struct json_t *root)
{
    struct sl_buf buf = {0};
    if (!sl_json_append_tree(&buf, root, 0))
        buf.failed = true;
    int code = cli_write_out(cli, &buf);
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
