/* SPDX-License-Identifier: Apache-2.0 */
/* See local_side.h.
 *
 * Invariants
 * 1. Weights never change: updates run with learning rate 0, which takes as long as any update.
 * 2. `weights` and `exec` exist from start to stop; `values` holds the initial values of the weights. */
#include "compare/side/local_side.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/operation/op_signature.h"
#include "base/value/median.h"
#include "base/value/text.h"
#include "dispatch/planner.h"
#include "dispatch/plan/refusal.h"
#include "exec/exec.h"
#include "exec/params/params_mirror.h"
#include "judge/oracle.h"
#include "compare/sample/phase_graph.h"
#include "session/prepare/training.h"

enum { STEPS_MOST = 1024, SEQUENCES_LEAST = 8 /* limits of the batch for judging */ };

struct local {
    struct sl_compare_side side;
    struct sl_local_side_request request;
    struct sl_registry *registry;
    struct sl_backend *backend;
    struct sl_arena arena;
    struct sl_plan *plan;
    struct sl_params *values, *weights;
    const float *class_weights; /* of training; those of the session */
    struct sl_exec *exec;
    const struct sl_batch *batch;
    struct sl_exec_step step;
    uint64_t updates;
    int32_t under_way; /* steps that have been started, in a turn */
    double *times;     /* [1 + calls][STEPS_MOST] */
};

static struct local *local_of(struct sl_compare_side *side)
{
    return (struct local *)side;
}

static void release(struct local *local)
{
    sl_exec_destroy(local->exec);
    sl_params_destroy(local->weights);
    local->under_way = 0;
    local->exec = NULL;
    local->weights = NULL;
}

static void local_close(struct sl_compare_side *side)
{
    struct local *local = local_of(side);
    if (!local)
        return;
    release(local);
    sl_plan_destroy(local->plan);
    sl_params_destroy(local->values);
    sl_registry_destroy(local->registry);
    sl_arena_deinit(&local->arena);
    free(local->times);
    free(local);
}

/* ---- offers ------------------------------------------------------------------------------------------------- */

static void write_refusal(const struct sl_offer *offer, const struct sl_node *node, char *out, size_t bytes)
{
    char place[200] = "";
    if (offer->no_operation) {
        sl_text_snprintf(out, bytes, "it does not offer %s", sl_op_name(node->desc.head.op));
        return;
    }
    if (offer->place.line > 0)
        sl_text_snprintf(place, sizeof place, " (%.150s:%d:%d)", offer->place.file, offer->place.line,
                         offer->place.column);
    sl_text_snprintf(out, bytes, "%s%s%s%s%s%s", offer->option, offer->option[0] ? " " : "", offer->value, place,
                     offer->option[0] || place[0] ? ": " : "", offer->reason);
}

static seqlstm_status ask_unit(struct local *local, const struct sl_node *node, struct sl_compare_side_unit *unit,
                               struct seqlstm_error *err)
{
    const struct sl_graph *graph = local->request.graph;
    struct sl_offer offer;
    SEQLSTM_TRY(sl_offer_ask(local->backend, graph, node, local->request.own->variant, &offer, err));
    unit->accepted = offer.accepted;
    if (offer.accepted)
        memcpy(unit->variant, offer.variant, sizeof unit->variant);
    else
        write_refusal(&offer, node, unit->reason, sizeof unit->reason);
    const uint32_t count = sl_registry_get_backend_count(local->registry);
    for (uint32_t b = 0; b < 2 * count && unit->other_count < SL_OTHERS_MOST; b++) {
        const struct sl_backend *backend = sl_registry_get_backend(local->registry, b % count);
        const bool is_reference = strcmp(sl_backend_get_id(backend), "reference") == 0;
        if (is_reference != (b >= count)) /* the reference comes last, wherever it was loaded, since it is slow */
            continue;
        SEQLSTM_TRY(sl_offer_ask(backend, graph, node, NULL, &offer, err));
        if (!offer.accepted)
            continue;
        int32_t o = unit->other_count++;
        sl_text_snprintf(unit->others[o].id, sizeof unit->others[o].id, "%s", sl_backend_get_id(backend));
        memcpy(unit->others[o].variant, offer.variant, sizeof offer.variant);
    }
    return SEQLSTM_OK;
}

