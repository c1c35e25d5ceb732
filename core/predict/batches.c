/* SPDX-License-Identifier: Apache-2.0 */
/* See batches.h. */
#include "predict/batches.h"

#include "base/system/interrupt.h"
#include "data/batch/batcher.h"
#include "predict/predictor_private.h"
#include "predict/records.h"
#include "predict/texts.h"

static seqlstm_status predict_batch(struct sl_context *context, const struct sl_batch *batch,
                                    const struct sl_outlet *outlet, int64_t first_record, struct seqlstm_error *err)
{
    struct sl_predictor_lane *lane;
    struct sl_decoder *decoder;
    if (sl_predictor_decodes(context->predictor)) {
        SEQLSTM_TRY(sl_context_provide_decoder(context, &decoder, err));
        return sl_texts_hand_out(context->predictor, decoder, outlet, batch, first_record, err);
    }
    SEQLSTM_TRY(sl_context_provide(context, SL_USE_WHOLE, &lane, err));
    SEQLSTM_TRY(sl_context_run(lane, batch, err));
    const struct sl_field output = sl_exec_get_output(lane->exec);
    return sl_records_hand_out(context->predictor, outlet, batch, &output, first_record, err);
}

seqlstm_status sl_context_predict_batches(struct sl_context *context, struct sl_batcher *batcher,
                                          const struct sl_outlet *outlet, const struct sl_interrupt *interrupt,
                                          struct seqlstm_error *err)
{
    int64_t next_record = 0;
    for (;;) {
        struct sl_batch *batch = NULL;
        SEQLSTM_TRY(sl_batcher_next(batcher, &batch, err));
        if (batch == NULL)
            return SEQLSTM_OK;
        const seqlstm_status status = predict_batch(context, batch, outlet, next_record, err);
        next_record += batch->sequences;
        sl_batch_destroy(batch);
        SEQLSTM_TRY(status);
        if (interrupt && sl_interrupt_get_stop(interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "stopped");
    }
}
