/* SPDX-License-Identifier: Apache-2.0 */
/* One epoch without learning. */
#include "train/evaluate.h"

#include <string.h>

static seqlstm_status
evaluate_batch(struct sl_exec *exec, struct sl_decoder *decoder, const struct sl_batch *batch,
               const struct sl_metric_rule *rule, struct sl_evaluation *evaluation, struct seqlstm_error *err)
{
    struct sl_exec_step step = {0};
    struct sl_exec_result result;
    struct sl_field output = {0};
    SEQLSTM_TRY(sl_exec_run(exec, batch, &step, &result, err));
    if (sl_metric_rule_reads_output(rule))
        output = sl_exec_get_output(exec);
    sl_metric_add(rule, &evaluation->sums, batch, &output, &result);
    if (sl_metric_rule_reads_texts(rule)) {
        SEQLSTM_TRY(sl_decoder_run(decoder, batch, err));
        sl_metric_add_texts(rule, &evaluation->sums, batch, decoder);
    }
    evaluation->batches++;
    return SEQLSTM_OK;
}

seqlstm_status
sl_evaluate(struct sl_exec *exec, struct sl_decoder *decoder, struct sl_batcher *batcher,
            const struct sl_metric_rule *rule, const struct sl_interrupt *interrupt,
            struct sl_evaluation *out_evaluation, struct seqlstm_error *err)
{
    struct sl_evaluation evaluation;
    memset(&evaluation, 0, sizeof evaluation);
    SEQLSTM_TRY(sl_batcher_seek(batcher, 0, 0, err));
    sl_exec_reset_state(exec);
    for (;;) {
        struct sl_batch *batch = NULL;
        if (sl_interrupt_get_stop(interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the evaluation was interrupted");
        SEQLSTM_TRY(sl_batcher_next(batcher, &batch, err));
        if (!batch)
            break;
        seqlstm_status status = evaluate_batch(exec, decoder, batch, rule, &evaluation, err);
        sl_batch_destroy(batch);
        SEQLSTM_TRY(status);
    }
    sl_metric_finish(rule, &evaluation.sums, &evaluation.values);
    *out_evaluation = evaluation;
    return SEQLSTM_OK;
}