static seqlstm_status local_get_facts(struct sl_compare_side *side, struct sl_arena *arena,
                                      struct sl_compare_side_facts *out_facts, struct seqlstm_error *err)
{
    struct local *local = local_of(side);
    const struct sl_graph *graph = local->request.graph;
    const struct sl_backend_record *record = sl_backend_get_record(local->backend);
    struct sl_compare_side_facts facts = {.unit_count = sl_unit_count(graph)};
    facts.units = SL_ARENA_ARRAY(arena, struct sl_compare_side_unit, (size_t)facts.unit_count);
    if (!facts.units)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the offers of a backend");
    sl_text_snprintf(facts.id, sizeof facts.id, "%s", record->id);
    const char *version = record->version ? record->version : "";
    const int shown = (int)sizeof facts.version - (int)sizeof "…";
    sl_text_snprintf(facts.version, sizeof facts.version, "%.*s%s", shown, version,
                     strlen(version) > (size_t)shown ? "…" : "");
    sl_text_snprintf(facts.file, sizeof facts.file, "%s", record->file ? record->file : "");
    uint32_t device;
    if (sl_backend_find_device(local->backend, &device)) {
        const struct seqlstm_device_info *info = sl_backend_get_device(local->backend, device);
        sl_text_snprintf(facts.device, sizeof facts.device, "%s", info->device_class);
        facts.on_device = strcmp(info->domain, "host") != 0;
    }
    for (int32_t u = 0; u < facts.unit_count; u++)
        SEQLSTM_TRY(ask_unit(local, sl_unit_get(graph, u), &facts.units[u], err));
    *out_facts = facts;
    return SEQLSTM_OK;
}

/* ---- planning ----------------------------------------------------------------------------------------------- */

