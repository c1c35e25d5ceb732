/* SPDX-License-Identifier: Apache-2.0 */
/* Finds commands in their table. */
#include "cli/commands.h"

#include <string.h>

#include "cli/cli.h"

#define CLI_COMMAND_ADDRESS(name) &cli_command_##name,
static const struct cli_command *const commands[] = {CLI_COMMANDS(CLI_COMMAND_ADDRESS) NULL};

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
