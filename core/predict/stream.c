/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h. A step copies the states of its streams to the rows of the executor, runs, and copies them back. */
#include "predict/stream.h"

#include <stdlib.h>
#include <string.h>

#include "predict/predictor_private.h"

seqlstm_status sl_stream_open(const struct sl_predictor *predictor, struct sl_stream **out_stream,
                              struct seqlstm_error *err)
{
    if (predictor->made.plans[SL_USE_STREAM].plan == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model cannot run as a stream: %s", predictor->reason);
    struct sl_stream *stream = calloc(1, sizeof *stream);
    float *values = calloc((size_t)predictor->state_elems + 1, sizeof *values);
    if (stream == NULL || values == NULL) {
        free(stream);
        free(values);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a stream");
    }
    stream->predictor = predictor;
    stream->values = values;
    *out_stream = stream;
    return SEQLSTM_OK;
}

void sl_stream_close(struct sl_stream *stream)
{
    if (stream == NULL)
        return;
    free(stream->values);
    free(stream);
}

void sl_stream_reset(struct sl_stream *stream)
{
    memset(stream->values, 0, (size_t)stream->predictor->state_elems * sizeof *stream->values);
    stream->position = 0;
}

int64_t sl_stream_get_position(const struct sl_stream *stream)
{
    return stream->position;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

enum direction { TO_EXECUTOR, FROM_EXECUTOR };

/* Streams whose states are fetched while those of one are copied: the states of many are not in the caches. */
enum { FETCHED_AHEAD = 4, LINE_FLOATS = 16 };

static void fetch(const float *values, int64_t count)
{
    for (int64_t k = 0; k < count; k += LINE_FLOATS)
        __builtin_prefetch(values + k, 1);
}

/* The stream of each row of a batch. */
struct members {
    struct sl_stream *const *streams; /* in the order of the rows; or NULL */
    const struct sl_chunk *chunks;    /* in the order of the caller, */
    const int32_t *order;             /* which row k has from order[k] */
    int64_t count;
};

static struct sl_stream *get_member(const struct members *members, int64_t k)
{
    return members->streams ? members->streams[k] : members->chunks[members->order[k]].stream;
}

/* Copies the states of the streams to or from the first rows of an executor on the host. */
static void move_lean(const struct sl_predictor_lane *lane, int64_t elems, const struct members *members,
                      enum direction direction)
{
    const int32_t states = sl_exec_get_graph(lane->exec)->state_count;
    for (int64_t k = 0; k < members->count; k++) {
        float *own = get_member(members, k)->values;
        if (k + FETCHED_AHEAD < members->count)
            fetch(get_member(members, k + FETCHED_AHEAD)->values, elems);
        for (int32_t s = 0; s < states; s++) {
            const struct sl_state_rows *rows = &lane->states[s];
            const size_t bytes = (size_t)rows->features * sizeof *own;
            if (direction == TO_EXECUTOR)
                memcpy(rows->in + k * rows->features, own, bytes);
            else
                memcpy(own, rows->out + k * rows->features, bytes);
            own += rows->features;
        }
    }
}

static seqlstm_status move_states(struct sl_predictor_lane *lane, int64_t state_elems, const struct members *members,
                                  enum direction direction, struct seqlstm_error *err)
{
    const struct sl_graph *graph = sl_exec_get_graph(lane->exec);
    float *all;
    int64_t elems, at = 0;
    if (lane->states) {
        move_lean(lane, state_elems, members, direction);
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(sl_exec_get_state(lane->exec, &all, &elems, err));
    for (int32_t s = 0; s < graph->state_count; s++) {
        const int64_t features = graph->states[s].features;
        float *rows = all + sl_exec_get_state_offset(lane->exec, s);
        for (int64_t k = 0; k < members->count; k++) {
            float *row = rows + k * features, *own = get_member(members, k)->values + at;
            memcpy(direction == TO_EXECUTOR ? row : own, direction == TO_EXECUTOR ? own : row,
                   (size_t)features * sizeof *row);
        }
        at += features;
    }
    return SEQLSTM_OK;
}

/* Steps that are laid out. */
static seqlstm_status run(const struct sl_predictor *predictor, struct sl_predictor_lane *lane,
                          const struct members *members, const void *x, struct seqlstm_error *err)
{
    struct sl_packer *packer = &lane->packer;
    for (int64_t k = 0; k < members->count; k++)
        packer->positions[k] = (uint32_t)get_member(members, k)->position;
    SEQLSTM_TRY(sl_packer_fill(packer, predictor->made.state, x, err));
    SEQLSTM_TRY(move_states(lane, predictor->state_elems, members, TO_EXECUTOR, err));
    packer->batch.carry_state = true;
    SEQLSTM_TRY(sl_context_run(lane, &packer->batch, err));
    SEQLSTM_TRY(move_states(lane, predictor->state_elems, members, FROM_EXECUTOR, err));
    for (int64_t k = 0; k < members->count; k++)
        get_member(members, k)->position += packer->lengths[k];
    return SEQLSTM_OK;
}

/* The same number of steps of each stream. */
static seqlstm_status step(const struct sl_predictor *predictor, struct sl_predictor_lane *lane,
                           struct sl_stream *const *streams, int64_t count, const void *x, struct seqlstm_error *err)
{
    const struct members members = {.streams = streams, .count = count};
    lane->packer.batch.axis.flags |= SEQLSTM_BIT_AXIS_STREAM;
    return run(predictor, lane, &members, x, err);
}

/* Copies the output of the last step to y. */
static void hand_out(const struct sl_predictor *predictor, const struct sl_predictor_lane *lane, float *y)
{
    const struct sl_field output = sl_exec_get_output(lane->exec);
    const int64_t rows = output.on_steps ? lane->packer.batch.axis.rows : lane->packer.batch.sequences;
    memcpy(y, output.values, (size_t)(rows * output.features) * sizeof *y);
    if (predictor->undoes_targets)
        sl_data_state_undo_targets(predictor->made.state, y, rows);
}

seqlstm_status sl_stream_step(struct sl_context *context, struct sl_stream *stream, const void *x, int64_t steps,
                              float *y, struct seqlstm_error *err)
{
    struct sl_predictor_lane *lane;
    if (stream->predictor != context->predictor)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the stream and the context are of different predictors");
    if (steps < 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a call of %lld steps, expected at least 1", (long long)steps);
    SEQLSTM_TRY(sl_context_provide(context, SL_USE_STREAM, &lane, err));
    const bool on_steps = sl_predictor_has_step_output(context->predictor);
    while (steps > 0) {
        const int64_t now = steps < lane->packer.steps ? steps : lane->packer.steps;
        sl_packer_lay_out(&lane->packer, &now, 1);
        SEQLSTM_TRY(step(context->predictor, lane, &stream, 1, x, err));
        if (y) {
            hand_out(context->predictor, lane, y);
            y += on_steps ? now * sl_predictor_get_features(context->predictor) : 0;
        }
        x = (const char *)x + now * lane->packer.batch.input.features * (int64_t)sizeof(float);
        steps -= now;
    }
    return SEQLSTM_OK;
}

/* `count` sequences of one step. */
static void lay_out_ones(struct sl_packer *packer, int64_t count)
{
    struct seqlstm_axis *axis = &packer->batch.axis;
    for (int64_t k = 0; k < count; k++) {
        packer->order[k] = (int32_t)k;
        packer->begins[k] = k;
        packer->lengths[k] = 1;
    }
    packer->batch.has_steps = true;
    packer->batch.sequences = axis->sequences = axis->rows = packer->row_offsets[1] = count;
    packer->batch_sizes[0] = (int32_t)count;
    axis->steps = 1;
    axis->flags = SEQLSTM_BIT_AXIS_UNIFORM;
}

seqlstm_status sl_streams_step(struct sl_context *context, struct sl_stream *const *streams, int64_t count,
                               const void *x, float *y, struct seqlstm_error *err)
{
    const int64_t features = sl_predictor_get_features(context->predictor);
    struct sl_predictor_lane *lane;
    if (count < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there are %lld streams, expected at least 0", (long long)count);
    for (int64_t k = 0; k < count; k++)
        if (streams[k]->predictor != context->predictor)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "stream %lld and the context are of different predictors",
                         (long long)k);
    const struct sl_predictor_request *made = &context->predictor->made;
    const bool batches = !made->reproducible && made->plans[SL_USE_STREAMS].plan != NULL;
    SEQLSTM_TRY(sl_context_provide(context, batches ? SL_USE_STREAMS : SL_USE_STREAM, &lane, err));
    while (count > 0) {
        const int64_t now = count < lane->packer.sequences ? count : lane->packer.sequences;
        lay_out_ones(&lane->packer, now);
        SEQLSTM_TRY(step(context->predictor, lane, streams, now, x, err));
        if (y) {
            hand_out(context->predictor, lane, y);
            y += now * features;
        }
        streams += now;
        x = (const char *)x + now * lane->packer.batch.input.features * (int64_t)sizeof(float);
        count -= now;
    }
    return SEQLSTM_OK;
}

/* ---- chunks ----------------------------------------------------------------------------------------------------- */

static seqlstm_status check_chunks(const struct sl_context *context, const struct sl_packer *packer,
                                   const struct sl_chunk *chunks, int64_t count, struct seqlstm_error *err)
{
    if (count < 1 || count > packer->sequences)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%lld streams, expected 1 to %lld", (long long)count,
                     (long long)packer->sequences);
    for (int64_t k = 0; k < count; k++) {
        if (chunks[k].stream->predictor != context->predictor)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "stream %lld and the context are of different predictors",
                         (long long)k);
        if (chunks[k].steps < 1 || chunks[k].steps > packer->steps)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%lld steps of stream %lld, expected 1 to %lld",
                         (long long)chunks[k].steps, (long long)k, (long long)packer->steps);
    }
    return SEQLSTM_OK;
}

/* The input of all streams one after the other, laid out. */
static void gather(struct sl_predictor_lane *lane, const struct sl_chunk *chunks, int64_t count)
{
    struct sl_packer *packer = &lane->packer;
    const size_t row_bytes = (size_t)packer->batch.input.features * sizeof(float);
    char *to = lane->gathered;
    for (int64_t k = 0; k < count; k++) {
        packer->samples[k] = chunks[k].steps; /* as lengths */
        memcpy(to, chunks[k].x, (size_t)chunks[k].steps * row_bytes);
        to += (size_t)chunks[k].steps * row_bytes;
    }
    sl_packer_lay_out(packer, packer->samples, count);
}

/* Copies the output of row k of the batch to its chunk. */
static void hand_out_chunk(const struct sl_predictor *predictor, const struct sl_packer *packer, struct sl_field output,
                           int64_t k, const struct sl_chunk *chunk)
{
    const int64_t rows = output.on_steps && !chunk->last ? chunk->steps : 1;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t t = chunk->last ? chunk->steps - 1 : r;
        const int64_t row = output.on_steps ? packer->row_offsets[t] + k : k;
        memcpy(chunk->y + r * output.features, output.values + row * output.features,
               (size_t)output.features * sizeof *chunk->y);
    }
    if (predictor->undoes_targets)
        sl_data_state_undo_targets(predictor->made.state, chunk->y, rows);
}

