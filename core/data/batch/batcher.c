/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a dataset: which records, or which steps of a stream, make which batch. */
#include "data/batch/batcher.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "data/batch/batch_rows.h"
#include "data/batch/buckets.h"
#include "data/batch/order.h"
#include "data/dataset/dataset.h"
#include "data/dataset/dataset_private.h"
#include "data/dataset/envelope.h"
#include "data/no_memory.h"

#define SHUFFLE_STREAM UINT64_C(0x73687566666c65) /* the batcher's random numbers */

struct sl_batcher {
    const struct sl_dataset *dataset;
    enum sl_batching_phase phase;
    uint64_t seed;
    int64_t batch_size, max_tokens, bptt;
    bool shuffle;
    enum sl_padding padding;
    struct sl_edges edges;         /* of the buckets; none: no buckets */
    int64_t streams, stream_steps; /* parallel streams of a text, and the steps of each */
    uint64_t epoch, ordinal;
    struct sl_order order;
    uint64_t order_epoch;
    bool has_order;
    struct sl_envelope envelope;
};

/* Pairs without targets have sources only. */
static const int32_t *get_lengths_sorted_by(const struct sl_batcher *b)
{
    bool sources = b->dataset->source.present && b->dataset->form == SL_TARGET_NONE;
    return sources ? b->dataset->source.length : b->dataset->length;
}

static seqlstm_status make_order(struct sl_batcher *b, struct seqlstm_error *err)
{
    const struct sl_batching *batching = &b->dataset->model->data.batching;
    if (b->dataset->stream || (b->has_order && (b->order_epoch == b->epoch || !b->shuffle)))
        return SEQLSTM_OK;
    struct sl_order_rule rule = {
        .records = b->dataset->records,
        .lengths = get_lengths_sorted_by(b),
        .source = b->dataset->form == SL_TARGET_NONE ? NULL : b->dataset->source.length,
        .shuffle = b->shuffle,
        .pools = b->dataset->facts.has_steps && batching->bucketing.kind == SL_BUCKETING_POOLS &&
                 b->phase != SL_BATCHING_PREDICT,
        .pool = batching->pool,
        .edges = b->edges.lengths,
        .edge_count = b->edges.count,
        .padding = b->padding,
        .longest = b->dataset->facts.longest,
        .batch_size = b->batch_size,
        .max_tokens = b->max_tokens,
        .bptt = b->bptt,
        .largest_first = b->phase == SL_BATCHING_TRAIN && b->epoch == 0 && b->shuffle && b->dataset->facts.has_steps,
        .key = seqlstm_mix64(b->seed, SHUFFLE_STREAM, b->epoch),
    };
    SEQLSTM_TRY(sl_order_make(&rule, &b->order, err));
    b->order_epoch = b->epoch;
    b->has_order = true;
    return SEQLSTM_OK;
}

