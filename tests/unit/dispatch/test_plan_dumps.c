/* SPDX-License-Identifier: Apache-2.0 */
/* Where plans lay everything out, and the values that parameters begin with: calls with their sizes and offsets,
 * tensors and gradients in the activation buffer, the sums of memory, the start of each parameter. See
 * support/dump_file.h.
 *
 * All runs on the reference; here some of its operations also pack their weights.
 */
#include <math.h>

#include "dump_file.h"
#include "model_fixture.h"
#include "oom.h"

#include "base/operation/op_signature.h"
#include "dispatch/cost/estimate.h"
#include "dispatch/cost/testbed.h"
#include "dispatch/explain/explain.h"
#include "dispatch/explain/explain_stages.h"
#include "dispatch/plan/plan.h"
#include "dispatch/planner.h"
#include "exec/params/params.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static const struct seqlstm_backend *reference;

/* Rows and columns of weights in tiles of 16 floats, say. */
static seqlstm_status get_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    SEQLSTM_TRY(reference->op_sizes(op, sizes, err));
    sizes->packed_bytes = sizes->workspace_bytes / 2 + 40;
    return SEQLSTM_OK;
}

static seqlstm_status pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots, void *packed,
                           const struct seqlstm_step *step, struct seqlstm_error *err)
{
    (void)op, (void)queue, (void)slots, (void)packed, (void)step, (void)err;
    return SEQLSTM_OK;
}

static seqlstm_status note_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                   const struct seqlstm_forward *args, struct seqlstm_error *err);
static seqlstm_status note_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_backward *args, struct seqlstm_error *err);

static const struct seqlstm_backend *query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    reference = seqlstm_reference_query_v0(host_minor);
    table = *reference;
    table.op_sizes = get_sizes;
    table.weights_pack = pack;
    table.forward = note_forward;
    table.backward = note_backward;
    return &table;
}

static struct sl_data_facts find_facts(const char *title)
{
    const bool ids = strstr(title, "ids") != NULL, pairs = strstr(title, "pairs") != NULL;
    struct sl_data_facts facts = {.input = {.kind = ids ? SL_FIELD_IDS : SL_FIELD_VALUES, .on_steps = true},
                                  .target = {.kind = ids ? SL_FIELD_IDS : SL_FIELD_VALUES},
                                  .has_steps = true,
                                  .envelope = {.sequences = 4, .steps = 6, .rows = 19}};
    facts.input.features = facts.target.features = ids ? 1 : 3;
    facts.input.classes = facts.target.classes = ids ? 8 : 0;
    facts.target.on_steps = strstr(title, "steps") != NULL;
    facts.envelope.stream = strstr(title, "stream") != NULL;
    if (pairs) {
        facts.source = (struct sl_field_facts){.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 7};
        facts.envelope.source_steps = 5;
        facts.envelope.source_rows = 17;
    }
    return facts;
}

static void add_calls(struct sl_buf *out, const struct sl_plan *plan)
{
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_call *call = &plan->calls[c];
        const struct sl_unit unit = sl_plan_find_unit(plan->graph, plan->calls, plan->call_count, c);
        sl_buf_printf(out, "call %s %s:%s nodes %d+%d unit %d-%d%s", call->node->name, sl_backend_get_id(call->backend),
                      call->variant, call->node_first, call->node_count, unit.first, unit.end,
                      unit.pieced ? " pieced" : "");
        sl_buf_printf(out, " workspace %llu reserve %llu x %lld at %lld packed %llu at %lld\n",
                      (unsigned long long)call->sizes.workspace_bytes, (unsigned long long)call->sizes.reserve_bytes,
                      (long long)sl_call_count_reserves(plan, call), (long long)call->reserve_offset,
                      (unsigned long long)call->sizes.packed_bytes, (long long)call->packed_offset);
        if (call->own_bytes || call->fallback)
            sl_buf_printf(out, "  own %llu%s\n", (unsigned long long)call->own_bytes,
                          call->fallback ? " fallback" : "");
        for (int cell = 0; cell < 2; cell++)
            if (sl_call_count_piece_state(plan->graph, call, cell))
                sl_buf_printf(out, "  state of a piece %lld of %lld\n",
                              (long long)sl_call_count_piece_state(plan->graph, call, cell),
                              (long long)sl_call_count_piece_states(plan->graph, call));
    }
    for (int32_t v = 0; v < plan->vector_count; v++)
        sl_buf_printf(out, "vector %s on %s\n", sl_op_name(plan->vectors[v].desc->head.op),
                      sl_backend_get_id(plan->vectors[v].backend));
}

