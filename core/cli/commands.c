/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands, in the order users meet them. */
#include <string.h>

#include "cli/cli.h"

static const struct cli_command *const commands[] = {
    &cli_command_run,         &cli_command_check,       &cli_command_plan,      &cli_command_backends,
    &cli_command_resume,      &cli_command_eval,        &cli_command_predict,   &cli_command_generate,
    &cli_command_embed,       &cli_command_export,      &cli_command_import,    &cli_command_quantize,
    &cli_command_completion,  &cli_command_data_stats,  &cli_command_inspect,   &cli_command_config,
    &cli_command_schema,      &cli_command_explain,     &cli_command_doctor,    &cli_command_help,
    &cli_command_version,     &cli_command_ab,          &cli_command_bench,     &cli_command_verify,
    &cli_command_conformance, &cli_command_new_backend, &cli_command_new_model, NULL,
};

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
