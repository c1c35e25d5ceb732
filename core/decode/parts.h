/* SPDX-License-Identifier: Apache-2.0 */
/* The two executors of a decoder that runs step by step: SL_PART_ENCODER once for a batch, then SL_PART_DECODER on
 * batches of one step, each row of which belongs to a sentence of that batch. States are carried from step to step, row
 * by row. */
#ifndef SL_DECODE_PARTS_H
#define SL_DECODE_PARTS_H

#include "exec/exec.h"

struct sl_parts {
    struct sl_exec *encoder, *step; /* borrowed */
    const struct sl_graph *graph;   /* of the step */
    int32_t *tokens, *sentences;    /* [rows of the step's envelope] input of the next step, filled by the caller */
    uint32_t *positions;            /* of the same length, of the next step; filled by the caller of sl_parts_run */
    int32_t *ones, *places;         /* of the same length */
    const struct sl_batch *batch;   /* its sources are what attention reads */
};

/* Errors: NO_MEMORY. Deinit accepts a zeroed struct. */
seqlstm_status sl_parts_init(struct sl_parts *parts, struct sl_exec *encoder, struct sl_exec *step,
                             struct seqlstm_error *err);
/* Bytes of the arrays above. */
int64_t sl_parts_count_bytes(const struct sl_graph *step);
void sl_parts_deinit(struct sl_parts *parts);

/* Runs the encoder; row k of the next step then continues sentence k of the batch, which must stay valid until the last
 * step. Errors: those of the executors. */
seqlstm_status sl_parts_begin(struct sl_parts *parts, const struct sl_batch *batch, struct seqlstm_error *err);

/* One step of rows [0, count), whose tokens and sentences are set. `*out_probabilities` [count, classes] is valid until
 * the next one. Errors: those of the executor, NO_MEMORY, NUMERIC: a probability is no number. */
seqlstm_status sl_parts_step(struct sl_parts *parts, int32_t count, int64_t step, const float **out_probabilities,
                             struct seqlstm_error *err);
/* The same with the positions of the caller, and probabilities that may be no numbers. */
seqlstm_status sl_parts_run(struct sl_parts *parts, int32_t count, const float **out_probabilities,
                            struct seqlstm_error *err);

/* Row r of the next step goes on from row sources[r] of the last one. `spare` is as large as the states of a step.
 * DEVICE. */
seqlstm_status sl_parts_follow(struct sl_parts *parts, float *spare, const int32_t *sources, int32_t count,
                               struct seqlstm_error *err);

#endif
