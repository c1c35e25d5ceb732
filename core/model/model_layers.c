/* SPDX-License-Identifier: Apache-2.0 */
/* Reading `init:` and `model:`: defaults that depend on other options, names, edges. */
#include <string.h>

#include "base/text.h"
#include "model/sections.h"

static const char *const initializer_keys[] = {
    "kernel_initializer",     "recurrent_initializer", "bias_initializer",
    "projection_initializer", "peephole_initializer",  "embeddings_initializer"};

enum { INITIALIZER_KEYS = sizeof initializer_keys / sizeof *initializer_keys };

void
sl_model_read_init(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node,
                   void *field)
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
    sl_reader_read_section(reader, &sl_section_initializer, node, &ignored);
    if (reader->errors == errors) {
        reader->init = SL_INIT_CUSTOM;
        reader->init_node = node;
    }
}

/* What `init: pytorch` gives a parameter: uniform, but vectors of tokens are normal. */
static void
set_pytorch_initializer(struct sl_reader *reader, struct sl_node *layer, const char *key)
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

static void
set_init_defaults(struct sl_reader *reader, struct sl_node *layer, int kind)
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

/* Options that another one switches off. */
static void
drop_idle_options(struct sl_reader *reader, struct sl_node *node, struct sl_layer *layer)
{
    if (layer->kind == SL_LAYER_LSTM || layer->kind == SL_LAYER_GRU || layer->kind == SL_LAYER_RNN) {
        struct sl_recurrent *r = &layer->recurrent;
        sl_reader_drop_idle(reader, node, "merge", r->direction == SL_DIRECTION_BIDIRECTIONAL,
                            "`direction: bidirectional`");
        sl_reader_drop_idle(reader, node, "projection_initializer", r->projection > 0,
                            "`projection`");
        sl_reader_drop_idle(reader, node, "peephole_initializer", r->peephole, "`peephole: true`");
        sl_reader_drop_idle(reader, node, "layer_norm_epsilon", r->layer_norm, "`layer_norm: true`");
        sl_reader_drop_idle(reader, node, "bias_initializer", r->use_bias, "`use_bias: true`");
        sl_reader_drop_idle(reader, node, "bias_regularizer", r->use_bias, "`use_bias: true`");
        sl_reader_drop_idle(reader, node, "unit_forget_bias", r->use_bias && !r->coupled_gates,
                            r->use_bias ? "a forget gate of its own" : "`use_bias: true`");
        if (!r->use_bias || r->coupled_gates)
            r->unit_forget_bias = false;
    } else if (layer->kind == SL_LAYER_DENSE || layer->kind == SL_LAYER_OUTPUT) {
        sl_reader_drop_idle(reader, node, "bias_initializer", layer->dense.use_bias,
                            "`use_bias: true`");
        sl_reader_drop_idle(reader, node, "bias_regularizer", layer->dense.use_bias,
                            "`use_bias: true`");
        sl_reader_drop_idle(reader, node, "kernel_initializer", layer->dense.tie == NULL,
                            "weights of its own, and `tie` gives it those of an embedding");
    } else if (layer->kind == SL_LAYER_EMBEDDING) {
        static const char *const own[] = {"embeddings_initializer", "embeddings_regularizer", "weights", "trainable"};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            sl_reader_drop_idle(reader, node, own[i], layer->embedding.share == NULL,
                                "vectors of its own, and `share` gives it those of another embedding");
        if (layer->embedding.share)
            layer->embedding.weights = NULL;
    }
}

static void
read_layer(struct sl_reader *reader, struct sl_node *node, struct sl_layer *layer)
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
        sl_reader_set_default_copy(reader, node, "output_activation",
                                   sl_node_find(node, "activation"));
    else if (kind == SL_LAYER_LSTM)
        sl_reader_set_default(reader, node, "output_activation", "tanh");
    layer->place = node->place;
    layer->kind = (enum sl_layer_kind)-1;
    sl_reader_read_section(reader, &sl_section_layer, node, layer);
    if (layer->kind == SL_LAYER_OUTPUT)
        layer->dense.units = SL_UNITS_FROM_TARGET;
    if (layer->kind == SL_LAYER_OUTPUT || layer->kind == SL_LAYER_DENSE)
        layer->dense.tie_layer = -1;
    if (layer->kind == SL_LAYER_EMBEDDING)
        layer->embedding.share_layer = -1;
    drop_idle_options(reader, node, layer);
}

