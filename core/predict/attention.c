/* SPDX-License-Identifier: Apache-2.0 */
/* The attention weights of one text, with its tokens. */
#include "predict/attention.h"

#include <string.h>

#include "base/memory/arena.h"
#include "decode/decoder.h"
#include "predict/predictor_private.h"

/* The texts of `count` tokens. The decoder's begin token is never among them. */
static const char **name_tokens(struct sl_arena *arena, const struct sl_vocabulary *vocabulary, const int32_t *ids,
                                int64_t count)
{
    const char **names = SL_ARENA_ARRAY(arena, const char *, (size_t)count + 1);
    for (int64_t k = 0; names && k < count; k++)
        names[k] = sl_vocabulary_get_text(vocabulary, ids[k], NULL);
    return names;
}

/* The ids that the encoder read for a sequence, in their order. */
static int32_t *find_source(struct sl_arena *arena, const struct sl_batch *batch, int64_t sequence, int64_t *out_count)
{
    const struct sl_source_side *source = &batch->source;
    int32_t place = source->place[sequence];
    int64_t count = place < source->axis.sequences ? source->axis.lengths[place] : 0;
    int32_t *ids = SL_ARENA_ARRAY(arena, int32_t, (size_t)count + 1);
    for (int64_t t = 0; ids && t < count; t++)
        ids[t] = source->input.ids[sl_batch_source_row(batch, sequence, t)];
    *out_count = count;
    return ids;
}

seqlstm_status sl_prediction_view_attention(const struct sl_predictor *predictor,
                                            const struct sl_attention_trace *trace, const struct sl_batch *batch,
                                            int64_t sequence, const struct sl_hypothesis *text, struct sl_arena *arena,
                                            struct sl_prediction_attention *out, struct seqlstm_error *err)
{
    const struct sl_vocabulary *vocabulary = sl_data_state_find_classes(predictor->made.state);
    const int32_t *indices;
    int32_t layers = sl_attention_trace_get_layers(trace, &indices);
    int64_t sources, steps = text->count + text->ended;
    const int32_t *source = find_source(arena, batch, sequence, &sources);
    const char **source_names =
        source ? name_tokens(arena, sl_data_state_find_source_vocabulary(predictor->made.state), source, sources)
               : NULL;
    const char **names = name_tokens(arena, vocabulary, text->ids, text->count);
    const char **layer_names = SL_ARENA_ARRAY(arena, const char *, (size_t)layers + 1);
    float *weights = SL_ARENA_ARRAY(arena, float, (size_t)(layers * steps * sources) + 1);
    if (!source_names || !names || !layer_names || !weights)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the weights of attention");
    if (text->ended) /* name_tokens left room for it */
        names[text->count] =
            sl_vocabulary_get_text(vocabulary, sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS), NULL);
    float *row = weights;
    for (int32_t k = 0; k < layers; k++) {
        layer_names[k] = predictor->made.model->layers[indices[k]].name;
        for (int64_t t = 0; t < steps; t++, row += sources)
            memcpy(row, sl_attention_trace_get(trace, k, t, text->rows[t]), (size_t)sources * sizeof *row);
    }
    *out = (struct sl_prediction_attention){.source = source_names,
                                            .source_count = sources,
                                            .target = names,
                                            .target_count = steps,
                                            .layers = layer_names,
                                            .layer_count = layers,
                                            .weights = weights};
    return SEQLSTM_OK;
}
