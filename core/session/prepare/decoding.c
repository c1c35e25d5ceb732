/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and opens what writes texts: an encoder, a decoder that runs step by step, and the search. */
#include "session/prepare/decoding.h"

#include <stdlib.h>

#include "session/prepare/pair.h"
#include "session/record/session_record.h"

/* Has the vocabulary a mark for unknown tokens, but no token of the training data that is unknown? A vocabulary that
 * was cut, or not made of these data, may lack some. */
static bool knows_all(const struct sl_tokenizer *tokenizer, const struct sl_vocabulary *vocabulary, int32_t unknown)
{
    return sl_vocabulary_get_count(vocabulary, unknown) == 0 && tokenizer->min_count <= 1 && !tokenizer->vocab &&
           tokenizer->type != SL_TOKENIZER_SENTENCEPIECE &&
           (tokenizer->vocab_size <= 0 || sl_vocabulary_get_size(vocabulary) < tokenizer->vocab_size);
}

struct sl_never sl_session_find_never(const struct sl_session *session)
{
    struct sl_never never = {.count = 0};
    const struct sl_vocabulary *vocabulary = sl_data_state_find_classes(session->state);
    const struct sl_data_config *data = &session->model->data;
    if (vocabulary == NULL)
        return never;
    const int32_t pad = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_PAD);
    const int32_t begin = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_BOS);
    const int32_t unknown = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_UNK);
    if (pad >= 0 && sl_vocabulary_get_count(vocabulary, pad) == 0)
        never.ids[never.count++] = pad;
    if (begin >= 0 && data->batching.unit != SL_UNIT_STREAM) /* in a stream the next line begins after each end */
        never.ids[never.count++] = begin;
    if (unknown >= 0 && knows_all(&data->tokenizer, vocabulary, unknown))
        never.ids[never.count++] = unknown;
    return never;
}

seqlstm_status sl_decoding_plan(struct sl_session *session, const struct sl_batcher *batches, bool attention,
                                bool exact, struct sl_decoding *decoding, struct seqlstm_error *err)
{
    const struct sl_decode_config *config = &session->model->decode;
    sl_decoding_deinit(decoding);
    decoding->attention = attention;
    struct sl_choices choices = {0};
    const bool bound = batches == session->valid_batcher;
    seqlstm_status status = sl_session_list_choices(session, &session->stored.decoding, bound, &choices, err);
    if (status == SEQLSTM_OK) {
        const struct sl_pair_request request = {
            .batches = batches, .places = config->beam, .choices = &choices, .attention = attention, .exact = exact};
        status = sl_stage_pair_plan(session, &request, &decoding->pair, err);
    }
    free(choices.items);
    SEQLSTM_TRY(status);
    decoding->pair.own_bytes =
        sl_decoder_count_bytes(decoding->pair.step.graph, config, sl_batcher_envelope(batches).source_steps);
    return SEQLSTM_OK;
}

seqlstm_status sl_decoding_open(struct sl_session *session, struct sl_decoding *decoding, struct seqlstm_error *err)
{
    const struct sl_vocabulary *vocabulary = sl_data_state_find_classes(session->state);
    sl_decoding_close(decoding);
    SEQLSTM_TRY(sl_stage_pair_open(session, &decoding->pair, err));
    struct sl_decoder_request request = {.encoder = decoding->pair.encoder.exec,
                                         .step = decoding->pair.step.exec,
                                         .config = &session->model->decode,
                                         .begin = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_BOS),
                                         .end = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS),
                                         .never = sl_session_find_never(session),
                                         .seed = session->model->seed,
                                         .traces_attention = decoding->attention};
    return sl_decoder_create(&request, &decoding->decoder, err);
}

void sl_decoding_close(struct sl_decoding *decoding)
{
    sl_decoder_destroy(decoding->decoder);
    decoding->decoder = NULL;
    sl_stage_pair_close(&decoding->pair);
}

void sl_decoding_deinit(struct sl_decoding *decoding)
{
    sl_decoding_close(decoding);
    sl_stage_pair_deinit(&decoding->pair);
}

bool sl_session_decodes(const struct sl_session *session)
{
    return session->model->train.task == SL_TASK_SEQ2SEQ;
}

void sl_session_note_decoding(const struct sl_session *session, const struct sl_decoder *decoder)
{
    struct sl_decoder_totals totals = sl_decoder_get_totals(decoder);
    double seconds = (double)totals.ns * 1e-9;
    if (totals.ns > 0)
        sl_log_printf(session->options.log, SL_LOG_INFO,
                      "decoded %lld input%s to %lld token%s in %.2f s: %.0f tokens/s", (long long)totals.sequences,
                      totals.sequences == 1 ? "" : "s", (long long)totals.tokens, totals.tokens == 1 ? "" : "s",
                      seconds, (double)totals.tokens / seconds);
}
