/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the texts of a decoder in input order. */
#include "predict/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/value/buf.h"
#include "data/dataset/dataset.h"
#include "decode/decoder.h"
#include "predict/attention.h"
#include "predict/predictor_private.h"

/* What writes the texts of a batch. */
struct writer {
    const struct sl_predictor *predictor;
    struct sl_decoder *decoder;
    const struct sl_outlet *outlet;
};

/* One result: its text in `buf`, everything else in the arena. */
static seqlstm_status describe(const struct writer *writer, const struct sl_batch *batch, int64_t sequence,
                               int32_t rank, struct sl_arena *arena, struct sl_buf *buf, struct sl_prediction_text *out,
                               struct seqlstm_error *err)
{
    struct sl_hypothesis hypothesis = sl_decoder_get_result(writer->decoder, sequence, rank);
    sl_data_state_decode(writer->predictor->made.state, hypothesis.ids, hypothesis.count, buf);
    *out = (struct sl_prediction_text){.text = sl_buf_text(buf), .bytes = buf->length_bytes, .score = hypothesis.score};
    if (buf->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a prediction");
    const struct sl_attention_trace *trace = sl_decoder_find_trace(writer->decoder);
    if (trace)
        return sl_prediction_view_attention(writer->predictor, trace, batch, sequence, &hypothesis, arena,
                                            &out->attention, err);
    return SEQLSTM_OK;
}

/* All results of one sequence. */
static seqlstm_status hand_out_one(const struct writer *writer, const struct sl_batch *batch, int64_t sequence,
                                   struct seqlstm_error *err)
{
    struct sl_prediction prediction = {.record = batch->sample[sequence]};
    int32_t count = sl_decoder_count_results(writer->decoder, sequence);
    struct sl_arena arena = {0};
    struct sl_prediction_text *texts = calloc((size_t)count + 1, sizeof *texts);
    struct sl_buf *bufs = calloc((size_t)count + 1, sizeof *bufs);
    seqlstm_status status = SEQLSTM_OK;
    if (texts == NULL || bufs == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a prediction");
    for (int32_t r = 0; r < count && status == SEQLSTM_OK; r++)
        status = describe(writer, batch, sequence, r, &arena, &bufs[r], &texts[r], err);
    prediction.texts = texts;
    prediction.text_count = count;
    if (writer->outlet->data)
        prediction.input = sl_dataset_find_text(writer->outlet->data, prediction.record, &prediction.input_bytes);
    if (status == SEQLSTM_OK)
        status = writer->outlet->write(writer->outlet->context, &prediction, err);
    for (int32_t r = 0; bufs && r < count; r++)
        sl_buf_deinit(&bufs[r]);
    free(bufs);
    free(texts);
    sl_arena_deinit(&arena);
    return status;
}

seqlstm_status sl_texts_hand_out(const struct sl_predictor *predictor, struct sl_decoder *decoder,
                                 const struct sl_outlet *outlet, const struct sl_batch *batch, int64_t first_record,
                                 struct seqlstm_error *err)
{
    const struct writer own = {predictor, decoder, outlet}, *writer = &own;
    int64_t *sequences;
    SEQLSTM_TRY(sl_decoder_run(writer->decoder, batch, err));
    SEQLSTM_TRY(sl_records_find_order(batch, first_record, &sequences, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int64_t n = 0; n < batch->sequences && status == SEQLSTM_OK; n++)
        status = hand_out_one(writer, batch, sequences[n], err);
    free(sequences);
    return status;
}