static void add_memory(struct sl_buf *out, const struct sl_plan *plan)
{
    const struct sl_plan_memory *m = &plan->memory;
    for (int32_t t = 0; t < plan->graph->tensor_count; t++)
        if (plan->tensor_offsets[t] >= 0 || plan->grad_offsets[t] >= 0)
            sl_buf_printf(out, "tensor %s at %lld, gradient at %lld, %lld bytes\n", plan->graph->tensors[t].name,
                          (long long)plan->tensor_offsets[t], (long long)plan->grad_offsets[t],
                          (long long)sl_plan_get_tensor_bytes(plan, t));
    sl_buf_printf(out, "buffers activations %lld scratch %lld at %lld reserve %lld packed %lld workspace %lld\n",
                  (long long)plan->activation_bytes, (long long)plan->scratch_grad_bytes,
                  (long long)plan->scratch_grad_offset, (long long)plan->reserve_bytes, (long long)plan->packed_bytes,
                  (long long)plan->workspace_bytes);
    sl_buf_printf(out, "memory weights %lld gradients %lld optimizer %lld activations %lld workspace %lld",
                  (long long)m->weights_bytes, (long long)m->gradients_bytes, (long long)m->optimizer_bytes,
                  (long long)m->activations_bytes, (long long)m->workspace_bytes);
    sl_buf_printf(out, " backends %lld batches %lld decoding %lld checkpoint %lld test %lld peak - process %lld\n",
                  (long long)m->backends_bytes, (long long)m->batches_bytes, (long long)m->decoding_bytes,
                  (long long)m->checkpoint_bytes, (long long)m->test_bytes,
                  (long long)(m->peak_bytes - m->process_bytes));
    for (int32_t d = 0; d < plan->device_count; d++)
        sl_buf_printf(out, "device %s %s\n", plan->devices[d].backend, plan->devices[d].device_class);
}

static void add_params(struct sl_buf *out, const struct sl_graph *graph)
{
    struct sl_params *params;
    assert_int_equal(sl_params_create(graph, true, 2, NULL, &params, NULL), SEQLSTM_OK);
    assert_int_equal(sl_params_init(params, graph, 11, NULL, NULL), SEQLSTM_OK);
    for (int32_t p = 0; p < graph->param_count; p++) {
        const struct sl_param_view *view = &params->views[p];
        const float *values = params->values + view->offset_elems;
        double sum = 0, squares = 0;
        for (int64_t e = 0; e < view->elems; e++) {
            sum += (double)values[e];
            squares += (double)values[e] * (double)values[e];
        }
        sl_buf_printf(out, "param %s at %lld begins %.4f %.4f, sum %.3f, squares %.3f\n", graph->params[p].name,
                      (long long)view->offset_elems, (double)values[0], (double)values[view->elems - 1], sum + 0.0,
                      squares);
    }
    sl_params_destroy(params);
}

/* A plan with all that it needs. */
struct planned {
    struct sl_registry *registry;
    struct sl_graph *graph;
    struct sl_plan *plan;
};

static const char *const phase_names[] = {
    [SL_PHASE_TRAIN] = "train", [SL_PHASE_EVALUATE] = "evaluate", [SL_PHASE_PREDICT] = "predict"};

