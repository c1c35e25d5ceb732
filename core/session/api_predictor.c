/* SPDX-License-Identifier: Apache-2.0 */
/* include/seqlstm/predictor.h on top of sessions and predictors. */
#include <stdlib.h>
#include <string.h>

#include <seqlstm/predictor.h>

#include "base/system/turns.h"
#include "base/value/buf.h"
#include "predict/batches.h"
#include "predict/context.h"
#include "predict/stream.h"
#include "predict/stream_bytes.h"
#include "predict/whole.h"
#include "session/api.h"
#include "session/predict/predictor.h"

/* The public types are never defined: they are these. */
static struct sl_predictor *inner(const struct seqlstm_predictor *predictor)
{
    return (struct sl_predictor *)(uintptr_t)predictor;
}

static struct sl_context *inner_context(struct seqlstm_context *context)
{
    return (struct sl_context *)(void *)context;
}

static struct sl_stream *inner_stream(const struct seqlstm_stream *stream)
{
    return (struct sl_stream *)(uintptr_t)stream;
}

/* Options of an earlier version are shorter. */
static struct seqlstm_predictor_options copy_options(const struct seqlstm_predictor_options *options)
{
    struct seqlstm_predictor_options copy = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    if (options)
        memcpy(&copy, options, options->struct_size < sizeof copy ? options->struct_size : sizeof copy);
    return copy;
}

