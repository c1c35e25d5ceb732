/* SPDX-License-Identifier: Apache-2.0 */
/* Measures what one division costs: opens the training that it divides, and has its parts timed. */
#include "session/scaling/costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "session/prepare/division.h"
#include "session/prepare/training.h"
#include "session/record/session_record.h"
#include "session/run_folder/plan_json.h"
#include "session/scaling/devices.h"
#include "session/scaling/meter.h"
#include "session/session.h"
#include "train/exchanged.h"

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static seqlstm_status open_reducer(struct sl_scaling_meter *m, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    struct sl_params *params = session->params;
    const bool compresses = session->ranks.compress_rank > 0;
    m->direct = !session->ranks.ordered && sl_exchanged_stays_on_device(params, &session->ranks);
    if (m->direct)
        return SEQLSTM_OK;
    if (!session->ranks.ordered && session->pipeline.stages < 2)
        SEQLSTM_TRY(sl_exchanged_place_grads(params, session->connection, &m->lends, err));
    struct sl_bundle_matrix *matrices = calloc((size_t)params->view_count + 1, sizeof *matrices);
    m->errors = compresses ? calloc((size_t)params->elems + 1, sizeof *m->errors) : NULL;
    if (!matrices || (compresses && !m->errors)) {
        free(matrices);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of other ranks");
    }
    const struct sl_exchanged_request exchanged = sl_session_request_exchange(session);
    const struct sl_reducer_request request = {
        .ranks = &session->ranks,
        .grads = params->grads,
        .elems = params->trainable_elems,
        .matrices = matrices,
        .matrix_count = sl_exchanged_find_matrices(session->train.graph, params, &exchanged, matrices),
        .marks = params->mirrors == NULL,
        .errors = m->errors,
        .memory = &session->memory};
    const seqlstm_status status = sl_reducer_create(&request, &m->reducer, err);
    free(matrices);
    return status;
}

static seqlstm_status open(struct sl_scaling_meter *m, struct sl_session_options *options,
                           struct sl_rank_identity *identity, struct sl_diagnostics *diagnostics,
                           struct seqlstm_error *err)
{
    const struct sl_scaling_setup *setup = m->setup;
    *options = *setup->options;
    options->parallel = &setup->parallel;
    options->batch_factor = setup->batch_factor;
    options->identity = NULL;
    if (setup->options->identity) {
        *identity = *setup->options->identity;
        identity->ranks = identity->local_ranks = setup->local;
        sl_text_snprintf(identity->job, sizeof identity->job, "%.80s-%d", setup->options->identity->job, setup->number);
        options->identity = identity;
    }
    m->ranks_config = setup->parallel;
    m->ranks_config.pipeline = 1;
    SEQLSTM_TRY(sl_session_open_model(options, diagnostics, &m->session, err));
    SEQLSTM_TRY(sl_session_meet(m->session, &m->ranks_config, err));
    SEQLSTM_TRY(sl_session_prepare_training(m->session, err));
    SEQLSTM_TRY(sl_scaling_open_stages(m, err));
    return m->session->connection ? open_reducer(m, err) : SEQLSTM_OK;
}

static void close(struct sl_scaling_meter *m)
{
    sl_reducer_destroy(m->reducer);
    sl_scaling_close_stages(m);
    free(m->errors);
    if (m->lends)
        sl_params_lend_grads(m->session->params, NULL);
    if (m->session)
        sl_session_leave(m->session);
    sl_session_close(m->session);
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

/* Of the stage that needs most memory. */
static int64_t count_untouched(const struct sl_session *session)
{
    int64_t least = INT64_MAX;
    for (int32_t s = 0; s < session->pipeline.stages && session->pipeline.stages > 1; s++) {
        const int64_t bytes = sl_pipeline_count_untouched(session->train.plan, &session->pipeline, s);
        least = bytes < least ? bytes : least;
    }
    return least < INT64_MAX ? least : 0;
}

static seqlstm_status measure(struct sl_scaling_meter *m, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    struct sl_scaling_costs *costs = m->costs;
    const struct sl_plan *plan = session->train.plan;
    costs->threads = plan->threads;
    costs->stages = session->pipeline.stages > 0 ? session->pipeline.stages : 1;
    costs->pieces = session->pipeline.pieces;
    costs->batches = (double)(session->model->train.accumulate > 1 ? session->model->train.accumulate : 1);
    costs->shards = (int32_t)((m->setup->parallel.shards + m->setup->parallel.data - 1) / m->setup->parallel.data);
    costs->sequences = sl_batcher_envelope(session->train_batcher).sequences;
    costs->memory_bytes = sl_session_sum_memory(session, plan) - count_untouched(session);
    SEQLSTM_TRY(sl_scaling_count_devices(session, &costs->devices, err));
    SEQLSTM_TRY(sl_scaling_price_pieces(m, err));
    m->trains = true;
    SEQLSTM_TRY(sl_scaling_time_steps(m, err));
    m->trains = false;
    if (session->connection) {
        SEQLSTM_TRY(sl_scaling_time_exchanges(m, err));
        SEQLSTM_TRY(sl_scaling_run_batches(m, &(int32_t){1}, &(struct sl_scaling_times){0},
                                           err)); /* the gradients of one step alone */
    }
    if (!m->reducer)
        SEQLSTM_TRY(sl_scaling_time_staging(m, err));
    return sl_scaling_list_matrices(m, err);
}

seqlstm_status sl_scaling_measure(const struct sl_scaling_setup *setup, struct sl_scaling_costs *out,
                                  struct seqlstm_error *err)
{
    struct sl_scaling_meter m = {.setup = setup, .costs = out};
    struct sl_session_options options;
    struct sl_rank_identity identity;
    struct sl_diagnostics *diagnostics = NULL;
    *out = (struct sl_scaling_costs){0};
    SEQLSTM_TRY(sl_diagnostics_create(&diagnostics, err));
    seqlstm_status status = open(&m, &options, &identity, diagnostics, err);
    if (status == SEQLSTM_OK)
        status = measure(&m, err);
    close(&m);
    sl_diagnostics_destroy(diagnostics);
    return status;
}
