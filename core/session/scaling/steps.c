/* SPDX-License-Identifier: Apache-2.0 */
/* Runs steps of a training as the trainer does (train/trainer/shards.c), on all ranks of this host at once, and takes
 * their times: first without exchanges, then with the gradients exchanged during the backward pass. An update follows,
 * since it displaces what the caches hold, and after it weights are packed again. It changes no weight. */
#include "session/scaling/meter.h"

#include <math.h>
#include <stdlib.h>

#include "base/batch/slice.h"
#include "base/system/clock.h"
#include "session/prepare/division.h"
#include "session/record/session_record.h"
#include "session/scaling/devices.h"
#include "train/exchanged.h"

enum {
    BATCHES_LEAST = 3,
    BATCHES_MOST = 200,
    WARM_UPS = BATCHES_LEAST,
    TIMES = sizeof(struct sl_scaling_times) / sizeof(double)
};
static const double seconds_most = 1.5; /* for all steps without exchanges */

seqlstm_status sl_scaling_find_slowest(const struct sl_scaling_meter *m, struct sl_scaling_times *times,
                                       struct seqlstm_error *err)
{
    const struct sl_ranks *ranks = &m->session->ranks;
    struct sl_scaling_times *all = calloc((size_t)ranks->ranks, sizeof *all);
    if (!all)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the times of %d ranks", ranks->ranks);
    const seqlstm_status status = sl_ranks_gather(ranks, times, (int64_t)sizeof *times, all, err);
    for (int32_t r = 0; r < ranks->ranks && status == SEQLSTM_OK; r++)
        for (int32_t k = 0; k < TIMES; k++)
            ((double *)times)[k] = fmax(((double *)times)[k], ((double *)&all[r])[k]);
    free(all);
    return status;
}

/* ---- one step --------------------------------------------------------------------------------------------------- */

static void note(void *meter, int64_t from)
{
    struct sl_scaling_meter *m = meter;
    struct sl_scaling_costs *costs = m->costs;
    if (m->adds)
        sl_reducer_note(m->reducer, from);
    if (!m->notes || m->noted == SL_SCALING_NOTES)
        return;
    costs->notes[m->noted].from = from;
    costs->notes[m->noted++].ns += (double)(sl_clock_ns() - m->began_ns);
    costs->note_count = m->noted > costs->note_count ? m->noted : costs->note_count;
}

static void mark(void *meter, int64_t offset, const int32_t *ids, int64_t count)
{
    const struct sl_scaling_meter *m = meter;
    if (m->reducer && m->trains)
        sl_reducer_mark(m->reducer, offset, ids, count);
}

/* Adds the gradients of all ranks. */
static seqlstm_status add(struct sl_scaling_meter *m, struct seqlstm_error *err)
{
    struct sl_params *params = m->session->params;
    if (m->direct)
        return sl_exchanged_add_on_device(params, &m->session->ranks.replicas, err);
    if (!m->reducer || (m->stages && m->setup->parallel.data == 1))
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_exchanged_finish(params, m->reducer, err));
    return sl_scaling_upload_grads(params, err);
}

/* ---- the update ------------------------------------------------------------------------------------------------- */

/* An update that changes no weight: its learning rate is 0. */
static seqlstm_status update(struct sl_scaling_meter *m, double *out_ns, struct seqlstm_error *err)
{
    const struct sl_exec_update making = {.count = 1};
    const int64_t begin = sl_clock_ns();
    double squares;
    m->updates++;
    SEQLSTM_TRY(sl_exec_update(m->session->train.exec, &making, &squares, err));
    SEQLSTM_TRY(sl_scaling_finish_devices(m->session->params, err));
    *out_ns = (double)(sl_clock_ns() - begin);
    return SEQLSTM_OK;
}

/* ---- the steps -------------------------------------------------------------------------------------------------- */

static seqlstm_status run(struct sl_scaling_meter *m, const struct sl_batch *batch, bool updates,
                          struct sl_scaling_times *out, struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    const int32_t shards = sl_session_count_shards(session);
    struct sl_batch *slice = NULL;
    struct sl_exec_result result;
    struct sl_exec_step step = {.normaliser = 1.0 / (double)(1 + sl_batch_count_computed_rows(batch)),
                                .on_grads = note,
                                .on_rows = mark,
                                .grads_context = m,
                                .weight_mask_step = (uint32_t)batch->ordinal};
    int64_t begin = sl_clock_ns();
    if (shards > 1) /* the first slices have most rows */
        SEQLSTM_TRY(sl_batch_slice(batch, sl_scaling_find_slice(m) % batch->sequences, shards, &slice, err));
    out->prepare += (double)(sl_clock_ns() - begin);
    m->noted = 0;
    m->began_ns = begin = sl_clock_ns();
    seqlstm_status status = m->stages ? sl_scaling_run_stages(m, slice ? slice : batch, &step, updates, out, err)
                                      : sl_exec_run(session->train.exec, slice ? slice : batch, &step, &result, err);
    if (status == SEQLSTM_OK)
        status = sl_scaling_finish_devices(session->params, err);
    out->step = (double)(sl_clock_ns() - begin);
    if (status == SEQLSTM_OK && m->trains)
        status = add(m, err);
    out->together = (double)(sl_clock_ns() - begin);
    if (status == SEQLSTM_OK && updates && !m->stages)
        status = update(m, &out->update, err);
    sl_batch_destroy(slice);
    return status;
}

