/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a dataset: which records or parts of the stream, and their rows copied into packed order. */
#include "data/batcher.h"

#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "data/dataset_private.h"
#include "data/envelope.h"
#include "data/order.h"

#define SHUFFLE_STREAM UINT64_C(0x73687566666c65) /* the batcher's random numbers */

struct sl_batcher {
    const struct sl_dataset *dataset;
    enum sl_batching_phase phase;
    uint64_t seed;
    int64_t batch_size, max_tokens, bptt;
    bool shuffle;
    int64_t parts, part_steps; /* of a stream */
    uint64_t epoch, ordinal;
    struct sl_order order;
    uint64_t order_epoch;
    bool has_order;
    struct sl_envelope envelope;
};

/* One batch in the making: sequence k is rows first[k] .. first[k] + length[k] - 1 of the store. */
struct piece {
    int64_t sequences;
    int64_t *first;
    int32_t *length;
    int64_t *record;
    int64_t offset; /* steps of the records before this piece */
    bool last;
};

static seqlstm_status
make_order(struct sl_batcher *b, struct seqlstm_error *err)
{
    const struct sl_batching *batching = &b->dataset->model->data.batching;
    if (b->dataset->stream || (b->has_order && (b->order_epoch == b->epoch || !b->shuffle)))
        return SEQLSTM_OK;
    struct sl_order_rule rule = {
        .records = b->dataset->records,
        .lengths = b->dataset->length,
        .shuffle = b->shuffle,
        .pools = b->dataset->facts.has_steps && batching->bucketing == SL_BUCKETING_POOLS &&
                 b->phase != SL_BATCHING_PREDICT,
        .pool = batching->pool,
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

seqlstm_status
sl_batcher_open(const struct sl_dataset *dataset, const struct sl_batcher_request *request,
                struct sl_batcher **out_batcher, struct seqlstm_error *err)
{
    const struct sl_data_config *config = &dataset->model->data;
    struct sl_batcher *b = calloc(1, sizeof *b);
    if (!b)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a batcher");
    b->dataset = dataset;
    b->phase = request->phase;
    b->seed = request->seed;
    b->batch_size = request->batch_size > 0 ? request->batch_size : config->batch_size > 0 ? config->batch_size : 1;
    b->max_tokens = request->max_tokens;
    b->bptt = request->phase == SL_BATCHING_PREDICT || !dataset->facts.has_steps ? 0 : config->batching.bptt;
    b->shuffle = request->phase == SL_BATCHING_TRAIN && config->shuffle && !dataset->stream;
    if (dataset->stream) {
        b->bptt = config->batching.bptt; /* also for predict: a stream has no other way */
        sl_stream_cut(dataset->length[0], b->batch_size, &b->parts, &b->part_steps);
        if (b->bptt <= 0 || b->bptt > b->part_steps)
            b->bptt = b->part_steps;
        if (b->parts < 1 || (request->phase == SL_BATCHING_TRAIN && b->parts < b->batch_size)) {
            int64_t positions = dataset->length[0];
            free(b);
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                         "the stream has %lld steps, too few for the %lld parallel streams of `batch_size`",
                         (long long)positions,
                         (long long)(request->batch_size > 0 ? request->batch_size : config->batch_size));
        }
    }
    seqlstm_status status = make_order(b, err);
    if (status == SEQLSTM_OK)
        status = sl_envelope_compute(dataset, b->batch_size, b->max_tokens, &b->envelope, err);
    if (status != SEQLSTM_OK) {
        sl_batcher_close(b);
        return status;
    }
    *out_batcher = b;
    return SEQLSTM_OK;
}

void
sl_batcher_close(struct sl_batcher *batcher)
{
    if (!batcher)
        return;
    sl_order_deinit(&batcher->order);
    free(batcher);
}

/* ---- filling ---- */

/* Whether a sequence ends in this piece, and so has its target here. */
static bool
ends_here(const struct sl_batcher *b, const struct piece *p, int64_t k)
{
    int64_t total = b->dataset->length[p->record[k]];
    return p->offset + p->length[k] >= total && (p->offset < total || p->offset == 0);
}

static int32_t
target_id(const struct sl_dataset *d, int64_t row)
{
    int32_t id = d->form == SL_TARGET_NEXT ? d->input_ids[row + 1] : d->target_ids[row];
    return id == d->state->ignore_id ? -1 : id;
}

/* Where the target values of a row or record begin. */
static const float *
target_values(const struct sl_dataset *d, int64_t row)
{
    return d->target_values + (row + (d->form == SL_TARGET_AHEAD)) * d->target_columns;
}

static void
fill_steps(const struct sl_dataset *d, const struct piece *p, struct sl_batch *batch)
{
    int64_t F = batch->input.features, O = batch->target.features;
    int32_t *ids = (int32_t *)(uintptr_t)batch->input.ids, *out_ids = (int32_t *)(uintptr_t)batch->target.ids;
    float *values = (float *)(uintptr_t)batch->input.values, *out = (float *)(uintptr_t)batch->target.values;
    bool on_steps = batch->target.kind != SL_FIELD_NONE && batch->target.on_steps;
    for (int64_t k = 0; k < p->sequences; k++) {
        for (int64_t t = 0; t < p->length[k]; t++) {
            int64_t row = sl_batch_row(batch, k, t), from = p->first[k] + t;
            if (batch->input.kind == SL_FIELD_IDS)
                ids[row] = d->input_ids[from];
            else
                memcpy(values + row * F, d->input_values + from * F, (size_t)F * sizeof *values);
            if (on_steps && batch->target.kind == SL_FIELD_IDS)
                out_ids[row] = target_id(d, from);
            else if (on_steps)
                memcpy(out + row * O, target_values(d, from), (size_t)O * sizeof *out);
        }
    }
}

/* Inputs without steps, and one target per sequence. */
static void
fill_sequences(const struct sl_batcher *b, const struct piece *p, struct sl_batch *batch)
{
    const struct sl_dataset *d = b->dataset;
    int64_t F = batch->input.features, O = batch->target.features;
    float *weight = (float *)(uintptr_t)batch->weight.values;
    for (int64_t k = 0; k < p->sequences; k++) {
        int64_t record = p->record[k];
        if (!batch->has_steps && batch->input.kind == SL_FIELD_VALUES)
            memcpy((float *)(uintptr_t)batch->input.values + k * F, d->input_values + p->first[k] * F,
                   (size_t)F * sizeof(float));
        else if (!batch->has_steps)
            ((int32_t *)(uintptr_t)batch->input.ids)[k] = d->input_ids[p->first[k]];
        if (batch->target.kind == SL_FIELD_NONE || batch->target.on_steps)
            continue;
        int64_t row = d->target_row ? d->target_row[record] : d->start[record] + d->length[record] - 1;
        bool here = ends_here(b, p, k);
        if (batch->target.kind == SL_FIELD_IDS)
            ((int32_t *)(uintptr_t)batch->target.ids)[k] = here ? target_id(d, row) : -1;
        else
            memcpy((float *)(uintptr_t)batch->target.values + k * O, target_values(d, row),
                   (size_t)O * sizeof(float));
        if (batch->weight.kind == SL_FIELD_VALUES)
            weight[k] = here ? 1.0f : 0.0f;
    }
}

static seqlstm_status
fill(const struct sl_batcher *b, const struct piece *p, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = &b->dataset->facts;
    bool targets = b->dataset->form != SL_TARGET_NONE;
    struct sl_batch_shape shape = {
        .sequences = p->sequences,
        .lengths = facts->has_steps ? p->length : NULL,
        .input_kind = facts->input.kind,
        .input_features = facts->input.features,
        .input_on_steps = facts->input.on_steps,
        .target_kind = targets ? facts->target.kind : SL_FIELD_NONE,
        .target_features = facts->target.features,
        .target_on_steps = facts->target.on_steps,
        .has_weight = targets && facts->has_weight,
    };
    struct sl_batch *batch;
    SEQLSTM_TRY(sl_batch_create(&shape, &batch, err));
    for (int64_t k = 0; k < p->sequences; k++) {
        int64_t who = b->dataset->stream ? k : p->record[k];
        ((int64_t *)(uintptr_t)batch->sample)[k] = who;
        ((int64_t *)(uintptr_t)batch->sample_step)[k] = p->offset;
        ((uint64_t *)(uintptr_t)batch->axis.sequence_id)[k] = (uint64_t)who;
        ((uint32_t *)(uintptr_t)batch->axis.position0)[k] = (uint32_t)p->offset;
    }
    if (facts->has_steps)
        fill_steps(b->dataset, p, batch);
    if (!b->dataset->stream)
        fill_sequences(b, p, batch);
    batch->carry_state = p->offset > 0;
    batch->last_piece = p->last;
    batch->ordinal = b->ordinal;
    *out_batch = batch;
    return SEQLSTM_OK;
}

static int64_t
count_batches(const struct sl_batcher *b)
{
    return b->dataset->stream ? (b->part_steps + b->bptt - 1) / b->bptt : b->order.pieces;
}

static void
find_stream_piece(const struct sl_batcher *b, struct piece *p)
{
    p->offset = (int64_t)b->ordinal * b->bptt;
    int64_t steps = b->part_steps - p->offset < b->bptt ? b->part_steps - p->offset : b->bptt;
    for (int64_t k = 0; k < p->sequences; k++) {
        p->first[k] = b->dataset->start[0] + k * b->part_steps + p->offset;
        p->length[k] = (int32_t)steps;
        p->record[k] = 0;
    }
    p->last = p->offset + steps >= b->part_steps;
}

static void
find_sequence_piece(const struct sl_batcher *b, int64_t batch, int64_t piece, struct piece *p)
{
    p->offset = piece * b->bptt;
    for (int64_t k = 0; k < p->sequences; k++) {
        int64_t record = b->order.records[b->order.first[batch] + k];
        int64_t rest = b->dataset->length[record] - p->offset;
        rest = rest < 0 ? 0 : b->bptt > 0 && rest > b->bptt ? b->bptt : rest;
        p->record[k] = record;
        p->first[k] = b->dataset->start[record] + p->offset;
        p->length[k] = (int32_t)rest;
    }
    p->last = b->order.pieces_before[batch] + piece + 1 == b->order.pieces_before[batch + 1];
}

seqlstm_status
sl_batcher_next(struct sl_batcher *b, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    struct piece p = {0};
    int64_t batch = 0, piece = 0;
    seqlstm_status status = SEQLSTM_OK;
    SEQLSTM_TRY(make_order(b, err));
    if ((int64_t)b->ordinal >= count_batches(b)) {
        b->epoch++;
        b->ordinal = 0;
        SEQLSTM_TRY(make_order(b, err)); /* now, so that get_batches tells of the epoch to come */
        *out_batch = NULL;
        return SEQLSTM_OK;
    }
    if (!b->dataset->stream)
        sl_order_find(&b->order, (int64_t)b->ordinal, &batch, &piece);
    p.sequences = b->dataset->stream ? b->parts : b->order.first[batch + 1] - b->order.first[batch];
    p.first = malloc((size_t)p.sequences * sizeof *p.first);
    p.length = malloc((size_t)p.sequences * sizeof *p.length);
    p.record = malloc((size_t)p.sequences * sizeof *p.record);
    if (!p.first || !p.length || !p.record) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a batch");
    } else {
        if (b->dataset->stream)
            find_stream_piece(b, &p);
        else
            find_sequence_piece(b, batch, piece, &p);
        status = fill(b, &p, out_batch, err);
    }
    free(p.first);
    free(p.length);
    free(p.record);
    b->ordinal += status == SEQLSTM_OK;
    return status;
}