static struct planned make_plan(const struct sl_model *model, const struct sl_data_facts *facts, enum sl_phase phase,
                                int32_t pieces)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", query}};
    static const struct sl_registry_entry entries[] = {{.name = "reference"}};
    struct sl_graph_request request = {.model = model, .facts = facts, .phase = phase, .pieces = pieces};
    struct sl_registry_request wanted = {
        .entries = entries, .entry_count = 1, .builtins = builtins, .builtin_count = 1, .only_folders = true};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct planned made = {0};
    request.carry_state = phase == SL_PHASE_PREDICT && facts->source.kind == SL_FIELD_NONE;
    request.need_output = phase == SL_PHASE_EVALUATE;
    assert_int_equal(sl_registry_create(&wanted, &made.registry, &err), SEQLSTM_OK);
    if (sl_graph_create(&request, &made.graph, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    struct sl_plan_request plan = {.graph = made.graph, .registry = made.registry, .optimizer_states = 2, .threads = 1};
    if (sl_plan_create(&plan, &made.plan, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return made;
}

static void drop_plan(struct planned *made)
{
    sl_plan_destroy(made->plan);
    sl_graph_destroy(made->graph);
    sl_registry_destroy(made->registry);
}

static void add_plan(struct sl_buf *out, const struct sl_model *model, const struct sl_data_facts *facts,
                     enum sl_phase phase, int32_t pieces)
{
    struct planned made = make_plan(model, facts, phase, pieces);
    sl_buf_printf(out, "-- %s\n", phase_names[phase]);
    add_calls(out, made.plan);
    add_memory(out, made.plan);
    if (phase == SL_PHASE_TRAIN)
        add_params(out, made.graph);
    drop_plan(&made);
}

static int32_t find_pieces(const char *title)
{
    const char *pieces = strstr(title, "pieces ");
    return pieces ? atoi(pieces + strlen("pieces ")) : 0;
}

static void add_model(struct sl_buf *out, const char *title, const char *text)
{
    struct loaded l = load(text);
    const struct sl_data_facts facts = find_facts(title);
    const int32_t pieces = find_pieces(title);
    if (l.model == NULL)
        sl_buf_append_text(out, sl_buf_text(&l.text));
    else
        add_plan(out, l.model, &facts, SL_PHASE_TRAIN, pieces);
    if (l.model && pieces == 0) {
        add_plan(out, l.model, &facts, SL_PHASE_EVALUATE, 0);
        add_plan(out, l.model, &facts, SL_PHASE_PREDICT, 0);
    }
    unload(&l);
}

/* ---- explained -------------------------------------------------------------------------------------- */

static const struct sl_refusal refusals[] = {
    {"cpu-one",
     1,
     SEQLSTM_BIT_REFUSED_OPTION,
     0,
     "peephole",
     "true",
     "it has no peepholes.",
     "leave it out",
     {"m.yaml", 12, 5, 3},
     "peephole",
     1.84},
    {"cpu-two",
     2,
     SEQLSTM_BIT_REFUSED_OPTION,
     0,
     "cell_clip",
     "",
     "no clipping",
     "",
     {"m.yaml", 0, 0, 0},
     "cell_clip",
     1.04},
    {"cpu-three",
     3,
     SEQLSTM_BIT_REFUSED_OPERATION,
     0,
     "",
     "",
     "the operation is unknown",
     "",
     {"m.yaml", 7, 1, 4},
     NULL,
     0},
};
static const struct sl_rival rivals[] = {
    {.backend = "cpu-one", .variant = "fast", .cost = {SL_COST_MEASURED, 4400, 0}},
    {.backend = "cpu-two", .variant = "slow", .cost = {SL_COST_BOUND, 16000, 17000}},
    {.backend = "cpu-two", .variant = "odd", .cost = {SL_COST_GUESS, 1, 1}},
};
static const struct sl_plan_choice other[] = {{.node = "first", .backend = "cpu-one", .variant = "fast"},
                                              {.node = "second", .backend = "cpu-two", .variant = "slow"}};

/* Costs of every source and size, refusals and rivals of other backends, and memory that does not depend on the
 * process. */
static void dress(struct sl_plan *plan, int kind)
{
    static const double forward[] = {8.04, 99.6, 1234, 99960, 1.5e6, 2.345e9};
    for (int32_t c = 0; c < plan->call_count; c++) {
        struct sl_call *call = (struct sl_call *)&plan->calls[c];
        const bool guessed = kind == 0 ? c == 1 : kind == 1 && c + 1 == plan->call_count;
        call->cost =
            (struct sl_cost){guessed ? SL_COST_GUESS : (enum sl_cost_source)(SL_COST_ESTIMATE + (c + kind) % 4),
                             forward[(c + kind) % 6], kind == 2 ? 0 : 2 * forward[(c + kind) % 6]};
        if (kind == 2 && c == 0)
            call->cost.forward_ns = 0;
        call->fallback = c % 3 == 1;
        call->refusals = refusals + c % 2;
        call->refusal_count = c < 2 ? 3 - c : 0;
        call->rivals = rivals;
        call->rival_count = c == 0 ? 3 : 0;
    }
    plan->memory.peak_bytes += 12345678 - plan->memory.process_bytes;
    plan->memory.process_bytes = 12345678;
    plan->memory.reached_bytes = kind == 1 ? 999499999 : 12000000;
    plan->memory.backends_bytes = kind == 2 ? 0 : 9950;
    plan->memory.batches_bytes = kind == 0 ? 0 : 2000;
    plan->memory.optimizer_bytes = kind == 2 ? INT64_C(3500000000000) : plan->memory.optimizer_bytes;
    plan->threads = 3 + kind;
    plan->policy = (enum sl_dispatch_policy)(SL_POLICY_MEASURED + kind % 3);
    plan->replayed = kind == 2;
    if (kind > 0)
        plan->whole_steps = (struct sl_whole_steps){.source = SL_COST_MEASURED,
                                                    .chosen_ns = 2.3149e6,
                                                    .other_ns = 99960,
                                                    .other = other,
                                                    .other_count = kind,
                                                    .overturned = kind == 1};
    for (int32_t d = 0; d < plan->device_count; d++)
        ((struct sl_plan_device *)plan->devices)[d].name = "a processor";
}

/* An object on each line, without indentation. */
static void add_json(struct sl_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n') {
            text += strspn(text, "\n ") - 1;
            continue;
        }
        if (*text == '{')
            sl_buf_append_char(out, '\n');
        sl_buf_append_char(out, *text);
    }
    sl_buf_append_char(out, '\n');
}

static void add_pipeline(struct sl_buf *out, const struct sl_plan *plan, int32_t stages)
{
    struct sl_pipeline pipeline;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_buf_printf(out, "-- %d stages\n", stages);
    if (sl_pipeline_make(plan, stages, stages == 1 ? 2 : 0, &pipeline, &err) != SEQLSTM_OK) {
        sl_buf_printf(out, "refused %d: %s\n", (int)err.code, err.message);
        return;
    }
    sl_pipeline_write_table(plan, &pipeline, out);
    json_t *json = sl_pipeline_write_json(plan, &pipeline);
    char *text = json_dumps(json, JSON_REAL_PRECISION(6));
    add_json(out, text);
    free(text);
    json_decref(json);
}

/* Alone, and beside the plans of evaluation and of decoders. */
static void add_explained(struct sl_buf *out, const char *title, const char *text)
{
    struct loaded l = load(text);
    const struct sl_data_facts facts = find_facts(title);
    const int32_t pieces = find_pieces(title);
    if (l.model == NULL)
        fail_msg("%s", sl_buf_text(&l.text));
    struct planned train = make_plan(l.model, &facts, SL_PHASE_TRAIN, pieces),
                   evaluate = make_plan(l.model, &facts, SL_PHASE_EVALUATE, 0),
                   predict = make_plan(l.model, &facts, SL_PHASE_PREDICT, 0);
    dress(train.plan, 0);
    dress(evaluate.plan, 1);
    dress(predict.plan, 2);
    struct sl_plan_beside beside = {.evaluate = evaluate.plan};
    const struct sl_plan_pair pair = {predict.plan, evaluate.plan, 777};
    for (int k = 0; k < 5; k++) {
        const struct sl_plan *plan = k == 1 ? evaluate.plan : k == 2 ? predict.plan : train.plan;
        const struct sl_plan_beside none = {0};
        if (k >= 3)
            beside.decoding = pair;
        if (k == 4) {
            beside.sampling = (struct sl_plan_pair){evaluate.plan, predict.plan, 11};
            beside.test = predict.plan;
            beside.test_decoding = (struct sl_plan_pair){predict.plan, predict.plan, 5};
        }
        sl_buf_printf(out, "-- %d\n", k);
        sl_plan_write_table(plan, k == 1 || k == 2 ? &none : &beside, false, out);
        if (k < 3) {
            sl_buf_append_text(out, "-- brief\n");
            sl_plan_write_table(plan, &none, true, out);
        }
        struct sl_buf json = {0};
        assert_int_equal(sl_plan_write_json(plan, k == 1 || k == 2 ? &none : &beside, &json, NULL), SEQLSTM_OK);
        if (k != 3)
            add_json(out, sl_buf_text(&json));
        sl_buf_deinit(&json);
    }
    for (int32_t stages = 1; pieces > 0 && stages < 4; stages++)
        add_pipeline(out, train.plan, stages);
    for (int32_t c = 0; c < train.plan->call_count; c++) /* and without known costs */
        ((struct sl_call *)&train.plan->calls[c])->cost = (struct sl_cost){0};
    if (pieces > 0)
        add_pipeline(out, train.plan, 2);
    drop_plan(&train);
    drop_plan(&evaluate);
    drop_plan(&predict);
    unload(&l);
}

static void explanations_are_as_before(void **state)
{
    (void)state;
    compare_dumps("explained", add_explained);
}

static void plans_are_as_before(void **state)
{
    (void)state;
    compare_dumps("plans", add_model);
}

/* ---- timed ------------------------------------------------------------------------------------------ */

/* Where calls of the backend are written down, if anywhere, and what they are about. */
static struct sl_buf *witness;
static struct sl_slot signature[SL_SLOTS_MAX];
static int32_t slot_count;

/* The least and the greatest number of a parameter, or of the first four rows: each batch has as many. */
static void note_slot(const char *what, const struct sl_slot *slot, const void *values)
{
    double low = INFINITY, high = -INFINITY;
    const int64_t elems = slot->features * (slot->axis == SL_SLOT_FREE ? slot->rows : 4);
    for (int64_t i = 0; values && i < elems; i++) {
        const double value = slot->dtype == SEQLSTM_DTYPE_INT32     ? ((const int32_t *)values)[i]
                             : slot->dtype == SEQLSTM_DTYPE_FLOAT64 ? ((const double *)values)[i]
                                                                    : (double)((const float *)values)[i];
        low = fmin(low, value);
        high = fmax(high, value);
    }
    if (values)
        sl_buf_printf(witness, " %s%s %.3f..%.3f", what, slot->name, low + 0.0, high + 0.0);
}

static seqlstm_status note_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                   const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    if (witness) {
        sl_buf_printf(witness, "forward of %u slots, seed %llu, update %llu:", args->slot_count,
                      (unsigned long long)args->step->seed, (unsigned long long)args->step->update);
        for (int32_t s = 0; s < slot_count; s++)
            if (signature[s].role != SL_SLOT_OUTPUT)
                note_slot("", &signature[s], args->slots[s]);
        sl_buf_printf(witness, "%s%s%s\n", args->workspace ? "" : " no workspace", args->reserve ? "" : " no reserve",
                      args->packed ? "" : " nothing packed");
    }
    return reference->forward(binding, queue, args, err);
}

