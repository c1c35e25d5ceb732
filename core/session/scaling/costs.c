/* SPDX-License-Identifier: Apache-2.0 */
/* Runs steps of a training as the trainer does (train/trainer/shards.c), on all ranks of this host at once, and takes
 * their times: first without exchanges, then with the gradients exchanged during the backward pass. The weights do not
 * change. */
#include "session/scaling/costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/batch/slice.h"
#include "base/system/clock.h"
#include "base/value/text.h"
#include "session/prepare/division.h"
#include "session/prepare/training.h"
#include "session/record/session_record.h"
#include "session/run_folder/plan_json.h"
#include "session/scaling/devices.h"
#include "session/session.h"
#include "train/exchanged.h"

enum { BATCHES_LEAST = 3, BATCHES_MOST = 24, UPDATES = 3, TRIALS = 5, WARM_UPS = 2 };
static const double seconds_most = 1.5; /* for all steps without exchanges */

/* Times that the slowest rank gives. */
struct times {
    double prepare, step, together, alone, stages;
};
enum { TIMES = sizeof(struct times) / sizeof(double) };

struct meter {
    const struct sl_scaling_setup *setup;
    struct sl_parallel_config ranks_config; /* as the ranks that measure are connected: each computes all stages */
    struct sl_session *session;
    struct sl_reducer *reducer; /* NULL: alone, in a pipeline, or gradients stay on the device */
    bool direct;                /* they do */
    float *errors;              /* of compressed gradients; NULL: none are */
    bool lends;                 /* gradients lie in memory of the collectives */
    struct sl_scaling_costs *costs;
    int64_t began_ns;
    int32_t noted; /* in the running step */
    bool notes, adds, exchanges;
    int64_t rows;
    double piece_ns; /* of passing a piece */
};

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static seqlstm_status open_reducer(struct meter *m, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    struct sl_params *params = session->params;
    const bool compresses = session->ranks.compress_rank > 0;
    m->direct = !session->ranks.ordered && sl_exchanged_stays_on_device(params, &session->ranks);
    if (m->direct)
        return SEQLSTM_OK;
    if (!session->ranks.ordered && session->pipeline.stages < 2)
        SEQLSTM_TRY(sl_exchanged_place_grads(params, session->connection, &m->lends, err));
    struct sl_reducer_matrix *matrices = calloc((size_t)params->view_count + 1, sizeof *matrices);
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
        .errors = m->errors,
        .memory = &session->memory};
    const seqlstm_status status = sl_reducer_create(&request, &m->reducer, err);
    free(matrices);
    return status;
}

static seqlstm_status open(struct meter *m, struct sl_session_options *options, struct sl_rank_identity *identity,
                           struct sl_diagnostics *diagnostics, struct seqlstm_error *err)
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
    return m->session->connection ? open_reducer(m, err) : SEQLSTM_OK;
}

static void close(struct meter *m)
{
    sl_reducer_destroy(m->reducer);
    free(m->errors);
    if (m->lends)
        sl_params_lend_grads(m->session->params, NULL);
    if (m->session)
        sl_session_leave(m->session);
    sl_session_close(m->session);
}

/* ---- one step --------------------------------------------------------------------------------------------------- */

static void note(void *meter, int64_t from)
{
    struct meter *m = meter;
    struct sl_scaling_costs *costs = m->costs;
    if (m->adds)
        sl_reducer_note(m->reducer, from);
    if (!m->notes || m->noted == SL_SCALING_NOTES)
        return;
    costs->notes[m->noted].from = from;
    costs->notes[m->noted++].ns += (double)(sl_clock_ns() - m->began_ns);
    costs->note_count = m->noted > costs->note_count ? m->noted : costs->note_count;
}

/* The pieces of this rank's slice: what the stages take for them. */
static seqlstm_status run_in_pieces(struct meter *m, const struct sl_batch *slice, const struct sl_exec_step *step,
                                    struct times *out, struct seqlstm_error *err)
{
    const struct sl_pipeline *pipeline = &m->session->pipeline;
    struct sl_piece_times times;
    struct sl_exec_result result;
    SEQLSTM_TRY(sl_piece_times_init(&times, m->session->train.plan->call_count, pipeline->pieces, err));
    sl_exec_time_pieces(m->session->train.exec, &times);
    seqlstm_status status = sl_exec_run(m->session->train.exec, slice, step, &result, err);
    sl_exec_time_pieces(m->session->train.exec, NULL);
    out->alone = sl_piece_times_sum(&times);
    if (status == SEQLSTM_OK)
        status = sl_pipeline_simulate_times(m->session->train.plan, pipeline, &times, m->piece_ns, &out->stages, err);
    sl_piece_times_deinit(&times);
    return status;
}