seqlstm_status
sl_batcher_seek(struct sl_batcher *b, uint64_t epoch, uint64_t ordinal, struct seqlstm_error *err)
{
    uint64_t old_epoch = b->epoch;
    b->epoch = epoch;
    seqlstm_status status = make_order(b, err);
    if (status == SEQLSTM_OK && (ordinal > INT64_MAX || (int64_t)ordinal > count_batches(b)))
        status = seqlstm_error_set(
            err, SEQLSTM_INVALID_ARGUMENT, __FILE__, __LINE__, "batch %llu of epoch %llu: the epoch has %lld batches",
            (unsigned long long)ordinal, (unsigned long long)epoch, (long long)count_batches(b));
    if (status != SEQLSTM_OK) {
        b->epoch = old_epoch;
        return status;
    }
    b->ordinal = ordinal;
    return SEQLSTM_OK;
}

uint64_t
sl_batcher_get_epoch(const struct sl_batcher *batcher)
{
    return batcher->epoch;
}

uint64_t
sl_batcher_get_ordinal(const struct sl_batcher *batcher)
{
    return batcher->ordinal;
}

int64_t
sl_batcher_get_batches(const struct sl_batcher *batcher)
{
    return count_batches(batcher);
}

struct sl_envelope
sl_batcher_envelope(const struct sl_batcher *batcher)
{
    return batcher->envelope;
}

int64_t
sl_batcher_get_lost_rows(const struct sl_batcher *batcher)
{
    return batcher->dataset->stream ? batcher->dataset->length[0] - batcher->parts * batcher->part_steps : 0;
}