static const struct sl_layer *
find_named(const struct sl_layer *layers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (layers[i].name != NULL && strcmp(layers[i].name, name) == 0)
            return &layers[i];
    return NULL;
}

/* `lstm_1`, `lstm_2`: the ordinal among the layers of that kind, further up where a name is taken. */
static void
name_layer(struct sl_reader *reader, struct sl_node *node, struct sl_layer *layers, size_t count,
           size_t index)
{
    struct sl_layer *layer = &layers[index];
    if (layer->name != NULL || (int)layer->kind < 0)
        return;
    int ordinal = 1;
    for (size_t i = 0; i < index; i++)
        ordinal += layers[i].kind == layer->kind;
    const char *kind = sl_layer_kind_get_name(layer->kind);
    const char *name;
    do
        name = sl_reader_printf(reader, "%s_%d", kind, ordinal++);
    while (find_named(layers, count, name) != NULL && !reader->no_memory);
    sl_reader_set_default(reader, node, "name", name);
    layer->name = name;
}

static void
check_unique_names(struct sl_reader *reader, const struct sl_node *list,
                   const struct sl_layer *layers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (layers[i].name == NULL)
            continue;
        const struct sl_layer *first = find_named(layers, i, layers[i].name);
        const struct sl_node *node = sl_node_find(list->items[i], "name");
        struct sl_place place = node ? node->place : layers[i].place;
        if (first != NULL)
            sl_reader_report(reader, "E0302", place, NULL, NULL,
                             "two layers are called `%s`, the first in line %d", layers[i].name,
                             first->place.line);
        if (strcmp(layers[i].name, "input") == 0)
            sl_reader_report(reader, "E0302", place, NULL, NULL,
                             "no layer can be called `input`: that is the input of the model");
    }
}

/* The layer that a `from` entry names; false after a report. */
static bool
resolve_name(struct sl_reader *reader, const struct sl_node *node, const struct sl_layer *layers,
             size_t count, size_t index, int *out)
{
    const char *names[256];
    size_t known = 0;
    if (strcmp(node->text, "input") == 0) {
        *out = SL_LAYER_MODEL_INPUT;
        return true;
    }
    const struct sl_layer *found = find_named(layers, count, node->text);
    if (found != NULL && (size_t)found->index < index) {
        *out = found->index;
        return true;
    }
    for (size_t i = 0; i < index && known < 255; i++)
        if (layers[i].name != NULL)
            names[known++] = layers[i].name;
    names[known++] = "input";
    const char *close = sl_text_closest(node->text, names, known);
    sl_reader_report(reader, "E0303", node->place,
                     found && (size_t)found->index > index ? "move this one behind it"
                     : !found && close ? sl_reader_printf(reader, "did you mean `%s`?", close)
                                       : NULL,
                     NULL,
                     found == NULL                     ? "there is no layer `%.60s`"
                     : (size_t)found->index == index ? "layer `%.60s` cannot take its own output"
                                                       : "layer `%.60s` stands further down",
                     node->text);
    return false;
}

static void
resolve_from(struct sl_reader *reader, const struct sl_node *node, struct sl_layer *layers,
             size_t count, size_t index)
{
    struct sl_layer *layer = &layers[index];
    const struct sl_node *from = sl_node_find(node, "from");
    bool is_list = from != NULL && from->kind == SL_NODE_LIST;
    size_t entries = is_list ? from->count : 1;
    int *resolved = sl_reader_alloc(reader, entries + 1, sizeof *resolved);
    if (resolved == NULL)
        return;
    layer->from = resolved;
    if (from == NULL) {
        resolved[0] = (int)index - 1;
        layer->from_count = 1;
        return;
    }
    for (size_t i = 0; i < entries; i++) {
        const struct sl_node *entry = is_list ? from->items[i] : from;
        if (entry->kind == SL_NODE_SCALAR &&
            resolve_name(reader, entry, layers, count, index, &resolved[layer->from_count]))
            layer->from_count++;
    }
}

