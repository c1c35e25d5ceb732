/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of one host measure for one division of a training. */
#ifndef SL_SESSION_SCALING_COSTS_H
#define SL_SESSION_SCALING_COSTS_H

#include "model/parallel_config.h"
#include "parallel/reducer.h"
#include "session/scaling/scaling.h"

enum { SL_SCALING_NOTES = 256, SL_SCALING_BUNDLES = 1024, SL_SCALING_MATRICES = 32 };

/* Gradients that are complete before the end of the step. */
struct sl_scaling_note {
    int64_t from; /* from this element on */
    double ns;    /* after the step's beginning */
};

/* Elements [begin, begin + rows * columns) of the gradients, of which less may be exchanged. */
struct sl_scaling_matrix {
    int64_t begin, rows, columns;
    bool compressed;
    double used; /* of an embedding: the share of its rows that one rank's gradient has */
};

/* Times in nanoseconds, of a mean batch; those of steps hold while all ranks of the host compute. */
struct sl_scaling_costs {
    int32_t threads, stages, pieces;
    double rows;    /* real steps of a mean batch of all ranks */
    double batches; /* of an update */
    int32_t shards; /* with `shards`: those that a rank computes one after the other; 0: its own */
    double prepare_ns, step_ns;
    double together_ns; /* a step with the exchange of its gradients, as far as that is local */
    double exchange_ns; /* that exchange alone, after the step */
    double update_ns, weights_ns, agree_ns;
    double staging_ns;          /* gradients from the device to the host and back, if `together_ns` lacks that */
    double alone_ns, stages_ns; /* of a step in pieces: on one rank, and on the stages */
    struct sl_scaling_link measured;
    struct sl_scaling_note notes[SL_SCALING_NOTES];
    int32_t note_count;
    struct sl_scaling_matrix matrices[SL_SCALING_MATRICES];
    int32_t matrix_count;
    int64_t elems;
    int64_t sequences; /* of the largest batch */
    int64_t memory_bytes;
    int32_t compress_rank;
    int32_t devices; /* on which the ranks that measured have computed; 0: on processors */
};

struct sl_scaling_setup {
    const struct sl_session_options *options;
    struct sl_parallel_config parallel; /* the division that is measured */
    int32_t local;                      /* ranks that take part: those with the lowest numbers */
    int64_t batch_factor;
    double piece_exchange_bytes_per_s, piece_exchange_latency_s; /* between stages; 0: as measured */
    int32_t number;                                              /* of the measurement */
};

/* Called by the ranks that take part. */
seqlstm_status sl_scaling_measure(const struct sl_scaling_setup *setup, struct sl_scaling_costs *out,
                                  struct seqlstm_error *err);

#endif