/* Adds the gradients of all ranks. */
static seqlstm_status add(struct meter *m, struct seqlstm_error *err)
{
    struct sl_params *params = m->session->params;
    if (m->direct)
        return sl_exchanged_add_on_device(params, &m->session->ranks.replicas, err);
    if (!m->reducer)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_exchanged_finish(params, m->reducer, err));
    return sl_scaling_upload_grads(params, err);
}

static seqlstm_status run(struct meter *m, const struct sl_batch *batch, struct times *out, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    const int32_t shards = sl_session_count_shards(session);
    struct sl_batch *slice = NULL;
    struct sl_exec_result result;
    struct sl_exec_step step = {.normaliser = 1.0 / (double)(1 + sl_batch_count_computed_rows(batch)),
                                .on_grads = note,
                                .grads_context = m,
                                .weight_mask_step = (uint32_t)batch->ordinal};
    int64_t begin = sl_clock_ns();
    if (shards > 1) /* the first slices have most rows */
        SEQLSTM_TRY(sl_batch_slice(batch, session->ranks.rank % batch->sequences, shards, &slice, err));
    out->prepare = (double)(sl_clock_ns() - begin);
    m->noted = 0;
    m->began_ns = begin = sl_clock_ns();
    seqlstm_status status = session->pipeline.stages > 1
                                ? run_in_pieces(m, slice ? slice : batch, &step, out, err)
                                : sl_exec_run(session->train.exec, slice ? slice : batch, &step, &result, err);
    if (status == SEQLSTM_OK)
        status = sl_scaling_finish_devices(session->params, err);
    out->step = (double)(sl_clock_ns() - begin);
    if (status == SEQLSTM_OK && m->exchanges)
        status = add(m, err);
    out->together = (double)(sl_clock_ns() - begin);
    sl_batch_destroy(slice);
    return status;
}

/* The slowest rank counts. */
static seqlstm_status find_slowest(const struct meter *m, struct times *times, struct seqlstm_error *err)
{
    const struct sl_ranks *ranks = &m->session->ranks;
    struct times *all = calloc((size_t)ranks->ranks, sizeof *all);
    if (!all)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the times of %d ranks", ranks->ranks);
    const seqlstm_status status = sl_ranks_gather(ranks, times, (int64_t)sizeof *times, all, err);
    for (int32_t r = 0; r < ranks->ranks && status == SEQLSTM_OK; r++)
        for (int32_t k = 0; k < TIMES; k++)
            ((double *)times)[k] = fmax(((double *)times)[k], ((double *)&all[r])[k]);
    free(all);
    return status;
}

/* ---- the steps -------------------------------------------------------------------------------------------------- */

