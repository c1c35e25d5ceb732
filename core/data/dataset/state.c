/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a state, and converting predictions back to the units of the file. */
#include "data/dataset/state_private.h"

#include <stdlib.h>

static void free_names(char **names, int64_t count)
{
    for (int64_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

void sl_data_state_destroy(struct sl_data_state *state)
{
    if (!state)
        return;
    sl_pieces_close(state->pieces);
    sl_pieces_close(state->source_pieces);
    sl_vocabulary_destroy(state->tokens);
    sl_vocabulary_destroy(state->classes);
    sl_vocabulary_destroy(state->source_tokens);
    free(state->ignore_label);
    free(state->input_offset);
    free(state->input_factor);
    free(state->target_offset);
    free(state->target_factor);
    free(state->input_fill);
    free(state->target_fill);
    free(state->target_naive);
    free_names(state->input_names, state->input_columns);
    free_names(state->target_names, state->target_columns);
    free(state);
}

void sl_data_state_set_views(struct sl_data_state *state)
{
    state->input_scaling = (struct sl_scaling){state->input_columns, state->input_offset, state->input_factor};
    state->target_scaling = (struct sl_scaling){state->target_columns, state->target_offset, state->target_factor};
}

const struct sl_data_facts *sl_data_state_get_facts(const struct sl_data_state *state)
{
    return &state->facts;
}

const struct sl_vocabulary *sl_data_state_find_vocabulary(const struct sl_data_state *state)
{
    return state->tokens;
}

const struct sl_vocabulary *sl_data_state_find_source_vocabulary(const struct sl_data_state *state)
{
    if (state->facts.source.kind == SL_FIELD_NONE)
        return NULL;
    return state->source_tokens ? state->source_tokens : state->tokens;
}

const struct sl_pieces *sl_data_state_find_source_pieces(const struct sl_data_state *state)
{
    bool shared = state->facts.source.kind != SL_FIELD_NONE && state->source_tokens == NULL;
    return shared ? state->pieces : state->source_pieces;
}

const struct sl_vocabulary *sl_data_state_find_classes(const struct sl_data_state *state)
{
    return state->classes_are_tokens ? state->tokens : state->classes;
}

const struct sl_scaling *sl_data_state_find_input_scaling(const struct sl_data_state *state)
{
    return state->input_offset ? &state->input_scaling : NULL;
}

const struct sl_scaling *sl_data_state_find_target_scaling(const struct sl_data_state *state)
{
    return state->target_offset ? &state->target_scaling : NULL;
}

const double *sl_data_state_find_naive_error(const struct sl_data_state *state, int64_t *out_columns)
{
    *out_columns = state->target_columns;
    return state->target_naive;
}

struct sl_string_list sl_data_state_get_target_names(const struct sl_data_state *state)
{
    struct sl_string_list list = {(const char *const *)state->target_names, 0};
    list.count = state->target_names ? (size_t)state->target_columns : 0;
    return list;
}

struct sl_string_list sl_data_state_get_input_names(const struct sl_data_state *state)
{
    struct sl_string_list list = {(const char *const *)state->input_names, 0};
    list.count = state->input_names ? (size_t)state->input_columns : 0;
    return list;
}

void sl_data_state_undo_targets(const struct sl_data_state *state, float *values, int64_t rows)
{
    int64_t features = state->facts.target.features, columns = state->target_columns;
    if (!state->target_offset || state->facts.target.kind != SL_FIELD_VALUES)
        return;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t f = 0; f < features; f++) {
            float *value = &values[r * features + f];
            *value = (float)((double)*value * state->target_factor[f % columns] + state->target_offset[f % columns]);
        }
    }
}
