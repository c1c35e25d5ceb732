/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the commands. */
#include "cli/commands.h"

#include <stddef.h>

#define CLI_COMMAND_ADDRESS(name) &cli_command_##name,
const struct cli_command *const cli_commands[] = {CLI_COMMANDS(CLI_COMMAND_ADDRESS) NULL};
