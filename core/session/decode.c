/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a decoder: for predictions in input order, and for metrics that compare texts. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "session/session_private.h"

bool sl_session_decodes(const struct sl_session *session)
{
    return session->model->train.task == SL_TASK_SEQ2SEQ;
}

/* One part of the model, for sources of the envelope. */
static seqlstm_status prepare_part(struct sl_session *session, enum sl_part part, const struct sl_envelope *envelope,
                                   bool attention, struct sl_stage *stage, struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(session->state);
    facts.envelope = *envelope;
    facts.has_weight = false;
    struct sl_graph_request request = {.model = session->model, .facts = &facts, .phase = SL_PHASE_PREDICT,
                                       .need_output = true, .part = part, .attention_weights = attention};
    return sl_session_prepare_stage(session, &request, true, stage, err);
}

seqlstm_status sl_session_open_decoder(struct sl_session *session, const struct sl_envelope *envelope, bool attention,
                                       struct seqlstm_error *err)
{
    const struct sl_vocabulary *vocabulary = sl_data_state_find_classes(session->state);
    const struct sl_decode_config *config = &session->model->decode;
    struct sl_envelope step = *envelope;
    step.sequences = step.rows = envelope->sequences * config->beam;
    step.steps = 1;
    sl_session_close_decoder(session);
    SEQLSTM_TRY(prepare_part(session, SL_PART_ENCODER, envelope, false, &session->encode, err));
    SEQLSTM_TRY(prepare_part(session, SL_PART_DECODER, &step, attention, &session->step, err));
    struct sl_decoder_request request = {.encoder = session->encode.exec, .step = session->step.exec, .config = config,
                                         .begin = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_BOS),
                                         .end = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS),
                                         .seed = session->model->seed, .traces_attention = attention};
    return sl_decoder_create(&request, &session->decoder, err);
}

seqlstm_status sl_session_open_sampler(struct sl_session *session, const struct sl_envelope *envelope,
                                       struct seqlstm_error *err)
{
    const struct sl_teacher_forcing *teacher = &session->model->train.teacher_forcing;
    struct sl_envelope step = *envelope;
    step.rows = envelope->sequences;
    step.steps = 1;
    sl_session_close_sampler(session);
    if (teacher->kind == SL_TEACHER_ALWAYS)
        return SEQLSTM_OK;
    SEQLSTM_TRY(prepare_part(session, SL_PART_ENCODER, envelope, false, &session->sampled_encode, err));
    SEQLSTM_TRY(prepare_part(session, SL_PART_DECODER, &step, false, &session->sampled_step, err));
    struct sl_sampler_request request = {.encoder = session->sampled_encode.exec, .step = session->sampled_step.exec,
                                         .argmax = teacher->own == SL_OWN_ARGMAX, .seed = session->model->seed};
    return sl_sampler_create(&request, &session->sampler, err);
}

void sl_session_close_sampler(struct sl_session *session)
{
    sl_sampler_destroy(session->sampler);
    session->sampler = NULL;
    sl_stage_deinit(&session->sampled_encode);
    sl_stage_deinit(&session->sampled_step);
}

void sl_session_close_decoder(struct sl_session *session)
{
    sl_decoder_destroy(session->decoder);
    session->decoder = NULL;
    sl_stage_deinit(&session->encode);
    sl_stage_deinit(&session->step);
}

