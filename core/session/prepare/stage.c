/* SPDX-License-Identifier: Apache-2.0 */
/* Makes graph, plan and executor of one phase. */
#include "session/prepare/stage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/operation/op_signature.h"
#include "base/system/cgroup.h"
#include "base/value/buf.h"
#include "dispatch/plan/refusal.h"
#include "dispatch/planner.h"
#include "session/finding/finding.h"
#include "session/measure/tuning.h"
#include "session/prepare/backends.h"
#include "session/prepare/pieces.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_plan.h"
#include "session/run_folder/stored_quantization.h"
#include "train/class_weight.h"

void sl_stage_deinit(struct sl_stage *stage)
{
    sl_exec_destroy(stage->exec);
    sl_plan_destroy(stage->plan);
    sl_graph_destroy(stage->graph);
    *stage = (struct sl_stage){0};
}

int32_t sl_optimizer_states(const struct sl_optimizer *optimizer)
{
    switch (optimizer->kind) {
    case SL_OPTIMIZER_SGD:
    case SL_OPTIMIZER_NT_ASGD:
        return 0;
    case SL_OPTIMIZER_MOMENTUM:
    case SL_OPTIMIZER_NESTEROV:
    case SL_OPTIMIZER_ADAGRAD:
        return 1;
    case SL_OPTIMIZER_ADAM:
    case SL_OPTIMIZER_ADAMW:
        return optimizer->amsgrad ? 3 : 2;
    case SL_OPTIMIZER_RMSPROP:
        return optimizer->centered ? 3 : optimizer->momentum > 0 ? 2 : 1;
    case SL_OPTIMIZER_ADADELTA:
        return 2;
    }
    return 0;
}

/* `fallback: warn`. With `report` the table of the plan shows it, with `error` there is no plan. */
static void warn_of_fallbacks(const struct sl_session *session, const struct sl_plan *plan)
{
    if (session->model->dispatch.fallback != SL_FALLBACK_WARN)
        return;
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_call *call = &plan->calls[c];
        struct sl_buf buf = {0};
        if (call->fallback)
            sl_refusals_write(&buf, call->refusals, call->refusal_count);
        if (call->fallback)
            sl_log_printf(session->options.log, SL_LOG_WARN, "`%s` falls back to %s: %s", call->node->name,
                          sl_backend_get_id(call->backend), sl_buf_text(&buf));
        sl_buf_deinit(&buf);
    }
}

/* Bytes of memory that this process can have: of the machine, or of its control group. 0: not known. */
static double find_room(bool *out_limited)
{
    struct sysinfo machine;
    const int64_t group = sl_cgroup_find_memory("");
    double room = 0;
    if (sysinfo(&machine) == 0)
        room = ((double)machine.totalram + (double)machine.totalswap) * machine.mem_unit;
    *out_limited = group > 0 && (room == 0 || (double)group < room);
    return *out_limited ? (double)group : room;
}

/* Weights, gradients and states of the optimizer will all be written. If they are larger than the memory of the
 * machine or of the container, no allocation fails, but the kernel kills a process. */
static seqlstm_status check_room(const struct sl_graph *graph, int32_t states, struct seqlstm_error *err)
{
    bool limited;
    double copies = graph->phase == SL_PHASE_TRAIN ? 2 + states : 1;
    double bytes = copies * (double)sizeof(float) * (double)sl_graph_param_elems(graph);
    const double room = find_room(&limited);
    if (room > 0 && bytes > room)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY,
                     "%s take %.1f GB, %s has %.1f GB of memory (`seqlstm plan --set "
                     "dispatch.policy=estimate` shows the rest)",
                     copies > 2   ? "weights, gradients and states of the optimizer"
                     : copies > 1 ? "weights and gradients"
                                  : "the weights",
                     bytes / 1e9, limited ? "the control group of this process (a container's limit)" : "this machine",
                     room / 1e9);
    return SEQLSTM_OK;
}

seqlstm_status sl_session_check_container(const struct sl_session *session, struct seqlstm_error *err)
{
    bool limited;
    find_room(&limited);
    return limited ? check_room(session->train.graph, sl_optimizer_states(&session->model->train.optimizer), err)
                   : SEQLSTM_OK;
}

