/* SPDX-License-Identifier: Apache-2.0 */
/* The key in the model file, its place and its value, for an option that a backend named. */
#include <stddef.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/text.h"
#include "graph/graph.h"

static const char *const option_keys[SEQLSTM_OPTION_COUNT] = {
    [SEQLSTM_OPTION_NONE] = "type",
    [SEQLSTM_OPTION_SHAPE] = "shape",
    [SEQLSTM_OPTION_DTYPE] = "precision",
    [SEQLSTM_OPTION_MODE] = "type",
    [SEQLSTM_OPTION_DETERMINISM] = "deterministic",
    [SEQLSTM_OPTION_CELL] = "type",
    [SEQLSTM_OPTION_LAYERS] = "layers",
    [SEQLSTM_OPTION_DIRECTION] = "direction",
    [SEQLSTM_OPTION_MERGE] = "merge",
    [SEQLSTM_OPTION_UNITS] = "units",
    [SEQLSTM_OPTION_PROJECTION] = "projection",
    [SEQLSTM_OPTION_ACTIVATION] = "activation",
    [SEQLSTM_OPTION_RECURRENT_ACTIVATION] = "recurrent_activation",
    [SEQLSTM_OPTION_OUTPUT_ACTIVATION] = "output_activation",
    [SEQLSTM_OPTION_USE_BIAS] = "use_bias",
    [SEQLSTM_OPTION_PEEPHOLE] = "peephole",
    [SEQLSTM_OPTION_COUPLED_GATES] = "coupled_gates",
    [SEQLSTM_OPTION_CELL_CLIP] = "cell_clip",
    [SEQLSTM_OPTION_GATE_CLIP] = "gate_clip",
    [SEQLSTM_OPTION_LAYER_NORM] = "layer_norm",
    [SEQLSTM_OPTION_DROPOUT] = "dropout",
    [SEQLSTM_OPTION_RECURRENT_DROPOUT] = "recurrent_dropout",
    [SEQLSTM_OPTION_ZONEOUT] = "zoneout",
    [SEQLSTM_OPTION_WEIGHT_DROP] = "weight_drop",
    [SEQLSTM_OPTION_RESET_AFTER] = "reset_after",
    [SEQLSTM_OPTION_STATES] = "return_sequences",
    [SEQLSTM_OPTION_LENGTHS] = "type",
    [SEQLSTM_OPTION_RATE] = "rate",
    [SEQLSTM_OPTION_MASK] = "mask",
    [SEQLSTM_OPTION_LOSS] = "loss",
    [SEQLSTM_OPTION_OPTIMIZER] = "optimizer",
    [SEQLSTM_OPTION_KIND] = "type",
};

/* The attention layer whose input feeding makes `layer` run step by step; NULL: there is none. */
static const struct sl_layer *find_feeder(const struct sl_model *model, int layer)
{
    const struct sl_feeding *feeding = &model->feeding;
    for (int i = feeding->reader; feeding->present && layer >= feeding->reader && i <= feeding->giver; i++)
        if (model->layers[i].kind == SL_LAYER_ATTENTION && model->layers[i].attention.input_feeding)
            return layer <= feeding->giver ? &model->layers[i] : NULL;
    return NULL;
}

/* The key of the layer that an operation comes from: `type: concat` and `mode: max` are kinds, too. */
static const char *find_key(const struct sl_node *node, uint32_t option)
{
    const uint32_t op = node ? node->desc.head.op : SEQLSTM_OP_NONE;
    if (op == SEQLSTM_OP_MERGE && option == SEQLSTM_OPTION_MERGE)
        return "type";
    if (op == SEQLSTM_OP_POOL && option == SEQLSTM_OPTION_KIND)
        return "mode";
    return option < SEQLSTM_OPTION_COUNT && option_keys[option] ? option_keys[option] : "type";
}

struct sl_option_place sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node, uint32_t option)
{
    const struct sl_model *model = graph->model;
    const char *key = find_key(node, option);
    struct sl_option_place found = {.key = key};
    const struct sl_layer *layer = node && node->layer >= 0 ? &model->layers[node->layer] : NULL;
    const struct sl_layer *feeder = option == SEQLSTM_OPTION_LENGTHS && node ? find_feeder(model, node->layer) : NULL;
    const char *top = option == SEQLSTM_OPTION_LOSS || (node && layer == NULL)                 ? "train.loss"
                      : option == SEQLSTM_OPTION_OPTIMIZER || node == NULL                     ? "train.optimizer"
                      : option == SEQLSTM_OPTION_DTYPE || option == SEQLSTM_OPTION_DETERMINISM ? key
                                                                                               : NULL;
    if (feeder) {
        found.key = "input_feeding";
        found.place = sl_layer_find_option_place(feeder, found.key);
        found.value = sl_model_find_word(model, feeder, found.key);
    } else if (top) {
        found.place = sl_model_find_place(model, top);
        found.value = sl_model_find_word(model, NULL, top);
    } else {
        found.place = sl_layer_find_option_place(layer, key);
        found.value = sl_model_find_word(model, layer, key);
    }
    if (option == SEQLSTM_OPTION_DTYPE && node) /* int8 is not in the file, and other types may be asked for */
        found.value = sl_dtype_name(node->desc.head.dtype_compute);
    return found;
}

void sl_option_place_name_value(const struct sl_option_place *place, uint32_t option, const char *said,
                                char out[SL_OPTION_VALUE_BYTES])
{
    const bool activation = option == SEQLSTM_OPTION_ACTIVATION || option == SEQLSTM_OPTION_RECURRENT_ACTIVATION ||
                            option == SEQLSTM_OPTION_OUTPUT_ACTIVATION;
    const char *value = place->value ? place->value : said;
    int64_t kind;
    double number;
    char text[SL_TEXT_NUMBER_BYTES];
    if (place->value == NULL && activation && sl_text_parse_int64(said, strlen(said), &kind)) {
        value = sl_activation_name((uint32_t)kind);
    } else if (place->value == NULL && strchr(said, '.') && sl_text_parse_float64(said, strlen(said), &number)) {
        sl_text_print_float64(text, number);
        value = text;
    }
    sl_text_snprintf(out, SL_OPTION_VALUE_BYTES, "%s", value);
}
