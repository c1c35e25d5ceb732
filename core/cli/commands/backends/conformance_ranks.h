/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm conformance, for a plugin for collectives. */
#ifndef SL_CLI_COMMANDS_BACKENDS_CONFORMANCE_RANKS_H
#define SL_CLI_COMMANDS_BACKENDS_CONFORMANCE_RANKS_H

#include <stdbool.h>

struct cli_context;

/* Does the first operand name such a plugin? *out_file is then its real path, which the caller frees, or NULL: its name
 * is an id. */
bool cli_find_collectives(const struct cli_context *cli, char **out_file);
/* Tests it; returns the exit code. */
int cli_conform_collectives(struct cli_context *cli, const char *file);

#endif