/* One result: its text in `buf`, all else in the arena. */
static seqlstm_status describe(struct sl_session *session, const struct sl_batch *batch, int64_t sequence, int32_t rank,
                               struct sl_arena *arena, struct sl_buf *buf, struct sl_prediction_text *out,
                               struct seqlstm_error *err)
{
    struct sl_hypothesis hypothesis = sl_decoder_get_result(session->decoder, sequence, rank);
    sl_data_state_decode(session->state, hypothesis.ids, hypothesis.count, buf);
    *out = (struct sl_prediction_text){.text = sl_buf_text(buf), .bytes = buf->length_bytes, .score = hypothesis.score};
    if (buf->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a prediction");
    if (sl_decoder_find_trace(session->decoder))
        return sl_session_view_attention(session, batch, sequence, &hypothesis, arena, &out->attention, err);
    return SEQLSTM_OK;
}

/* All results of one sequence. */
static seqlstm_status hand_out_one(struct sl_session *session, const struct sl_dataset *data,
                                   const struct sl_batch *batch, int64_t sequence, sl_prediction_fn *write,
                                   void *context, struct seqlstm_error *err)
{
    struct sl_prediction prediction = {.record = batch->sample[sequence]};
    int32_t count = sl_decoder_count_results(session->decoder, sequence);
    struct sl_arena arena = {0};
    struct sl_prediction_text *texts = calloc((size_t)count + 1, sizeof *texts);
    struct sl_buf *bufs = calloc((size_t)count + 1, sizeof *bufs);
    seqlstm_status status = SEQLSTM_OK;
    if (texts == NULL || bufs == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a prediction");
    for (int32_t r = 0; r < count && status == SEQLSTM_OK; r++)
        status = describe(session, batch, sequence, r, &arena, &bufs[r], &texts[r], err);
    prediction.texts = texts;
    prediction.text_count = count;
    if (data)
        prediction.input = sl_dataset_find_text(data, prediction.record, &prediction.input_bytes);
    if (status == SEQLSTM_OK)
        status = write(context, &prediction, err);
    for (int32_t r = 0; bufs && r < count; r++)
        sl_buf_deinit(&bufs[r]);
    free(bufs);
    free(texts);
    sl_arena_deinit(&arena);
    return status;
}

static seqlstm_status decode_batch(struct sl_session *session, const struct sl_dataset *data,
                                   const struct sl_batch *batch, int64_t first_record, sl_prediction_fn *write,
                                   void *context, struct seqlstm_error *err)
{
    int64_t *sequences;
    SEQLSTM_TRY(sl_decoder_run(session->decoder, batch, err));
    SEQLSTM_TRY(sl_session_find_order(batch, first_record, &sequences, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int64_t n = 0; n < batch->sequences && status == SEQLSTM_OK; n++)
        status = hand_out_one(session, data, batch, sequences[n], write, context, err);
    free(sequences);
    return status;
}

void sl_session_note_decoding(const struct sl_session *session)
{
    struct sl_decoder_totals totals = sl_decoder_get_totals(session->decoder);
    double seconds = (double)totals.ns * 1e-9;
    if (totals.ns > 0)
        sl_log_printf(session->options.log, SL_LOG_INFO, "decoded %lld inputs to %lld tokens in %.2f s: %.0f tokens/s",
                      (long long)totals.sequences, (long long)totals.tokens, seconds, (double)totals.tokens / seconds);
}

seqlstm_status sl_session_decode(struct sl_session *session, const struct sl_dataset *data, struct sl_batcher *batcher,
                                 bool attention, sl_prediction_fn *write, void *context, struct seqlstm_error *err)
{
    struct sl_envelope envelope = sl_batcher_envelope(batcher);
    seqlstm_status status = sl_session_open_decoder(session, &envelope, attention, err);
    if (status == SEQLSTM_OK)
        status = sl_session_load_weights(session, err);
    int64_t next_record = 0;
    while (status == SEQLSTM_OK) {
        struct sl_batch *batch = NULL;
        status = sl_batcher_next(batcher, &batch, err);
        if (status != SEQLSTM_OK || batch == NULL)
            break;
        status = decode_batch(session, data, batch, next_record, write, context, err);
        next_record += batch->sequences;
        sl_batch_destroy(batch);
        if (status == SEQLSTM_OK && sl_interrupt_get_stop(session->options.interrupt))
            status = seqlstm_error_set(err, SEQLSTM_CANCELLED, __FILE__, __LINE__, "stopped");
    }
    if (status == SEQLSTM_OK)
        sl_session_note_decoding(session);
    sl_session_close_decoder(session);
    return status;
}