/* A precision that no layer is computed in has no effect. A run may come from another machine, and goes on. */
static seqlstm_status check_precision(struct sl_session *session, const struct sl_plan *plan, struct seqlstm_error *err)
{
    static const uint32_t types[] = {[SL_PRECISION_TF32] = SEQLSTM_DTYPE_TF32,
                                     [SL_PRECISION_BFLOAT16] = SEQLSTM_DTYPE_BFLOAT16,
                                     [SL_PRECISION_FLOAT16] = SEQLSTM_DTYPE_FLOAT16};
    const enum sl_precision precision = session->model->precision;
    const struct sl_refusal *why = NULL;
    if (precision == SL_PRECISION_FLOAT32)
        return SEQLSTM_OK;
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_call *call = &plan->calls[c];
        if (call->node->desc.head.dtype_compute == types[precision])
            return SEQLSTM_OK;
        for (int32_t r = 0; r < call->refusal_count && why == NULL; r++)
            if (call->refusals[r].option_id == SEQLSTM_OPTION_DTYPE)
                why = &call->refusals[r];
    }
    const char *name = sl_dtype_name(types[precision]);
    seqlstm_error_set(err, SEQLSTM_UNSUPPORTED, __FILE__, __LINE__,
                      "no layer is computed in %s on this machine%s%s%s%s; use `precision: float32`", name,
                      why ? ": " : "", why ? why->backend : "", why ? ": " : "", why ? why->reason : "");
    if (!session->is_run)
        return sl_session_add_finding(session, "E0503", "precision", SEQLSTM_UNSUPPORTED, err);
    sl_log_printf(session->options.log, SL_LOG_WARN, "no layer is computed in %s on this machine; all are in float32",
                  name);
    return SEQLSTM_OK;
}

seqlstm_status sl_session_prepare_stage(struct sl_session *session, const struct sl_graph_request *request,
                                        const struct sl_profiles *profiles, const struct sl_choices *choices,
                                        bool with_exec, struct sl_stage *stage, struct seqlstm_error *err)
{
    seqlstm_status status = sl_graph_create(request, &stage->graph, err);
    if (status != SEQLSTM_OK)
        return sl_session_add_finding(session, "E0502", "model", status, err);
    SEQLSTM_TRY(sl_session_load_backends(session, err));
    int32_t states = sl_optimizer_states(&session->model->train.optimizer);
    if (session->model->dispatch.policy == SL_POLICY_MEASURED)
        SEQLSTM_TRY(check_room(stage->graph, states, err));
    struct sl_profiles own = {0};
    struct sl_tuning tuning;
    SEQLSTM_TRY(sl_session_open_tuning(session, request->phase, &own, &tuning, err));
    if (profiles)
        tuning.profiles = profiles;
    if (profiles && session->planned_pool)
        SEQLSTM_TRY(sl_session_measure_profiles(session, &tuning, err));
    if (choices == NULL)
        choices = &session->stored.phases;
    struct sl_plan_request plan = {.graph = stage->graph,
                                   .registry = session->registry,
                                   .forced_backend = session->options.forced_backend,
                                   .tuning = &tuning,
                                   .stored = choices->items,
                                   .stored_count = choices->count,
                                   .stored_whole_steps =
                                       sl_stored_plan_find_whole_steps(&session->stored, request->phase),
                                   .optimizer_states = states,
                                   .threads = sl_pool_get_members(tuning.pool)};
    status = sl_plan_create(&plan, &stage->plan, err);
    sl_profiles_deinit(&own);
    if (status != SEQLSTM_OK)
        return sl_session_add_finding(session, "E0503", NULL, status, err);
    sl_session_save_costs(session, stage->plan);
    sl_session_measure_process(stage->plan);
    if (request->phase == SL_PHASE_TRAIN) {
        warn_of_fallbacks(session, stage->plan);
        SEQLSTM_TRY(check_precision(session, stage->plan, err));
    }
    return with_exec ? sl_session_open_exec(session, stage, err) : SEQLSTM_OK;
}

seqlstm_status sl_session_open_params(struct sl_session *session, const struct sl_graph *graph,
                                      struct seqlstm_error *err)
{
    const int32_t states = sl_optimizer_states(&session->model->train.optimizer);
    if (session->params)
        return SEQLSTM_OK;
    SEQLSTM_TRY(check_room(graph, states, err));
    return sl_params_create(graph, graph->phase == SL_PHASE_TRAIN, states, &session->memory, &session->params, err);
}

seqlstm_status sl_session_open_exec(struct sl_session *session, struct sl_stage *stage, struct seqlstm_error *err)
{
    const bool training = stage->graph->phase == SL_PHASE_TRAIN;
    SEQLSTM_TRY(sl_session_open_params(session, stage->graph, err));
    struct sl_exec_request exec = {.plan = stage->plan,
                                   .params = session->params,
                                   .pool = session->pool,
                                   .memory = &session->memory,
                                   .seed = session->model->seed,
                                   .class_weights = training ? session->class_weights : NULL};
    if (training)
        sl_session_enter_pipeline(session, &exec);
    return sl_exec_create(&exec, &stage->exec, err);
}

seqlstm_status sl_session_prepare(struct sl_session *session, enum sl_phase phase, const struct sl_envelope *envelope,
                                  bool need_output, bool with_exec, const struct sl_quantization *quantization,
                                  struct sl_stage *stage, struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(session->state);
    facts.envelope = *envelope;
    struct sl_graph_request request = {.model = session->model,
                                       .facts = &facts,
                                       .phase = phase,
                                       .need_output = need_output,
                                       .pieces = phase == SL_PHASE_TRAIN ? sl_session_count_pieces(session) : 0,
                                       .quantization = quantization};
    return sl_session_prepare_stage(session, &request, NULL, NULL, with_exec, stage, err);
}
