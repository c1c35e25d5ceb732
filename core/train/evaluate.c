/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch without learning. */
#include "train/evaluate.h"

#include <string.h>

#include "base/value/buf.h"
#include "data/dataset/dataset.h"

/* Scores the best text that the decoder has written for each sequence of the batch. */
static seqlstm_status add_texts(struct sl_text_sums *sums, struct sl_decoder *decoder, const struct sl_dataset *dataset,
                                const struct sl_batch *batch, struct seqlstm_error *err)
{
    struct sl_buf said = {0};
    seqlstm_status status = SEQLSTM_OK;
    for (int64_t k = 0; k < batch->sequences && status == SEQLSTM_OK; k++) {
        size_t bytes = 0;
        const char *meant = sl_dataset_find_target_text(dataset, batch->sample[k], &bytes);
        const struct sl_hypothesis best = sl_decoder_get_result(decoder, k, 0);
        sl_buf_truncate(&said, 0);
        sl_data_state_decode(sl_dataset_get_state(dataset), best.ids, best.count, &said);
        if (said.failed)
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a text");
        else if (!meant)
            status = seqlstm_error_set(err, SEQLSTM_INTERNAL, __FILE__, __LINE__,
                                       "record %lld has no text to compare with", (long long)batch->sample[k]);
        else
            status = sl_text_sums_add(sums, SL_BLEU_13A, sl_buf_text(&said), said.length_bytes, meant, bytes, err);
    }
    sl_buf_deinit(&said);
    return status;
}

void sl_evaluator_init(struct sl_evaluator *out, struct sl_exec *exec, struct sl_decoder *decoder,
                       const struct sl_batcher *batcher, const struct sl_metric_rule *rule)
{
    *out = (struct sl_evaluator){.exec = exec, .decoder = decoder, .rule = *rule};
    if (rule->wanted[SL_METRIC_F1_SPAN] || rule->wanted[SL_METRIC_F1_SPAN_STRICT])
        sl_metric_rule_add_labels(&out->rule, sl_batcher_get_dataset(batcher));
}

seqlstm_status sl_evaluate_batch(const struct sl_evaluator *evaluator, const struct sl_batcher *batcher,
                                 const struct sl_batch *batch, struct sl_evaluation *evaluation,
                                 struct seqlstm_error *err)
{
    struct sl_exec_step step = {0};
    struct sl_exec_result result;
    struct sl_field output = {0};
    SEQLSTM_TRY(sl_exec_run(evaluator->exec, batch, &step, &result, err));
    if (sl_metric_rule_reads_output(&evaluator->rule))
        output = sl_exec_get_output(evaluator->exec);
    sl_metric_add(&evaluator->rule, &evaluation->sums, batch, &output, &result);
    if (evaluator->on_batch && sl_metric_rule_reads_output(&evaluator->rule))
        evaluator->on_batch(evaluator->context, &evaluator->rule, sl_batcher_get_dataset(batcher), batch, &output);
    if (sl_metric_rule_reads_texts(&evaluator->rule)) {
        SEQLSTM_TRY(sl_decoder_run(evaluator->decoder, batch, err));
        SEQLSTM_TRY(add_texts(&evaluation->sums.text, evaluator->decoder, sl_batcher_get_dataset(batcher), batch, err));
    }
    evaluation->batches++;
    return SEQLSTM_OK;
}

seqlstm_status sl_evaluate_all(const struct sl_evaluator *evaluator, struct sl_batcher *batcher,
                               const struct sl_interrupt *interrupt, struct sl_evaluation *out_evaluation,
                               struct seqlstm_error *err)
{
    struct sl_evaluation evaluation;
    memset(&evaluation, 0, sizeof evaluation);
    SEQLSTM_TRY(sl_batcher_seek(batcher, 0, 0, err));
    sl_exec_reset_state(evaluator->exec);
    for (;;) {
        struct sl_batch *batch = NULL;
        if (sl_interrupt_get_stop(interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the evaluation was interrupted");
        SEQLSTM_TRY(sl_batcher_next(batcher, &batch, err));
        if (!batch)
            break;
        seqlstm_status status = sl_evaluate_batch(evaluator, batcher, batch, &evaluation, err);
        sl_batch_destroy(batch);
        SEQLSTM_TRY(status);
    }
    sl_metric_finish(&evaluator->rule, &evaluation.sums, &evaluation.values);
    *out_evaluation = evaluation;
    return SEQLSTM_OK;
}

seqlstm_status sl_evaluate(struct sl_exec *exec, struct sl_decoder *decoder, struct sl_batcher *batcher,
                           const struct sl_metric_rule *rule, const struct sl_interrupt *interrupt,
                           struct sl_evaluation *out_evaluation, struct seqlstm_error *err)
{
    struct sl_evaluator evaluator;
    sl_evaluator_init(&evaluator, exec, decoder, batcher, rule);
    return sl_evaluate_all(&evaluator, batcher, interrupt, out_evaluation, err);
}
