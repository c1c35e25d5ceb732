/* SPDX-License-Identifier: Apache-2.0 */
/* What measured dispatch needs of a session: batches like those of the data, the cache of costs, and a limit of
 * time. */
#include "session/measure/tuning.h"

#include <stdio.h>

#include "base/batch/slice.h"
#include "dispatch/cost/cost_cache.h"
#include "dispatch/memory/layout.h"
#include "dispatch/planner.h"
#include "session/measure/whole_steps.h"
#include "session/record/session_record.h"

/* Limits for all plans of a session together; an eighth of the sum is for evaluation. */
static const double train_seconds = 3.5, evaluate_seconds = 0.5;

static seqlstm_status open_costs(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->costs)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_cost_cache_open(NULL, &session->costs, err));
    if (sl_cost_cache_find_folder(session->costs) == NULL)
        sl_log_printf(session->options.log, SL_LOG_INFO,
                      "note: there is no cache folder (SEQLSTM_CACHE, XDG_CACHE_HOME, HOME): measurements of "
                      "the backends are kept in the run's plan alone");
    return SEQLSTM_OK;
}

seqlstm_status sl_session_open_tuning(struct sl_session *session, enum sl_phase phase, struct sl_profiles *profiles,
                                      struct sl_tuning *out_tuning, struct seqlstm_error *err)
{
    const struct sl_batcher *batcher = phase == SL_PHASE_TRAIN      ? session->train_batcher
                                       : phase == SL_PHASE_EVALUATE ? session->valid_batcher
                                                                    : NULL;
    *out_tuning = (struct sl_tuning){.profiles = profiles,
                                     .pool = session->planned_pool ? session->planned_pool : session->pool,
                                     .measure = session->stored.phases.count == 0,
                                     .seconds = phase == SL_PHASE_TRAIN ? train_seconds : evaluate_seconds,
                                     .time_whole_steps = sl_session_time_whole_steps,
                                     .interrupt = session->options.interrupt,
                                     .log = session->options.log};
    if (batcher == NULL)
        return SEQLSTM_OK;
    if (session->model->dispatch.policy == SL_POLICY_MEASURED) {
        SEQLSTM_TRY(open_costs(session, err));
        out_tuning->cache = session->costs;
    }
    SEQLSTM_TRY(sl_batcher_sample(batcher, profiles, err));
    if (phase == SL_PHASE_TRAIN && sl_session_is_divided(session))
        sl_profiles_slice(profiles, sl_session_count_shards(session));
    return SEQLSTM_OK;
}

seqlstm_status sl_session_measure_profiles(struct sl_session *session, struct sl_tuning *tuning,
                                           struct seqlstm_error *err)
{
    if (session->model->dispatch.policy != SL_POLICY_MEASURED)
        return SEQLSTM_OK;
    SEQLSTM_TRY(open_costs(session, err));
    tuning->cache = session->costs;
    tuning->measure = true;
    tuning->time_whole_steps = NULL;
    return SEQLSTM_OK;
}

void sl_session_save_costs(struct sl_session *session, const struct sl_plan *plan)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    const struct sl_log *log = session->options.log;
    if (session->costs == NULL)
        return;
    if (sl_cost_cache_save(session->costs, &why) != SEQLSTM_OK)
        sl_log_printf(log, SL_LOG_INFO, "note: measurements are not kept for later runs: %s", why.message);
    const char *folder = sl_cost_cache_find_folder(session->costs);
    const bool compared = plan->whole_steps.source == SL_COST_MEASURED;
    if (plan->timed > 0 || compared)
        sl_log_printf(log, plan->timed_seconds > 1 ? SL_LOG_INFO : SL_LOG_DEBUG, "timed %d candidate%s%s in %.1f s%s%s",
                      plan->timed, plan->timed == 1 ? "" : "s", compared ? " and whole steps of two plans" : "",
                      plan->timed_seconds, folder ? "; later runs find the results in " : "", folder ? folder : "");
}

void sl_session_measure_process(struct sl_plan *plan)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    long long resident = 0, reached = 0;
    sl_memory_trim(); /* frees what reading and timing left, which the heap would keep besides the buffers of the run */
    while (file && fgets(line, sizeof line, file)) {
        (void)sscanf(line, "VmRSS: %lld", &resident);
        (void)sscanf(line, "VmHWM: %lld", &reached);
    }
    if (file)
        fclose(file);
    sl_plan_set_process(plan, (int64_t)resident * 1024, (int64_t)reached * 1024);
}
