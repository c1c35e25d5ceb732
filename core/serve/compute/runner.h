/* SPDX-License-Identifier: Apache-2.0 */
/* The sequences of one model that one worker computes.
 *
 * They are computed together as one packed batch, a number of steps at a time. Between two such batches sequences that
 * have ended leave, and others join; none waits for the longest. Models that need whole sequences compute them in one
 * batch. Where many wait, a batch takes some of them, so that these are answered sooner (batch_costs.h); but texts are
 * written side by side. Texts of decoders join and leave at any token (texts.h). Once a request on a stream has begun
 * it is computed to its end, whether its client is there or not, so that the state is that before the request or that
 * after it.
 *
 * That is SL_BATCHING_STEPS. SL_BATCHING_PADDED is what it is compared with: a batch takes what waits, its sequences
 * are computed with zeros behind them up to the length of the longest, and then all are answered. */
#ifndef SL_SERVE_COMPUTE_RUNNER_H
#define SL_SERVE_COMPUTE_RUNNER_H

#include "predict/stream.h"
#include "serve/compute/batch_costs.h"
#include "serve/compute/length_window.h"
#include "serve/job/completion.h"
#include "serve/compute/replies.h"

/* A sequence in progress. */
struct sl_running {
    struct sl_job *job;
    struct sl_stream *state;  /* its own, or its stream's; NULL: it has not needed one yet */
    struct sl_choice *choice; /* the text that it writes; NULL: it only reads */
    const char *x;            /* its next step, */
    int64_t left;             /* and how many are known and left */
    float *y;                 /* where the next row of output goes; NULL for texts */
    int64_t steps;            /* in the present batch; -1: it is not in it */
    seqlstm_status failure;   /* of its text; job->failure says what */
    bool joined;              /* its text is being written beside others */
    bool ended;               /* it pads its batch, and its job waits for the others */
};

/* Sequences that wait for the next batch. */
struct sl_waiting {
    int64_t sequences, rows, longest; /* steps of all, and of the longest */
    bool goes_on;                     /* some write texts of several tokens */
};

struct sl_runner {
    struct sl_runner *next; /* of its worker */
    struct sl_serving *serving;
    const struct sl_served_model *model;
    struct sl_context *context;
    struct sl_running *running;              /* [model->sequences] */
    int64_t count, promised;                 /* sequences in progress; of jobs that are about to be added */
    struct sl_job *first;                    /* jobs, some of whose sequences have not begun, in order */
    struct sl_job *finished, **finished_end; /* jobs that are to be answered */
    struct sl_stream **spare;                /* [model->sequences], and of padding: states that no sequence uses */
    int64_t spare_count;
    struct sl_running **asked; /* [model->sequences] of a batch of texts */
    const char **texts;        /* [model->sequences] */
    size_t *text_bytes;
    void **tags;             /* [model->sequences] names of those texts, */
    bool *joined;            /* and whether there was room for them */
    int64_t live, text_ends; /* texts that are being written, and that have ended in the present batch, */
    int64_t tokens;          /* and how many were written of each in it */
    struct sl_chunk *chunks; /* [model->sequences], and as many of padding */
    int64_t *lengths;        /* [model->sequences], and as many of padding */
    float *zeros;            /* [model->chunk_steps, features] the input of padding */
    void *x;                 /* [x_rows, features] inputs and outputs of a batch of whole sequences */
    float *y;
    int64_t x_rows, y_rows;
    float *probabilities;                   /* [model->sequences, classes] after the last tokens of texts */
    struct sl_sample_candidate *candidates; /* [classes] */
    struct sl_length_window window;         /* of models that need whole sequences */
    struct sl_batch_costs costs;            /* of batches so far */
    struct sl_waiting waiting;              /* that it was shown since it last chose */
    int64_t most;                           /* sequences of the next batch */
    double step_ns, row_ns, sequence_ns; /* what a step of a batch takes, a row of one, a sequence; 0: not known yet */
    double busy_ns;                      /* since one ended last */
    int64_t ended;                       /* of the present batch */
};

/* Opens the context, so that the first request finds everything ready. Errors of backends; NO_MEMORY. Deinit accepts a
 * zeroed struct. */
seqlstm_status sl_runner_init(struct sl_runner *runner, struct sl_serving *serving, const struct sl_served_model *model,
                              struct seqlstm_error *err);
void sl_runner_deinit(struct sl_runner *runner);

/* It is shown all jobs that wait for its model, in their order; then it chooses which of them fit together; and then it
 * is asked for each: can it begin with it now? */
void sl_runner_look(struct sl_runner *runner, const struct sl_job *job);
void sl_runner_choose(struct sl_runner *runner);
bool sl_runner_wants(const struct sl_runner *runner, const struct sl_job *job);
bool sl_runner_is_busy(const struct sl_runner *runner);
/* Takes the job over. */
void sl_runner_add(struct sl_runner *runner, struct sl_job *job);
/* Computes one batch, and answers the jobs that are finished. */
void sl_runner_run(struct sl_runner *runner);

#endif
