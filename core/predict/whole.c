/* SPDX-License-Identifier: Apache-2.0 */
/* See whole.h. */
#include "predict/whole.h"

#include <string.h>

#include "predict/predictor_private.h"

static seqlstm_status check(const struct sl_context *context, const int64_t *lengths, int64_t count,
                            struct seqlstm_error *err)
{
    const struct sl_graph *graph = context->predictor->made.plans[SL_USE_WHOLE].graph;
    const int64_t most = graph ? graph->facts.envelope.steps : 0;
    const struct sl_data_facts *facts = sl_data_state_get_facts(context->predictor->made.state);
    if (count < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there are %lld sequences, expected at least 0", (long long)count);
    if (graph == NULL || facts->input.kind == SL_FIELD_NONE || facts->source.kind != SL_FIELD_NONE)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model has an encoder and a decoder, which read texts");
    if (facts->input.on_steps != (lengths != NULL))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model reads %s, and `lengths` is %s",
                     facts->input.on_steps ? "sequences" : "single rows", lengths ? "given" : "NULL");
    for (int64_t i = 0; lengths && i < count; i++)
        if (lengths[i] < 0 || lengths[i] > most)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "sequence %lld has %lld steps, expected 0 to %lld, the limit `steps` of the predictor",
                         (long long)i, (long long)lengths[i], (long long)most);
    return SEQLSTM_OK;
}

/* How many sequences from the first on are computed in one batch, and their rows. At least one fits. */
static int64_t take(const struct sl_predictor *predictor, const int64_t *lengths, int64_t count, int64_t *out_rows)
{
    const struct sl_envelope *most = &predictor->made.plans[SL_USE_WHOLE].graph->facts.envelope;
    const int64_t sequences = predictor->made.reproducible ? 1 : most->sequences;
    int64_t taken = 0;
    *out_rows = 0;
    while (taken < count && taken < sequences && (lengths == NULL || *out_rows + lengths[taken] <= most->rows)) {
        *out_rows += lengths ? lengths[taken] : 1;
        taken++;
    }
    return taken;
}

/* Copies the packed output to the order of the input. */
static void hand_out(const struct sl_context *context, const struct sl_packer *packer, struct sl_field output,
                     const int64_t *lengths, float *y)
{
    const struct sl_batch *batch = &packer->batch;
    const size_t bytes = (size_t)output.features * sizeof *y;
    for (int64_t k = 0; k < batch->sequences; k++) {
        const int64_t i = packer->order[k], rows = output.on_steps ? lengths[i] : 1;
        float *to = y + (output.on_steps ? packer->begins[i] : i) * output.features;
        for (int64_t t = 0; t < rows; t++) {
            const int64_t row = output.on_steps ? packer->row_offsets[t] + k : k;
            memcpy(to + t * output.features, output.values + row * output.features, bytes);
        }
        if (context->predictor->undoes_targets)
            sl_data_state_undo_targets(context->predictor->made.state, to, rows);
    }
}

/* What runs so many sequences with so many steps. */
static enum sl_predictor_use choose_use(const struct sl_predictor *predictor, int64_t count)
{
    if (count == 1 && predictor->made.plans[SL_USE_ALONE].plan)
        return SL_USE_ALONE;
    return count <= SL_FEW_SEQUENCES && predictor->made.plans[SL_USE_FEW].plan ? SL_USE_FEW : SL_USE_WHOLE;
}

/* The lane of a use, with room for its batches. */
static seqlstm_status provide(struct sl_context *context, enum sl_predictor_use use,
                              struct sl_predictor_lane **out_lane, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_context_provide(context, use, out_lane, err));
    const struct sl_data_facts *facts = &context->predictor->made.plans[use].graph->facts;
    return (*out_lane)->packer.sequences > 0 ? SEQLSTM_OK
                                             : sl_packer_init(&(*out_lane)->packer, facts, &facts->envelope, err);
}

seqlstm_status sl_context_predict(struct sl_context *context, const void *x, const int64_t *lengths, int64_t count,
                                  float *y, struct seqlstm_error *err)
{
    struct sl_predictor_lane *lane;
    SEQLSTM_TRY(check(context, lengths, count, err));
    while (count > 0) {
        int64_t rows;
        const int64_t taken = take(context->predictor, lengths, count, &rows);
        SEQLSTM_TRY(provide(context, choose_use(context->predictor, taken), &lane, err));
        struct sl_packer *packer = &lane->packer;
        sl_packer_lay_out(packer, lengths, taken);
        SEQLSTM_TRY(sl_packer_fill(packer, context->predictor->made.state, x, err));
        SEQLSTM_TRY(sl_context_run(lane, &packer->batch, err));
        const struct sl_field output = sl_exec_get_output(lane->exec);
        hand_out(context, packer, output, lengths, y);
        x = (const char *)x + rows * packer->batch.input.features * (int64_t)sizeof(float);
        y += (output.on_steps ? rows : taken) * output.features;
        lengths = lengths ? lengths + taken : NULL;
        count -= taken;
    }
    return SEQLSTM_OK;
}