/* Runs batches of the first epoch, `count` of them, or as many as there is time for; adds their times. */
static seqlstm_status run_batches(struct meter *m, int32_t *count, struct times *sum, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    const bool limited = *count == 0;
    const int32_t most = limited ? BATCHES_MOST : *count;
    *sum = (struct times){0};
    m->rows = 0;
    SEQLSTM_TRY(sl_batcher_seek(session->train_batcher, 0, 0, err));
    for (*count = 0; *count < most; (*count)++) {
        struct sl_batch *batch = NULL;
        struct times times = {0};
        if (sl_interrupt_get_stop(session->options.interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted while steps were timed");
        SEQLSTM_TRY(sl_batcher_next(session->train_batcher, &batch, err));
        if (!batch)
            return SEQLSTM_OK;
        m->rows += sl_batch_count_real_rows(batch);
        seqlstm_status status = sl_ranks_agree(&session->ranks, err);
        if (status == SEQLSTM_OK)
            status = run(m, batch, &times, err);
        sl_batch_destroy(batch);
        SEQLSTM_TRY(status);
        SEQLSTM_TRY(find_slowest(m, &times, err));
        for (int32_t k = 0; k < TIMES; k++)
            ((double *)sum)[k] += ((double *)&times)[k];
        if (limited && *count + 1 >= BATCHES_LEAST && sum->step > 1e9 * seconds_most) {
            (*count)++;
            return SEQLSTM_OK;
        }
    }
    return SEQLSTM_OK;
}

/* From the batches that ran to a mean one of the epoch. */
static double get_scale(const struct meter *m, int32_t count)
{
    const struct sl_data_facts *facts = sl_data_state_get_facts(m->session->state);
    const int64_t batches = sl_batcher_get_batches(m->session->train_batcher);
    const double mean = (double)sl_data_facts_count_real_rows(facts) / (double)(batches > 0 ? batches : 1);
    return m->rows > 0 ? mean / (double)m->rows : 1.0 / count;
}

static void keep_notes(struct meter *m, double scale)
{
    for (int32_t k = 0; k < m->costs->note_count; k++)
        m->costs->notes[k].ns *= scale;
}

static seqlstm_status time_steps(struct meter *m, struct seqlstm_error *err)
{
    struct sl_scaling_costs *costs = m->costs;
    struct times sum;
    int32_t count = WARM_UPS;
    SEQLSTM_TRY(run_batches(m, &count, &sum, err));
    count = 0;
    m->notes = true;
    SEQLSTM_TRY(run_batches(m, &count, &sum, err));
    m->notes = false;
    const double scale = get_scale(m, count);
    keep_notes(m, scale);
    costs->rows = scale * (double)m->rows;
    costs->prepare_ns = scale * sum.prepare;
    costs->step_ns = scale * sum.step;
    costs->together_ns = scale * sum.together;
    costs->exchange_ns = costs->together_ns - costs->step_ns;
    costs->alone_ns = scale * sum.alone;
    costs->stages_ns = scale * sum.stages;
    if (!m->reducer || m->session->pipeline.stages > 1 || !m->session->ranks.overlaps)
        return SEQLSTM_OK;
    m->adds = true;
    SEQLSTM_TRY(run_batches(m, &count, &sum, err));
    m->adds = false;
    costs->together_ns = fmax(costs->step_ns, scale * sum.together); /* the same step may be faster this time */
    return SEQLSTM_OK;
}

/* ---- the rest of an update -------------------------------------------------------------------------------------- */

/* An update that changes nothing: its learning rate is 0. In a pipeline of the stage with most parameters. */
static seqlstm_status time_update(struct meter *m, double *out_ns, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    const struct sl_exec_update update = {.count = 1};
    const int32_t views = session->params->view_count;
    const bool stages = session->pipeline.stages > 1;
    double squares = 0, all = 0, *each = calloc((size_t)views + 1, sizeof *each);
    bool *owned = calloc((size_t)views + 1, sizeof *owned);
    seqlstm_status status = each && owned ? SEQLSTM_OK
                                          : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                                              "no memory for the times of an update");
    *out_ns = INFINITY;
    for (int32_t s = 0; status == SEQLSTM_OK && s < (stages ? session->pipeline.stages : 1); s++) {
        double best = INFINITY;
        for (int32_t v = 0; v < views && stages; v++)
            owned[v] = session->owners.params[v] == s;
        for (int k = 0; k < UPDATES && status == SEQLSTM_OK; k++) {
            const int64_t begin = sl_clock_ns();
            if (stages)
                status = sl_exec_begin_owned(session->train.exec, &update, owned, each, err);
            if (stages && status == SEQLSTM_OK)
                status = sl_exec_finish_owned(session->train.exec, owned, all, &squares, err);
            if (!stages)
                status = sl_exec_update(session->train.exec, &update, &squares, err);
            if (!stages && status == SEQLSTM_OK)
                status = sl_scaling_finish_devices(session->params, err);
            best = fmin(best, (double)(sl_clock_ns() - begin));
        }
        *out_ns = s == 0 ? best : fmax(*out_ns, best);
    }
    free(each);
    free(owned);
    return status;
}

/* Where the gradients are. */
static seqlstm_status run_exchange(struct meter *m, struct seqlstm_exchange exchange, struct seqlstm_error *err)
{
    return m->direct ? sl_scaling_exchange_on_device(m->session->params, m->session->connection, exchange, err)
                     : sl_connection_run(m->session->connection, 0, exchange, err);
}

/* Brings gradients to the host and back, as exchanges between hosts do. */
static seqlstm_status time_staging(struct meter *m, struct seqlstm_error *err)
{
    struct sl_params *params = m->session->params;
    const int64_t begin = sl_clock_ns();
    SEQLSTM_TRY(sl_params_pull_grads(params, err));
    if (!params->mirrors)
        return SEQLSTM_OK;
    sl_params_touch_grads(params);
    SEQLSTM_TRY(sl_scaling_upload_grads(params, err));
    m->costs->staging_ns = (double)(sl_clock_ns() - begin);
    return SEQLSTM_OK;
}

/* The fastest of some exchanges. */
static seqlstm_status time_exchange(struct meter *m, struct seqlstm_exchange exchange, double *out_ns,
                                    struct seqlstm_error *err)
{
    *out_ns = INFINITY;
    for (int k = 0; k < TRIALS; k++) {
        SEQLSTM_TRY(sl_ranks_agree(&m->session->ranks, err));
        const int64_t begin = sl_clock_ns();
        SEQLSTM_TRY(run_exchange(m, exchange, err));
        *out_ns = fmin(*out_ns, (double)(sl_clock_ns() - begin));
    }
    return SEQLSTM_OK;
}

static seqlstm_status time_exchanges(struct meter *m, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    struct sl_params *params = session->params;
    struct sl_scaling_costs *costs = m->costs;
    const int64_t most = params->trainable_elems < (256 << 10) ? params->trainable_elems : 256 << 10;
    struct seqlstm_exchange sum = {.kind = SEQLSTM_COLLECTIVE_ALL_REDUCE,
                                   .dtype = SEQLSTM_DTYPE_FLOAT32,
                                   .elems = 1,
                                   .from = params->grads,
                                   .to = params->grads};
    double least, whole, begin;
    SEQLSTM_TRY(time_exchange(m, sum, &least, err));
    sum.elems = most;
    SEQLSTM_TRY(time_exchange(m, sum, &whole, err));
    costs->measured = (struct sl_scaling_link){4e9 * (double)most / fmax(whole - least, 1), 1e-9 * least};
    begin = (double)sl_clock_ns();
    for (int k = 0; k < TRIALS; k++)
        SEQLSTM_TRY(sl_ranks_agree(&session->ranks, err));
    costs->agree_ns = ((double)sl_clock_ns() - begin) / TRIALS;
    if (session->ranks.reduce->how != SL_REDUCE_CENTRAL)
        return SEQLSTM_OK;
    begin = (double)sl_clock_ns();
    for (int k = 0; k < TRIALS; k++)
        SEQLSTM_TRY(sl_ranks_broadcast(&session->ranks, 0, params->values, params->trainable_elems * 4, err));
    costs->weights_ns = ((double)sl_clock_ns() - begin) / TRIALS;
    return SEQLSTM_OK;
}

/* ---- what is exchanged ------------------------------------------------------------------------------------------ */

static double find_share_used(const float *grad, int64_t rows, int64_t columns)
{
    int64_t used = 0;
    for (int64_t r = 0; r < rows; r++) {
        bool any = false;
        for (int64_t k = 0; k < columns && !any; k++)
            any = grad[r * columns + k] != 0;
        used += any;
    }
    return (double)used / (double)(rows > 0 ? rows : 1);
}

/* After a step whose gradients were not exchanged. On devices they are exchanged as they are. */
static void list_matrices(struct meter *m)
{
    struct sl_scaling_costs *costs = m->costs;
    const struct sl_params *params = m->session->params;
    const struct sl_exchanged_request exchanged = sl_session_request_exchange(m->session);
    struct sl_reducer_matrix *list = calloc((size_t)params->view_count + 1, sizeof *list);
    const int32_t count = list ? sl_exchanged_find_matrices(m->session->train.graph, params, &exchanged, list) : 0;
    costs->elems = params->trainable_elems;
    costs->compress_rank = (int32_t)exchanged.compress_rank;
    for (int32_t k = 0; k < count && !m->direct && costs->matrix_count < SL_SCALING_MATRICES; k++)
        costs->matrices[costs->matrix_count++] = (struct sl_scaling_matrix){
            list[k].offset,
            list[k].offset + list[k].rows * list[k].columns,
            list[k].rows,
            list[k].columns,
            list[k].compressed,
            list[k].compressed ? 1 : find_share_used(params->grads + list[k].offset, list[k].rows, list[k].columns)};
    free(list);
}

/* Floats of a row that cross the busiest border. */
static double count_border(const struct sl_session *session)
{
    const struct sl_plan *plan = session->train.plan;
    double most = 0;
    for (int32_t s = 1; s < session->pipeline.stages; s++) {
        double features = 0;
        for (int32_t t = 0; t < plan->graph->tensor_count; t++) {
            const struct sl_tensor *tensor = &plan->graph->tensors[t];
            bool before = false, after = false;
            for (int32_t c = 0; c < plan->call_count; c++)
                if (sl_node_uses(plan->calls[c].node, t))
                    *(c < session->pipeline.bounds[s] ? &before : &after) = true;
            if (before && after && tensor->role == SL_TENSOR_ACTIVATION && tensor->axis == SL_AXIS_STEPS)
                features += (double)tensor->features;
        }
        most = fmax(most, features);
    }
    return most;
}

/* Passes a piece between ranks 0 and 1, there and back. */
static seqlstm_status time_piece(struct meter *m, int64_t elems, double *out_ns, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    const int32_t rank = session->ranks.rank;
    struct seqlstm_exchange e = {.dtype = SEQLSTM_DTYPE_FLOAT32, .elems = elems, .peer = 1 - rank};
    float *values = calloc((size_t)elems + 1, sizeof *values);
    seqlstm_status status = values ? SEQLSTM_OK
                                   : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                                       "no memory for the activations of a piece");
    int64_t best = INT64_MAX;
    for (int k = 0; k < TRIALS && status == SEQLSTM_OK && rank < 2; k++) {
        const int64_t begin = sl_clock_ns();
        for (int turn = 0; turn < 2 && status == SEQLSTM_OK; turn++) {
            const bool sends = (turn == 0) == (rank == 0);
            e.kind = sends ? SEQLSTM_COLLECTIVE_SEND : SEQLSTM_COLLECTIVE_RECEIVE;
            e.from = sends ? values : NULL;
            e.to = sends ? NULL : values;
            status = sl_connection_run(session->connection, 0, e, err);
        }
        const int64_t took = sl_clock_ns() - begin;
        best = took < best ? took : best;
    }
    *out_ns = rank < 2 ? (double)best / 2 : 0;
    free(values);
    return status;
}