/* The next batch of the epoch, if there is one. Where no core is free, the thread that makes batches in a training
 * takes its time from the steps. The first one begins the epoch, which others do not. */
static seqlstm_status take_batch(const struct sl_scaling_meter *m, bool first, struct sl_batch **out_batch,
                                 struct sl_scaling_times *times, struct seqlstm_error *err)
{
    const int64_t begin = sl_clock_ns();
    if (sl_interrupt_get_stop(m->session->options.interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted while steps were timed");
    SEQLSTM_TRY(sl_batcher_next(m->session->train_batcher, out_batch, err));
    if (!first && !m->session->ranks.overlaps)
        times->prepare = (double)(sl_clock_ns() - begin);
    return SEQLSTM_OK;
}

seqlstm_status sl_scaling_run_batches(struct sl_scaling_meter *m, int32_t *count, struct sl_scaling_times *sum,
                                      struct seqlstm_error *err)
{
    struct sl_session *session = m->session;
    const bool limited = *count == 0;
    const int32_t most = limited ? BATCHES_MOST : *count, batches = (int32_t)m->costs->batches;
    bool ends = false;
    *sum = (struct sl_scaling_times){0};
    m->rows = 0;
    m->updates = 0;
    SEQLSTM_TRY(sl_batcher_seek(session->train_batcher, 0, 0, err));
    for (*count = 0; *count < most && !ends; (*count)++) {
        struct sl_batch *batch = NULL;
        struct sl_scaling_times times = {0};
        SEQLSTM_TRY(take_batch(m, *count == 0, &batch, &times, err));
        if (!batch)
            return SEQLSTM_OK;
        m->rows += sl_batch_count_real_rows(batch);
        seqlstm_status status = sl_ranks_agree(&session->ranks, err);
        if (status == SEQLSTM_OK)
            status = run(m, batch, m->trains && (*count + 1) % batches == 0, &times, err);
        sl_batch_destroy(batch);
        SEQLSTM_TRY(status);
        SEQLSTM_TRY(sl_scaling_find_slowest(m, &times, err));
        for (int32_t k = 0; k < TIMES; k++)
            ((double *)sum)[k] += ((double *)&times)[k];
        ends = limited && *count + 1 >= BATCHES_LEAST && sum->step > 1e9 * seconds_most;
    }
    return SEQLSTM_OK;
}

/* From the batches that ran to a mean one of the epoch. */
static double get_scale(const struct sl_scaling_meter *m, int32_t count)
{
    const struct sl_data_facts *facts = sl_data_state_get_facts(m->session->state);
    const int64_t batches = sl_batcher_get_batches(m->session->train_batcher);
    const double mean = (double)sl_data_facts_count_real_rows(facts) / (double)(batches > 0 ? batches : 1);
    return m->rows > 0 ? mean / (double)m->rows : 1.0 / count;
}

static void keep_notes(struct sl_scaling_meter *m, double scale)
{
    for (int32_t k = 0; k < m->costs->note_count; k++)
        m->costs->notes[k].ns *= scale;
}

/* If there were fewer batches than an update has. */
static seqlstm_status time_update(struct sl_scaling_meter *m, struct sl_scaling_times *sum, struct seqlstm_error *err)
{
    if (m->updates > 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(m->stages ? sl_scaling_update_stages(m, &sum->update, err) : update(m, &sum->update, err));
    return sl_scaling_find_slowest(m, sum, err);
}

seqlstm_status sl_scaling_time_steps(struct sl_scaling_meter *m, struct seqlstm_error *err)
{
    struct sl_scaling_costs *costs = m->costs;
    struct sl_scaling_times sum;
    int32_t count = WARM_UPS;
    SEQLSTM_TRY(sl_scaling_run_batches(m, &count, &sum, err));
    count = 0;
    m->notes = true;
    SEQLSTM_TRY(sl_scaling_run_batches(m, &count, &sum, err));
    m->notes = false;
    SEQLSTM_TRY(time_update(m, &sum, err));
    const double scale = get_scale(m, count);
    keep_notes(m, scale);
    costs->rows = scale * (double)m->rows;
    costs->prepare_ns = scale * sum.prepare;
    costs->step_ns = scale * sum.step;
    costs->together_ns = scale * sum.together;
    costs->exchange_ns = costs->together_ns - costs->step_ns;
    costs->alone_ns = scale * sum.alone;
    costs->stages_ns = scale * sum.stages;
    costs->update_ns = sum.update / m->updates;
    if (!m->reducer || m->session->pipeline.stages > 1 || !m->session->ranks.overlaps)
        return SEQLSTM_OK;
    m->adds = true;
    SEQLSTM_TRY(sl_scaling_run_batches(m, &count, &sum, err));
    m->adds = false;
    costs->together_ns = fmax(costs->step_ns, scale * sum.together); /* the same step may be faster this time */
    return SEQLSTM_OK;
}
