/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions in input order. Batches come in input order but are sorted by length inside; the records of a batch are
 * passed on in order before the next batch is made. */
#include "session/predict/predict.h"

#include <stdlib.h>
#include <string.h>

#include "data/batch/batcher.h"
#include "predict/batches.h"
#include "predict/records.h"
#include "session/data/notes.h"
#include "session/evaluate/clipping.h"
#include "session/finding/finding.h"
#include "session/predict/embedding_layer.h"
#include "session/predict/predictor.h"
#include "session/prepare/decoding.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/trained.h"

/* Watches the executors whose layers may be in int8. The trace of attention weights watches the steps of a decoder. */
static seqlstm_status watch(struct sl_clipping *clipping, struct sl_context *context,
                            const struct sl_predictor_wish *wish, struct seqlstm_error *err)
{
    const bool decodes = wish->envelopes[SL_USE_ENCODER].sequences > 0;
    struct sl_exec *exec;
    SEQLSTM_TRY(sl_context_provide_exec(context, decodes ? SL_USE_ENCODER : SL_USE_WHOLE, &exec, err));
    sl_clipping_watch(clipping, exec);
    if (!decodes || wish->attention)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_context_provide_exec(context, SL_USE_DECODER, &exec, err));
    sl_clipping_watch(clipping, exec);
    return SEQLSTM_OK;
}

static seqlstm_status predict(struct sl_session *session, const struct sl_predictor_wish *wish,
                              struct sl_batcher *batcher, const struct sl_outlet *outlet, struct seqlstm_error *err)
{
    struct sl_predictor *predictor = NULL;
    struct sl_context *context = NULL;
    struct sl_clipping clipping = {0};
    SEQLSTM_TRY(sl_session_make_predictor(session, wish, &predictor, err));
    seqlstm_status status = sl_context_open(predictor, &context, err);
    if (status == SEQLSTM_OK)
        status = sl_clipping_init(&clipping, sl_session_find_quantization(session), err);
    if (status == SEQLSTM_OK)
        status = watch(&clipping, context, wish, err);
    if (status == SEQLSTM_OK)
        status = sl_context_predict_batches(context, batcher, outlet, session->options.interrupt, err);
    if (status == SEQLSTM_OK && sl_context_find_decoder(context))
        sl_session_note_decoding(session, sl_context_find_decoder(context));
    sl_clipping_warn(&clipping, session);
    sl_clipping_deinit(&clipping);
    sl_context_close(context);
    sl_predictor_destroy(predictor);
    return status;
}

/* The class with which a line of training data would begin or end; -1: there is none. */
static int32_t find_label(const struct sl_source *source, const struct sl_vocabulary *classes, const char *line,
                          size_t bytes)
{
    size_t width = source->delimiter ? strlen(source->delimiter) : 0;
    bool last = strcmp(source->label.column, "last") == 0;
    if (width == 0 || bytes < width)
        return -1;
    for (size_t i = 0; i + width <= bytes; i++) {
        size_t at = last ? bytes - width - i : i;
        if (memcmp(line + at, source->delimiter, width) == 0)
            return last ? sl_vocabulary_find(classes, line + at + width, i) : sl_vocabulary_find(classes, line, at);
    }
    return -1;
}

/* Lines are read without a label. If every line has one, the file was probably meant for `test`. */
static void warn_of_labels(const struct sl_session *session, const struct sl_dataset *data)
{
    const struct sl_source *source = &session->model->data.splits[SL_SPLIT_TRAIN];
    const struct sl_vocabulary *classes = sl_data_state_find_classes(session->state);
    int64_t records = sl_dataset_get_records(data);
    bool labels = source->type == SL_SOURCE_LINES && source->label.column && source->label.type == SL_LABEL_CLASS;
    for (int64_t r = 0; r < records && labels && classes; r++) {
        size_t bytes;
        const char *line = sl_dataset_find_text(data, r, &bytes);
        labels = line && find_label(source, classes, line, bytes) >= 0;
    }
    if (labels && classes && records > 1)
        sl_log_printf(session->options.log, SL_LOG_WARN,
                      "every line of the input %s with a label, which was read as a word of the text; remove it",
                      strcmp(source->label.column, "last") == 0 ? "ends" : "begins");
}

