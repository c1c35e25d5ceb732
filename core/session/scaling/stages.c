/* SPDX-License-Identifier: Apache-2.0 */
/* Times the stages of a pipeline. Each rank has executors for some of them, as the ranks of one host would: all run at
 * the same time, so that they share caches and memory as these do. A host with fewer ranks than stages takes them in
 * turns. What other stages would send is zero. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "parallel/ranks.h"
#include "session/record/session_record.h"
#include "session/scaling/meter.h"

/* ---- which stages ----------------------------------------------------------------------------------------------- */

/* Ranks that have different stages of one pipeline at the same time. */
static int32_t count_abreast(const struct sl_scaling_meter *m)
{
    const struct sl_session *session = m->session;
    return session->ranks.ranks < session->pipeline.stages ? session->ranks.ranks : session->pipeline.stages;
}

/* The stage of this rank in a turn; -1: it has none. */
static int32_t find_stage(const struct sl_scaling_meter *m, int32_t turn)
{
    const int32_t abreast = count_abreast(m), stage = turn * abreast + m->session->ranks.rank % abreast;
    return stage < m->session->pipeline.stages ? stage : -1;
}

int64_t sl_scaling_find_slice(const struct sl_scaling_meter *m)
{
    return m->session->ranks.rank / (m->session->pipeline.stages > 1 ? count_abreast(m) : 1);
}

/* ---- executors -------------------------------------------------------------------------------------------------- */

/* sl_exec_exchange_fn */
static seqlstm_status stand_in(void *context, bool after, bool sends, float *values, int64_t elems,
                               struct seqlstm_error *err)
{
    (void)context, (void)after, (void)err;
    if (!sends)
        memset(values, 0, (size_t)elems * sizeof *values);
    return SEQLSTM_OK;
}

static seqlstm_status open_stage(struct sl_scaling_meter *m, int32_t stage, struct sl_exec **out_exec,
                                 struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    const struct sl_pipeline *pipeline = &session->pipeline;
    const struct sl_exec_request request = {
        .plan = session->train.plan,
        .params = session->params,
        .pool = session->pool,
        .memory = &session->memory,
        .seed = session->model->seed,
        .class_weights = session->class_weights,
        .pieces = pipeline->pieces,
        .stage = {.first = pipeline->bounds[stage], .end = pipeline->bounds[stage + 1], .exchange = stand_in}};
    return sl_exec_create(&request, out_exec, err);
}

seqlstm_status sl_scaling_open_stages(struct sl_scaling_meter *m, struct seqlstm_error *err)
{
    if (m->session->pipeline.stages < 2)
        return SEQLSTM_OK;
    const int32_t abreast = count_abreast(m);
    m->turns = (m->session->pipeline.stages + abreast - 1) / abreast;
    m->stages = calloc((size_t)m->turns, sizeof *m->stages);
    if (!m->stages)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stages");
    for (int32_t t = 0; t < m->turns; t++)
        if (find_stage(m, t) >= 0)
            SEQLSTM_TRY(open_stage(m, find_stage(m, t), &m->stages[t], err));
    return SEQLSTM_OK;
}

void sl_scaling_close_stages(struct sl_scaling_meter *m)
{
    for (int32_t t = 0; m->stages && t < m->turns; t++)
        sl_exec_destroy(m->stages[t]);
    free(m->stages);
    m->stages = NULL;
}

/* ---- one step --------------------------------------------------------------------------------------------------- */

/* An update of what the stage owns, which changes no weight: its learning rate is 0. */
static seqlstm_status update(struct sl_scaling_meter *m, int32_t turn, double *ns, struct seqlstm_error *err)
{
    const struct sl_exec_update making = {.count = 1};
    const struct sl_session *session = m->session;
    const int32_t views = session->params->view_count;
    double *each = calloc((size_t)views + 1, sizeof *each), squares;
    bool *owned = calloc((size_t)views + 1, sizeof *owned);
    seqlstm_status status = each && owned ? SEQLSTM_OK
                                          : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                                              "no memory for the times of an update");
    for (int32_t v = 0; v < views && status == SEQLSTM_OK; v++)
        owned[v] = session->owners.params[v] == find_stage(m, turn);
    const int64_t begin = sl_clock_ns();
    if (status == SEQLSTM_OK)
        status = sl_exec_begin_owned(m->stages[turn], &making, owned, each, err);
    if (status == SEQLSTM_OK)
        status = sl_exec_finish_owned(m->stages[turn], owned, 0, &squares, err);
    *ns = fmax(*ns, (double)(sl_clock_ns() - begin));
    free(each);
    free(owned);
    return status;
}

static seqlstm_status run_turns(struct sl_scaling_meter *m, const struct sl_batch *slice,
                                const struct sl_exec_step *step, bool updates, struct sl_piece_times *times,
                                double *update_ns, struct seqlstm_error *err)
{
    for (int32_t t = 0; t < m->turns; t++) {
        struct sl_exec_result result;
        SEQLSTM_TRY(sl_ranks_agree(&m->session->ranks, err)); /* all begin */
        if (!m->stages[t])
            continue;
        sl_exec_time_pieces(m->stages[t], times);
        const seqlstm_status status = sl_exec_run(m->stages[t], slice, step, &result, err);
        sl_exec_time_pieces(m->stages[t], NULL);
        SEQLSTM_TRY(status);
        if (updates)
            SEQLSTM_TRY(update(m, t, update_ns, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_scaling_update_stages(struct sl_scaling_meter *m, double *out_ns, struct seqlstm_error *err)
{
    *out_ns = 0;
    for (int32_t t = 0; t < m->turns; t++)
        if (m->stages[t])
            SEQLSTM_TRY(update(m, t, out_ns, err));
    m->updates++;
    return SEQLSTM_OK;
}

/* All ranks get the times of all stages; where several ranks have a stage, those of the slowest. */
static seqlstm_status gather(struct sl_scaling_meter *m, struct sl_piece_times *times, struct seqlstm_error *err)
{
    const struct sl_ranks *ranks = &m->session->ranks;
    const int64_t count = times->count; /* they follow each other */
    double *all = calloc((size_t)(ranks->ranks * count) + 1, sizeof *all);
    if (!all)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the times of %d ranks", ranks->ranks);
    const seqlstm_status status = sl_ranks_gather(ranks, times->forward, count * (int64_t)sizeof *all, all, err);
    for (int64_t k = 0; k < ranks->ranks * count && status == SEQLSTM_OK; k++)
        times->forward[k % count] = fmax(times->forward[k % count], all[k]);
    free(all);
    return status;
}

seqlstm_status sl_scaling_run_stages(struct sl_scaling_meter *m, const struct sl_batch *slice,
                                     const struct sl_exec_step *step, bool updates, struct sl_scaling_times *out,
                                     struct seqlstm_error *err)
{
    const struct sl_pipeline *pipeline = &m->session->pipeline;
    const struct sl_plan *plan = m->session->train.plan;
    struct sl_piece_times times;
    SEQLSTM_TRY(sl_piece_times_init(&times, plan->call_count, pipeline->pieces, err));
    seqlstm_status status = run_turns(m, slice, step, updates, &times, &out->update, err);
    if (status == SEQLSTM_OK)
        status = gather(m, &times, err);
    out->alone = sl_piece_times_sum(&times);
    if (status == SEQLSTM_OK)
        status = sl_pipeline_simulate_times(plan, pipeline, &times, m->piece_ns, &out->stages, err);
    sl_piece_times_deinit(&times);
    m->updates += updates;
    return status;
}
