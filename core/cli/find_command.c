/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a command by its name, and says what is meant by a name that is none. */
#include <string.h>

#include "base/value/text.h"
#include "cli/cli.h"

static const struct cli_command *const *commands; /* NULL-terminated */

void cli_set_commands(const struct cli_command *const *all)
{
    commands = all;
}

const struct cli_command *const *cli_get_commands(void)
{
    return commands;
}

const struct cli_command *cli_find_command(const char *name)
{
    for (const struct cli_command *const *command = commands; *command; command++)
        if (strcmp((*command)->name, name) == 0)
            return *command;
    return NULL;
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
