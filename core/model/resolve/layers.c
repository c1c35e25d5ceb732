/* SPDX-License-Identifier: Apache-2.0 */
/* Reads `init:` and `model:`: the lists of layers, and defaults that depend on other options. */
#include <string.h>

#include "base/value/text.h"
#include "model/read/sections.h"

static const char *const initializer_keys[] = {"kernel_initializer",   "recurrent_initializer",
                                               "bias_initializer",     "projection_initializer",
                                               "peephole_initializer", "embeddings_initializer"};

enum { INITIALIZER_KEYS = sizeof initializer_keys / sizeof *initializer_keys };

/* Is `node` one of the words that `init` takes? Reports what is none. */
static bool check_init_word(struct sl_reader *reader, struct sl_node *node)
{
    const size_t errors = reader->errors;
    size_t count = 0;
    int ignored;
    while (sl_section_initializer.variants[count].word != NULL)
        count++;
    struct sl_word *words = sl_reader_alloc(reader, 2 + count + 1, sizeof *words); /* zeros end them */
    if (words == NULL)
        return false;
    words[0].word = "keras";
    words[1].word = "pytorch";
    memcpy(words + 2, sl_section_initializer.variants, count * sizeof *words);
    const struct sl_option option = {.key = "init", .kind = SL_VALUE_WORD, .words = words};
    sl_reader_read_value(reader, &option, node, &ignored);
    return reader->errors == errors;
}

void sl_model_read_init(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_initializer ignored = {0};
    (void)option, (void)field;
    if (node->kind == SL_NODE_SCALAR && strcmp(node->text, "keras") == 0) {
        reader->init = SL_INIT_KERAS;
        return;
    }
    if (node->kind == SL_NODE_SCALAR && strcmp(node->text, "pytorch") == 0) {
        reader->init = SL_INIT_PYTORCH;
        return;
    }
    size_t errors = reader->errors;
    if (node->kind != SL_NODE_MAP && !check_init_word(reader, node))
        return;
    sl_reader_read_section(reader, &sl_section_initializer, node, &ignored);
    if (reader->errors == errors) {
        reader->init = SL_INIT_CUSTOM;
        reader->init_node = node;
    }
}

/* What `init: pytorch` gives a parameter: uniform, but vectors of tokens are normal. */
static void set_pytorch_initializer(struct sl_reader *reader, struct sl_node *layer, const char *key)
{
    if (strcmp(key, "embeddings_initializer") != 0) {
        sl_reader_set_default(reader, layer, key, "fan_uniform");
        return;
    }
    struct sl_node *map = sl_reader_set_default(reader, layer, key, "{}");
    if (map != NULL && map->is_default) {
        sl_reader_set_default(reader, map, "type", "normal");
        sl_reader_set_default(reader, map, "stddev", "1");
    }
}

static void set_init_defaults(struct sl_reader *reader, struct sl_node *layer, int kind)
{
    if (reader->init == SL_INIT_KERAS)
        return;
    for (int i = 0; i < INITIALIZER_KEYS; i++) {
        const char *key = initializer_keys[i];
        if (sl_option_find(&sl_section_layer, key, kind) == NULL)
            continue;
        if (reader->init == SL_INIT_CUSTOM)
            sl_reader_set_default_copy(reader, layer, key, reader->init_node);
        else
            set_pytorch_initializer(reader, layer, key);
    }
    if (kind == SL_LAYER_LSTM)
        sl_reader_set_default(reader, layer, "unit_forget_bias", "false");
}

