/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a language model: one token at a time with carried states. See predict/next_token.h. */
#include "session/predict/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "predict/next_token.h"
#include "predict/stream.h"
#include "session/evaluate/clipping.h"
#include "session/predict/predictor.h"
#include "session/prepare/decoding.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"

struct generator {
    struct sl_session *session;
    struct sl_predictor *predictor;
    struct sl_context *context;
    struct sl_stream *stream;
    const struct sl_generate_request *request;
    struct sl_next_token_rule rule;
    struct sl_clipping clipping;
    struct sl_sample_candidate *candidates; /* [classes] */
    int64_t classes;
    uint32_t position;
};

/* Runs the model over `count` tokens, from where it stopped. */
static seqlstm_status feed(struct generator *g, const int32_t *ids, int64_t count, const float **out_probabilities,
                           struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_stream_step(g->context, g->stream, ids, count, NULL, err));
    SEQLSTM_TRY(sl_stream_find_last(g->context, out_probabilities, err));
    g->position += (uint32_t)count;
    if (!isfinite(**out_probabilities)) /* of a softmax: none of the row is a number */
        SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "the model's probabilities after %u token%s are not numbers",
                     (unsigned)g->position, g->position == 1 ? "" : "s");
    return SEQLSTM_OK;
}

/* A stream that reads the prompt at once. */
static seqlstm_status open(struct generator *g, int64_t prompt_count, struct seqlstm_error *err)
{
    const struct sl_predictor_wish wish = {
        .envelopes = {
            [SL_USE_STREAM] = {
                .sequences = 1, .steps = prompt_count, .rows = prompt_count, .uniform = true, .stream = true}}};
    struct sl_exec *exec;
    SEQLSTM_TRY(sl_session_make_predictor(g->session, &wish, &g->predictor, err));
    SEQLSTM_TRY(sl_context_open(g->predictor, &g->context, err));
    SEQLSTM_TRY(sl_stream_open(g->predictor, &g->stream, err));
    SEQLSTM_TRY(sl_clipping_init(&g->clipping, sl_session_find_quantization(g->session), err));
    SEQLSTM_TRY(sl_context_provide_exec(g->context, SL_USE_STREAM, &exec, err));
    sl_clipping_watch(&g->clipping, exec);
    return SEQLSTM_OK;
}

static seqlstm_status generate(struct generator *g, const int32_t *prompt, int64_t prompt_count, sl_text_fn *write,
                               void *context, struct seqlstm_error *err)
{
    const float *probabilities = NULL;
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(g->session->state);
    const int32_t eos = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS);
    SEQLSTM_TRY(open(g, prompt_count, err));
    SEQLSTM_TRY(feed(g, prompt, prompt_count, &probabilities, err));
    int32_t before = prompt[prompt_count - 1];
    for (int64_t n = 0; n < g->request->length; n++) {
        const int32_t token = sl_next_token_draw(&g->rule, probabilities, g->classes, g->position, g->candidates);
        struct sl_buf text = {0};
        if (g->request->stop_at_eos && token == eos)
            return SEQLSTM_OK;
        sl_next_token_append(g->session->state, before, token, &text);
        seqlstm_status status = SEQLSTM_OK;
        if (text.failed)
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory");
        else if (text.length_bytes > 0)
            status = write(context, text.data, text.length_bytes, err);
        sl_buf_deinit(&text);
        SEQLSTM_TRY(status);
        before = token;
        if (sl_interrupt_get_stop(g->session->options.interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "stopped");
        if (n + 1 < g->request->length)
            SEQLSTM_TRY(feed(g, &before, 1, &probabilities, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_session_generate(struct sl_session *session, const struct sl_generate_request *request,
                                   sl_text_fn *write, void *context, struct seqlstm_error *err)
{
    if (session->model->train.task != SL_TASK_LANGUAGE_MODEL || session->state == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "generate needs a trained language model, and this is a model for %s",
                     sl_task_get_name(session->model->train.task));
    if (!(request->temperature > 0) || !(request->top_p > 0 && request->top_p <= 1) || request->length < 0 ||
        request->top_k < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "temperature must be above 0, top_p in (0, 1], top_k and length at least 0");
    struct generator g = {.session = session,
                          .request = request,
                          .classes = sl_data_state_get_facts(session->state)->target.classes,
                          .rule = {.temperature = request->temperature,
                                   .top_k = request->top_k,
                                   .top_p = request->top_p,
                                   .never = sl_session_find_never(session),
                                   .key = sl_next_token_get_key(request->seed, 0)}};
    int32_t *prompt = NULL;
    int64_t count = 0;
    const char *text = request->prompt ? request->prompt : "";
    SEQLSTM_TRY(sl_next_token_read_prompt(session->state, text, strlen(text), &prompt, &count, err));
    g.candidates = malloc((size_t)g.classes * sizeof *g.candidates);
    seqlstm_status status = g.candidates ? generate(&g, prompt, count, write, context, err)
                                         : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory");
    sl_clipping_warn(&g.clipping, session);
    sl_clipping_deinit(&g.clipping);
    sl_stream_close(g.stream);
    sl_context_close(g.context);
    sl_predictor_destroy(g.predictor);
    free(g.candidates);
    free(prompt);
    return status;
}
