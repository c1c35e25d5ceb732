/* SPDX-License-Identifier: Apache-2.0 */
/* See text_input.h. */
#include "predict/text_input.h"

#include <string.h>

#include "data/batch/batcher.h"
#include "data/dataset/dataset.h"
#include "predict/batches.h"
#include "predict/predictor_private.h"
#include "predict/records.h"

/* What ends a record: that of `conll` is several lines, all other texts are lines. NULL: records are no texts. */
static const char *find_ending(const struct sl_predictor_request *made)
{
    const struct sl_data_facts *facts = sl_data_state_get_facts(made->state);
    if (facts->input.kind != SL_FIELD_IDS && facts->source.kind != SL_FIELD_IDS)
        return NULL;
    switch (made->model->data.splits[SL_SPLIT_TRAIN].type) {
    case SL_SOURCE_CONLL:
        return "\n\n";
    case SL_SOURCE_NPY:
        return NULL;
    default:
        return "\n";
    }
}

bool sl_predictor_reads_texts(const struct sl_predictor *predictor)
{
    return find_ending(&predictor->made) != NULL && predictor->made.model->data.batching.unit != SL_UNIT_STREAM;
}

static bool holds(const char *text, size_t bytes, const char *what)
{
    const size_t width = strlen(what);
    for (size_t k = 0; k + width <= bytes; k++)
        if (memcmp(text + k, what, width) == 0)
            return true;
    return false;
}

static seqlstm_status join(const char *ending, const char *const *texts, const size_t *bytes, int64_t count,
                           struct sl_buf *out, struct seqlstm_error *err)
{
    for (int64_t t = 0; t < count; t++) {
        const size_t length = bytes ? bytes[t] : strlen(texts[t]);
        if (length == 0)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "text %lld is empty", (long long)t);
        if (holds(texts[t], length, ending) || memchr(texts[t], '\n', 1) == texts[t])
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "text %lld has %s in it, which would end it", (long long)t,
                         ending[1] ? "an empty line" : "a line break");
        sl_buf_append(out, texts[t], length);
        sl_buf_append(out, ending, strlen(ending));
    }
    if (out->failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the texts");
    return SEQLSTM_OK;
}

/* Each text is one record, which fits in a batch. */
static seqlstm_status check(const struct sl_predictor *predictor, const struct sl_dataset *data, int64_t count,
                            struct seqlstm_error *err)
{
    const bool decodes = sl_predictor_decodes(predictor);
    const struct sl_envelope *envelope =
        &predictor->made.plans[decodes ? SL_USE_ENCODER : SL_USE_WHOLE].graph->facts.envelope;
    const int64_t most = decodes ? envelope->source_steps : envelope->steps;
    if (sl_dataset_get_records(data) != count)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%lld text%s %lld record%s: one is blank or is several",
                     (long long)count, count == 1 ? " makes" : "s make", (long long)sl_dataset_get_records(data),
                     sl_dataset_get_records(data) == 1 ? "" : "s");
    for (int64_t r = 0; r < count; r++) {
        const int64_t length = decodes ? sl_dataset_get_source_length(data, r) : sl_dataset_get_length(data, r);
        if (length > most)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "text %lld has %lld tokens, expected at most %lld, the limit `steps` of the predictor",
                         (long long)r, (long long)length, (long long)most);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_text_input_open(const struct sl_context *context, const char *const *texts, const size_t *bytes,
                                  int64_t count, struct sl_text_input *out, struct seqlstm_error *err)
{
    const struct sl_predictor_request *made = &context->predictor->made;
    const char *ending = find_ending(made);
    *out = (struct sl_text_input){.data = NULL};
    if (!sl_predictor_reads_texts(context->predictor))
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model reads %s, not texts",
                     ending ? "one stream of tokens" : sl_source_type_get_name(made->model->data.splits[0].type));
    SEQLSTM_TRY(join(ending, texts, bytes, count, &out->file, err));
    const enum sl_source_type type = made->model->data.splits[SL_SPLIT_TRAIN].type;
    const struct sl_input_request input = {.data = out->file.data,
                                           .data_bytes = out->file.length_bytes,
                                           .lines = type == SL_SOURCE_CSV || type == SL_SOURCE_TSV,
                                           .name = "texts"};
    SEQLSTM_TRY(sl_dataset_open_input(made->model, made->state, &input, &out->data, err));
    return check(context->predictor, out->data, count, err);
}

void sl_text_input_close(struct sl_text_input *input)
{
    sl_dataset_close(input->data);
    sl_buf_deinit(&input->file);
    *input = (struct sl_text_input){.data = NULL};
}

seqlstm_status sl_text_input_open_batcher(const struct sl_context *context, const struct sl_text_input *input,
                                          struct sl_batcher **out_batcher, struct seqlstm_error *err)
{
    const struct sl_predictor_request *made = &context->predictor->made;
    const struct sl_batcher_request request = {.phase = SL_BATCHING_PREDICT,
                                               .seed = made->model->seed,
                                               .batch_size = made->reproducible ? 1 : made->sequences,
                                               .max_tokens = made->rows};
    return sl_batcher_open(input->data, &request, out_batcher, err);
}

seqlstm_status sl_context_predict_texts(struct sl_context *context, const char *const *texts, const size_t *bytes,
                                        int64_t count, sl_prediction_fn *write, void *write_context,
                                        struct seqlstm_error *err)
{
    struct sl_text_input input = {.data = NULL};
    struct sl_batcher *batcher = NULL;
    if (count < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there are %lld texts, expected at least 0", (long long)count);
    if (count == 0 && sl_predictor_reads_texts(context->predictor))
        return SEQLSTM_OK;
    seqlstm_status status = sl_text_input_open(context, texts, bytes, count, &input, err);
    if (status == SEQLSTM_OK)
        status = sl_text_input_open_batcher(context, &input, &batcher, err);
    const struct sl_outlet outlet = {input.data, write, write_context};
    if (status == SEQLSTM_OK)
        status = sl_context_predict_batches(context, batcher, &outlet, NULL, err);
    sl_batcher_close(batcher);
    sl_text_input_close(&input);
    return status;
}