static seqlstm_status local_plan(struct sl_compare_side *side, const struct sl_compare_side_choice *choices,
                                 int32_t count, struct seqlstm_error *err)
{
    struct local *local = local_of(side);
    const struct sl_graph *graph = local->request.graph;
    struct sl_plan_choice *stored = SL_ARENA_ARRAY(&local->arena, struct sl_plan_choice, (size_t)count + 1);
    if (!stored)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    for (int32_t c = 0; c < count; c++) {
        stored[c] = (struct sl_plan_choice){.node = sl_unit_get(graph, choices[c].unit)->name,
                                            .backend = sl_arena_strdup(&local->arena, choices[c].id),
                                            .variant = sl_arena_strdup(&local->arena, choices[c].variant),
                                            .phase = graph->phase};
        if (!stored[c].backend || !stored[c].variant)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    }
    struct sl_plan_request request = {.graph = graph,
                                      .registry = local->registry,
                                      .stored = stored,
                                      .stored_count = count,
                                      .threads = sl_pool_get_members(local->request.pool)};
    SEQLSTM_TRY(sl_plan_create(&request, &local->plan, err));
    if (local->plan->call_count != count)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the plan has %d calls, %d were chosen", local->plan->call_count, count);
    local->times = malloc((size_t)(1 + count) * STEPS_MOST * sizeof *local->times);
    if (!local->times)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the times");
    if (graph->phase == SL_PHASE_TRAIN)
        SEQLSTM_TRY(sl_session_weigh_classes(local->request.session, &local->class_weights, err));
    SEQLSTM_TRY(sl_params_create(graph, false, 0, NULL, &local->values, err));
    uint64_t seed = sl_session_get_model(local->request.session)->seed;
    return sl_params_init(local->values, graph, seed, local->request.pool, err);
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

static seqlstm_status judge(struct local *local, const struct sl_graph *graph, const struct sl_sample *sample,
                            struct sl_compare_side_verdict *out_verdicts, struct seqlstm_error *err)
{
    struct sl_oracle_subject subject = {.backend = local->backend, .variant = local->request.own->variant};
    struct sl_oracle_request request = {.graph = graph,
                                        .batch = sample->batches[0],
                                        .params = local->values,
                                        .class_weights = local->class_weights,
                                        .reference = sl_registry_find_backend(local->registry, "reference"),
                                        .pool = local->request.pool,
                                        .seed = sl_session_get_model(local->request.session)->seed,
                                        .subjects = &subject,
                                        .subject_count = 1,
                                        .interrupt = local->request.interrupt};
    struct sl_judgement *judgements = NULL;
    struct sl_arena arena;
    int32_t count = 0;
    if (!request.reference)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the backend `reference` is not loaded");
    sl_arena_init(&arena);
    seqlstm_status status = sl_oracle_run(&request, &arena, &judgements, &count, err);
    for (int32_t j = 0; status == SEQLSTM_OK && j < count; j++)
        for (int32_t u = 0; u < sl_unit_count(graph); u++) {
            if (sl_unit_get(graph, u) != judgements[j].node)
                continue;
            out_verdicts[u].failed = judgements[j].verdict == SL_VERDICT_FAIL;
            out_verdicts[u].worst = judgements[j].worst;
            sl_text_snprintf(out_verdicts[u].detail, sizeof out_verdicts[u].detail, "%.390s", judgements[j].detail);
        }
    sl_arena_deinit(&arena);
    return status;
}

static seqlstm_status local_judge(struct sl_compare_side *side, struct sl_compare_side_verdict *out_verdicts,
                                  struct seqlstm_error *err)
{
    struct local *local = local_of(side);
    struct sl_session *session = local->request.session;
    struct sl_sample sample = {.count = 0};
    struct sl_graph *graph = NULL;
    memset(out_verdicts, 0, (size_t)sl_unit_count(local->request.graph) * sizeof *out_verdicts);
    int64_t sequences = local->request.sample->envelope.sequences;
    SEQLSTM_TRY(
        sl_sample_create_small(session, sequences > SEQUENCES_LEAST ? sequences : SEQUENCES_LEAST, &sample, err));
    seqlstm_status status = sl_phase_graph_create(session, local->request.graph->phase, &sample.envelope, &graph, err);
    if (status == SEQLSTM_OK)
        status = judge(local, graph, &sample, out_verdicts, err);
    sl_graph_destroy(graph);
    sl_sample_deinit(&sample);
    return status;
}

/* ---- steps -------------------------------------------------------------------------------------------------- */

static seqlstm_status run_step(struct local *local, struct sl_exec_result *out_result, struct seqlstm_error *err)
{
    const struct sl_exec_update update = {.count = ++local->updates};
    struct sl_exec_step step = local->step;
    step.update = local->request.graph->phase == SL_PHASE_TRAIN ? &update : NULL;
    return sl_exec_run(local->exec, local->batch, &step, out_result, err);
}

/* Runs a step as training does: while the device computes it, the next one is started. Returns when the one before is
 * done, or this one. */
static seqlstm_status follow_step(struct local *local, struct seqlstm_error *err)
{
    const bool training = local->request.graph->phase == SL_PHASE_TRAIN;
    const struct sl_exec_update update = {.count = local->updates + 1};
    struct sl_exec_step step = local->step;
    struct sl_exec_result result;
    bool started = false;
    step.update = &update;
    if (training)
        SEQLSTM_TRY(sl_exec_start(local->exec, local->batch, &step, &started, err));
    local->updates += started;
    local->under_way += started;
    for (; local->under_way > started; local->under_way--)
        SEQLSTM_TRY(sl_exec_wait(local->exec, &result, err));
    return started ? SEQLSTM_OK : run_step(local, &result, err);
}

static seqlstm_status finish_steps(struct local *local, struct seqlstm_error *err)
{
    struct sl_exec_result result;
    for (; local->under_way > 0; local->under_way--)
        SEQLSTM_TRY(sl_exec_wait(local->exec, &result, err));
    return SEQLSTM_OK;
}

/* Reads the gradients, before anything else is done to them, or the output. */
static seqlstm_status read_result(struct local *local, const struct sl_exec_result *step,
                                  struct sl_compare_side_result *out, struct seqlstm_error *err)
{
    *out = (struct sl_compare_side_result){.loss = step->weight_sum > 0 ? step->loss_sum / step->weight_sum : 0};
    if (local->request.graph->phase == SL_PHASE_TRAIN) {
        float *grads = NULL;
        SEQLSTM_TRY(sl_params_provide(local->weights, 0, SL_PART_GRADS, 0, local->weights->elems, &grads, err));
        out->values = grads;
        out->elems = local->weights->elems;
        return SEQLSTM_OK;
    }
    struct sl_field output = sl_exec_get_output(local->exec);
    out->values = output.values;
    out->elems = (output.on_steps ? local->batch->axis.rows : local->batch->sequences) * output.features;
    return SEQLSTM_OK;
}

static seqlstm_status make_exec(struct local *local, struct seqlstm_error *err)
{
    const struct sl_graph *graph = local->request.graph;
    const struct sl_model *model = sl_session_get_model(local->request.session);
    bool training = graph->phase == SL_PHASE_TRAIN;
    int32_t states = training ? sl_optimizer_states(&model->train.optimizer) : 0;
    SEQLSTM_TRY(sl_params_create(graph, training, states, NULL, &local->weights, err));
    memcpy(local->weights->values, local->values->values, (size_t)local->values->elems * sizeof(float));
    sl_params_touch(local->weights);
    struct sl_exec_request request = {.plan = local->plan,
                                      .params = local->weights,
                                      .class_weights = local->class_weights,
                                      .pool = local->request.pool,
                                      .seed = model->seed};
    return sl_exec_create(&request, &local->exec, err);
}

static seqlstm_status local_start(struct sl_compare_side *side, int32_t batch,
                                  struct sl_compare_side_result *out_result, int64_t *out_ns, struct seqlstm_error *err)
{
    struct local *local = local_of(side);
    struct sl_exec_result result;
    release(local);
    SEQLSTM_TRY(make_exec(local, err));
    local->batch = local->request.sample->batches[batch];
    double weight = local->request.graph->phase == SL_PHASE_TRAIN ? sl_exec_weigh(local->exec, local->batch) : 0;
    local->step = (struct sl_exec_step){.normaliser = weight > 0 ? 1 / weight : 0,
                                        .weight_mask_step = (uint32_t)local->batch->ordinal};
    SEQLSTM_TRY(sl_exec_run(local->exec, local->batch, &local->step, &result, err));
    SEQLSTM_TRY(read_result(local, &result, out_result, err));
    int64_t begin = sl_clock_ns();
    SEQLSTM_TRY(run_step(local, &result, err));
    *out_ns = sl_clock_ns() - begin;
    return SEQLSTM_OK;
}

static seqlstm_status local_stop(struct sl_compare_side *side, struct seqlstm_error *err)
{
    (void)err;
    release(local_of(side));
    return SEQLSTM_OK;
}

static seqlstm_status local_take_turn(struct sl_compare_side *side, int32_t lead, int32_t steps, double *out_ns,
                                      struct seqlstm_error *err)
{
    struct local *local = local_of(side);
    int32_t calls = 0;
    const struct sl_exec_timing *timing = sl_exec_get_timing(local->exec, &calls);
    steps = steps < STEPS_MOST ? steps : STEPS_MOST;
    if (sl_interrupt_get_stop(local->request.interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted");
    for (int32_t s = -lead; s < steps; s++) {
        for (int32_t c = 0; s >= 0 && c < calls; c++)
            local->times[(1 + c) * STEPS_MOST + s] = -(double)(timing[c].forward_ns + timing[c].backward_ns);
        int64_t begin = sl_clock_ns();
        SEQLSTM_TRY(follow_step(local, err));
        if (s >= 0)
            local->times[s] = (double)(sl_clock_ns() - begin);
        for (int32_t c = 0; s >= 0 && c < calls; c++)
            local->times[(1 + c) * STEPS_MOST + s] += (double)(timing[c].forward_ns + timing[c].backward_ns);
    }
    SEQLSTM_TRY(finish_steps(local, err));
    for (int32_t c = 0; c < 1 + calls; c++)
        out_ns[c] = sl_median(local->times + (int64_t)c * STEPS_MOST, steps);
    return SEQLSTM_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------------ */

static const struct sl_compare_side_table table = {
    .close = local_close,
    .get_facts = local_get_facts,
    .plan = local_plan,
    .judge = local_judge,
    .start = local_start,
    .stop = local_stop,
    .take_turn = local_take_turn,
};

/* Both sides list what they compare in the same order, so that operations which neither takes run on the same
 * backend. Two files with the same id cannot be loaded together; then each side loads only its own. */
static seqlstm_status load(struct local *local, struct seqlstm_error *err)
{
    const struct sl_backend_spec *own = local->request.own, *other = local->request.other;
    struct sl_registry_entry entries[2];
    int second = strcmp(own->name, other->name) > 0;
    entries[second] = sl_backend_spec_get_entry(own);
    entries[!second] = sl_backend_spec_get_entry(other);
    if (!local->request.alone && strcmp(own->name, other->name) != 0) {
        SEQLSTM_TRY(sl_session_open_registry(local->request.session, entries, 2, true, &local->registry, err));
        if (sl_backend_spec_find(own, local->registry, &local->backend, err) == SEQLSTM_OK)
            return SEQLSTM_OK;
        sl_registry_destroy(local->registry);
        local->registry = NULL;
    }
    SEQLSTM_TRY(sl_session_open_registry(local->request.session, &entries[second], 1, true, &local->registry, err));
    return sl_backend_spec_find(own, local->registry, &local->backend, err);
}

seqlstm_status sl_local_side_open(const struct sl_local_side_request *request, struct sl_compare_side **out_side,
                                  struct seqlstm_error *err)
{
    struct local *local = calloc(1, sizeof *local);
    if (!local)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a side of the comparison");
    local->side.table = &table;
    local->request = *request;
    sl_arena_init(&local->arena);
    seqlstm_status status = load(local, err);
    if (status != SEQLSTM_OK) {
        local_close(&local->side);
        return status;
    }
    *out_side = &local->side;
    return SEQLSTM_OK;
}
