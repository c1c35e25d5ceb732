/* SPDX-License-Identifier: Apache-2.0 */
/* Life of an executor and the step. See exec.h. */
#include "exec/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec_private.h"

seqlstm_status sl_exec_blame(const struct sl_call *call, seqlstm_status status, struct seqlstm_error *err)
{
    if (err) {
        char text[sizeof err->message];
        snprintf(text, sizeof text, "%s on %s: %.800s", call->node->name, sl_backend_get_id(call->backend),
                 err->message);
        memcpy(err->message, text, sizeof text);
    }
    return status;
}

static seqlstm_status prepare_call(struct sl_exec *exec, int32_t c, struct sl_slot *signature,
                                   struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    struct sl_exec_call *call = &exec->calls[c];
    int32_t count;
    SEQLSTM_TRY(sl_op_signature(&node->desc.head, signature, SL_SLOTS_MAX, &count, err));
    call->slot_count = node->slot_count;
    call->axis = sl_graph_get_axis(exec->graph, node);
    call->roles = calloc((size_t)node->slot_count + 1, sizeof *call->roles);
    call->slots = calloc((size_t)node->slot_count + 1, sizeof *call->slots);
    call->grads = calloc((size_t)node->slot_count + 1, sizeof *call->grads);
    if (!call->roles || !call->slots || !call->grads)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    for (int32_t s = 0; s < node->slot_count; s++)
        call->roles[s] = s < count && node->slots[s] >= 0 ? signature[s].role : SL_SLOT_ABSENT;
    call->repacks = node->desc.head.op == SEQLSTM_OP_RECURRENT && node->desc.recurrent.weight_drop > 0 &&
                    node->desc.head.mode == SEQLSTM_MODE_TRAINING;
    return SEQLSTM_OK;
}

static seqlstm_status prepare_buffers(struct sl_exec *exec, const float *class_weights, struct seqlstm_error *err)
{
    const struct sl_graph *graph = exec->graph;
    size_t tensors = (size_t)graph->tensor_count + 1;
    exec->state_offsets = calloc((size_t)graph->state_count + 1, sizeof *exec->state_offsets);
    exec->memory_offsets = calloc((size_t)graph->memory_count + 1, sizeof *exec->memory_offsets);
    exec->valid = calloc(tensors, sizeof *exec->valid);
    exec->grad_valid = calloc(tensors, sizeof *exec->grad_valid);
    exec->param_written = calloc((size_t)graph->param_count + 1, sizeof *exec->param_written);
    exec->vector_places = calloc((size_t)exec->plan->vector_count + 1, sizeof *exec->vector_places);
    if (!exec->state_offsets || !exec->memory_offsets || !exec->valid || !exec->grad_valid || !exec->param_written ||
        !exec->vector_places)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    for (int32_t s = 0; s < graph->state_count; s++) {
        exec->state_offsets[s] = exec->state_elems;
        exec->state_elems += (graph->facts.envelope.sequences * graph->states[s].features + 15) / 16 * 16;
    }
    for (int32_t m = 0; m < graph->memory_count && graph->memories[m].tensor_in >= 0; m++) {
        const struct sl_tensor *tensor = &graph->tensors[graph->memories[m].tensor_in];
        exec->memory_offsets[m] = exec->memory_elems;
        exec->memory_elems += (sl_graph_get_rows(graph, tensor) * tensor->features + 15) / 16 * 16;
    }
    SEQLSTM_TRY(sl_exec_open_indices(exec, err));
    SEQLSTM_TRY(sl_exec_open_places(exec, class_weights, err));
    return sl_exec_open_capture(exec, err);
}

seqlstm_status sl_exec_create(const struct sl_exec_request *request, struct sl_exec **out_exec,
                              struct seqlstm_error *err)
{
    const struct sl_plan *plan = request->plan;
    struct sl_exec *exec = calloc(1, sizeof *exec);
    struct sl_slot *signature = calloc(SL_SLOTS_MAX, sizeof *signature);
    seqlstm_status status = SEQLSTM_OK;
    if (exec == NULL || signature == NULL) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the executor");
        goto out;
    }
    exec->plan = plan;
    exec->graph = plan->graph;
    exec->params = request->params;
    exec->memory = request->memory;
    exec->step = (struct seqlstm_step){
        .struct_size = sizeof exec->step, .seed = request->seed, .loss_scale = 1.0f, .grad_scale = 1.0f};
    sl_domain_init_host(&exec->host, request->pool, request->memory);
    if (plan->threads > 0 && exec->host.queue.queue.members > plan->threads) {
        status = seqlstm_error_set(err, SEQLSTM_INTERNAL, __FILE__, __LINE__,
                                   "the plan's buffers are for %d threads, the pool has %d", plan->threads,
                                   exec->host.queue.queue.members);
        goto out;
    }
    exec->calls = calloc((size_t)plan->call_count + 1, sizeof *exec->calls);
    exec->timing = calloc((size_t)plan->call_count + 1, sizeof *exec->timing);
    exec->vectors = calloc((size_t)plan->vector_count + 1, sizeof *exec->vectors);
    if (!exec->calls || !exec->timing || !exec->vectors) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the executor");
        goto out;
    }
    for (int32_t c = 0; c < plan->call_count && status == SEQLSTM_OK; c++)
        status = prepare_call(exec, c, signature, err);
    if (status == SEQLSTM_OK)
        status = sl_exec_open_loop(exec, err);
    if (status == SEQLSTM_OK)
        status = prepare_buffers(exec, request->class_weights, err);
