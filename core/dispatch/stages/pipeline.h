/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline: the calls of a plan, cut into stages for several ranks, and how long a step takes them.
 *
 *   stage 0   f0 f1 f2 f3                   b3 b2 b1 b0 dW        f1: forward of piece 1 of the steps
 *   stage 1      f0 f1 f2 f3          b3 b2 b1 b0 dW
 *   stage 2         f0 f1 f2 f3 b3 b2 b1 b0 dW
 *
 * Time is computed from the costs of the calls: a stage runs a piece as soon as it is free and the stage before has
 * finished the piece. Private to core/dispatch, apart from what is declared here.
 */
#ifndef SL_DISPATCH_STAGES_PIPELINE_H
#define SL_DISPATCH_STAGES_PIPELINE_H

#include "dispatch/plan/plan.h"

enum { SL_STAGES_MOST = 256, SL_PIECES_AUTO_MOST = 16 };

struct sl_pipeline {
    int32_t stages; /* 0: steps do not run in pieces */
    int32_t pieces;
    int32_t bounds[SL_STAGES_MOST + 1]; /* stage s runs calls [bounds[s], bounds[s + 1]) */
    double stage_ns[SL_STAGES_MOST];    /* of each stage; 0: not known */
    double step_ns;                     /* of a mean batch, without the update; 0: the costs are not known */
    double alone_ns;                    /* the same on one rank, without pieces */
    bool chosen;                        /* the number of pieces follows from the costs */
};

/* Cuts the plan of a graph with pieces into stages of about equal cost, by dynamic programming, and chooses the number
 * of pieces with the least time (`pieces` 0), at most as many as the graph has. INVALID_CONFIG: there are more stages
 * than places to cut. NO_MEMORY. */
seqlstm_status sl_pipeline_make(const struct sl_plan *plan, int32_t stages, int32_t pieces, struct sl_pipeline *out,
                                struct seqlstm_error *err);

/* The time of a step on these stages; 0: the costs are not known. `open` >= 0: as if that call could run in pieces.
 * Errors: NO_MEMORY. */
seqlstm_status sl_pipeline_simulate(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t open,
                                    double *out_ns, struct seqlstm_error *err);

/* Measured times of the calls of one batch, on one rank: of packing the weights before the first piece, of each piece
 * forward and backward, and of the weight gradients that follow the last piece. A call that runs on all steps at once
 * has its times in piece 0. All in nanoseconds. */
struct sl_piece_times {
    int32_t calls, pieces;
    double *forward, *backward; /* [calls * pieces] */
    double *packs, *weights;    /* [calls] */
    int64_t count;              /* of all, from `forward` on */
};

/* Zeros. Errors: NO_MEMORY. */
seqlstm_status sl_piece_times_init(struct sl_piece_times *times, int32_t calls, int32_t pieces,
                                   struct seqlstm_error *err);
void sl_piece_times_deinit(struct sl_piece_times *times);
double sl_piece_times_sum(const struct sl_piece_times *times);

/* The time of this batch on these stages. `exchange_ns`: of passing a piece to the next stage, in which neither of the
 * two does anything else. Errors: NO_MEMORY. */
seqlstm_status sl_pipeline_simulate_times(const struct sl_plan *plan, const struct sl_pipeline *pipeline,
                                          const struct sl_piece_times *times, double exchange_ns, double *out_ns,
                                          struct seqlstm_error *err);

/* Cuts the plan as sl_pipeline_make does, by measured times instead of its costs. The number of pieces is theirs. */
seqlstm_status sl_pipeline_cut_times(const struct sl_plan *plan, const struct sl_piece_times *times,
                                     struct sl_pipeline *pipeline, struct seqlstm_error *err);

/* Bytes of the plan's memory that the rank of a stage never touches: activations and gradients of other stages. */
int64_t sl_pipeline_count_untouched(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t stage);

/* A call on steps that runs on all of them at once, so that no other stage works at the same time. */
struct sl_pipeline_barrier {
    const struct sl_call *call;
    enum sl_barrier reason;
    double ns; /* that it adds to a step; 0: nothing, or not known */
};
/* Fills out[0, capacity) with the first ones; *out_count is how many there are, or 0 after an error. Errors: NO_MEMORY.
 */
seqlstm_status sl_pipeline_list_barriers(const struct sl_plan *plan, const struct sl_pipeline *pipeline,
                                         struct sl_pipeline_barrier *out, int32_t capacity, int32_t *out_count,
                                         struct seqlstm_error *err);
/* "it reads the steps in reverse"; static. */
const char *sl_barrier_get_reason(enum sl_barrier barrier);

#endif