static seqlstm_status note_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    if (witness) {
        sl_buf_printf(witness, "backward of %u slots, parts %u:", args->slot_count, args->parts);
        for (int32_t s = 0; s < slot_count; s++)
            if (args->grads[s] && signature[s].role == SL_SLOT_OUTPUT)
                note_slot("d", &signature[s], args->grads[s]);
            else if (args->grads[s])
                sl_buf_printf(witness, " d%s", signature[s].name);
        sl_buf_append_char(witness, '\n');
    }
    return reference->backward(binding, queue, args, err);
}

/* One call in each of two batches, the second of them in parts; with the gradients of inputs or parameters, or both. */
static void time_call(struct sl_buf *out, const struct sl_plan *plan, const struct sl_call *call,
                      const struct sl_profiles *profiles, bool input_grad, bool param_grad)
{
    const bool on_steps = sl_node_is_on_steps(plan->graph, call->node);
    const struct sl_testbed_request request = {.desc = &call->node->desc,
                                               .on_steps = on_steps,
                                               .backward = call->node->needs_backward,
                                               .input_grad = input_grad,
                                               .param_grad = param_grad,
                                               .profiles = profiles,
                                               .profile_first = 1,
                                               .profile_count = 2,
                                               .steps_most = 5,
                                               .sizes = &call->sizes,
                                               .backend = call->backend,
                                               .device = call->device};
    struct sl_testbed *testbed;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_buf_printf(out, "-- %s%s%s%s\n", call->node->name, on_steps ? ", on steps" : "",
                  input_grad ? "" : ", inputs are given", param_grad ? "" : ", parameters are frozen");
    if (sl_testbed_create(&request, &testbed, &err) != SEQLSTM_OK) {
        sl_buf_printf(out, "refused %d: %s\n", (int)err.code, err.message);
        return;
    }
    assert_int_equal(sl_op_signature(&call->node->desc.head, signature, SL_SLOTS_MAX, &slot_count, NULL), SEQLSTM_OK);
    witness = out;
    for (int32_t p = 0; p < 2; p++) {
        struct seqlstm_binding *binding = NULL;
        double forward_ns = -1, backward_ns = -1;
        sl_buf_printf(out, "%lld rows\n", (long long)sl_testbed_get_rows(testbed, p));
        if (sl_testbed_bind(testbed, call->backend, call->op, p, &binding, &err) != SEQLSTM_OK ||
            sl_testbed_run(testbed, call->backend, call->op, &call->sizes, binding, &forward_ns, &backward_ns, &err) !=
                SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_true(forward_ns >= 0 && (call->node->needs_backward ? backward_ns >= 0 : backward_ns <= 0));
        reference->binding_destroy(binding);
    }
    witness = NULL;
    sl_testbed_destroy(testbed);
}

static void add_timed(struct sl_buf *out, const char *title, const char *text)
{
    static const int32_t batches[3][4] = {{6, 6, 6, 1}, {7, 4, 4, 1}, {3, 3, 2, 0}};
    static const int32_t sources[3][4] = {{5, 5, 5, 2}, {5, 3, 2, 2}, {4, 4, 4, 4}};
    struct loaded l = load(text);
    const struct sl_data_facts facts = find_facts(title);
    if (l.model == NULL)
        fail_msg("%s", sl_buf_text(&l.text));
    struct planned train = make_plan(l.model, &facts, SL_PHASE_TRAIN, 0);
    struct sl_profiles profiles = {0};
    for (int p = 0; p < 3; p++)
        assert_int_equal(
            sl_profiles_add(&profiles, 4, batches[p], facts.source.kind ? sources[p] : NULL, 1.0 / 3, NULL),
            SEQLSTM_OK);
    for (int32_t c = 0; c < train.plan->call_count; c++)
        for (int grads = 3; grads > 0; grads--)
            time_call(out, train.plan, &train.plan->calls[c], &profiles, grads & 1, grads & 2);
    sl_profiles_deinit(&profiles);
    drop_plan(&train);
    unload(&l);
}

/* What a backend is given to work on when it is timed. */
static void timed_calls_are_as_before(void **state)
{
    (void)state;
    compare_dumps("timed", add_timed);
}

/* Whichever of the batches it is. */
static void a_batch_without_rows_cannot_be_timed(void **state)
{
    static int32_t full[] = {2, 1}, empty[] = {0, 0};
    const union seqlstm_any_desc desc = {.head = {.op = SEQLSTM_OP_ACTIVATION}};
    const struct seqlstm_sizes sizes = {0};
    (void)state;
    for (int without = 0; without < 2; without++) {
        struct sl_profiles profiles = {.count = 2};
        for (int p = 0; p < 2; p++)
            profiles.items[p] =
                (struct sl_profile){.sequences = 2, .lengths = p == without ? empty : full, .weight = 0.5};
        const struct sl_testbed_request request = {.desc = &desc,
                                                   .on_steps = true,
                                                   .profiles = &profiles,
                                                   .profile_count = 2,
                                                   .steps_most = 5,
                                                   .sizes = &sizes};
        struct sl_testbed *testbed;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_testbed_create(&request, &testbed, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, "a batch without rows cannot be timed");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_without_rows_cannot_be_timed),
        cmocka_unit_test(plans_are_as_before),
        cmocka_unit_test(explanations_are_as_before),
        cmocka_unit_test(timed_calls_are_as_before),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
