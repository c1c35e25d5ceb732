/* SPDX-License-Identifier: Apache-2.0 */
/* Text from a language model: one token at a time with carried states.
 *
 * Drawing: decode/sample.h with u = Philox(key = mix64(seed, GENERATE_STREAM, 0), element 0, step = position).
 * The same seed gives the same text on every backend up to ties in the last bits.
 */
#include "session/predict/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/value/buf.h"
#include "decode/sample.h"
#include "session/evaluate/clipping.h"
#include "session/prepare/decoding.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/trained.h"

#define GENERATE_STREAM UINT64_C(0x67656e6572617465) /* "generate" */

struct generator {
    struct sl_session *session;
    const struct sl_generate_request *request;
    const struct sl_vocabulary *vocabulary;
    struct sl_never never;
    struct sl_clipping clipping;
    struct sl_sample_candidate *candidates; /* [classes] */
    int64_t classes;
    uint32_t position;
    uint64_t key;
};

/* Draws from the probabilities of the last row. */
static int32_t draw(struct generator *g, const float *probabilities)
{
    struct sl_sample_rule rule = {g->request->temperature, g->request->top_k, g->request->top_p, g->never};
    double u = (double)seqlstm_uniform(g->key, 0, g->position, 0);
    return sl_sample_draw(&rule, probabilities, g->classes, u, g->candidates);
}

/* Runs the model over `count` tokens; the states continue from the call before. */
static seqlstm_status feed(struct generator *g, const int32_t *ids, int64_t count, bool first,
                           const float **out_probabilities, struct seqlstm_error *err)
{
    int32_t length = (int32_t)count;
    struct sl_batch_shape shape = {
        .sequences = 1, .lengths = &length, .input_kind = SL_FIELD_IDS, .input_features = 1, .input_on_steps = true};
    struct sl_batch *batch = NULL;
    SEQLSTM_TRY(sl_batch_create(&shape, &batch, err));
    memcpy((void *)batch->input.ids, ids, (size_t)count * sizeof *ids);
    *(uint32_t *)batch->axis.position0 = g->position;
    batch->carry_state = !first;
    struct sl_exec_step step = {0};
    struct sl_exec_result result;
    seqlstm_status status = sl_exec_run(g->session->predict.exec, batch, &step, &result, err);
    sl_batch_destroy(batch);
    SEQLSTM_TRY(status);
    struct sl_field output = sl_exec_get_output(g->session->predict.exec);
    *out_probabilities = output.values + (output.on_steps ? (count - 1) * output.features : 0);
    if (!isfinite(**out_probabilities)) /* of a softmax: none of the row is a number */
        SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "the model's probabilities after %u tokens are not numbers",
                     (unsigned)(g->position + (uint32_t)count));
    g->position += (uint32_t)count;
    return SEQLSTM_OK;
}

static seqlstm_status generate(struct generator *g, const int32_t *prompt, int64_t prompt_count, sl_text_fn *write,
                               void *context, struct seqlstm_error *err)
{
    const float *probabilities = NULL;
    int32_t eos = sl_vocabulary_get_special(g->vocabulary, SL_SPECIAL_EOS);
    struct sl_envelope envelope = {
        .sequences = 1, .steps = prompt_count, .rows = prompt_count, .uniform = true, .stream = true};
    SEQLSTM_TRY(sl_session_prepare_prediction(g->session, &envelope, true, NULL, err));
    SEQLSTM_TRY(sl_session_load_weights(g->session, err));
    SEQLSTM_TRY(sl_clipping_init(&g->clipping, sl_session_find_quantization(g->session), err));
    sl_clipping_watch(&g->clipping, g->session->predict.exec);
    SEQLSTM_TRY(feed(g, prompt, prompt_count, true, &probabilities, err));
    int32_t before = prompt[prompt_count - 1];
    for (int64_t n = 0; n < g->request->length; n++) {
        int32_t pair[2] = {before, draw(g, probabilities)};
        if (g->request->stop_at_eos && pair[1] == eos)
            return SEQLSTM_OK;
        struct sl_buf one = {0}, two = {0};
        sl_data_state_decode(g->session->state, pair, 1, &one);
        sl_data_state_decode(g->session->state, pair, 2, &two);
        /* what the second token adds, with the space between them */
        size_t old_bytes = one.length_bytes, bytes = two.length_bytes;
        seqlstm_status status = SEQLSTM_OK;
        if (one.failed || two.failed)
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory");
        else if (bytes > old_bytes)
            status = write(context, two.data + old_bytes, bytes - old_bytes, err);
        sl_buf_deinit(&one);
        sl_buf_deinit(&two);
        SEQLSTM_TRY(status);
        before = pair[1];
        if (sl_interrupt_get_stop(g->session->options.interrupt))
            SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "stopped");
        if (n + 1 < g->request->length)
            SEQLSTM_TRY(feed(g, &before, 1, false, &probabilities, err));
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
                          .vocabulary = sl_data_state_find_vocabulary(session->state),
                          .never = sl_session_find_never(session),
                          .classes = sl_data_state_get_facts(session->state)->target.classes,
                          .key = seqlstm_mix64(request->seed, GENERATE_STREAM, 0)};
    int32_t *prompt = NULL;
    int64_t count = 0;
    const char *text = request->prompt ? request->prompt : "";
    SEQLSTM_TRY(sl_data_state_encode(session->state, text, strlen(text), false, &prompt, &count, err));
    if (count == 0) { /* the beginning of a line, or the most frequent token */
        int32_t eos = sl_vocabulary_get_special(g.vocabulary, SL_SPECIAL_EOS);
        int32_t newline = sl_vocabulary_find(g.vocabulary, "\n", 1);
        prompt[0] = eos >= 0 ? eos : newline >= 0 ? newline : 0;
        count = 1;
    }
    g.candidates = malloc((size_t)g.classes * sizeof *g.candidates);
    seqlstm_status status = g.candidates ? generate(&g, prompt, count, write, context, err)
                                         : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory");
    sl_clipping_warn(&g.clipping, session);
    sl_clipping_deinit(&g.clipping);
    sl_stage_deinit(&session->predict);
    free(g.candidates);
    free(prompt);
    return status;
}
