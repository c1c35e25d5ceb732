/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the texts of a decoder in input order. */
#include "session/predict/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "session/evaluate/clipping.h"
#include "session/predict/attention.h"
#include "session/predict/records.h"
#include "session/prepare/decoding.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/trained.h"

/* Where texts come from and go to. */
struct outlet {
    struct sl_session *session;
    struct sl_decoder *decoder;
    const struct sl_dataset *data; /* NULL: no texts of the input */
    sl_prediction_fn *write;
    void *context;
};

/* One result: its text in `buf`, everything else in the arena. */
static seqlstm_status describe(const struct outlet *outlet, const struct sl_batch *batch, int64_t sequence,
                               int32_t rank, struct sl_arena *arena, struct sl_buf *buf, struct sl_prediction_text *out,
                               struct seqlstm_error *err)
{
    struct sl_hypothesis hypothesis = sl_decoder_get_result(outlet->decoder, sequence, rank);
    sl_data_state_decode(outlet->session->state, hypothesis.ids, hypothesis.count, buf);
    *out = (struct sl_prediction_text){.text = sl_buf_text(buf), .bytes = buf->length_bytes, .score = hypothesis.score};
    if (buf->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a prediction");
    const struct sl_attention_trace *trace = sl_decoder_find_trace(outlet->decoder);
    if (trace)
        return sl_session_view_attention(outlet->session, trace, batch, sequence, &hypothesis, arena, &out->attention,
                                         err);
    return SEQLSTM_OK;
}

/* All results of one sequence. */
static seqlstm_status hand_out_one(const struct outlet *outlet, const struct sl_batch *batch, int64_t sequence,
                                   struct seqlstm_error *err)
{
    struct sl_prediction prediction = {.record = batch->sample[sequence]};
    int32_t count = sl_decoder_count_results(outlet->decoder, sequence);
    struct sl_arena arena = {0};
    struct sl_prediction_text *texts = calloc((size_t)count + 1, sizeof *texts);
    struct sl_buf *bufs = calloc((size_t)count + 1, sizeof *bufs);
    seqlstm_status status = SEQLSTM_OK;
    if (texts == NULL || bufs == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a prediction");
    for (int32_t r = 0; r < count && status == SEQLSTM_OK; r++)
        status = describe(outlet, batch, sequence, r, &arena, &bufs[r], &texts[r], err);
    prediction.texts = texts;
    prediction.text_count = count;
    if (outlet->data)
        prediction.input = sl_dataset_find_text(outlet->data, prediction.record, &prediction.input_bytes);
    if (status == SEQLSTM_OK)
        status = outlet->write(outlet->context, &prediction, err);
    for (int32_t r = 0; bufs && r < count; r++)
        sl_buf_deinit(&bufs[r]);
    free(bufs);
    free(texts);
    sl_arena_deinit(&arena);
    return status;
}

static seqlstm_status decode_batch(const struct outlet *outlet, const struct sl_batch *batch, int64_t first_record,
                                   struct seqlstm_error *err)
{
    int64_t *sequences;
    SEQLSTM_TRY(sl_decoder_run(outlet->decoder, batch, err));
    SEQLSTM_TRY(sl_session_find_order(batch, first_record, &sequences, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int64_t n = 0; n < batch->sequences && status == SEQLSTM_OK; n++)
        status = hand_out_one(outlet, batch, sequences[n], err);
    free(sequences);
    return status;
}

seqlstm_status sl_session_predict_texts(struct sl_session *session, const struct sl_dataset *data,
                                        struct sl_batcher *batcher, bool attention, sl_prediction_fn *write,
                                        void *context, struct seqlstm_error *err)
{
    struct sl_decoding decoding = {0};
    struct sl_clipping clipping = {0};
    seqlstm_status status = sl_decoding_plan(session, batcher, attention, false, &decoding, err);
    if (status == SEQLSTM_OK)
        status = sl_decoding_open(session, &decoding, err);
    if (status == SEQLSTM_OK)
        status = sl_session_load_weights(session, err);
    if (status == SEQLSTM_OK)
        status = sl_clipping_init(&clipping, sl_session_find_quantization(session), err);
    if (status == SEQLSTM_OK) {
        sl_clipping_watch(&clipping, decoding.pair.encoder.exec);
        if (!attention) /* the trace of its weights watches the steps */
            sl_clipping_watch(&clipping, decoding.pair.step.exec);
    }
    const struct outlet outlet = {session, decoding.decoder, data, write, context};
    int64_t next_record = 0;
    while (status == SEQLSTM_OK) {
        struct sl_batch *batch = NULL;
        status = sl_batcher_next(batcher, &batch, err);
        if (status != SEQLSTM_OK || batch == NULL)
            break;
        status = decode_batch(&outlet, batch, next_record, err);
        next_record += batch->sequences;
        sl_batch_destroy(batch);
        if (status == SEQLSTM_OK && sl_interrupt_get_stop(session->options.interrupt))
            status = seqlstm_error_set(err, SEQLSTM_CANCELLED, __FILE__, __LINE__, "stopped");
    }
    if (status == SEQLSTM_OK)
        sl_session_note_decoding(session, decoding.decoder);
    sl_clipping_warn(&clipping, session);
    sl_clipping_deinit(&clipping);
    sl_decoding_deinit(&decoding);
    return status;
}
