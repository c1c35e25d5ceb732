/* SPDX-License-Identifier: Apache-2.0 */
/* Help, printed from the tables of commands and flags. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

enum { HELP_COLUMN = 30, HELP_COLUMNS_LEAST = 60 };

/* The columns to wrap at; 0: `out` is no terminal, or too narrow. */
static int find_columns(FILE *out)
{
    struct winsize size;
    if (isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col >= HELP_COLUMNS_LEAST)
        return size.ws_col;
    return 0;
}

/* Prints the help of a flag from HELP_COLUMN on, broken between words into `columns`. */
static void print_wrapped(const char *text, int columns, FILE *out)
{
    int column = HELP_COLUMN;
    while (*text) {
        int word = (int)strcspn(text, " "), with_space = word + (int)strspn(text + word, " ");
        if (columns && column > HELP_COLUMN && column + word > columns) {
            fprintf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        fprintf(out, "%.*s", with_space, text);
        column += with_space;
        text += with_space;
    }
    fputc('\n', out);
}

static void print_flags(const struct cli_command *command, const char *title, const struct cli_flag *flags, FILE *out)
{
    if (flags == NULL || flags->name == NULL)
        return;
    const int columns = find_columns(out);
    fprintf(out, "\n%s\n", title);
    for (const struct cli_flag *flag = flags; flag->name; flag++) {
        char left[64], text[256];
        if (!cli_offers(command, flag))
            continue;
        int used = flag->letter ? snprintf(left, sizeof left, "  -%c, --%s", flag->letter, flag->name)
                                : snprintf(left, sizeof left, "      --%s", flag->name);
        if (flag->argument)
            snprintf(left + used, sizeof left - (size_t)used, flag->otherwise ? "[=%s]" : " %s", flag->argument);
        fprintf(out, "%-*s  ", HELP_COLUMN - 2, left);
        if (flag->env)
            snprintf(text, sizeof text, "%s  [%s]", flag->help, flag->env);
        else
            snprintf(text, sizeof text, "%s", flag->help);
        print_wrapped(text, columns, out);
    }
}

void cli_print_help(const struct cli_command *command, FILE *out)
{
    fprintf(out, "seqlstm %s: %s\n\nUsage: seqlstm %s%s%s\n", command->name, command->summary, command->name,
            command->usage[0] ? " " : "", command->usage);
    if (command->examples)
        fprintf(out, "\nExamples\n%s", command->examples);
    if (command->text)
        fprintf(out, "\n%s", command->text);
    print_flags(command, "Flags", command->flags, out);
    if (command->takes_model_flags)
        print_flags(command, "Model flags", cli_get_model_flags(), out);
    if (command->takes_backend_flags)
        print_flags(command, "Backend flags", cli_get_backend_flags(), out);
    print_flags(command, "Common flags", cli_get_common_flags(), out);
}

void cli_print_overview(FILE *out)
{
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