seqlstm_status sl_stream_find_last(struct sl_context *context, const float **out_row, struct seqlstm_error *err)
{
    struct sl_predictor_lane *lane;
    SEQLSTM_TRY(sl_context_provide(context, SL_USE_STREAM, &lane, err));
    const struct sl_field output = sl_exec_get_output(lane->exec);
    const int64_t row = output.on_steps ? lane->packer.batch.axis.rows - 1 : 0;
    *out_row = output.values + row * output.features;
    return SEQLSTM_OK;
}

/* By itself. */
static seqlstm_status advance_one(struct sl_context *context, const struct sl_chunk *chunk, struct seqlstm_error *err)
{
    const float *row = NULL;
    if (!chunk->last || chunk->y == NULL)
        return sl_stream_step(context, chunk->stream, chunk->x, chunk->steps, chunk->y, err);
    SEQLSTM_TRY(sl_stream_step(context, chunk->stream, chunk->x, chunk->steps, NULL, err));
    SEQLSTM_TRY(sl_stream_find_last(context, &row, err));
    memcpy(chunk->y, row, (size_t)sl_predictor_get_features(context->predictor) * sizeof *row);
    if (context->predictor->undoes_targets)
        sl_data_state_undo_targets(context->predictor->made.state, chunk->y, 1);
    return SEQLSTM_OK;
}

seqlstm_status sl_streams_advance(struct sl_context *context, const struct sl_chunk *chunks, int64_t count,
                                  struct seqlstm_error *err)
{
    struct sl_predictor_lane *lane;
    SEQLSTM_TRY(sl_context_provide(context, SL_USE_CHUNKS, &lane, err));
    struct sl_packer *packer = &lane->packer;
    SEQLSTM_TRY(check_chunks(context, packer, chunks, count, err));
    if (count == 1 || context->predictor->made.reproducible) {
        for (int64_t k = 0; k < count; k++)
            SEQLSTM_TRY(advance_one(context, &chunks[k], err));
        return SEQLSTM_OK;
    }
    const struct members members = {.chunks = chunks, .order = packer->order, .count = count};
    gather(lane, chunks, count);
    SEQLSTM_TRY(run(context->predictor, lane, &members, lane->gathered, err));
    const struct sl_field output = sl_exec_get_output(lane->exec);
    for (int64_t k = 0; k < count; k++)
        if (chunks[packer->order[k]].y)
            hand_out_chunk(context->predictor, packer, output, k, &chunks[packer->order[k]]);
    return SEQLSTM_OK;
}
