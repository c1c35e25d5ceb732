/* SPDX-License-Identifier: Apache-2.0 */
/* The key in the model file, and its place, for an option that a backend named. */
#include <stddef.h>

#include "graph/graph.h"

static const char *const option_keys[SEQLSTM_OPTION_COUNT] = {
    [SEQLSTM_OPTION_NONE] = "type",
    [SEQLSTM_OPTION_SHAPE] = "units",
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

struct sl_option_place sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node, uint32_t option)
{
    const char *key = option < SEQLSTM_OPTION_COUNT && option_keys[option] ? option_keys[option] : "type";
    struct sl_option_place found = {.key = key};
    const struct sl_layer *feeder =
        option == SEQLSTM_OPTION_LENGTHS && node ? find_feeder(graph->model, node->layer) : NULL;
    if (feeder) {
        found.key = "input_feeding";
        found.place = sl_layer_find_option_place(feeder, found.key);
        return found;
    }
    if (option == SEQLSTM_OPTION_LOSS || (node && node->layer < 0))
        found.place = sl_model_find_place(graph->model, "train.loss");
    else if (option == SEQLSTM_OPTION_OPTIMIZER || node == NULL)
        found.place = sl_model_find_place(graph->model, "train.optimizer");
    else if (option == SEQLSTM_OPTION_DTYPE || option == SEQLSTM_OPTION_DETERMINISM)
        found.place = sl_model_find_place(graph->model, key);
    else
        found.place = sl_layer_find_option_place(&graph->model->layers[node->layer], key);
    return found;
}
