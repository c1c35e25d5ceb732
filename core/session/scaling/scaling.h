/* SPDX-License-Identifier: Apache-2.0 */
/* How long an update takes on more ranks than this machine has: `seqlstm plan --ranks`.
 *
 * What one host can do is measured here: its ranks run the same training steps at the same time, and the slowest
 * counts. What goes over the link between hosts is computed:
 *
 *   an update = prepare + step, with local exchanges + what the link adds after backward + update + agreement
 *
 * A pipeline is simulated from the measured times of the calls, piece by piece (dispatch/stages/pipeline.h).
 */
#ifndef SL_SESSION_SCALING_SCALING_H
#define SL_SESSION_SCALING_SCALING_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/value/buf.h"

struct sl_session_options;

enum { SL_SCALING_ROWS = 64 };

struct sl_scaling_link {
    double bytes_per_s; /* 0: not given */
    double latency_s;
};

struct sl_scaling_request {
    const struct sl_session_options *options; /* of the model; identity: this rank among those that measure, or NULL */
    int32_t ranks[SL_SCALING_ROWS];           /* ascending */
    int32_t count;
    int32_t local;                /* ranks of a host, at most */
    int32_t measuring;            /* ranks that measure: as many, or fewer if each has a device of its own */
    struct sl_scaling_link link;  /* between hosts */
    struct sl_scaling_link inner; /* between the ranks of a host, if it is not to be as measured */
    bool grows;                   /* each rank has a batch as large as the model's: batches grow with the ranks */
};

/* One number of ranks. Times are those of a mean update, in nanoseconds. */
struct sl_scaling_row {
    int32_t ranks, hosts, threads; /* threads of each rank */
    int32_t stages, pieces;
    double rows;          /* real steps of an update, on all ranks */
    double update_ns;     /* all of it */
    double compute_ns;    /* of one rank: without exchanges and without waiting for other stages */
    double waiting_ns;    /* for other stages of the pipeline */
    double exchange_ns;   /* exchanges that the update waits for */
    int64_t memory_bytes; /* of one rank, at most */
    int32_t idle;         /* ranks without a sequence, since batches have too few */
};

struct sl_scaling_report {
    struct sl_scaling_row rows[SL_SCALING_ROWS];
    int32_t count;
    int32_t local, measuring;
    int32_t devices; /* on which the ranks that measured have computed, at most; 0: on processors */
    struct sl_scaling_link link, inner, measured; /* measured: all_reduce between the ranks of this host */
    bool grows;
};

/* All ranks that measure call it, and all get the report. Errors: those of training and of exchanges; INVALID_CONFIG:
 * a number of ranks does not fit the model. */
seqlstm_status sl_session_plan_ranks(const struct sl_scaling_request *request, struct sl_scaling_report *out,
                                     struct seqlstm_error *err);

/* As a table, as JSON ("schema": "seqlstm.ranks/1"), and as a page with a plot. Failure is sticky in the buffer. */
void sl_scaling_write_table(const struct sl_scaling_report *report, struct sl_buf *out);
void sl_scaling_write_json(const struct sl_scaling_report *report, struct sl_buf *out);
void sl_scaling_write_page(const struct sl_scaling_report *report, struct sl_buf *out);

/* Real steps per second, relative to the first row. */
double sl_scaling_get_speedup(const struct sl_scaling_report *report, int32_t row);

#endif
