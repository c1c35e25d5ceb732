/* SPDX-License-Identifier: Apache-2.0 */
/* See parts.h. */
#include "decode/parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

seqlstm_status sl_parts_init(struct sl_parts *parts, struct sl_exec *encoder, struct sl_exec *step,
                             struct seqlstm_error *err)
{
    *parts = (struct sl_parts){.encoder = encoder, .step = step, .graph = sl_exec_get_graph(step)};
    size_t rows = (size_t)parts->graph->facts.envelope.sequences + 1;
    parts->tokens = calloc(rows, sizeof *parts->tokens);
    parts->sentences = calloc(rows, sizeof *parts->sentences);
    parts->positions = calloc(rows, sizeof *parts->positions);
    parts->ones = calloc(rows, sizeof *parts->ones);
    parts->places = calloc(rows, sizeof *parts->places);
    if (!parts->tokens || !parts->sentences || !parts->positions || !parts->ones || !parts->places) {
        sl_parts_deinit(parts);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to decode");
    }
    for (size_t r = 0; r < rows; r++)
        parts->ones[r] = 1;
    return SEQLSTM_OK;
}

int64_t sl_parts_count_bytes(const struct sl_graph *step)
{
    return 5 * (int64_t)sizeof(int32_t) * step->facts.envelope.sequences;
}

void sl_parts_deinit(struct sl_parts *parts)
{
    free(parts->tokens);
    free(parts->sentences);
    free(parts->positions);
    free(parts->ones);
    free(parts->places);
    *parts = (struct sl_parts){0};
}

/* Copies the encoder's final states to the decoder's initial ones: both keep the same states, in buffers of different
 * heights. */
static seqlstm_status hand_over(struct sl_parts *parts, int64_t sequences, struct seqlstm_error *err)
{
    float *from, *to;
    int64_t elems;
    SEQLSTM_TRY(sl_exec_get_state(parts->encoder, &from, &elems, err));
    SEQLSTM_TRY(sl_exec_get_state(parts->step, &to, &elems, err));
    for (int32_t s = 0; s < parts->graph->state_count; s++)
        memcpy(to + sl_exec_get_state_offset(parts->step, s), from + sl_exec_get_state_offset(parts->encoder, s),
               (size_t)(sequences * parts->graph->states[s].features) * sizeof *to);
    return SEQLSTM_OK;
}

seqlstm_status sl_parts_begin(struct sl_parts *parts, const struct sl_batch *batch, struct seqlstm_error *err)
{
    struct sl_exec_step nothing = {0};
    struct sl_exec_result result;
    SEQLSTM_TRY(sl_exec_run(parts->encoder, batch, &nothing, &result, err));
    SEQLSTM_TRY(sl_exec_hand_memories(parts->encoder, parts->step, err));
    parts->batch = batch;
    return hand_over(parts, batch->sequences, err);
}

seqlstm_status sl_parts_run(struct sl_parts *parts, int32_t count, const float **out_probabilities,
                            struct seqlstm_error *err)
{
    struct sl_batch_shape shape = {.sequences = count,
                                   .lengths = parts->ones,
                                   .input_kind = SL_FIELD_IDS,
                                   .input_features = 1,
                                   .input_on_steps = true};
    struct sl_batch *batch = NULL;
    SEQLSTM_TRY(sl_batch_create(&shape, &batch, err));
    for (int32_t r = 0; r < count; r++) {
        ((int32_t *)batch->input.ids)[r] = parts->tokens[r];
        ((uint32_t *)batch->axis.position0)[r] = parts->positions[r];
        parts->places[r] = parts->batch->source.place[parts->sentences[r]];
    }
    batch->carry_state = true;
    batch->source = parts->batch->source; /* what attention reads: rows of a sentence share it */
    batch->source.place = parts->places;
    struct sl_exec_step nothing = {0};
    struct sl_exec_result result;
    seqlstm_status status = sl_exec_run(parts->step, batch, &nothing, &result, err);
    sl_batch_destroy(batch);
    SEQLSTM_TRY(status);
    *out_probabilities = sl_exec_get_output(parts->step).values;
    return SEQLSTM_OK;
}

seqlstm_status sl_parts_step(struct sl_parts *parts, int32_t count, int64_t step, const float **out_probabilities,
                             struct seqlstm_error *err)
{
    for (int32_t r = 0; r < count; r++)
        parts->positions[r] = (uint32_t)step;
    SEQLSTM_TRY(sl_parts_run(parts, count, out_probabilities, err));
    const struct sl_field output = sl_exec_get_output(parts->step);
    for (int32_t r = 0; r < count; r++) /* they come from a softmax: if one of a row is no number, none is */
        if (!isfinite(output.values[r * output.features]))
            SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "the decoder's probabilities at step %" PRId64 " are not numbers", step);
    return SEQLSTM_OK;
}

seqlstm_status sl_parts_follow(struct sl_parts *parts, float *spare, const int32_t *sources, int32_t count,
                               struct seqlstm_error *err)
{
    bool moved = false;
    for (int32_t r = 0; r < count; r++)
        moved = moved || sources[r] != r;
    if (!moved)
        return SEQLSTM_OK;
    float *states;
    int64_t elems;
    SEQLSTM_TRY(sl_exec_get_state(parts->step, &states, &elems, err));
    for (int32_t s = 0; s < parts->graph->state_count; s++) {
        const int64_t features = parts->graph->states[s].features;
        float *rows = states + sl_exec_get_state_offset(parts->step, s);
        for (int32_t r = 0; r < count; r++)
            memcpy(spare + r * features, rows + sources[r] * features, (size_t)features * sizeof *rows);
        memcpy(rows, spare, (size_t)(count * features) * sizeof *rows);
    }
    return SEQLSTM_OK;
}