/* Removes options that have no effect because of another one. */
static void drop_idle_options(struct sl_reader *reader, struct sl_node *node, struct sl_layer *layer)
{
    if (layer->kind == SL_LAYER_LSTM || layer->kind == SL_LAYER_GRU || layer->kind == SL_LAYER_RNN) {
        struct sl_recurrent *r = &layer->recurrent;
        sl_reader_drop_idle(reader, node, "merge", r->direction == SL_DIRECTION_BIDIRECTIONAL,
                            "`direction: bidirectional`");
        sl_reader_drop_idle(reader, node, "projection_initializer", r->projection > 0, "`projection`");
        sl_reader_drop_idle(reader, node, "peephole_initializer", r->peephole, "`peephole: true`");
        sl_reader_drop_idle(reader, node, "layer_norm_epsilon", r->layer_norm, "`layer_norm: true`");
        sl_reader_drop_idle(reader, node, "bias_initializer", r->use_bias, "`use_bias: true`");
        sl_reader_drop_idle(reader, node, "bias_regularizer", r->use_bias, "`use_bias: true`");
        sl_reader_drop_idle(reader, node, "unit_forget_bias", r->use_bias && !r->coupled_gates,
                            r->use_bias ? "a forget gate of its own" : "`use_bias: true`");
        if (!r->use_bias || r->coupled_gates)
            r->unit_forget_bias = false;
    } else if (layer->kind == SL_LAYER_DENSE || layer->kind == SL_LAYER_OUTPUT) {
        sl_reader_drop_idle(reader, node, "bias_initializer", layer->dense.use_bias, "`use_bias: true`");
        sl_reader_drop_idle(reader, node, "bias_regularizer", layer->dense.use_bias, "`use_bias: true`");
        static const char *const own[] = {"kernel_initializer", "kernel_regularizer"};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            sl_reader_drop_idle(reader, node, own[i], layer->dense.tie == NULL,
                                "weights of its own, and `tie` gives it those of an embedding");
    } else if (layer->kind == SL_LAYER_ATTENTION) {
        enum sl_attention_score score = layer->attention.score;
        sl_reader_drop_idle(reader, node, "units", score == SL_SCORE_ADDITIVE, "`score: additive`");
        sl_reader_drop_idle(reader, node, "kernel_initializer", score == SL_SCORE_ADDITIVE || score == SL_SCORE_GENERAL,
                            "`score: general` or `score: additive`");
    } else if (layer->kind == SL_LAYER_EMBEDDING) {
        static const char *const own[] = {"embeddings_initializer", "embeddings_regularizer", "weights", "trainable"};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            sl_reader_drop_idle(reader, node, own[i], layer->embedding.share == NULL,
                                "vectors of its own, and `share` gives it those of another embedding");
        if (layer->embedding.share)
            layer->embedding.weights = NULL;
    }
}

static bool has_parameters(const struct sl_layer *layer)
{
    switch (layer->kind) {
    case SL_LAYER_ACTIVATION:
    case SL_LAYER_DROPOUT:
    case SL_LAYER_CONCAT:
    case SL_LAYER_ADD:
    case SL_LAYER_POOL:
    case SL_LAYER_REPEAT:
        return false;
    case SL_LAYER_ATTENTION:
        return layer->attention.score == SL_SCORE_GENERAL || layer->attention.score == SL_SCORE_ADDITIVE;
    case SL_LAYER_OUTPUT:
        return layer->dense.tie == NULL || layer->dense.use_bias;
    default:
        return true;
    }
}

static void read_layer(struct sl_reader *reader, struct sl_node *node, struct sl_layer *layer)
{
    int kind = -1;
    if (node->kind == SL_NODE_SCALAR && !sl_reader_expand(reader, node, "type"))
        return;
    const struct sl_node *type = sl_node_find(node, "type");
    if (type != NULL && type->kind == SL_NODE_SCALAR) {
        const struct sl_word *word = sl_word_find(sl_section_layer.variants, type->text);
        kind = word ? word->value : -1;
    }
    if (kind >= 0)
        set_init_defaults(reader, node, kind);
    if (kind == SL_LAYER_LSTM && sl_node_find(node, "activation") != NULL)
        sl_reader_set_default_copy(reader, node, "output_activation", sl_node_find(node, "activation"));
    else if (kind == SL_LAYER_LSTM)
        sl_reader_set_default(reader, node, "output_activation", "tanh");
    layer->place = node->place;
    layer->kind = (enum sl_layer_kind) - 1;
    sl_reader_read_section(reader, &sl_section_layer, node, layer);
    if (layer->kind == SL_LAYER_OUTPUT)
        layer->dense.units = SL_UNITS_FROM_TARGET;
    if (layer->kind == SL_LAYER_OUTPUT || layer->kind == SL_LAYER_DENSE)
        layer->dense.tie_layer = -1;
    if (layer->kind == SL_LAYER_EMBEDDING)
        layer->embedding.share_layer = -1;
    drop_idle_options(reader, node, layer);
    if ((int)layer->kind >= 0)
        sl_reader_drop_idle(reader, node, "trainable", has_parameters(layer), "parameters, and the layer has none");
}

