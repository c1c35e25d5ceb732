/* SPDX-License-Identifier: Apache-2.0 */
/* core/runs: the runs that there are. Finds, filters, compares and removes run folders; opens no model and no data.
 *
 * This file: what a run folder says of its run. Its files may come from another person or be damaged: what cannot be
 * read is missing, and never an error.
 */
#ifndef SL_RUNS_RUN_FACTS_H
#define SL_RUNS_RUN_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_arena;

enum sl_run_state {
    SL_RUN_LIVE,     /* a process writes into the folder */
    SL_RUN_FINISHED, /* it has a summary */
    SL_RUN_STOPPED,  /* neither: stopped, killed, or failed before its end */
    SL_RUN_IMPORTED  /* its weights came from elsewhere: it has no log and no checkpoint */
};

struct sl_run_metric {
    const char *split; /* "train", "valid", "test" */
    const char *name;  /* "loss" */
    double value;      /* finite */
};

/* Strings live in the arena that they were read into. */
struct sl_run_facts {
    const char *name;   /* relative to the folder that was searched: "quickstart/001" */
    const char *folder; /* that folder and the name */
    enum sl_run_state state;
    const char *holder;     /* of a live run: the process; else "" */
    const char *end;        /* of a finished run: "epochs", "early_stopping", …; else "" */
    int64_t started;        /* when config.yaml was written, in seconds since 1970 */
    int64_t updates;        /* from the summary, else from the last line of metrics.jsonl; -1: unknown */
    double epochs, seconds; /* likewise; NaN: unknown */
    const struct sl_run_metric *metrics;
    size_t metric_count;
};

/* "live", "finished", "stopped" or "imported". */
const char *sl_run_state_get_name(enum sl_run_state state);

/* Reads a run folder. False: no memory. [one thread at a time per arena] */
bool sl_run_facts_read(struct sl_arena *arena, const char *folder, const char *name, struct sl_run_facts *out);

/* NaN: the run has no such metric. */
double sl_run_facts_find_metric(const struct sl_run_facts *run, const char *split, const char *name);

#endif
