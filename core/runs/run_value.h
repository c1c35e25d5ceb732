/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a run at a key, as --where, --sort and --columns name it. */
#ifndef SL_RUNS_RUN_VALUE_H
#define SL_RUNS_RUN_VALUE_H

#include <stdbool.h>

#include "runs/run_facts.h"

struct sl_arena;
struct sl_config_entries;

struct sl_run_value {
    enum { SL_RUN_VALUE_NONE, SL_RUN_VALUE_NUMBER, SL_RUN_VALUE_TEXT } kind;
    double number;
    const char *text; /* as shown; for numbers, too */
};

/* Looks for a key, in this order: name, state, end, started, updates, epochs, seconds; a metric with its split
 * ("test.loss"); a key of the configuration ("train.optimizer.type", "model[0].units", "model.NAME.units"), which is
 * read when it is first needed and kept in `config` (zeroed at the beginning; one per run). NONE: the run has no such
 * value. False: no memory. */
bool sl_run_value_find(struct sl_arena *arena, const struct sl_run_facts *run, struct sl_config_entries *config,
                       const char *key, struct sl_run_value *out);

/* A value as a configuration holds it: without the quotes around it, and a number if it is one. False: no memory. */
bool sl_run_value_read(struct sl_arena *arena, const char *text, struct sl_run_value *out);

/* Reads the configuration of a run; a missing or unreadable one has no entries. False: no memory. */
bool sl_run_config_read(struct sl_arena *arena, const struct sl_run_facts *run, struct sl_config_entries *out);

/* Less, equal, greater: -1, 0, 1. Numbers come before text, and NONE last. */
int sl_run_value_compare(const struct sl_run_value *a, const struct sl_run_value *b);

#endif
