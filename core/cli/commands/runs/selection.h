/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs a command of `seqlstm runs` works on. */
#ifndef SL_CLI_COMMANDS_RUNS_SELECTION_H
#define SL_CLI_COMMANDS_RUNS_SELECTION_H

#include "base/memory/arena.h"
#include "cli/cli.h"
#include "model/load/entries.h"
#include "runs/catalogue.h"
#include "runs/run_value.h"

#define CLI_FLAGS_SELECTION                                                                                            \
    {.name = "where",                                                                                                  \
     .argument = "CONDITION",                                                                                          \
     .repeats = true,                                                                                                  \
     .help = "only runs that fulfil it, as in 'test.loss<0.1'; repeatable, all must hold"},                            \
    {                                                                                                                  \
        .name = "dir", .argument = "DIR", .help = "folder that holds the runs (default runs)"                          \
    }

/* What a key may be, for the texts of help. */
#define CLI_SELECTION_TEXT                                                                                             \
    "RUN is a name such as quickstart/001, a name above it (quickstart: all its\n"                                     \
    "runs), or a run folder. A KEY is name, state, end, started, updates, epochs or\n"                                 \
    "seconds; a metric with its split, as in test.loss; or a key of the model file,\n"                                 \
    "as in train.optimizer.learning_rate or model.lstm_1.units. Compare by <, <=, >,\n"                                \
    ">=, = or !=. A run without the key is left out.\n"

struct cli_selection {
    struct sl_arena arena;
    const struct sl_run_facts **runs;  /* in the order of the operands, else by name */
    struct sl_config_entries *configs; /* of each run, for sl_run_value_find */
    size_t count;
    bool elsewhere; /* a run that is not below the searched folder is among them */
};

/* Finds the runs that the operands and --where select; without operands, all. Returns CLI_OK, or prints an error and
 * returns its exit code. */
int cli_selection_find(struct cli_context *cli, struct cli_selection *out);

/* The value of run `r` at a key. Prints an error and returns false when memory runs out. */
bool cli_selection_get(struct cli_context *cli, struct cli_selection *selection, size_t r, const char *key,
                       struct sl_run_value *out);

/* Prints an error and returns CLI_USAGE if runs were selected and none of them has this key. */
int cli_selection_check_key(struct cli_context *cli, struct cli_selection *selection, const char *key);

/* A value as JSON: whole numbers are integers, and NONE is null. */
struct json_t *cli_selection_pack(const struct sl_run_value *value);

void cli_selection_release(struct cli_selection *selection);

#endif