out:
    free(signature);
    if (status != SEQLSTM_OK) {
        sl_exec_destroy(exec);
        return status;
    }
    *out_exec = exec;
    return SEQLSTM_OK;
}

/* An update may still be under way on a device, and what it works with is about to go. Failures come too late to
 * matter. */
static void finish_places(struct sl_exec *exec)
{
    for (int32_t p = 0; p < SL_PLACES_MAX; p++)
        if (exec->places[p].domain)
            sl_domain_finish(exec->places[p].domain, NULL);
}

void sl_exec_destroy(struct sl_exec *exec)
{
    if (exec == NULL)
        return;
    finish_places(exec);
    if (exec->calls)
        sl_exec_unbind_all(exec);
    for (int32_t v = 0; exec->vectors && v < exec->plan->vector_count; v++)
        for (int k = 0; k < SL_EXEC_VECTOR_BINDINGS; k++)
            if (exec->vectors[v][k].binding)
                sl_backend_get_table(exec->plan->vectors[v].backend)->binding_destroy(exec->vectors[v][k].binding);
    for (int32_t c = 0; exec->calls && c < exec->plan->call_count; c++) {
        free(exec->calls[c].roles);
        free(exec->calls[c].slots);
        free(exec->calls[c].grads);
    }
    free(exec->calls);
    free(exec->timing);
    free(exec->vectors);
    free(exec->state_offsets);
    sl_exec_close_live(exec);
    sl_exec_close_places(exec);
    free(exec->valid);
    free(exec->grad_valid);
    free(exec->param_written);
    free(exec->vector_places);
    free(exec->memory_offsets);
    sl_exec_close_loop(exec);
    sl_exec_close_indices(exec);
    free(exec);
}

int64_t sl_exec_get_rows(const struct sl_exec *exec, enum sl_axis axis)
{
    if (exec->loop.step >= 0 && axis == SL_AXIS_STEPS)
        return exec->shape->sides[SL_EXEC_TARGET].steps.batch_sizes[exec->loop.step];
    return sl_axis_is_steps(axis) ? exec->shape->sides[sl_exec_get_side(axis)].steps.rows : exec->shape->sequences;
}

bool sl_exec_fits(const struct sl_exec *exec, const struct sl_batch *batch)
{
    const struct sl_envelope *envelope = &exec->graph->facts.envelope;
    return batch->sequences <= envelope->sequences && batch->axis.steps <= envelope->steps &&
           batch->axis.rows <= envelope->rows &&
           (!exec->graph->reads_source ||
            (batch->source.axis.steps <= envelope->source_steps && batch->source.axis.rows <= envelope->source_rows));
}

static bool field_fits(const struct sl_field *field, const struct sl_field_facts *facts)
{
    return field->kind == facts->kind && field->on_steps == facts->on_steps &&
           (field->kind != SL_FIELD_VALUES || field->features == facts->features);
}

static seqlstm_status check_batch(const struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = &exec->graph->facts;
    if (!sl_exec_fits(exec, batch))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "a batch of %lld sequences, %lld steps and %lld rows (source: %lld, %lld) does not fit the plan's "
                     "%lld, %lld and %lld (%lld, %lld)",
                     (long long)batch->sequences, (long long)batch->axis.steps, (long long)batch->axis.rows,
                     (long long)batch->source.axis.steps, (long long)batch->source.axis.rows,
                     (long long)facts->envelope.sequences, (long long)facts->envelope.steps,
                     (long long)facts->envelope.rows, (long long)facts->envelope.source_steps,
                     (long long)facts->envelope.source_rows);
    bool loss = exec->graph->phase != SL_PHASE_PREDICT;
    bool input = exec->graph->reads_input, source = exec->graph->reads_source;
    if ((input && !field_fits(&batch->input, &facts->input)) ||
        (source && !field_fits(&batch->source.input, &facts->source)) ||
        (loss && !field_fits(&batch->target, &facts->target)))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the batch's fields are not those the model was built for");
    if (loss && facts->has_weight && batch->weight.kind != SL_FIELD_VALUES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the batch has no weights, but the model was built for them");
    return SEQLSTM_OK;
}

