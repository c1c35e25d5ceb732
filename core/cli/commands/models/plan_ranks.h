/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm plan --ranks: how long an update takes on so many ranks. */
#ifndef SL_CLI_COMMANDS_MODELS_PLAN_RANKS_H
#define SL_CLI_COMMANDS_MODELS_PLAN_RANKS_H

struct cli_context;

/* Returns the exit code. The flags of the command are those of `seqlstm plan`. */
int cli_plan_ranks(struct cli_context *cli);

#endif
