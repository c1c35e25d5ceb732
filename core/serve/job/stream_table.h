/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of all clients: sequences that continue from request to request. A stream belongs to the token that
 * opened it, to one model and to the id that its client chose. Requests for one stream are computed one after the
 * other, in the order of arrival. Streams that have not been used for a time end. */
#ifndef SL_SERVE_JOB_STREAM_TABLE_H
#define SL_SERVE_JOB_STREAM_TABLE_H

#include <pthread.h>

#include "predict/stream.h"
#include "serve/job/job.h"

enum { SL_STREAM_BUCKETS = 4096 };

struct sl_served_stream {
    const struct sl_served_model *model;
    int token; /* number of the token; 0 without tokens */
    char *id;
    struct sl_stream *state;
    bool begun;                  /* a request of it has been computed */
    bool busy;                   /* a request of it is in the queue or computed */
    struct sl_job *first, *last; /* that wait for that one */
    int64_t used_ns;
    struct sl_served_stream *next;                    /* in its bucket */
    struct sl_served_stream *idle_before, *idle_next; /* in the list of those that are not busy */
};

/* Any thread may call any of these. */
struct sl_stream_table {
    pthread_mutex_t lock;
    struct sl_served_stream *buckets[SL_STREAM_BUCKETS];
    struct sl_served_stream *idle_first, *idle_last; /* that are not busy, by last use */
    int64_t count, most;
    int64_t waiting, most_waiting; /* jobs */
    int64_t idle_ns;               /* after which a stream ends */
    int64_t expired;               /* since the beginning */
};

void sl_stream_table_init(struct sl_stream_table *table, int64_t most, int64_t most_waiting, int64_t idle_ns);
void sl_stream_table_deinit(struct sl_stream_table *table);

/* Finds or opens the stream of a job. When its turn comes, the job has the version of its model on which the stream
 * began, unless the stream begins again with it. *out_waits: it waits for another request of the stream, and belongs to
 * the table until sl_stream_table_release hands it out.
 * INVALID_ARGUMENT: there is no such stream and the job does not open one; UNAVAILABLE: too many streams, or too many
 * jobs that wait; UNSUPPORTED: the model has no streams; NO_MEMORY. */
seqlstm_status sl_stream_table_claim(struct sl_stream_table *table, struct sl_job *job, bool *out_waits,
                                     struct seqlstm_error *err);

/* The job has ended; `ran`: it has been computed. The stream ends if the job said so, or if `broken`: its state is not
 * known. *out_next: the next job of the stream, to be queued now, or NULL; *out_orphans: a list of jobs whose stream
 * has ended, to be refused. */
void sl_stream_table_release(struct sl_stream_table *table, struct sl_job *job, bool ran, bool broken,
                             struct sl_job **out_next, struct sl_job **out_orphans);

/* Ends the streams that have not been used for a time. */
void sl_stream_table_expire(struct sl_stream_table *table, int64_t now_ns);
/* Those that are open; *out_expired: those that have ended because they were not used. */
int64_t sl_stream_table_count(struct sl_stream_table *table, int64_t *out_expired);

#endif