/* A list of layers; false after a report. */
static bool check_list(struct sl_reader *reader, const char *key, const struct sl_node *node)
{
    if (node->kind == SL_NODE_LIST && node->count > 0)
        return true;
    sl_reader_report(reader, "E0101", node->place, "write a `-` before each layer", NULL,
                     "`%s` takes a list of layers, not %s", key,
                     node->kind == SL_NODE_LIST ? "an empty one" : sl_node_kind_get_name(node->kind));
    return false;
}

void sl_model_read_side(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    (void)field;
    check_list(reader, option->key, node);
}

/* Concatenates the lists of `node`, the encoder's first, and returns the number of layers; 0 after a report. */
static size_t collect_nodes(struct sl_reader *reader, struct sl_node *node, struct sl_node ***out_nodes,
                            size_t *out_encoder_count)
{
    static const struct sl_node nothing = {.kind = SL_NODE_LIST};
    const struct sl_node *encoder = &nothing, *decoder = node;
    if (node->kind == SL_NODE_MAP) {
        struct sl_model_sides ignored = {0};
        size_t errors = reader->errors;
        sl_reader_read_section(reader, &sl_section_sides, node, &ignored);
        encoder = sl_node_find(node, "encoder");
        decoder = sl_node_find(node, "decoder");
        if (reader->errors > errors || encoder == NULL || decoder == NULL)
            return 0;
    } else if (!check_list(reader, "model", node)) {
        return 0;
    }
    struct sl_node **nodes = sl_reader_alloc(reader, encoder->count + decoder->count, sizeof *nodes);
    for (size_t i = 0; nodes != NULL && i < encoder->count; i++)
        nodes[i] = encoder->items[i];
    for (size_t i = 0; nodes != NULL && i < decoder->count; i++)
        nodes[encoder->count + i] = decoder->items[i];
    *out_nodes = nodes;
    *out_encoder_count = encoder->count;
    return nodes ? encoder->count + decoder->count : 0;
}

void sl_model_read_layers(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    struct sl_model *model = field;
    struct sl_node **nodes = NULL;
    size_t encoder_count = 0, count = collect_nodes(reader, node, &nodes, &encoder_count);
    (void)option;
    if (count == 0)
        return;
    struct sl_layer *layers = sl_reader_alloc(reader, count, sizeof *layers);
    if (layers == NULL)
        return;
    for (size_t i = 0; i < count && !reader->no_memory; i++) {
        layers[i].index = (int)i;
        layers[i].side = i < encoder_count ? SL_SIDE_ENCODER : SL_SIDE_DECODER;
        read_layer(reader, nodes[i], &layers[i]);
    }
    if (reader->no_memory)
        return;
    struct sl_layer_list list = {nodes, layers, count, encoder_count};
    sl_model_resolve_names(reader, &list);
    for (size_t i = 0; i < count; i++)
        layers[i].places = sl_places_collect(reader, nodes[i]);
    model->layers = layers;
    model->layer_count = count;
    model->encoder_count = encoder_count;
    sl_model_infer_shapes(reader, model, layers);
    sl_model_check_states(reader, model, layers);
    if (reader->errors == 0)
        sl_model_find_feeding(reader, model);
    if (node->kind == SL_NODE_MAP)
        model->embedding = sl_model_find_embedding(reader, sl_node_find(node, "embedding"), &list);
}
