/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_table.h. */
#include "serve/job/stream_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/value/hash.h"

void sl_stream_table_init(struct sl_stream_table *table, int64_t most, int64_t most_waiting, int64_t idle_ns)
{
    *table = (struct sl_stream_table){.most = most, .most_waiting = most_waiting, .idle_ns = idle_ns};
    pthread_mutex_init(&table->lock, NULL);
}

static void destroy(struct sl_served_stream *stream)
{
    sl_stream_close(stream->state);
    sl_served_model_release(stream->model);
    free(stream->id);
    free(stream);
}

void sl_stream_table_deinit(struct sl_stream_table *table)
{
    for (int b = 0; b < SL_STREAM_BUCKETS; b++)
        while (table->buckets[b]) {
            struct sl_served_stream *stream = table->buckets[b];
            table->buckets[b] = stream->next;
            destroy(stream);
        }
    pthread_mutex_destroy(&table->lock);
}

/* ---- under the lock ---------------------------------------------------------------------------------------- */

static struct sl_served_stream **find_bucket(struct sl_stream_table *table, int token, const char *id)
{
    return &table->buckets[sl_hash_combine(sl_hash_text(id), (uint64_t)token) % SL_STREAM_BUCKETS];
}

/* Ids are the client's own: a client does not find the stream of another token. */
static struct sl_served_stream *find(struct sl_stream_table *table, const struct sl_job *job)
{
    struct sl_served_stream *stream = *find_bucket(table, job->token, job->stream_id);
    while (stream && (stream->token != job->token || stream->model->slot != job->model->slot ||
                      strcmp(stream->id, job->stream_id) != 0))
        stream = stream->next;
    return stream;
}

/* The idle ones are a list, those that have been idle longest first. */
static void rest(struct sl_stream_table *table, struct sl_served_stream *stream)
{
    stream->idle_before = table->idle_last;
    stream->idle_next = NULL;
    *(table->idle_last ? &table->idle_last->idle_next : &table->idle_first) = stream;
    table->idle_last = stream;
}

static void unrest(struct sl_stream_table *table, struct sl_served_stream *stream)
{
    *(stream->idle_before ? &stream->idle_before->idle_next : &table->idle_first) = stream->idle_next;
    *(stream->idle_next ? &stream->idle_next->idle_before : &table->idle_last) = stream->idle_before;
}

/* It is not in the list of idle ones. */
static void end(struct sl_stream_table *table, struct sl_served_stream *stream)
{
    struct sl_served_stream **at = find_bucket(table, stream->token, stream->id);
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    table->count--;
    destroy(stream);
}

static void expire(struct sl_stream_table *table, int64_t now_ns)
{
    struct sl_served_stream *stream;
    while ((stream = table->idle_first) != NULL && now_ns - stream->used_ns >= table->idle_ns) {
        unrest(table, stream);
        end(table, stream);
        table->expired++;
    }
}

static seqlstm_status open(struct sl_stream_table *table, const struct sl_job *job, struct sl_served_stream **out,
                           struct seqlstm_error *err)
{
    if (table->count >= table->most)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%lld stream%s open, and there may be no more", (long long)table->count,
                     table->count == 1 ? " is" : "s are");
    struct sl_served_stream *stream = calloc(1, sizeof *stream);
    char *id = strdup(job->stream_id);
    seqlstm_status status = SEQLSTM_OK;
    if (stream == NULL || id == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a stream");
    if (status == SEQLSTM_OK)
        status = sl_stream_open(job->model->predictor, &stream->state, err);
    if (status != SEQLSTM_OK) {
        free(id);
        free(stream);
        return status;
    }
    struct sl_served_stream **bucket = find_bucket(table, job->token, job->stream_id);
    stream->model = job->model;
    sl_served_model_hold(stream->model);
    stream->busy = true;
    stream->token = job->token;
    stream->id = id;
    stream->next = *bucket;
    *bucket = stream;
    table->count++;
    *out = stream;
    return SEQLSTM_OK;
}

static void change_model(const struct sl_served_model **model, const struct sl_served_model *to)
{
    sl_served_model_hold(to);
    sl_served_model_release(*model);
    *model = to;
}

/* The job's turn has come. A stream that begins again does so on the version of its job, which is the newest one that
 * it has seen, or on the old version if there is no memory for another state. Otherwise the stream stays on the version
 * on which it began. */