/* Lengths belong to arrays only. A model that was trained on arrays with lengths probably gets arrays with padding. */
static seqlstm_status check_lengths(const struct sl_session *session, const struct sl_input_request *input,
                                    struct seqlstm_error *err)
{
    const struct sl_source *source = &session->model->data.splits[SL_SPLIT_TRAIN];
    if (input->lengths && source->type != SL_SOURCE_NPY)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`--lengths` is for arrays, and this model reads `%s`",
                     sl_source_type_get_name(source->type));
    if (input->lengths == NULL && input->path && source->type == SL_SOURCE_NPY && source->lengths)
        sl_log_printf(session->options.log, SL_LOG_WARN,
                      "the model learned from arrays with `lengths`: without `--lengths FILE` every step of the input "
                      "counts as real");
    return SEQLSTM_OK;
}

static seqlstm_status run(struct sl_session *session, const struct sl_input_request *input,
                          const struct sl_layer *layer, bool attention, sl_prediction_fn *write, void *context,
                          struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_session_require_trained(session, err));
    if (session->model->data.batching.unit == SL_UNIT_STREAM)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "predict reads independent sequences, but the model was trained on streams; use `seqlstm "
                     "generate`");
    struct sl_dataset *data = NULL;
    struct sl_batcher *batcher = NULL;
    SEQLSTM_TRY(check_lengths(session, input, err));
    SEQLSTM_TRY(sl_session_blame_data(sl_dataset_open_input(session->model, session->state, input, &data, err), err));
    struct sl_batcher_request request = {.phase = SL_BATCHING_PREDICT, .seed = session->model->seed};
    seqlstm_status status = SEQLSTM_OK;
    sl_session_note_data(session, "input", data);
    warn_of_labels(session, data);
    if (sl_dataset_get_records(data) > 0)
        status = sl_batcher_open(data, &request, &batcher, err);
    if (status == SEQLSTM_OK && batcher) {
        const bool decodes = sl_session_decodes(session) && layer == NULL;
        const struct sl_outlet outlet = {data, write, context};
        struct sl_predictor_wish wish = {.output = layer, .attention = attention};
        wish.envelopes[decodes ? SL_USE_ENCODER : SL_USE_WHOLE] = sl_batcher_envelope(batcher);
        status = predict(session, &wish, batcher, &outlet, err);
    }
    sl_batcher_close(batcher);
    sl_dataset_close(data);
    return status;
}

seqlstm_status sl_session_predict(struct sl_session *session, const struct sl_input_request *input, bool attention,
                                  sl_prediction_fn *write, void *context, struct seqlstm_error *err)
{
    bool has_attention = false;
    for (size_t k = 0; k < session->model->layer_count; k++)
        has_attention = has_attention || session->model->layers[k].kind == SL_LAYER_ATTENTION;
    if (attention && !has_attention)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the model has no attention layer, so there are no weights to show");
    return run(session, input, NULL, attention, write, context, err);
}

static bool model_has_decoder_layer(const struct sl_model *model, const struct sl_layer *layer)
{
    return model->encoder_count > 0 && layer->side == SL_SIDE_DECODER;
}

seqlstm_status sl_session_embed(struct sl_session *session, const struct sl_input_request *input,
                                const char *layer_name, sl_prediction_fn *write, void *context,
                                struct seqlstm_error *err)
{
    const struct sl_layer *layer =
        layer_name ? sl_model_find_layer(session->model, layer_name) : sl_session_find_embedding_layer(session->model);
    if (layer == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "the model has no layer `%s`; "
                     "config.yaml in the run's folder names its layers",
                     layer_name);
    if (model_has_decoder_layer(session->model, layer))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "`%s` is a layer of the decoder, which reads a target; name one of the encoder", layer->name);
    return run(session, input, layer, false, write, context, err);
}