/* The edges of the request, or those that the model asks for. */
static seqlstm_status make_edges(struct sl_batcher *b, const struct sl_batcher_request *request,
                                 struct seqlstm_error *err)
{
    const struct sl_bucketing *bucketing = &b->dataset->model->data.batching.bucketing;
    struct sl_bucket_rule rule = {.batch_size = b->batch_size,
                                  .max_tokens = b->max_tokens,
                                  .padded = b->padding != SL_PADDING_NONE,
                                  .cost = request->cost};
    struct sl_histogram histogram;
    if (!sl_bucketing_has_edges(bucketing) || b->dataset->stream || !b->dataset->facts.has_steps ||
        b->phase == SL_BATCHING_PREDICT)
        return SEQLSTM_OK;
    if (request->edge_count > 0) {
        b->edges.lengths = malloc((size_t)request->edge_count * sizeof *b->edges.lengths);
        if (!b->edges.lengths)
            return SL_DATA_NO_MEMORY(err);
        memcpy(b->edges.lengths, request->edges, (size_t)request->edge_count * sizeof *b->edges.lengths);
        b->edges.count = request->edge_count;
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(sl_histogram_make(b->dataset->length, b->dataset->source.length, b->dataset->records, &histogram, err));
    seqlstm_status status = sl_edges_make(bucketing, &histogram, &rule, &b->edges, err);
    sl_histogram_deinit(&histogram);
    return status;
}

/* The largest number of sequences in a batch, and of rows: from the request, else from the model. */
static void set_limits(struct sl_batcher *b, const struct sl_batcher_request *request)
{
    const struct sl_data_config *config = &b->dataset->model->data;
    bool said = request->batch_size > 0 || request->max_tokens > 0;
    b->batch_size = said ? request->batch_size : config->batch_size;
    b->max_tokens = b->dataset->stream || !b->dataset->facts.has_steps ? 0
                    : said                                             ? request->max_tokens
                                                                       : config->batching.max_tokens;
    if (b->batch_size < 1 && b->max_tokens < 1)
        b->batch_size = config->batch_size > 0 ? config->batch_size : 1;
}

seqlstm_status sl_batcher_open(const struct sl_dataset *dataset, const struct sl_batcher_request *request,
                               struct sl_batcher **out_batcher, struct seqlstm_error *err)
{
    const struct sl_data_config *config = &dataset->model->data;
    struct sl_batcher *b = calloc(1, sizeof *b);
    if (!b)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a batcher");
    b->dataset = dataset;
    b->phase = request->phase;
    b->seed = request->seed;
    set_limits(b, request);
    b->padding =
        request->phase == SL_BATCHING_PREDICT || !dataset->facts.has_steps ? SL_PADDING_NONE : config->batching.padding;
    b->bptt = request->phase == SL_BATCHING_PREDICT || !dataset->facts.has_steps ? 0 : config->batching.bptt;
    b->shuffle = request->phase == SL_BATCHING_TRAIN && config->shuffle && !dataset->stream;
    if (dataset->stream) {
        b->bptt = config->batching.bptt; /* also for predict: a stream has no other batches */
        sl_stream_cut(dataset->length[0], b->batch_size, &b->streams, &b->stream_steps);
        if (b->bptt <= 0 || b->bptt > b->stream_steps)
            b->bptt = b->stream_steps;
        if (b->streams < 1 || (request->phase == SL_BATCHING_TRAIN && b->streams < b->batch_size)) {
            int64_t positions = dataset->length[0], size = b->batch_size;
            free(b);
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                         "the stream has %lld steps, too few for the %lld parallel streams of `batch_size`",
                         (long long)positions, (long long)size);
        }
    }
    struct sl_envelope_rule envelope = {
        .batch_size = b->batch_size, .max_tokens = b->max_tokens, .bptt = b->bptt, .padding = b->padding};
    seqlstm_status status = make_edges(b, request, err);
    if (status == SEQLSTM_OK)
        status = make_order(b, err);
    if (status == SEQLSTM_OK)
        status = sl_envelope_compute(dataset, &envelope, &b->envelope, err);
    if (status != SEQLSTM_OK) {
        sl_batcher_close(b);
        return status;
    }
    *out_batcher = b;
    return SEQLSTM_OK;
}

void sl_batcher_close(struct sl_batcher *batcher)
{
    if (!batcher)
        return;
    sl_order_deinit(&batcher->order);
    sl_edges_deinit(&batcher->edges);
    free(batcher);
}

static int64_t count_batches(const struct sl_batcher *b)
{
    return b->dataset->stream ? (b->stream_steps + b->bptt - 1) / b->bptt : b->order.segments;
}

static void find_stream_rows(const struct sl_batcher *b, struct sl_batch_rows *rows)
{
    rows->offset = (int64_t)b->ordinal * b->bptt;
    int64_t steps = b->stream_steps - rows->offset < b->bptt ? b->stream_steps - rows->offset : b->bptt;
    for (int64_t k = 0; k < rows->sequences; k++) {
        rows->first[k] = b->dataset->start[0] + k * b->stream_steps + rows->offset;
        rows->length[k] = rows->real[k] = (int32_t)steps;
        rows->record[k] = 0;
    }
    rows->last = rows->offset + steps >= b->stream_steps;
}

static void find_sequence_rows(const struct sl_batcher *b, int64_t batch, int64_t segment, struct sl_batch_rows *rows)
{
    rows->offset = segment * b->bptt;
    int64_t padded = b->order.padded ? b->order.padded[batch] - rows->offset : 0;
    padded = b->bptt > 0 && padded > b->bptt ? b->bptt : padded;
    for (int64_t k = 0; k < rows->sequences; k++) {
        int64_t record = b->order.records[b->order.first[batch] + k];
        int64_t rest = b->dataset->length[record] - rows->offset;
        rest = rest < 0 ? 0 : b->bptt > 0 && rest > b->bptt ? b->bptt : rest;
        rows->record[k] = record;
        rows->first[k] = b->dataset->start[record] + rows->offset;
        rows->real[k] = (int32_t)rest;
        rows->length[k] = (int32_t)(b->order.padded ? padded : rest);
    }
    rows->last = b->order.segments_before[batch] + segment + 1 == b->order.segments_before[batch + 1];
}

