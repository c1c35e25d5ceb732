/* SPDX-License-Identifier: Apache-2.0 */
/* The runs below a folder. */
#ifndef SL_RUNS_CATALOGUE_H
#define SL_RUNS_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include <seqlstm/status.h>

#include "runs/run_facts.h"

struct sl_arena;

struct sl_run_catalogue {
    struct sl_run_facts *runs;
    size_t count;
};

/* Reads every run below `folder`: subfolders with a config.yaml, at most three levels down, never through a link and
 * never inside a run. They are sorted by name, numbers by value. All memory is the arena's. Errors: NOT_FOUND, IO,
 * NO_MEMORY. */
seqlstm_status sl_run_catalogue_read(struct sl_arena *arena, const char *folder, struct sl_run_catalogue *out,
                                     struct seqlstm_error *err);

/* Does a name as users write it mean this run: its name, its folder, or a folder above it ("quickstart")? */
bool sl_run_catalogue_matches(const struct sl_run_facts *run, const char *word);

#endif
