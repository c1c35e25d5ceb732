/* SPDX-License-Identifier: Apache-2.0 */
/* See piece_times.h. The costs of a plan are those of whole batches: a piece runs with other shapes, and its weight
 * gradients are made apart. */
#include "session/measure/piece_times.h"

#include <stdlib.h>
#include <string.h>

#include "base/batch/slice.h"
#include "base/system/clock.h"
#include "session/record/session_record.h"

enum { ROUNDS = 3 }; /* of which the fastest counts; one more warms up */
static const int64_t budget_ns = INT64_C(4) * 1000000000;

/* The first batch of the data, or its first slice. */
static seqlstm_status take_batch(struct sl_session *session, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    const int32_t shards = sl_session_count_shards(session);
    struct sl_batch *whole = NULL;
    SEQLSTM_TRY(sl_batcher_seek(session->train_batcher, 0, 0, err));
    seqlstm_status status = sl_batcher_next(session->train_batcher, &whole, err);
    if (status == SEQLSTM_OK && whole && shards > 1) {
        status = sl_batch_slice(whole, 0, shards, out_batch, err);
        sl_batch_destroy(whole);
    } else {
        *out_batch = whole;
    }
    SEQLSTM_TRY(status);
    return sl_batcher_seek(session->train_batcher, 0, 0, err);
}

static seqlstm_status open_exec(struct sl_session *session, int32_t pieces, struct sl_exec **out_exec,
                                struct seqlstm_error *err)
{
    const struct sl_exec_request request = {.plan = session->train.plan,
                                            .params = session->params,
                                            .pool = session->pool,
                                            .memory = &session->memory,
                                            .seed = session->model->seed,
                                            .class_weights = session->class_weights,
                                            .pieces = pieces};
    return sl_exec_create(&request, out_exec, err);
}

/* Each call in its fastest round. */
static void keep_fastest(struct sl_piece_times *best, const struct sl_piece_times *times)
{
    for (int64_t k = 0; k < times->count; k++) /* they follow each other */
        best->forward[k] = times->forward[k] < best->forward[k] ? times->forward[k] : best->forward[k];
}

static seqlstm_status time_rounds(struct sl_exec *exec, const struct sl_batch *batch, struct sl_piece_times *best,
                                  struct seqlstm_error *err)
{
    const struct sl_exec_step step = {.normaliser = 1.0 / (double)(1 + sl_batch_count_computed_rows(batch))};
    for (int round = -1; round < ROUNDS; round++) {
        struct sl_piece_times times;
        struct sl_exec_result result;
        SEQLSTM_TRY(sl_piece_times_init(&times, best->calls, best->pieces, err));
        sl_exec_time_pieces(exec, &times);
        const seqlstm_status status = sl_exec_run(exec, batch, &step, &result, err);
        sl_exec_time_pieces(exec, NULL);
        if (round == 0)
            memcpy(best->forward, times.forward, (size_t)times.count * sizeof *times.forward);
        else if (round > 0)
            keep_fastest(best, &times);
        sl_piece_times_deinit(&times);
        SEQLSTM_TRY(status);
    }
    return SEQLSTM_OK;
}

/* With so many pieces: *out is the pipeline that its times make. */
static seqlstm_status try_pieces(struct sl_session *session, const struct sl_batch *batch, int32_t pieces,
                                 struct sl_pipeline *out, struct seqlstm_error *err)
{
    struct sl_piece_times times;
    struct sl_exec *exec = NULL;
    SEQLSTM_TRY(sl_piece_times_init(&times, session->train.plan->call_count, pieces, err));
    seqlstm_status status = open_exec(session, pieces, &exec, err);
    if (status == SEQLSTM_OK)
        status = time_rounds(exec, batch, &times, err);
    sl_exec_destroy(exec);
    if (status == SEQLSTM_OK)
        status = sl_pipeline_cut_times(session->train.plan, &times, out, err);
    sl_piece_times_deinit(&times);
    return status;
}

static seqlstm_status try_all(struct sl_session *session, const struct sl_batch *batch, struct sl_pipeline *pipeline,
                              struct seqlstm_error *err)
{
    static const int32_t counts[] = {8, 4, SL_PIECES_AUTO_MOST, 2, 12, 6};
    const int32_t most = session->train.plan->graph->pieces;
    const int64_t begin = sl_clock_ns();
    struct sl_pipeline best = *pipeline;
    bool any = false;
    for (size_t k = 0; k < sizeof counts / sizeof *counts && (!any || sl_clock_ns() - begin < budget_ns); k++) {
        struct sl_pipeline tried = *pipeline;
        if (sl_interrupt_get_stop(session->options.interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted while pieces were timed");
        SEQLSTM_TRY(try_pieces(session, batch, counts[k] < most ? counts[k] : most, &tried, err));
        if (!any || tried.step_ns < best.step_ns)
            best = tried;
        any = true;
    }
    best.chosen = true;
    *pipeline = best;
    return SEQLSTM_OK;
}

seqlstm_status sl_session_tune_pipeline(struct sl_session *session, struct sl_pipeline *pipeline,
                                        struct seqlstm_error *err)
{
    struct sl_batch *batch = NULL;
    SEQLSTM_TRY(take_batch(session, &batch, err));
    if (!batch)
        return SEQLSTM_OK;
    const seqlstm_status status = pipeline->chosen ? try_all(session, batch, pipeline, err)
                                                   : try_pieces(session, batch, pipeline->pieces, pipeline, err);
    sl_batch_destroy(batch);
    return status;
}
