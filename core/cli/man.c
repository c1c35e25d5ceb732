/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages in roff, written from the tables of commands and flags that --help prints. */
#include "cli/cli.h"

#include <ctype.h>
#include <string.h>

#include "base/config.h"

/* Text of a page: roff takes a backslash as the begin of an escape, and a line that begins with `.` or `'` as a
 * request. A hyphen that is to be copied is \-. */
static void append_text(struct sl_buf *out, const char *text, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        const bool first = k == 0 || text[k - 1] == '\n';
        if (first && (text[k] == '.' || text[k] == '\''))
            sl_buf_append_text(out, "\\&");
        if (text[k] == '\\')
            sl_buf_append_text(out, "\\e");
        else if (text[k] == '-')
            sl_buf_append_text(out, "\\-");
        else
            sl_buf_append_char(out, text[k]);
    }
}

static void append_line(struct sl_buf *out, const char *text)
{
    append_text(out, text, strlen(text));
    sl_buf_append_char(out, '\n');
}

/* "runs compare" → "seqlstm-runs-compare" */
static void append_page_name(struct sl_buf *out, const struct cli_command *command)
{
    sl_buf_append_text(out, "seqlstm-");
    for (const char *p = command->name; *p; p++)
        sl_buf_append_char(out, *p == ' ' ? '-' : *p);
}

/* The name in capitals, as titles of pages have it. NULL: the page of the program. */
static void append_title(struct sl_buf *out, const struct cli_command *command)
{
    struct sl_buf name = {0};
    if (command)
        append_page_name(&name, command);
    out->failed = out->failed || name.failed;
    sl_buf_append_text(out, ".TH ");
    for (const char *p = command ? sl_buf_text(&name) : "seqlstm"; *p; p++)
        sl_buf_append_char(out, (char)toupper((unsigned char)*p));
    sl_buf_printf(out, " 1 \"\" \"seqlstm %s\" \"User Commands\"\n", SL_VERSION);
    sl_buf_deinit(&name);
}

/* A block that keeps its lines. */
static void append_block(struct sl_buf *out, const char *text)
{
    sl_buf_append_text(out, ".nf\n");
    append_text(out, text, strlen(text));
    sl_buf_append_text(out, ".fi\n");
}

/* Those that the command offers; NULL: of the program. */
static void append_flags(struct sl_buf *out, const struct cli_command *command, const char *title,
                         const struct cli_flag *flags)
{
    if (flags == NULL || flags->name == NULL)
        return;
    sl_buf_printf(out, ".SH %s\n", title);
    for (const struct cli_flag *flag = flags; flag->name; flag++) {
        if (strncmp(flag->help, "internal", 8) == 0 || (command && !cli_offers(command, flag)))
            continue;
        sl_buf_append_text(out, ".TP\n");
        if (flag->letter)
            sl_buf_printf(out, "\\fB\\-%c\\fR, ", flag->letter);
        sl_buf_append_text(out, "\\fB\\-\\-");
        append_text(out, flag->name, strlen(flag->name));
        sl_buf_append_text(out, "\\fR");
        if (flag->argument)
            sl_buf_printf(out, " \\fI%s\\fR", flag->argument);
        sl_buf_append_char(out, '\n');
        append_line(out, flag->help);
        if (flag->env)
            sl_buf_printf(out, "(environment: %s)\n", flag->env);
    }
}

static void write_command(const struct cli_command *command, struct sl_buf *out)
{
    append_title(out, command);
    sl_buf_append_text(out, ".SH NAME\n");
    append_page_name(out, command);
    sl_buf_append_text(out, " \\- ");
    append_line(out, command->summary);
    sl_buf_printf(out, ".SH SYNOPSIS\n.B seqlstm %s\n", command->name);
    if (command->usage[0])
        append_line(out, command->usage);
    if (command->text) {
        sl_buf_append_text(out, ".SH DESCRIPTION\n");
        append_block(out, command->text);
    }
    append_flags(out, command, "FLAGS", command->flags);
    if (command->takes_model_flags)
        append_flags(out, command, "MODEL FLAGS", cli_get_model_flags());
    if (command->takes_backend_flags)
        append_flags(out, command, "BACKEND FLAGS", cli_get_backend_flags());
    append_flags(out, command, "COMMON FLAGS", cli_get_common_flags());
    if (command->examples) {
        sl_buf_append_text(out, ".SH EXAMPLES\n");
        append_block(out, command->examples);
    }
    sl_buf_append_text(out, ".SH SEE ALSO\n.BR seqlstm (1)\n");
}

static void write_overview(struct sl_buf *out)
{
    append_title(out, NULL);
    sl_buf_append_text(out, ".SH NAME\nseqlstm \\- train and run LSTM models that a YAML file describes\n"
                            ".SH SYNOPSIS\n.B seqlstm\n.I COMMAND\n[flags] [operands]\n"
                            ".SH DESCRIPTION\n"
                            "One YAML file describes a model, its data and its training. The commands below train, "
                            "evaluate and run it.\n"
                            ".SH COMMANDS\n");
    for (const struct cli_command *const *command = cli_get_commands(); *command; command++) {
        sl_buf_append_text(out, ".TP\n.BR ");
        struct sl_buf name = {0};
        append_page_name(&name, *command);
        append_text(out, sl_buf_text(&name), sl_buf_text_bytes(&name));
        out->failed = out->failed || name.failed;
        sl_buf_deinit(&name);
        sl_buf_append_text(out, " (1)\n");
        append_line(out, (*command)->summary);
    }
    append_flags(out, NULL, "COMMON FLAGS", cli_get_common_flags());
    sl_buf_append_text(out, ".SH EXIT STATUS\n"
                            "0: success. 1: failure, or a check found a problem. 2: wrong usage or configuration. "
                            "3: something is unavailable. 4: wrong data. 5: training diverged. 6: no memory. 75: time "
                            "limit reached, resume later. 128 + N: ended by signal N, and saved.\n"
                            ".SH EXAMPLES\n");
    append_block(out, "  seqlstm run model.yaml\n  seqlstm eval runs/NAME/001\n  seqlstm help run\n");
}

void cli_write_man(const struct cli_command *command, struct sl_buf *out)
{
    if (command)
        write_command(command, out);
    else
        write_overview(out);
}