seqlstm_status seqlstm_predictor_open(struct seqlstm_session *session, const struct seqlstm_predictor_options *options,
                                      struct seqlstm_predictor **out_predictor, struct seqlstm_error *err)
{
    const struct seqlstm_predictor_options said = copy_options(options);
    const uint32_t known = SEQLSTM_PREDICTOR_EMBED | SEQLSTM_PREDICTOR_REPRODUCIBLE | SEQLSTM_PREDICTOR_SHARED_LOCK;
    if ((said.flags & ~known) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the predictor's options have unknown flags: %#x", said.flags);
    if (said.reserved0 != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the predictor's options have `reserved0` %d, expected 0",
                     said.reserved0);
    const struct sl_predictor_limits limits = {.sequences = said.sequences,
                                               .steps = said.steps,
                                               .rows = said.rows,
                                               .streams = said.streams,
                                               .stream_steps = said.stream_steps,
                                               .layer = said.layer,
                                               .threads = said.threads,
                                               .measures = true,
                                               .embeds = (said.flags & SEQLSTM_PREDICTOR_EMBED) != 0,
                                               .reproducible = (said.flags & SEQLSTM_PREDICTOR_REPRODUCIBLE) != 0,
                                               .shares_lock = (said.flags & SEQLSTM_PREDICTOR_SHARED_LOCK) != 0};
    struct sl_predictor *predictor = NULL;
    SEQLSTM_TRY(sl_api_finish(session, sl_session_open_predictor(session->session, &limits, &predictor, err), err));
    *out_predictor = (struct seqlstm_predictor *)(void *)predictor;
    return SEQLSTM_OK;
}

void seqlstm_predictor_close(struct seqlstm_predictor *predictor)
{
    sl_predictor_destroy(inner(predictor));
}

void seqlstm_predictor_get_info(const struct seqlstm_predictor *predictor, struct seqlstm_predictor_info *info)
{
    const struct sl_predictor *p = inner(predictor);
    const struct sl_data_facts *facts = sl_data_state_get_facts(sl_predictor_get_state(p));
    const struct sl_graph *whole = sl_predictor_find_graph(p, SL_USE_WHOLE);
    const struct sl_graph *encoder = sl_predictor_find_graph(p, SL_USE_ENCODER);
    const bool ids = facts->input.kind == SL_FIELD_IDS;
    struct seqlstm_predictor_info known = {.struct_size = info->struct_size};
    known.input = ids ? SEQLSTM_INPUT_IDS : SEQLSTM_INPUT_VALUES;
    known.output = sl_predictor_gives_values(p) ? SEQLSTM_OUTPUT_VALUES : SEQLSTM_OUTPUT_PROBABILITIES;
    if (sl_predictor_decodes(p))
        known.output = SEQLSTM_OUTPUT_TEXT;
    known.input_on_steps = facts->input.on_steps;
    known.output_on_steps = sl_predictor_has_step_output(p);
    known.streams = sl_predictor_find_graph(p, SL_USE_STREAM) != NULL;
    known.texts = sl_predictor_reads_texts(p);
    known.input_features = ids ? 1 : facts->input.features;
    known.input_classes = ids ? facts->input.classes : 0;
    known.output_features = sl_predictor_get_features(p);
    known.stream_bytes = (int64_t)sl_stream_count_bytes(p);
    known.steps = encoder ? encoder->facts.envelope.source_steps : whole->facts.envelope.steps;
    known.stream_reason = sl_predictor_get_stream_reason(p);
    memcpy(info, &known, info->struct_size < sizeof known ? info->struct_size : sizeof known);
}

seqlstm_status seqlstm_context_open(struct seqlstm_predictor *predictor, struct seqlstm_context **out_context,
                                    struct seqlstm_error *err)
{
    struct sl_context *context = NULL;
    SEQLSTM_TRY(sl_api_end(sl_context_open(inner(predictor), &context, err), err));
    *out_context = (struct seqlstm_context *)(void *)context;
    return SEQLSTM_OK;
}

void seqlstm_context_close(struct seqlstm_context *context)
{
    sl_context_close(inner_context(context));
}

/* A call of a context, between whose calls the caller may hold a lock. */
static struct sl_context *begin(struct seqlstm_context *context)
{
    if (sl_context_shares_lock(inner_context(context)))
        sl_turns_begin();
    return inner_context(context);
}

static seqlstm_status end(struct seqlstm_context *context, seqlstm_status status, struct seqlstm_error *err)
{
    if (sl_context_shares_lock(inner_context(context)))
        sl_turns_end();
    return sl_api_end(status, err);
}

seqlstm_status seqlstm_predict(struct seqlstm_context *context, const void *x, const int64_t *lengths, int64_t count,
                               float *y, struct seqlstm_error *err)
{
    return end(context, sl_context_predict(begin(context), x, lengths, count, y, err), err);
}

struct answer_writer {
    seqlstm_reply_fn write;
    void *context;
};

static seqlstm_status write_answer(void *context, const struct sl_prediction *prediction, struct seqlstm_error *err)
{
    const struct answer_writer *writer = context;
    const size_t count = (size_t)prediction->text_count;
    struct seqlstm_reply_text *texts = calloc(count + 1, sizeof *texts);
    if (texts == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an answer");
    for (size_t t = 0; t < count; t++)
        texts[t] = (struct seqlstm_reply_text){prediction->texts[t].text, prediction->texts[t].bytes,
                                               prediction->texts[t].score};
    const struct seqlstm_reply answer = {.struct_size = (uint32_t)sizeof answer,
                                         .record = prediction->record,
                                         .rows = prediction->rows,
                                         .features = prediction->features,
                                         .values = prediction->values,
                                         .text_count = prediction->text_count,
                                         .texts = texts};
    const seqlstm_status status = writer->write(writer->context, &answer);
    free(texts);
    if (status != SEQLSTM_OK)
        seqlstm_error_set(err, status, __FILE__, __LINE__, "the caller ended the prediction at text %lld",
                          (long long)prediction->record);
    return status;
}

seqlstm_status seqlstm_predict_texts(struct seqlstm_context *context, const char *const *texts, const size_t *bytes,
                                     int64_t count, seqlstm_reply_fn write, void *write_context,
                                     struct seqlstm_error *err)
{
    struct answer_writer writer = {write, write_context};
    return sl_context_predict_texts(inner_context(context), texts, bytes, count, write_answer, &writer, err);
}

seqlstm_status seqlstm_encode(const struct seqlstm_predictor *predictor, const char *text, size_t bytes, int32_t whole,
                              int32_t *ids, int64_t capacity, int64_t *out_count, struct seqlstm_error *err)
{
    int32_t *all = NULL;
    SEQLSTM_TRY(
        sl_data_state_encode(sl_predictor_get_state(inner(predictor)), text, bytes, whole != 0, &all, out_count, err));
    const int64_t filled = *out_count < capacity ? *out_count : capacity;
    if (filled > 0)
        memcpy(ids, all, (size_t)filled * sizeof *ids);
    free(all);
    return SEQLSTM_OK;
}

seqlstm_status seqlstm_decode(const struct seqlstm_predictor *predictor, const int32_t *ids, int64_t count, char *text,
                              size_t capacity, size_t *out_bytes, struct seqlstm_error *err)
{
    const struct sl_data_state *state = sl_predictor_get_state(inner(predictor));
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(state);
    struct sl_buf buf = {0};
    if (vocabulary == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model has no vocabulary, its input is not text");
    for (int64_t k = 0; k < count; k++)
        if (ids[k] < 0 || ids[k] >= sl_vocabulary_get_size(vocabulary))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "token %lld has the id %d, expected 0 to %lld", (long long)k,
                         ids[k], (long long)sl_vocabulary_get_size(vocabulary) - 1);
    sl_data_state_decode(state, ids, count, &buf);
    *out_bytes = buf.length_bytes;
    const bool failed = buf.failed;
    if (!failed && buf.length_bytes > 0 && capacity > 0)
        memcpy(text, buf.data, buf.length_bytes < capacity ? buf.length_bytes : capacity);
    sl_buf_deinit(&buf);
    if (failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the text");
    return SEQLSTM_OK;
}

const char *seqlstm_predictor_find_class(const struct seqlstm_predictor *predictor, int64_t index)
{
    const struct sl_vocabulary *classes = sl_data_state_find_classes(sl_predictor_get_state(inner(predictor)));
    if (classes == NULL || index < 0 || index >= sl_vocabulary_get_size(classes))
        return NULL;
    return sl_vocabulary_get_text(classes, (int32_t)index, NULL);
}

seqlstm_status seqlstm_stream_open(struct seqlstm_predictor *predictor, struct seqlstm_stream **out_stream,
                                   struct seqlstm_error *err)
{
    struct sl_stream *stream = NULL;
    SEQLSTM_TRY(sl_api_end(sl_stream_open(inner(predictor), &stream, err), err));
    *out_stream = (struct seqlstm_stream *)(void *)stream;
    return SEQLSTM_OK;
}

void seqlstm_stream_close(struct seqlstm_stream *stream)
{
    sl_stream_close(inner_stream(stream));
}

seqlstm_status seqlstm_stream_step(struct seqlstm_context *context, struct seqlstm_stream *stream, const void *x,
                                   int64_t steps, float *y, struct seqlstm_error *err)
{
    return end(context, sl_stream_step(begin(context), inner_stream(stream), x, steps, y, err), err);
}

seqlstm_status seqlstm_streams_step(struct seqlstm_context *context, struct seqlstm_stream *const *streams,
                                    int64_t count, const void *x, float *y, struct seqlstm_error *err)
{
    return end(context, sl_streams_step(begin(context), (struct sl_stream *const *)(void *)streams, count, x, y, err),
               err);
}

int64_t seqlstm_stream_get_position(const struct seqlstm_stream *stream)
{
    return sl_stream_get_position(inner_stream(stream));
}

void seqlstm_stream_reset(struct seqlstm_stream *stream)
{
    sl_stream_reset(inner_stream(stream));
}

seqlstm_status seqlstm_stream_save(const struct seqlstm_stream *stream, void *bytes, size_t *size,
                                   struct seqlstm_error *err)
{
    return sl_api_end(sl_stream_save(inner_stream(stream), bytes, size, err), err);
}

seqlstm_status seqlstm_stream_load(struct seqlstm_stream *stream, const void *bytes, size_t size,
                                   struct seqlstm_error *err)
{
    return sl_api_end(sl_stream_load(inner_stream(stream), bytes, size, err), err);
}
