/* SPDX-License-Identifier: Apache-2.0 */
/* The flag --batching of the commands that serve. */
#ifndef SL_CLI_COMMANDS_RUNS_BATCHING_H
#define SL_CLI_COMMANDS_RUNS_BATCHING_H

#include "cli/cli.h"
#include "serve/compute/replies.h"

/* Without the flag it is SL_BATCHING_STEPS. Returns CLI_OK, or prints an error and returns CLI_USAGE. */
int cli_read_batching(struct cli_context *cli, enum sl_serve_batching *out_batching);

#endif