/* Final states of sequences without a step are their initial ones; what survives goes to the next batch. */
seqlstm_status sl_exec_carry_states(struct sl_exec *exec, struct seqlstm_error *err)
{
    for (int32_t s = 0; s < exec->graph->state_count; s++) {
        const struct sl_state *state = &exec->graph->states[s];
        int32_t place = 0;
        while (place < SL_PLACES_MAX && !(exec->valid[state->tensor_out] >> place & 1))
            place++;
        if (place == SL_PLACES_MAX)
            continue;
        void *in;
        SEQLSTM_TRY(sl_exec_provide(exec, place, state->tensor_in, &in, err));
        SEQLSTM_TRY(sl_domain_copy(exec->places[place].domain, in, sl_exec_at(exec, place, state->tensor_out),
                                   exec->shape->sequences * state->features * 4, err));
        sl_exec_note_written(exec, place, state->tensor_in);
    }
    return SEQLSTM_OK;
}

/* What the caller reads on the host. Waits for every device: whatever failed there is reported by this run. */
static seqlstm_status collect(struct sl_exec *exec, const struct sl_exec_step *step, double sums[2],
                              double *out_squares, struct seqlstm_error *err)
{
    const struct sl_graph *graph = exec->graph;
    void *read;
    for (int32_t p = 0; p < SL_PLACES_MAX; p++)
        if (exec->places[p].domain)
            SEQLSTM_TRY(sl_domain_finish(exec->places[p].domain, err));
    SEQLSTM_TRY(sl_exec_finish_staging(exec, err));
    if (graph->sums >= 0) {
        SEQLSTM_TRY(sl_exec_provide(exec, SL_PLACE_HOST, graph->sums, &read, err));
        memcpy(sums, read, 2 * sizeof *sums);
    }
    if (graph->output >= 0 && graph->output_needed)
        SEQLSTM_TRY(sl_exec_provide(exec, SL_PLACE_HOST, graph->output, &read, err));
    return step->update ? sl_exec_finish_update(exec, out_squares, err) : SEQLSTM_OK;
}

seqlstm_status sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                           struct sl_exec_result *out_result, struct seqlstm_error *err)
{
    SEQLSTM_TRY(check_batch(exec, batch, err));
    SEQLSTM_TRY(sl_exec_bind(exec, batch, err));
    if (step->next)
        SEQLSTM_TRY(sl_exec_open_staging(exec, err));
    if (!batch->carry_state)
        sl_exec_reset_state(exec);
    exec->step.epoch = step->epoch;
    exec->step.weight_mask_step = step->weight_mask_step;
    exec->step.normaliser = (float)step->normaliser;
    exec->step.loss_scale = step->loss_scale > 0 ? (float)step->loss_scale : 1.0f;
    if (step->update)
        sl_exec_begin_update(exec, step->update);
    exec->loop.step = -1; /* after a run that failed */
    double sums[2] = {0, 0}, squares = 0;
    sl_exec_begin_values(exec);
    SEQLSTM_TRY(sl_exec_take_staged(exec, batch, err));
    SEQLSTM_TRY(sl_exec_renew_live(exec, err));
    SEQLSTM_TRY(sl_exec_run_calls(exec, step, err));
    if (step->next && check_batch(exec, step->next, NULL) == SEQLSTM_OK) /* if not, its own run says why */
        SEQLSTM_TRY(sl_exec_stage(exec, step->next, err));
    SEQLSTM_TRY(collect(exec, step, sums, &squares, err));
    *out_result = (struct sl_exec_result){.loss_sum = sums[0],
                                          .weight_sum = sums[1],
                                          .squares = squares,
                                          .rows = batch->has_steps || batch->source.present
                                                      ? batch->axis.rows + batch->source.axis.rows
                                                      : batch->sequences};
    return SEQLSTM_OK;
}

double sl_exec_weigh(const struct sl_exec *exec, const struct sl_batch *batch)
{
    const struct sl_field *target = &batch->target;
    int64_t rows = target->on_steps ? batch->axis.rows : batch->sequences;
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += sl_exec_weigh_row(exec, batch, r);
    return sum;
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

void sl_exec_watch(struct sl_exec *exec, sl_exec_watch_fn *watch, void *context)
{
    exec->watch = watch;
    exec->watch_context = context;
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

int64_t sl_exec_get_state_offset(const struct sl_exec *exec, int32_t s)
{
    return exec->state_offsets[s];
}

const struct sl_graph *sl_exec_get_graph(const struct sl_exec *exec)
{
    return exec->graph;
}

void sl_exec_reset_state(struct sl_exec *exec)
{
    memset(exec->places[SL_PLACE_HOST].states, 0, (size_t)exec->state_elems * sizeof(float));
    for (int32_t s = 0; s < exec->graph->state_count; s++)
        sl_exec_note_written(exec, SL_PLACE_HOST, exec->graph->states[s].tensor_in);
}

const struct sl_exec_timing *sl_exec_get_timing(const struct sl_exec *exec, int32_t *out_count)
{
    *out_count = exec->plan->call_count;
    return exec->timing;
}

const struct sl_exec_graphs *sl_exec_get_graphs(const struct sl_exec *exec)
{
    return &exec->graphs;
}
