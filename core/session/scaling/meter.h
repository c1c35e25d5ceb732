/* SPDX-License-Identifier: Apache-2.0 */
/* What measures the costs of one division, on one rank. Private to session/scaling. */
#ifndef SL_SESSION_SCALING_METER_H
#define SL_SESSION_SCALING_METER_H

#include "session/scaling/costs.h"

struct sl_batch;
struct sl_exec;
struct sl_exec_step;
struct sl_session;

/* Times that the slowest rank gives, in nanoseconds. */
struct sl_scaling_times {
    double prepare, step, together, alone, stages, update;
};

struct sl_scaling_meter {
    const struct sl_scaling_setup *setup;
    struct sl_parallel_config ranks_config; /* as the ranks that measure are connected: each computes all stages */
    struct sl_session *session;
    struct sl_reducer *reducer; /* NULL: alone, in a pipeline, or gradients stay on the device */
    bool direct;                /* they do */
    struct sl_exec **stages;    /* [turns] of a pipeline: this rank's; NULL: it has none in this turn */
    int32_t turns;
    float *errors; /* of compressed gradients; NULL: none are */
    bool lends;    /* gradients lie in memory of the collectives */
    struct sl_scaling_costs *costs;
    int64_t began_ns;
    int32_t noted; /* in the running step */
    bool notes, adds;
    bool trains; /* steps are followed by the exchange of their gradients and by an update */
    int64_t rows;
    double updates;  /* after the batches that ran last */
    double piece_ns; /* of passing a piece */
};

/* ---- steps.c ---------------------------------------------------------------------------------------------------- */

/* Of all ranks, for each time. */
seqlstm_status sl_scaling_find_slowest(const struct sl_scaling_meter *m, struct sl_scaling_times *times,
                                       struct seqlstm_error *err);
/* Runs batches of the first epoch, `*count` of them, or as many as there is time for (0); adds their times. */
seqlstm_status sl_scaling_run_batches(struct sl_scaling_meter *m, int32_t *count, struct sl_scaling_times *sum,
                                      struct seqlstm_error *err);
/* Fills in the costs of steps and updates. */
seqlstm_status sl_scaling_time_steps(struct sl_scaling_meter *m, struct seqlstm_error *err);

/* ---- stages.c --------------------------------------------------------------------------------------------------- */

/* Executors for the stages of this rank, if there is a pipeline. */
seqlstm_status sl_scaling_open_stages(struct sl_scaling_meter *m, struct seqlstm_error *err);
void sl_scaling_close_stages(struct sl_scaling_meter *m);
/* Which slice of each batch this rank computes. */
int64_t sl_scaling_find_slice(const struct sl_scaling_meter *m);
/* All stages on one slice, with their updates or without: fills in `alone`, `stages` and `update`. */
seqlstm_status sl_scaling_run_stages(struct sl_scaling_meter *m, const struct sl_batch *slice,
                                     const struct sl_exec_step *step, bool updates, struct sl_scaling_times *out,
                                     struct seqlstm_error *err);
/* The update alone: *out_ns is that of this rank's slowest stage. */
seqlstm_status sl_scaling_update_stages(struct sl_scaling_meter *m, double *out_ns, struct seqlstm_error *err);

/* ---- exchanges.c ------------------------------------------------------------------------------------------------ */

/* The latency and the rate of sums, the agreement, and weights that rank 0 sends. */
seqlstm_status sl_scaling_time_exchanges(struct sl_scaling_meter *m, struct seqlstm_error *err);
/* Brings gradients to the host and back, as exchanges between hosts do. */
seqlstm_status sl_scaling_time_staging(struct sl_scaling_meter *m, struct seqlstm_error *err);
/* What passing a piece costs, between ranks of this host or over a link. */
seqlstm_status sl_scaling_price_pieces(struct sl_scaling_meter *m, struct seqlstm_error *err);
/* The gradients of which less may be exchanged. After a step whose gradients were not exchanged. */
seqlstm_status sl_scaling_list_matrices(struct sl_scaling_meter *m, struct seqlstm_error *err);

#endif