static void take_turn(struct sl_served_stream *stream, struct sl_job *job)
{
    struct seqlstm_error ignored = SEQLSTM_ERROR_INIT;
    struct sl_stream *state;
    if (stream->model == job->model)
        return;
    if (job->starts && sl_stream_open(job->model->predictor, &state, &ignored) == SEQLSTM_OK) {
        sl_stream_close(stream->state);
        stream->state = state;
        stream->begun = false;
        change_model(&stream->model, job->model);
    } else {
        change_model(&job->model, stream->model);
    }
}

static seqlstm_status wait(struct sl_stream_table *table, struct sl_job *job, struct sl_served_stream *stream,
                           struct seqlstm_error *err)
{
    if (table->waiting >= table->most_waiting)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "too many requests wait");
    job->next = NULL;
    *(stream->last ? &stream->last->next : &stream->first) = job;
    stream->last = job;
    table->waiting++;
    return SEQLSTM_OK;
}

static seqlstm_status claim(struct sl_stream_table *table, struct sl_job *job, bool *out_waits,
                            struct seqlstm_error *err)
{
    struct sl_served_stream *stream = find(table, job);
    if (stream == NULL && !job->starts)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "there is no stream `%.60s`: it has ended, or its first request had no `sequence_start`",
                     job->stream_id);
    if (stream == NULL) {
        SEQLSTM_TRY(open(table, job, &stream, err));
    } else if (!stream->busy) {
        unrest(table, stream);
        stream->busy = true;
        take_turn(stream, job);
    } else {
        *out_waits = true;
        SEQLSTM_TRY(wait(table, job, stream, err));
    }
    job->stream = stream;
    return SEQLSTM_OK;
}

static struct sl_job *pop(struct sl_stream_table *table, struct sl_served_stream *stream)
{
    struct sl_job *job = stream->first;
    stream->first = job->next;
    if (stream->first == NULL)
        stream->last = NULL;
    job->next = NULL;
    table->waiting--;
    return job;
}

static void release(struct sl_stream_table *table, struct sl_job *job, bool ran, bool broken, struct sl_job **out_next,
                    struct sl_job **out_orphans)
{
    struct sl_served_stream *stream = job->stream;
    stream->begun = (stream->begun || ran) && !broken && !(ran && job->ends);
    stream->used_ns = sl_clock_ns();
    stream->busy = false;
    while (stream->first && *out_next == NULL) {
        struct sl_job *next = pop(table, stream);
        if (stream->begun || next->starts) {
            *out_next = next;
            stream->busy = true;
            take_turn(stream, next);
            continue;
        }
        next->stream = NULL;
        next->next = *out_orphans;
        *out_orphans = next;
    }
    job->stream = NULL;
    if (!stream->busy && stream->begun)
        rest(table, stream);
    else if (!stream->busy)
        end(table, stream);
}

/* ---- under no lock ----------------------------------------------------------------------------------------- */

seqlstm_status sl_stream_table_claim(struct sl_stream_table *table, struct sl_job *job, bool *out_waits,
                                     struct seqlstm_error *err)
{
    if (!job->model->streams)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model cannot run as a stream: %s",
                     sl_predictor_get_stream_reason(job->model->predictor));
    *out_waits = false;
    pthread_mutex_lock(&table->lock);
    if (table->count >= table->most)
        expire(table, sl_clock_ns());
    const seqlstm_status status = claim(table, job, out_waits, err);
    pthread_mutex_unlock(&table->lock);
    return status;
}

void sl_stream_table_release(struct sl_stream_table *table, struct sl_job *job, bool ran, bool broken,
                             struct sl_job **out_next, struct sl_job **out_orphans)
{
    *out_next = *out_orphans = NULL;
    pthread_mutex_lock(&table->lock);
    release(table, job, ran, broken, out_next, out_orphans);
    pthread_mutex_unlock(&table->lock);
}

void sl_stream_table_expire(struct sl_stream_table *table, int64_t now_ns)
{
    pthread_mutex_lock(&table->lock);
    expire(table, now_ns);
    pthread_mutex_unlock(&table->lock);
}

int64_t sl_stream_table_count(struct sl_stream_table *table, int64_t *out_expired)
{
    pthread_mutex_lock(&table->lock);
    const int64_t count = table->count;
    *out_expired = table->expired;
    pthread_mutex_unlock(&table->lock);
    return count;
}
