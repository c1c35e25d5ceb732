/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks exchange, and how long that takes. */
#include "session/scaling/meter.h"

#include <math.h>
#include <stdlib.h>

#include "base/system/clock.h"
#include "session/prepare/division.h"
#include "session/record/session_record.h"
#include "session/scaling/devices.h"
#include "train/exchanged.h"

enum { TRIALS = 5 };

/* Where the gradients are. */
static seqlstm_status run_exchange(struct sl_scaling_meter *m, struct seqlstm_exchange exchange,
                                   struct seqlstm_error *err)
{
    return m->direct ? sl_scaling_exchange_on_device(m->session->params, m->session->connection, exchange, err)
                     : sl_connection_run(m->session->connection, 0, exchange, err);
}

seqlstm_status sl_scaling_time_staging(struct sl_scaling_meter *m, struct seqlstm_error *err)
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
static seqlstm_status time_exchange(struct sl_scaling_meter *m, struct seqlstm_exchange exchange, double *out_ns,
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

seqlstm_status sl_scaling_time_exchanges(struct sl_scaling_meter *m, struct seqlstm_error *err)
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
    for (int64_t r = 0; r < rows; r++)
        used += sl_bundle_uses_row(grad + r * columns, columns);
    return (double)used / (double)(rows > 0 ? rows : 1);
}

/* On devices gradients are exchanged as they are. */
seqlstm_status sl_scaling_list_matrices(struct sl_scaling_meter *m, struct seqlstm_error *err)
{
    struct sl_scaling_costs *costs = m->costs;
    const struct sl_params *params = m->session->params;
    const struct sl_exchanged_request exchanged = sl_session_request_exchange(m->session);
    struct sl_bundle_matrix *list = calloc((size_t)params->view_count + 1, sizeof *list);
    if (!list)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients that are exchanged");
    const int32_t count = sl_exchanged_find_matrices(m->session->train.graph, params, &exchanged, list);
    costs->elems = params->trainable_elems;
    costs->compress_rank = (int32_t)exchanged.compress_rank;
    for (int32_t k = 0; k < count && !m->direct && costs->matrix_count < SL_SCALING_MATRICES; k++)
        costs->matrices[costs->matrix_count++] = (struct sl_scaling_matrix){
            list[k].offset, list[k].rows, list[k].columns, list[k].compressed,
            list[k].compressed ? 1 : find_share_used(params->grads + list[k].offset, list[k].rows, list[k].columns)};
    free(list);
    return SEQLSTM_OK;
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
static seqlstm_status time_piece(struct sl_scaling_meter *m, int64_t elems, double *out_ns, struct seqlstm_error *err)
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

seqlstm_status sl_scaling_price_pieces(struct sl_scaling_meter *m, struct seqlstm_error *err)
{
    const struct sl_scaling_setup *setup = m->setup;
    struct sl_session *session = m->session;
    const struct sl_data_facts *facts = sl_data_state_get_facts(session->state);
    const int64_t batches = sl_batcher_get_batches(session->train_batcher);
    struct sl_scaling_times slowest = {0};
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
    SEQLSTM_TRY(sl_scaling_find_slowest(m, &slowest, err));
    m->piece_ns = slowest.step;
    return SEQLSTM_OK;
}