seqlstm_status sl_batcher_next(struct sl_batcher *b, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    struct sl_batch_rows rows = {.ordinal = b->ordinal};
    int64_t batch = 0, segment = 0;
    seqlstm_status status = SEQLSTM_OK;
    SEQLSTM_TRY(make_order(b, err));
    if ((int64_t)b->ordinal >= count_batches(b)) {
        b->epoch++;
        b->ordinal = 0;
        SEQLSTM_TRY(make_order(b, err)); /* now, so that get_batches counts those of the next epoch */
        *out_batch = NULL;
        return SEQLSTM_OK;
    }
    if (!b->dataset->stream)
        sl_order_find(&b->order, (int64_t)b->ordinal, &batch, &segment);
    rows.sequences = b->dataset->stream ? b->streams : b->order.first[batch + 1] - b->order.first[batch];
    rows.first = malloc((size_t)rows.sequences * sizeof *rows.first);
    rows.length = malloc((size_t)rows.sequences * sizeof *rows.length);
    rows.real = malloc((size_t)rows.sequences * sizeof *rows.real);
    rows.record = malloc((size_t)rows.sequences * sizeof *rows.record);
    if (!rows.first || !rows.length || !rows.real || !rows.record) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a batch");
    } else {
        if (b->dataset->stream)
            find_stream_rows(b, &rows);
        else
            find_sequence_rows(b, batch, segment, &rows);
        status = sl_batch_rows_gather(b->dataset, &rows, out_batch, err);
    }
    free(rows.first);
    free(rows.length);
    free(rows.real);
    free(rows.record);
    b->ordinal += status == SEQLSTM_OK;
    return status;
}

seqlstm_status sl_batcher_seek(struct sl_batcher *b, uint64_t epoch, uint64_t ordinal, struct seqlstm_error *err)
{
    uint64_t old_epoch = b->epoch;
    b->epoch = epoch;
    seqlstm_status status = make_order(b, err);
    if (status == SEQLSTM_OK && (ordinal > INT64_MAX || (int64_t)ordinal > count_batches(b)))
        status = seqlstm_error_set(err, SEQLSTM_INVALID_ARGUMENT, __FILE__, __LINE__,
                                   "batch %llu of epoch %llu: the epoch has %lld batches", (unsigned long long)ordinal,
                                   (unsigned long long)epoch, (long long)count_batches(b));
    if (status != SEQLSTM_OK) {
        b->epoch = old_epoch;
        return status;
    }
    b->ordinal = ordinal;
    return SEQLSTM_OK;
}

const struct sl_dataset *sl_batcher_get_dataset(const struct sl_batcher *batcher)
{
    return batcher->dataset;
}

uint64_t sl_batcher_get_epoch(const struct sl_batcher *batcher)
{
    return batcher->epoch;
}

uint64_t sl_batcher_get_ordinal(const struct sl_batcher *batcher)
{
    return batcher->ordinal;
}

int64_t sl_batcher_get_batches(const struct sl_batcher *batcher)
{
    return count_batches(batcher);
}

struct sl_envelope sl_batcher_envelope(const struct sl_batcher *batcher)
{
    return batcher->envelope;
}

int64_t sl_batcher_get_lost_rows(const struct sl_batcher *batcher)
{
    return batcher->dataset->stream ? batcher->dataset->length[0] - batcher->streams * batcher->stream_steps : 0;
}

const int64_t *sl_batcher_get_edges(const struct sl_batcher *batcher, int64_t *out_count)
{
    *out_count = batcher->edges.count;
    return batcher->edges.lengths;
}

/* ---- profiles ---- */

