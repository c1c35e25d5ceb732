/* SPDX-License-Identifier: Apache-2.0 */
/* Input feeding (Luong et al. 2015, section 3.3): which layer of the decoder reads what at the step after.
 *
 *   embedding ─┬─ lstm ─ … ─ attention ─ dense ─ dropout ─ output
 *              ╰──────◂── the step before ──────────╯
 *
 * The reader is the first recurrent layer that the attention's query comes through; the giver is the attention layer,
 * or the last of the layers without recurrence that stand behind it, one taking the other, and before the output.
 */
#include "model/read/sections.h"

/* Marks the layers that `layer` reads, and those that they read. */
static void mark_ancestors(const struct sl_layer *layers, const struct sl_layer *layer, bool *marked)
{
    for (size_t i = 0; i < layer->from_count; i++) {
        int from = layer->from[i];
        if (from == SL_LAYER_MODEL_INPUT || marked[from])
            continue;
        marked[from] = true;
        mark_ancestors(layers, &layers[from], marked);
    }
}

static int find_reader(struct sl_reader *reader, const struct sl_model *model, const struct sl_layer *attention)
{
    bool *marked = sl_reader_alloc(reader, model->layer_count, sizeof *marked);
    if (marked == NULL)
        return -1;
    mark_ancestors(model->layers, attention, marked);
    for (int i = (int)model->encoder_count; i < attention->index; i++)
        if (marked[i] && sl_layer_is_recurrent(&model->layers[i]))
            return i;
    sl_reader_report(reader, "E0322", sl_layer_find_option_place(attention, "input_feeding"),
                     "put the attention layer after a recurrent one, or remove `input_feeding`", NULL,
                     "there is no recurrent layer before %s, so nothing reads its output of the previous step",
                     attention->name);
    return -1;
}

static bool is_rowwise(enum sl_layer_kind kind)
{
    return kind == SL_LAYER_DENSE || kind == SL_LAYER_ACTIVATION || kind == SL_LAYER_DROPOUT ||
           kind == SL_LAYER_LAYER_NORM;
}

static int find_giver(const struct sl_model *model, const struct sl_layer *attention)
{
    int giver = attention->index;
    for (int i = giver + 1; i + 1 < (int)model->layer_count; i++) {
        const struct sl_layer *layer = &model->layers[i];
        if (!is_rowwise(layer->kind) || layer->from_count != 1 || layer->from[0] != giver)
            break;
        giver = i;
    }
    return giver;
}

void sl_model_find_feeding(struct sl_reader *reader, struct sl_model *model)
{
    const struct sl_layer *first = NULL;
    for (size_t i = model->encoder_count; i < model->layer_count && model->encoder_count > 0; i++) {
        const struct sl_layer *layer = &model->layers[i];
        if (layer->kind != SL_LAYER_ATTENTION || !layer->attention.input_feeding)
            continue;
        if (first != NULL) {
            sl_reader_report(
                reader, "E0322", sl_layer_find_option_place(layer, "input_feeding"), "set it in one of them", NULL,
                "%s and %s both set `input_feeding`, but a decoder has only one input", first->name, layer->name);
            return;
        }
        first = layer;
    }
    if (first == NULL || first->name == NULL)
        return;
    int reads = find_reader(reader, model, first);
    if (reads >= 0)
        model->feeding = (struct sl_feeding){true, reads, find_giver(model, first)};
}