static void
resolve_tie(struct sl_reader *reader, const struct sl_node *node, struct sl_layer *layers,
            size_t count, struct sl_layer *layer)
{
    if (layer->kind != SL_LAYER_OUTPUT || layer->dense.tie == NULL)
        return;
    const struct sl_layer *target = find_named(layers, count, layer->dense.tie);
    const struct sl_node *tie = sl_node_find(node, "tie");
    if (target != NULL && target->kind == SL_LAYER_EMBEDDING)
        layer->dense.tie_layer = target->index;
    else
        sl_reader_report(reader, "E0305", tie ? tie->place : layer->place, NULL, NULL,
                         target ? "`tie` names an embedding, and `%s` is none"
                                : "there is no embedding `%s` to tie to",
                         layer->dense.tie);
}

static void
resolve_share(struct sl_reader *reader, const struct sl_node *node, struct sl_layer *layers, size_t count,
              struct sl_layer *layer)
{
    if (layer->kind != SL_LAYER_EMBEDDING || layer->embedding.share == NULL)
        return;
    const struct sl_layer *home = find_named(layers, count, layer->embedding.share);
    const struct sl_node *share = sl_node_find(node, "share");
    struct sl_place place = share ? share->place : layer->place;
    if (home == NULL || home->kind != SL_LAYER_EMBEDDING)
        sl_reader_report(reader, "E0305", place, NULL, NULL,
                         home ? "`share` names an embedding, and `%s` is none" : "there is no embedding `%s` to share",
                         layer->embedding.share);
    else if (home->index >= layer->index || home->embedding.share)
        sl_reader_report(reader, "E0305", place, NULL, NULL,
                         home->index >= layer->index ? "`%s` does not stand above this layer"
                                                     : "`%s` has no vectors of its own: it shares others",
                         layer->embedding.share);
    else if (home->embedding.dim != layer->embedding.dim)
        sl_reader_report(reader, "E0305", place, NULL, NULL, "the vectors of `%s` have `dim: %lld`, not %lld",
                         layer->embedding.share, (long long)home->embedding.dim, (long long)layer->embedding.dim);
    else
        layer->embedding.share_layer = home->index;
}

void
sl_model_read_layers(struct sl_reader *reader, const struct sl_option *option,
                     struct sl_node *node, void *field)
{
    struct sl_model *model = field;
    (void)option;
    if (node->kind == SL_NODE_MAP &&
        (sl_node_find(node, "encoder") != NULL || sl_node_find(node, "decoder") != NULL)) {
        sl_reader_refuse_later(reader, node->place, "a model of `encoder` and `decoder`");
        return;
    }
    if (node->kind != SL_NODE_LIST || node->count == 0) {
        sl_reader_report(reader, "E0101", node->place, "write each layer behind a `-`", NULL,
                         "`model` takes a list of layers, not %s",
                         node->kind == SL_NODE_LIST ? "an empty one"
                                                    : sl_node_kind_get_name(node->kind));
        return;
    }
    struct sl_layer *layers = sl_reader_alloc(reader, node->count, sizeof *layers);
    if (layers == NULL)
        return;
    for (size_t i = 0; i < node->count && !reader->no_memory; i++) {
        layers[i].index = (int)i;
        read_layer(reader, node->items[i], &layers[i]);
    }
    if (reader->no_memory)
        return;
    for (size_t i = 0; i < node->count; i++)
        name_layer(reader, node->items[i], layers, node->count, i);
    check_unique_names(reader, node, layers, node->count);
    for (size_t i = 0; i < node->count; i++) {
        resolve_from(reader, node->items[i], layers, node->count, i);
        resolve_tie(reader, node->items[i], layers, node->count, &layers[i]);
        resolve_share(reader, node->items[i], layers, node->count, &layers[i]);
        layers[i].places = sl_places_collect(reader, node->items[i]);
    }
    sl_model_infer_shapes(reader, node, model, layers, node->count);
    model->layers = layers;
    model->layer_count = node->count;
}
