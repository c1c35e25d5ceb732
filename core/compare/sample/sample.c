/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sample/sample.h"

#include "compare/sample/phase_graph.h"
#include "compare/sample/repeat.h"
#include "data/batch/batcher.h"
#include "measure/batch_rows.h"
#include "measure/flops.h"

/* The most operations in one walk of the reference: a few seconds at a GFLOP/s. */
static const double flops_most = 4e9;

static void widen_to(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

static void widen(struct sl_envelope *envelope, const struct sl_batch *batch)
{
    widen_to(&envelope->sequences, batch->sequences);
    widen_to(&envelope->steps, batch->axis.steps);
    widen_to(&envelope->rows, batch->axis.rows);
    widen_to(&envelope->source_steps, batch->source.axis.steps);
    widen_to(&envelope->source_rows, batch->source.axis.rows);
}

/* Batch `ordinal`, filled up to `wanted` sequences; NULL if it is empty. */
static seqlstm_status take(struct sl_batcher *batcher, uint64_t ordinal, int64_t wanted, struct sl_batch **out_batch,
                           struct seqlstm_error *err)
{
    struct sl_batch *batch = NULL;
    SEQLSTM_TRY(sl_batcher_seek(batcher, 0, ordinal, err));
    SEQLSTM_TRY(sl_batcher_next(batcher, &batch, err));
    *out_batch = batch;
    if (!batch)
        return SEQLSTM_OK;
    batch->carry_state = false;
    bool empty = batch->source.present && (batch->source.axis.rows == 0 || batch->axis.rows == 0);
    if (batch->sequences == 0 || sl_batch_get_rows(batch) == 0 || empty) {
        sl_batch_destroy(batch);
        *out_batch = NULL;
    } else if (batch->sequences < wanted) {
        seqlstm_status status = sl_batch_repeat(batch, wanted, out_batch, err);
        sl_batch_destroy(batch);
        return status;
    }
    return SEQLSTM_OK;
}

static seqlstm_status fill(struct sl_sample *sample, struct sl_batcher *batcher, int64_t wanted, int32_t most,
                           struct seqlstm_error *err)
{
    int64_t batches = sl_batcher_get_batches(batcher);
    int32_t count = batches < most ? (int32_t)batches : most;
    for (int32_t i = 0; i < count; i++) {
        struct sl_batch *batch = NULL;
        SEQLSTM_TRY(take(batcher, (uint64_t)(i * batches / count), wanted, &batch, err));
        if (!batch)
            continue;
        sample->batches[sample->count++] = batch;
        widen(&sample->envelope, batch);
    }
    if (sample->count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the training split has no batch with a row in it");
    return SEQLSTM_OK;
}

seqlstm_status sl_sample_create(const struct sl_dataset *data, uint64_t seed, int64_t batch_size, int32_t most,
                                struct sl_sample *out_sample, struct seqlstm_error *err)
{
    struct sl_sample sample = {.count = 0};
    struct sl_batcher *batcher = NULL;
    struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .seed = seed, .batch_size = batch_size};
    int64_t records = sl_dataset_get_records(data), longest = sl_dataset_get_facts(data)->rows;
    bool stream = sl_dataset_get_model(data)->data.batching.unit == SL_UNIT_STREAM;
    if (batch_size > 0 && stream && batch_size > longest / 4)
        request.batch_size = longest / 4 > 0 ? longest / 4 : 1; /* the text is too short for so many streams */
    else if (batch_size > 0 && !stream && batch_size > records)
        request.batch_size = records > 0 ? records : 1;
    SEQLSTM_TRY(sl_batcher_open(data, &request, &batcher, err));
    struct sl_envelope all = sl_batcher_envelope(batcher);
    sample.envelope.uniform = all.uniform;
    sample.envelope.stream = all.stream;
    seqlstm_status status = fill(&sample, batcher, batch_size, most, err);
    sl_batcher_close(batcher);
    if (status != SEQLSTM_OK) {
        sl_sample_deinit(&sample);
        return status;
    }
    *out_sample = sample;
    return SEQLSTM_OK;
}

void sl_sample_deinit(struct sl_sample *sample)
{
    for (int32_t b = 0; b < sample->count; b++)
        sl_batch_destroy(sample->batches[b]);
    *sample = (struct sl_sample){.count = 0};
}

/* Counts the operations of a walk of the reference: forward twice, backward once. */
static seqlstm_status count_flops(const struct sl_session *session, const struct sl_sample *sample, double *out_flops,
                                  struct seqlstm_error *err)
{
    struct sl_graph *graph = NULL;
    double flops = 0;
    SEQLSTM_TRY(sl_phase_graph_create(session, SL_PHASE_TRAIN, &sample->envelope, &graph, err));
    for (int32_t n = 0; n < graph->node_count; n++) {
        const struct sl_node *node = &graph->nodes[n];
        int64_t rows = sl_batch_count_node_rows(sample->batches[0], graph, node);
        bool loops = n >= graph->loop.first && n < graph->loop.first + graph->loop.count;
        double walks = loops ? (double)sample->envelope.steps : 1;
        flops += walks * sl_flops_count(node, rows, false, true) + sl_flops_count(node, rows, true, true);
    }
    sl_graph_destroy(graph);
    *out_flops = flops;
    return SEQLSTM_OK;
}

seqlstm_status sl_sample_create_small(const struct sl_session *session, int64_t most, struct sl_sample *out_sample,
                                      struct seqlstm_error *err)
{
    const struct sl_dataset *data = sl_session_find_train_data(session);
    uint64_t seed = sl_session_get_model(session)->seed;
    double flops = 0;
    SEQLSTM_TRY(sl_sample_create(data, seed, most, 1, out_sample, err));
    seqlstm_status status = count_flops(session, out_sample, &flops, err);
    if (status == SEQLSTM_OK && flops <= flops_most)
        return SEQLSTM_OK;
    sl_sample_deinit(out_sample);
    SEQLSTM_TRY(status);
    int64_t fewer = (int64_t)((double)most * flops_most / flops);
    return sl_sample_create(data, seed, fewer > 0 ? fewer : 1, 1, out_sample, err);
}
