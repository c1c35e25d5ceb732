/* SPDX-License-Identifier: Apache-2.0 */
/* See joined_texts.h. */
#include "predict/joined_texts.h"

#include <string.h>

#include "base/value/buf.h"
#include "data/batch/batcher.h"
#include "data/dataset/dataset.h"
#include "decode/continuous.h"
#include "predict/batches.h"
#include "predict/predictor_private.h"
#include "predict/text_input.h"

/* In their order: behind a batch for which there is no room, none joins, so that shorter texts do not overtake it. */
static seqlstm_status join_batches(struct sl_context *context, struct sl_batcher *batcher, void *const *tags,
                                   bool *out_joined, struct seqlstm_error *err)
{
    for (bool fits = true; fits;) {
        struct sl_batch *batch = NULL;
        SEQLSTM_TRY(sl_batcher_next(batcher, &batch, err));
        if (batch == NULL)
            return SEQLSTM_OK;
        fits = sl_continuous_has_room(context->continuous, batch);
        const seqlstm_status status = fits ? sl_continuous_join(context->continuous, batch, tags, err) : SEQLSTM_OK;
        for (int64_t k = 0; k < batch->sequences && fits && status == SEQLSTM_OK; k++)
            out_joined[batch->sample[k]] = true;
        sl_batch_destroy(batch);
        SEQLSTM_TRY(status);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_context_join_texts(struct sl_context *context, const char *const *texts, const size_t *bytes,
                                     void *const *tags, int64_t count, bool *out_joined, struct seqlstm_error *err)
{
    struct sl_text_input input = {.data = NULL};
    struct sl_batcher *batcher = NULL;
    memset(out_joined, 0, (size_t)count * sizeof *out_joined);
    SEQLSTM_TRY(sl_context_provide_continuous(context, err));
    seqlstm_status status = sl_text_input_open(context, texts, bytes, count, &input, err);
    if (status == SEQLSTM_OK)
        status = sl_text_input_open_batcher(context, &input, &batcher, err);
    if (status == SEQLSTM_OK)
        status = join_batches(context, batcher, tags, out_joined, err);
    sl_batcher_close(batcher);
    sl_text_input_close(&input);
    return status;
}

struct writer {
    const struct sl_predictor *predictor;
    sl_joined_write_fn *write;
    void *context;
};

static seqlstm_status hand_out(void *context, void *tag, const struct sl_hypothesis *best, struct seqlstm_error *err)
{
    const struct writer *writer = context;
    struct sl_buf text = {0};
    if (best == NULL)
        return writer->write(writer->context, tag, NULL, err);
    sl_data_state_decode(writer->predictor->made.state, best->ids, best->count, &text);
    seqlstm_status status = SEQLSTM_OK;
    if (text.failed)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a prediction");
    const struct sl_joined_answer answer = {sl_buf_text(&text), text.length_bytes, best->score};
    if (status == SEQLSTM_OK)
        status = writer->write(writer->context, tag, &answer, err);
    sl_buf_deinit(&text);
    return status;
}

seqlstm_status sl_context_step_texts(struct sl_context *context, sl_joined_write_fn *write, void *write_context,
                                     struct seqlstm_error *err)
{
    struct writer writer = {context->predictor, write, write_context};
    return context->continuous ? sl_continuous_step(context->continuous, hand_out, &writer, err) : SEQLSTM_OK;
}

seqlstm_status sl_context_pad_texts(struct sl_context *context, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_context_provide_continuous(context, err));
    sl_continuous_pad(context->continuous);
    return SEQLSTM_OK;
}

void sl_context_drop_text(struct sl_context *context, const void *tag)
{
    if (context->continuous)
        sl_continuous_drop(context->continuous, tag);
}

int64_t sl_context_count_texts(const struct sl_context *context)
{
    return context->continuous ? sl_continuous_count(context->continuous) : 0;
}