/* What passing a piece costs, between ranks of this host or over a link. */
static seqlstm_status price_pieces(struct meter *m, struct seqlstm_error *err)
{
    const struct sl_scaling_setup *setup = m->setup;
    struct sl_session *session = m->session;
    const struct sl_data_facts *facts = sl_data_state_get_facts(session->state);
    const int64_t batches = sl_batcher_get_batches(session->train_batcher);
    struct times slowest = {0};
    if (session->pipeline.stages < 2)
        return SEQLSTM_OK;
    const double rows = (double)facts->rows / (double)(batches > 0 ? batches : 1) / sl_session_count_shards(session);
    const double elems = count_border(session) * rows / session->pipeline.pieces;
    if (setup->piece_exchange_bytes_per_s > 0) {
        m->piece_ns = 1e9 * (setup->piece_exchange_latency_s + 4 * elems / setup->piece_exchange_bytes_per_s);
        return SEQLSTM_OK;
    }
    if (session->connection)
        SEQLSTM_TRY(time_piece(m, (int64_t)elems + 1, &slowest.step, err));
    SEQLSTM_TRY(find_slowest(m, &slowest, err));
    m->piece_ns = slowest.step;
    return SEQLSTM_OK;
}

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

static seqlstm_status measure(struct meter *m, struct seqlstm_error *err)
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
    SEQLSTM_TRY(price_pieces(m, err));
    m->exchanges = session->connection != NULL;
    SEQLSTM_TRY(time_steps(m, err));
    m->exchanges = false;
    SEQLSTM_TRY(time_update(m, &costs->update_ns, err));
    if (session->connection) {
        SEQLSTM_TRY(time_exchanges(m, err));
        SEQLSTM_TRY(run_batches(m, &(int32_t){1}, &(struct times){0}, err)); /* the gradients of one step alone */
    }
    if (!m->reducer)
        SEQLSTM_TRY(time_staging(m, err));
    list_matrices(m);
    return SEQLSTM_OK;
}

seqlstm_status sl_scaling_measure(const struct sl_scaling_setup *setup, struct sl_scaling_costs *out,
                                  struct seqlstm_error *err)
{
    struct meter m = {.setup = setup, .costs = out};
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
