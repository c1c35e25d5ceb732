/* SPDX-License-Identifier: Apache-2.0 */
/* One request for predictions, from its parsed input to its output. */
#ifndef SL_SERVE_JOB_JOB_H
#define SL_SERVE_JOB_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "serve/http/http.h"
#include "serve/job/served_model.h"

struct sl_completion;
struct sl_served_stream;

/* A text of the model. */
struct sl_written {
    char *text;
    size_t bytes;
};

struct sl_job {
    struct seqlstm_http_request *request;
    const struct sl_served_model *model;
    struct sl_job *next; /* in the list that it is in */
    int64_t queued_ns;
    int64_t count;      /* sequences, or rows without steps */
    int64_t rows;       /* steps of all of them */
    bool goes_on;       /* texts of several tokens; workers look at what stands up to here, of all jobs that wait */
    int64_t checked_ns; /* when its client was last known to be there */

    char *id;         /* of the client, given back; NULL: none */
    void *x;          /* [rows, input_features] float, or [rows] int32_t */
    int64_t *lengths; /* [count]; NULL for models without steps */

    char **texts; /* [count] of a model that writes texts, in place of x and lengths; NULL: none */
    size_t *text_bytes;
    struct sl_written *written; /* [count] their answers */

    int token;                       /* number of the token that asks; 0 without tokens */
    char *stream_id;                 /* of the stream that it continues; NULL: its sequences are whole */
    bool starts, ends;               /* it is the stream's first or last request */
    struct sl_served_stream *stream; /* NULL: none */

    struct sl_completion *completion; /* texts to continue, in place of x and lengths; NULL: none */

    int64_t begun, begun_rows;     /* sequences that are or were computed, and their steps */
    int64_t finished;              /* sequences */
    struct seqlstm_error *failure; /* why a text could not be written; NULL: it writes none */
    float *y;                      /* [out_rows, output_features]; of a model that writes texts their scores */
    int64_t out_rows;
    bool wants_y, wants_labels;   /* which outputs; labels only where classes have names */
    bool binary_y, binary_labels; /* after the JSON instead of in it */
};

/* The job takes over one use of the model (NULL: it has none yet); NULL: no memory, and it does not. */
struct sl_job *sl_job_create(const struct sl_served_model *model, struct seqlstm_http_request *request);
/* Makes `failure`. False: no memory. */
bool sl_job_prepare_failure(struct sl_job *job);
/* NULL is fine. The request is not touched: it is answered apart. */
void sl_job_destroy(struct sl_job *job);

/* Jobs that other threads leave for the thread that made them. */
struct sl_job_pile {
    _Atomic(struct sl_job *) newest;
};

/* Takes the job over. [any thread] */
void sl_job_pile_add(struct sl_job_pile *pile, struct sl_job *job);
/* All of them, the oldest first; NULL: none. [one thread at a time] */
struct sl_job *sl_job_pile_take(struct sl_job_pile *pile);

/* The job is over: frees what the worker made. The thread that made the job destroys it, since threads that free the
 * memory of another wait for its allocator. [any thread] */
void sl_job_retire(struct sl_job_pile *retired, struct sl_job *job);
void sl_job_destroy_retired(struct sl_job_pile *retired);

#endif