/* Lengths of segment `ordinal` of the epoch; returns its sequences. Not for streams. */
static int64_t get_lengths(const struct sl_batcher *b, int64_t ordinal, int32_t *lengths, int64_t *out_rows)
{
    int64_t batch, segment;
    sl_order_find(&b->order, ordinal, &batch, &segment);
    int64_t first = b->order.first[batch], count = b->order.first[batch + 1] - first, offset = segment * b->bptt;
    *out_rows = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = b->dataset->length[b->order.records[first + k]] - offset;
        lengths[k] = (int32_t)(rest < 0 ? 0 : b->bptt > 0 && rest > b->bptt ? b->bptt : rest);
        *out_rows += lengths[k];
    }
    return count;
}

struct sized {
    int64_t rows, ordinal;
};

static int most_rows_first(const void *left, const void *right)
{
    const struct sized *a = left, *b = right;
    if (a->rows != b->rows)
        return a->rows < b->rows ? 1 : -1;
    return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

static int longest_first(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a < b) - (a > b);
}

/* Lengths of the sources of batch `ordinal`, in the source's own order. */
static void get_source_lengths(const struct sl_batcher *b, int64_t ordinal, int32_t *lengths)
{
    int64_t batch, segment;
    sl_order_find(&b->order, ordinal, &batch, &segment);
    int64_t first = b->order.first[batch], count = b->order.first[batch + 1] - first;
    for (int64_t k = 0; k < count; k++)
        lengths[k] = (int32_t)sl_dataset_get_source_length(b->dataset, b->order.records[first + k]);
    qsort(lengths, (size_t)count, sizeof *lengths, longest_first);
}

/* `lengths` has room for both sides. */
static seqlstm_status sample_segments(const struct sl_batcher *b, struct sized *sized, int32_t *lengths,
                                      struct sl_profiles *out, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = &b->dataset->facts;
    int32_t *source_lengths = facts->source.kind != SL_FIELD_NONE ? lengths + b->dataset->records : NULL;
    int64_t segments = count_batches(b), groups = segments < SL_PROFILES ? segments : SL_PROFILES;
    for (int64_t i = 0; i < segments; i++) {
        sized[i].ordinal = i;
        get_lengths(b, i, lengths, &sized[i].rows);
    }
    qsort(sized, (size_t)segments, sizeof *sized, most_rows_first);
    for (int64_t g = 0; g < groups; g++) {
        int64_t begin = g * segments / groups, end = (g + 1) * segments / groups, rows;
        int64_t ordinal = sized[begin + (end - begin) / 2].ordinal;
        int64_t sequences = get_lengths(b, ordinal, lengths, &rows);
        double weight = (double)(end - begin) / (double)segments;
        if (source_lengths)
            get_source_lengths(b, ordinal, source_lengths);
        SEQLSTM_TRY(sl_profiles_add(out, sequences, facts->has_steps ? lengths : NULL, source_lengths, weight, err));
    }
    groups = segments < SL_PROFILES_EPOCH ? segments : SL_PROFILES_EPOCH;
    for (int64_t g = 0; g < groups; g++) {
        int64_t ordinal = g * segments / groups, rows;
        int64_t sequences = get_lengths(b, ordinal, lengths, &rows);
        if (source_lengths)
            get_source_lengths(b, ordinal, source_lengths);
        SEQLSTM_TRY(sl_profiles_add_epoch(out, sequences, facts->has_steps ? lengths : NULL, source_lengths, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_batcher_sample(const struct sl_batcher *b, struct sl_profiles *out, struct seqlstm_error *err)
{
    bool stream = b->dataset->stream;
    size_t segments = (size_t)count_batches(b) + 1, most = (size_t)(stream ? b->streams : 2 * b->dataset->records) + 1;
    struct sized *sized = malloc(segments * sizeof *sized);
    int32_t *lengths = malloc(most * sizeof *lengths);
    seqlstm_status status;
    if (!sized || !lengths) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory to sample batches");
    } else if (stream) {
        for (int64_t k = 0; k < b->streams; k++)
            lengths[k] = (int32_t)(b->bptt < INT32_MAX ? b->bptt : INT32_MAX);
        status = sl_profiles_add(out, b->streams, lengths, NULL, 1.0, err);
        if (status == SEQLSTM_OK)
            status = sl_profiles_add_epoch(out, b->streams, lengths, NULL, err);
    } else {
        status = sample_segments(b, sized, lengths, out, err);
    }
    out->stream = stream;
    free(sized);
    free(lengths);
    if (status != SEQLSTM_OK)
        sl_profiles_deinit(out);
    return status;
}
