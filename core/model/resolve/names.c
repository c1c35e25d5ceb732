/* SPDX-License-Identifier: Apache-2.0 */
/* Names of layers, given or generated, and the options that refer to them: `from`, `tie`, `share`, `initial_state`,
 * `embedding`. */
#include <string.h>

#include "base/value/text.h"
#include "model/read/sections.h"

static const struct sl_layer *find_named(const struct sl_layer *layers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (layers[i].name != NULL && strcmp(layers[i].name, name) == 0)
            return &layers[i];
    return NULL;
}

/* `lstm_1`, `lstm_2`: the number among the layers of that kind, or a larger one if the name is taken. */
static void name_layer(struct sl_reader *reader, struct sl_node *node, struct sl_layer *layers, size_t count,
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

/* `place` is that of the second; the file of the first is named if it is another one. */
static void report_second(struct sl_reader *reader, struct sl_place place, const char *name, struct sl_place first)
{
    const bool here = place.file == NULL || first.file == NULL || strcmp(place.file, first.file) == 0;
    sl_reader_report(reader, "E0302", place, NULL, NULL, "two layers are named `%s`, the first in line %d%s%s", name,
                     first.line, here ? "" : " of ", here ? "" : first.file);
}

static void check_unique_names(struct sl_reader *reader, const struct sl_layer_list *list)
{
    const struct sl_layer *layers = list->layers;
    for (size_t i = 0; i < list->count; i++) {
        if (layers[i].name == NULL)
            continue;
        const struct sl_layer *first = find_named(layers, i, layers[i].name);
        const struct sl_node *node = sl_node_find(list->nodes[i], "name");
        struct sl_place place = node ? node->place : layers[i].place;
        if (first != NULL)
            report_second(reader, place, layers[i].name, first->place);
        if (strcmp(layers[i].name, "input") == 0)
            sl_reader_report(reader, "E0302", place, NULL, NULL,
                             "no layer can be named `input`: that is the input of the model");
        if (strcmp(layers[i].name, "none") == 0)
            sl_reader_report(reader, "E0302", place, NULL, NULL,
                             "no layer can be named `none`: `initial_state: none` means that there is none");
    }
}

/* Whether a layer may read another one: those before it on its side; `repeat` reads the encoder's. */
static void find_givers(const struct sl_layer_list *list, size_t index, size_t *out_first, size_t *out_end)
{
    const struct sl_layer *layer = &list->layers[index];
    bool across = layer->kind == SL_LAYER_REPEAT;
    *out_first = layer->side == SL_SIDE_ENCODER || across ? 0 : list->encoder_count;
    *out_end = across ? list->encoder_count : index;
}

/* The layer that a `from` entry names; false after a report. */
static bool resolve_name(struct sl_reader *reader, const struct sl_node *node, const struct sl_layer_list *list,
                         size_t index, int *out)
{
    const char *names[256];
    size_t known = 0, first, end;
    find_givers(list, index, &first, &end);
    bool takes_input = list->layers[index].kind != SL_LAYER_REPEAT;
    if (takes_input && strcmp(node->text, "input") == 0) {
        *out = SL_LAYER_MODEL_INPUT;
        return true;
    }
    const struct sl_layer *found = find_named(list->layers, list->count, node->text);
    size_t at = found ? (size_t)found->index : 0;
    if (found != NULL && at >= first && at < end) {
        *out = found->index;
        return true;
    }
    for (size_t i = first; i < end && known < 255; i++)
        if (list->layers[i].name != NULL)
            names[known++] = list->layers[i].name;
    if (takes_input)
        names[known++] = "input";
    const char *close = sl_text_closest(node->text, names, known);
    bool other_side = found && found->side != list->layers[index].side;
    const char *help = !found && close ? sl_reader_printf(reader, "did you mean `%s`?", close) : NULL;
    if (other_side && takes_input)
        help = found->side == SL_SIDE_ENCODER ? "encoder and decoder have different steps: use its states "
                                                "(`initial_state`) or one vector of it (`repeat`)"
                                              : "an encoder cannot use the output of its decoder";
    else if (found && at > index)
        help = "move this one after it";
    sl_reader_report(reader, "E0303", node->place, help, NULL,
                     found == NULL ? "there is no layer `%.60s`"
                     : at == index ? "layer `%.60s` cannot read its own output"
                     : !takes_input
                         ? "`repeat` reads a vector of the encoder, but `%.60s` is not a layer of the encoder"
                     : other_side ? "layer `%.60s` is on the other side"
                                  : "layer `%.60s` comes later",
                     node->text);
    return false;
}

/* Without `from`: the layer before it; for the first one the input of its side; for a repeat the encoder's last. */
static int get_default_from(const struct sl_layer_list *list, size_t index)
{
    if (list->layers[index].kind == SL_LAYER_REPEAT && list->encoder_count > 0)
        return (int)list->encoder_count - 1;
    return index == 0 || index == list->encoder_count ? SL_LAYER_MODEL_INPUT : (int)index - 1;
}

static void resolve_from(struct sl_reader *reader, const struct sl_layer_list *list, size_t index)
{
    struct sl_layer *layer = &list->layers[index];
    const struct sl_node *from = sl_node_find(list->nodes[index], "from");
    bool is_list = from != NULL && from->kind == SL_NODE_LIST;
    size_t entries = is_list ? from->count : 1;
    int *resolved = sl_reader_alloc(reader, entries + 1, sizeof *resolved);
    if (resolved == NULL)
        return;
    layer->from = resolved;
    if (layer->kind == SL_LAYER_REPEAT && layer->side == SL_SIDE_ENCODER)
        sl_reader_report(reader, "E0303", layer->place, "put it into the decoder", NULL,
                         "`repeat` gives a vector to each step of a decoder, but %s is in the encoder", layer->name);
    else if (layer->kind == SL_LAYER_REPEAT && list->encoder_count == 0)
        sl_reader_report(
            reader, "E0303", layer->place, "write `model: {encoder: […], decoder: […]}`", NULL,
            "`repeat` gives a vector of the encoder to each step of the decoder, but this model has neither");
    else if (layer->kind == SL_LAYER_ATTENTION && layer->side == SL_SIDE_ENCODER)
        sl_reader_report(reader, "E0303", layer->place, "put it into the decoder", NULL,
                         "a decoder attends to its encoder, but %s is in the encoder", layer->name);
    else if (layer->kind == SL_LAYER_ATTENTION && list->encoder_count == 0)
        sl_reader_report(reader, "E0303", layer->place, "write `model: {encoder: […], decoder: […]}`", NULL,
                         "a decoder attends to its encoder, but this model has neither");
    else if (from == NULL)
        resolved[layer->from_count++] = get_default_from(list, index);
    for (size_t i = 0; from != NULL && i < entries; i++) {
        const struct sl_node *entry = is_list ? from->items[i] : from;
        if (entry->kind == SL_NODE_SCALAR && resolve_name(reader, entry, list, index, &resolved[layer->from_count]))
            layer->from_count++;
    }
}

static void resolve_tie(struct sl_reader *reader, const struct sl_node *node, struct sl_layer *layers, size_t count,
                        struct sl_layer *layer)
{
    if (layer->kind != SL_LAYER_OUTPUT || layer->dense.tie == NULL)
        return;
    const struct sl_layer *target = find_named(layers, count, layer->dense.tie);
    const struct sl_node *tie = sl_node_find(node, "tie");
    if (target != NULL && target->kind == SL_LAYER_EMBEDDING)
        layer->dense.tie_layer = target->index;
    else
        sl_reader_report(reader, "E0305", tie ? tie->place : layer->place, NULL, NULL,
                         target ? "`tie` must name an embedding, but `%s` is not one"
                                : "there is no embedding `%s` to tie to",
                         layer->dense.tie);
}

static void resolve_share(struct sl_reader *reader, const struct sl_node *node, struct sl_layer *layers, size_t count,
                          struct sl_layer *layer)
{
    if (layer->kind != SL_LAYER_EMBEDDING || layer->embedding.share == NULL)
        return;
    const struct sl_layer *home = find_named(layers, count, layer->embedding.share);
    const struct sl_node *share = sl_node_find(node, "share");
    struct sl_place place = share ? share->place : layer->place;
    if (home == NULL || home->kind != SL_LAYER_EMBEDDING)
        sl_reader_report(reader, "E0305", place, NULL, NULL,
                         home ? "`share` must name an embedding, but `%s` is not one"
                              : "there is no embedding `%s` to share",
                         layer->embedding.share);
    else if (home->index >= layer->index || home->embedding.share)
        sl_reader_report(reader, "E0305", place, NULL, NULL,
                         home->index >= layer->index ? "`%s` does not come before this layer"
                                                     : "`%s` has no vectors of its own: it shares others",
                         layer->embedding.share);
    else if (home->embedding.dim != layer->embedding.dim)
        sl_reader_report(reader, "E0305", place, NULL, NULL, "the vectors of `%s` have `dim: %lld`, not %lld",
                         layer->embedding.share, (long long)home->embedding.dim, (long long)layer->embedding.dim);
    else
        layer->embedding.share_layer = home->index;
}

/* The layer whose states a recurrent layer starts from, if the file names it. */
static void resolve_state(struct sl_reader *reader, const struct sl_layer_list *list, struct sl_layer *layer)
{
    if (!sl_layer_is_recurrent(layer))
        return;
    struct sl_initial_state *state = &layer->recurrent.initial_state;
    state->layer = SL_NO_LAYER;
    if (state->from == NULL)
        return;
    const struct sl_node *node = sl_node_find(list->nodes[layer->index], "initial_state");
    const struct sl_node *from = sl_node_find(node, "from");
    const struct sl_layer *giver = find_named(list->layers, list->count, state->from);
    if (strcmp(state->from, "none") == 0)
        sl_reader_drop_idle(reader, (struct sl_node *)node, "bridge", false, "a layer in `from`");
    else if (giver != NULL && giver->index < layer->index && giver->side != layer->side)
        state->layer = giver->index;
    else if (giver != NULL && giver->index < layer->index && layer->side == SL_SIDE_DECODER && list->encoder_count > 0)
        sl_reader_report(reader, "E0321", from ? from->place : layer->place, "name a layer of the encoder", NULL,
                         "the states of `%s` are final only when the decoder has written everything", giver->name);
    else if (giver != NULL && giver->index < layer->index)
        state->layer = giver->index;
    else
        sl_reader_report(reader, "E0321", from ? from->place : layer->place, giver ? "name an earlier layer" : NULL,
                         NULL,
                         giver == NULL    ? "there is no layer `%s` to take states from"
                         : giver == layer ? "`%s` cannot start from its own states"
                                          : "the layer `%s` does not come before this one",
                         state->from);
}

/* By default a decoder starts from the final states of the encoder: its recurrent layers take the states of the
 * encoder's one by one, in order. Where a vector is repeated it is all that the decoder gets. */
static void match_states(struct sl_reader *reader, const struct sl_layer_list *list)
{
    size_t giver = 0;
    for (size_t i = list->encoder_count; i < list->count; i++)
        if (list->layers[i].kind == SL_LAYER_REPEAT)
            return;
    for (size_t i = list->encoder_count; i < list->count && list->encoder_count > 0; i++) {
        struct sl_layer *layer = &list->layers[i];
        if (!sl_layer_is_recurrent(layer))
            continue;
        while (giver < list->encoder_count && !sl_layer_is_recurrent(&list->layers[giver]))
            giver++;
        if (giver < list->encoder_count && layer->recurrent.initial_state.from == NULL &&
            list->layers[giver].name != NULL) {
            struct sl_node *node = sl_reader_set_default(reader, list->nodes[i], "initial_state", "{}");
            if (node != NULL) {
                sl_reader_set_default(reader, node, "from", list->layers[giver].name);
                sl_reader_set_default(reader, node, "bridge", "copy");
            }
            layer->recurrent.initial_state =
                (struct sl_initial_state){list->layers[giver].name, SL_BRIDGE_COPY, (int)giver};
        }
        giver++;
    }
}

void sl_model_resolve_names(struct sl_reader *reader, const struct sl_layer_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        name_layer(reader, list->nodes[i], list->layers, list->count, i);
    check_unique_names(reader, list);
    for (size_t i = 0; i < list->count; i++) {
        resolve_from(reader, list, i);
        resolve_tie(reader, list->nodes[i], list->layers, list->count, &list->layers[i]);
        resolve_share(reader, list->nodes[i], list->layers, list->count, &list->layers[i]);
        resolve_state(reader, list, &list->layers[i]);
    }
    match_states(reader, list);
}

const struct sl_layer *sl_model_find_embedding(struct sl_reader *reader, const struct sl_node *node,
                                               const struct sl_layer_list *list)
{
    if (node == NULL || node->kind != SL_NODE_SCALAR)
        return NULL;
    const struct sl_layer *layer = find_named(list->layers, list->encoder_count, node->text);
    if (layer == NULL)
        sl_reader_report(reader, "E0305", node->place, NULL, NULL, "the encoder has no layer `%.60s` to write",
                         node->text);
    else if (layer->output_shape == SL_SHAPE_SEQUENCE)
        sl_reader_report(reader, "E0305", node->place,
                         sl_layer_is_recurrent(layer) ? "remove `return_sequences`, or add a `pool` after it"
                                                      : "add a `pool` after it",
                         NULL, "`embedding` must name a layer that gives one vector, but `%s` gives one for each step",
                         layer->name);
    return layer;
}
