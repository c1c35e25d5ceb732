/* SPDX-License-Identifier: Apache-2.0 */
/* include/seqlstm/predictor.h on top of sessions and predictors. */
#include <string.h>

#include <seqlstm/predictor.h>

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

seqlstm_status seqlstm_predictor_open(struct seqlstm_session *session, const struct seqlstm_predictor_options *options,
                                      struct seqlstm_predictor **out_predictor, struct seqlstm_error *err)
{
    struct seqlstm_predictor_options said = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    if (options && options->struct_size >= sizeof said)
        said = *options;
    if (said.flags != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the predictor's options have unknown flags: %#x", said.flags);
    const struct sl_predictor_limits limits = {said.sequences,    said.steps, said.rows,   said.streams,
                                               said.stream_steps, said.layer, said.threads};
    struct sl_predictor *predictor = NULL;
    SEQLSTM_TRY(sl_api_end(sl_session_open_predictor(sl_api_get_session(session), &limits, &predictor, err), err));
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
    const bool ids = facts->input.kind == SL_FIELD_IDS;
    const struct seqlstm_predictor_info known = {.struct_size = info->struct_size,
                                                 .input = ids ? SEQLSTM_INPUT_IDS : SEQLSTM_INPUT_VALUES,
                                                 .output = sl_predictor_gives_values(p) ? SEQLSTM_OUTPUT_VALUES
                                                                                        : SEQLSTM_OUTPUT_PROBABILITIES,
                                                 .input_on_steps = facts->input.on_steps,
                                                 .output_on_steps = sl_predictor_has_step_output(p),
                                                 .streams = sl_predictor_find_graph(p, SL_USE_STREAM) != NULL,
                                                 .input_features = ids ? 1 : facts->input.features,
                                                 .input_classes = ids ? facts->input.classes : 0,
                                                 .output_features = sl_predictor_get_features(p),
                                                 .stream_bytes = (int64_t)sl_stream_count_bytes(p),
                                                 .steps = whole->facts.envelope.steps,
                                                 .stream_reason = sl_predictor_get_stream_reason(p)};
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

seqlstm_status seqlstm_predict(struct seqlstm_context *context, const void *x, const int64_t *lengths, int64_t count,
                               float *y, struct seqlstm_error *err)
{
    return sl_api_end(sl_context_predict(inner_context(context), x, lengths, count, y, err), err);
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
    return sl_api_end(sl_stream_step(inner_context(context), inner_stream(stream), x, steps, y, err), err);
}

seqlstm_status seqlstm_streams_step(struct seqlstm_context *context, struct seqlstm_stream *const *streams,
                                    int64_t count, const void *x, float *y, struct seqlstm_error *err)
{
    return sl_api_end(
        sl_streams_step(inner_context(context), (struct sl_stream *const *)(void *)streams, count, x, y, err), err);
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
