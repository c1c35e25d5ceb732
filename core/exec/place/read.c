/* SPDX-License-Identifier: Apache-2.0 */
/* What callers read of an executor between steps, watchers within one, and a decoder of its encoder. */
#include <string.h>

#include "exec/place/place.h"
#include "exec/rows.h"

const struct sl_graph *sl_exec_get_graph(const struct sl_exec *exec)
{
    return exec->graph;
}

struct sl_field sl_exec_get_output(const struct sl_exec *exec)
{
    const struct sl_tensor *tensor = &exec->graph->tensors[exec->graph->output];
    struct sl_field field = {
        .kind = SL_FIELD_VALUES, .on_steps = sl_axis_is_steps(tensor->axis), .features = tensor->features};
    field.values = sl_exec_at((struct sl_exec *)exec, SL_PLACE_HOST, exec->graph->output);
    return field;
}

seqlstm_status sl_exec_get_state(struct sl_exec *exec, float **out_state, int64_t *out_elems, struct seqlstm_error *err)
{
    for (int32_t s = 0; s < exec->graph->state_count; s++) {
        void *read;
        SEQLSTM_TRY(sl_exec_provide(exec, SL_PLACE_HOST, exec->graph->states[s].tensor_in, &read, err));
        sl_exec_note_written(exec, SL_PLACE_HOST, exec->graph->states[s].tensor_in);
    }
    *out_state = exec->places[SL_PLACE_HOST].states;
    *out_elems = exec->state_elems;
    return SEQLSTM_OK;
}

int64_t sl_exec_get_state_offset(const struct sl_exec *exec, int32_t s)
{
    return exec->state_offsets[s];
}

void sl_exec_reset_state(struct sl_exec *exec)
{
    memset(exec->places[SL_PLACE_HOST].states, 0, (size_t)exec->state_elems * sizeof(float));
    for (int32_t s = 0; s < exec->graph->state_count; s++)
        sl_exec_note_written(exec, SL_PLACE_HOST, exec->graph->states[s].tensor_in);
}

void sl_exec_watch(struct sl_exec *exec, sl_exec_watch_fn *watch, void *context)
{
    exec->watch = watch;
    exec->watch_context = context;
}

const char *sl_exec_get_backend(const struct sl_exec *exec, const struct sl_node *node)
{
    for (int32_t c = 0; c < exec->plan->call_count; c++)
        if (exec->plan->calls[c].node == node)
            return sl_backend_get_id(exec->plan->calls[c].backend);
    return "?";
}

seqlstm_status sl_exec_read(struct sl_exec *exec, int32_t tensor, const float **out_values, int64_t *out_elems,
                            struct seqlstm_error *err)
{
    const struct sl_tensor *t = &exec->graph->tensors[tensor];
    void *values;
    SEQLSTM_TRY(sl_exec_provide(exec, SL_PLACE_HOST, tensor, &values, err));
    *out_values = values;
    *out_elems = (t->axis == SL_AXIS_FREE ? t->rows : sl_exec_get_rows(exec, t->axis)) * t->features;
    return SEQLSTM_OK;
}

const struct sl_exec_timing *sl_exec_get_timing(const struct sl_exec *exec, int32_t *out_count)
{
    *out_count = exec->plan->call_count;
    return exec->timing;
}

const struct sl_exec_captures *sl_exec_get_captures(const struct sl_exec *exec)
{
    return &exec->captures;
}

bool sl_exec_can_capture(const struct sl_exec *exec)
{
    return exec->device_place != SL_PLACE_HOST;
}

/* Copies through the host. */
seqlstm_status sl_exec_hand_memories(struct sl_exec *encoder, struct sl_exec *decoder, struct seqlstm_error *err)
{
    for (int32_t m = 0; m < encoder->graph->memory_count; m++) {
        int32_t from = encoder->graph->memories[m].tensor_out, to = decoder->graph->memories[m].tensor_in;
        const struct sl_tensor *tensor = &encoder->graph->tensors[from];
        int64_t rows = encoder->shape ? sl_exec_get_rows(encoder, tensor->axis) : 0;
        void *read;
        if (rows > sl_graph_get_rows(decoder->graph, &decoder->graph->tensors[to]))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a memory of %lld rows does not fit the decoder's plan",
                         (long long)rows);
        SEQLSTM_TRY(sl_exec_provide(encoder, SL_PLACE_HOST, from, &read, err));
        memcpy(sl_exec_at(decoder, SL_PLACE_HOST, to), read, (size_t)(rows * tensor->features) * sizeof(float));
        sl_exec_note_written(decoder, SL_PLACE_HOST, to);
    }
    return SEQLSTM_OK;
}

float *sl_exec_write_memory(struct sl_exec *exec, int32_t m)
{
    const int32_t tensor = exec->graph->memories[m].tensor_in;
    sl_exec_note_written(exec, SL_PLACE_HOST, tensor);
    return sl_exec_at(exec, SL_PLACE_HOST, tensor);
}
