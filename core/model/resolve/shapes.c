/* SPDX-License-Identifier: Apache-2.0 */
/* What flows between the layers: tokens, sequences or vectors, and their width as far as it is known
 * without data. Finds layers that cannot take what they get. */
#include <string.h>

#include "model/read/sections.h"

enum { UNKNOWN = -1 };

/* An edge; shape UNKNOWN: after an error; no further errors follow from it. */
struct edge {
    int shape;     /* enum sl_shape_kind or UNKNOWN */
    int64_t width; /* or UNKNOWN */
};

struct inference {
    struct sl_reader *reader;
    const struct sl_model *model;
    struct sl_layer *layers;
    struct edge *edges; /* what each layer yields */
    size_t count;
};

static int get_input_shape(const struct sl_data_config *data)
{
    const struct sl_source *train = &data->splits[SL_SPLIT_TRAIN];
    if (train->origin != SL_SOURCE_FILES)
        return UNKNOWN;
    if (data->pairs)
        return SL_SHAPE_TOKENS;
    switch (train->type) {
    case SL_SOURCE_TEXT:
    case SL_SOURCE_LINES:
    case SL_SOURCE_CONLL:
    case SL_SOURCE_TOKENS:
        return SL_SHAPE_TOKENS;
    case SL_SOURCE_NPY:
        return SL_SHAPE_FROM_DATA;
    case SL_SOURCE_GENERATOR:
        return train->generator == SL_GENERATOR_COPY || train->generator == SL_GENERATOR_REVERSE ? SL_SHAPE_TOKENS
                                                                                                 : SL_SHAPE_SEQUENCE;
    case SL_SOURCE_TSV:
    case SL_SOURCE_CSV:
        if (train->text != NULL)
            return SL_SHAPE_TOKENS;
        return train->group != NULL || train->window.length > 0 ? SL_SHAPE_SEQUENCE : SL_SHAPE_VECTOR;
    }
    return UNKNOWN;
}

static struct edge get_edge(const struct inference *in, int index)
{
    if (index == SL_LAYER_MODEL_INPUT)
        return (struct edge){get_input_shape(&in->model->data), UNKNOWN};
    return in->edges[index];
}

static const char *get_edge_name(const struct inference *in, int index)
{
    return index == SL_LAYER_MODEL_INPUT ? "the data" : in->layers[index].name;
}

/* The layer before it that could return a sequence; NULL: none. */
static const struct sl_layer *find_culprit(const struct inference *in, int index)
{
    while (index != SL_LAYER_MODEL_INPUT) {
        const struct sl_layer *layer = &in->layers[index];
        if (sl_layer_is_recurrent(layer) && !layer->recurrent.return_sequences)
            return layer;
        if (layer->kind == SL_LAYER_POOL || layer->from_count == 0)
            return NULL;
        index = layer->from[0];
    }
    return NULL;
}

static void report_needs_sequence(const struct inference *in, const struct sl_layer *layer)
{
    const struct sl_layer *culprit = find_culprit(in, layer->from[0]);
    const char *upstream = get_edge_name(in, layer->from[0]);
    if (layer->from[0] == SL_LAYER_MODEL_INPUT) {
        sl_reader_report(in->reader, "E0314", layer->place,
                         "make sequences with `group: column` or `window: {length: 12}`", NULL,
                         "%s needs a sequence, but the rows of the data are independent", layer->name);
        return;
    }
    const char *help =
        culprit ? sl_reader_printf(in->reader, "add `return_sequences: true` to %s (%s:%d:%d)", culprit->name,
                                   culprit->place.file, culprit->place.line, culprit->place.column)
                : NULL;
    sl_reader_report(in->reader, "E0314", layer->place, help, NULL,
                     "%s needs a sequence, but %s gives one vector per sequence", layer->name, upstream);
}

static int64_t get_recurrent_width(const struct sl_recurrent *r)
{
    int64_t one = r->projection > 0 ? r->projection : r->units;
    bool doubled = r->direction == SL_DIRECTION_BIDIRECTIONAL && r->merge == SL_MERGE_CONCAT;
    return one > 0 ? one * (1 + doubled) : UNKNOWN;
}

static struct edge infer_recurrent(const struct inference *in, const struct sl_layer *layer, struct edge input)
{
    if (input.shape == SL_SHAPE_VECTOR)
        report_needs_sequence(in, layer);
    return (struct edge){layer->recurrent.return_sequences ? SL_SHAPE_SEQUENCE : SL_SHAPE_VECTOR,
                         get_recurrent_width(&layer->recurrent)};
}

/* concat, add: all inputs must have the same kind. */
static struct edge infer_join(const struct inference *in, const struct sl_layer *layer)
{
    struct edge result = get_edge(in, layer->from[0]);
    bool concat = layer->kind == SL_LAYER_CONCAT;
    if (layer->from_count < 2 && sl_layer_has_option(layer, "from[1]"))
        return (struct edge){UNKNOWN, UNKNOWN}; /* unknown names were already reported */
    if (layer->from_count < 2) {
        sl_reader_report(in->reader, "E0304", layer->place, "as in `from: [lstm_1, lstm_2]`", NULL,
                         "%s joins two or more layers: name them in `from`", layer->name);
        return (struct edge){UNKNOWN, UNKNOWN};
    }
    for (size_t i = 1; i < layer->from_count; i++) {
        struct edge other = get_edge(in, layer->from[i]);
        bool known = result.shape >= 0 && other.shape >= 0 && result.shape != SL_SHAPE_FROM_DATA &&
                     other.shape != SL_SHAPE_FROM_DATA;
        if (known && other.shape != result.shape) {
            sl_reader_report(in->reader, "E0304", layer->place, NULL, NULL,
                             "%s cannot join a sequence and a vector (%s and %s)", layer->name,
                             get_edge_name(in, layer->from[0]), get_edge_name(in, layer->from[i]));
            return (struct edge){UNKNOWN, UNKNOWN};
        }
        if (result.shape == UNKNOWN || result.shape == SL_SHAPE_FROM_DATA)
            result.shape = other.shape;
        bool widths = result.width > 0 && other.width > 0;
        if (!concat && widths && result.width != other.width)
            sl_reader_report(in->reader, "E0315", layer->place, NULL, NULL,
                             "%s adds layers of different width: %s has %lld features, %s %lld", layer->name,
                             get_edge_name(in, layer->from[0]), (long long)result.width,
                             get_edge_name(in, layer->from[i]), (long long)other.width);
        if (concat)
            result.width = widths ? result.width + other.width : UNKNOWN;
    }
    return result;
}

/* Only embeddings read tokens, and they read nothing else. */
static bool check_tokens(const struct inference *in, const struct sl_layer *layer, struct edge input)
{
    bool embedding = layer->kind == SL_LAYER_EMBEDDING;
    if (input.shape == UNKNOWN || embedding == (input.shape == SL_SHAPE_TOKENS))
        return true;
    if (embedding)
        sl_reader_report(in->reader, "E0306", layer->place, NULL, NULL, "%s needs tokens, but %s gives numbers",
                         layer->name, get_edge_name(in, layer->from[0]));
    else
        sl_reader_report(in->reader, "E0307", layer->place, "begin with `- {type: embedding, dim: 128}`", NULL,
                         "%s cannot read tokens, but the data are words of a vocabulary", layer->name);
    return false;
}

/* repeat: its input has one row per sequence. */
static void check_repeat(const struct inference *in, const struct sl_layer *layer, struct edge input)
{
    const struct sl_layer *giver = &in->layers[layer->from[0]];
    if (input.shape != SL_SHAPE_SEQUENCE)
        return;
    sl_reader_report(
        in->reader, "E0314", layer->place,
        sl_layer_is_recurrent(giver)
            ? sl_reader_printf(in->reader, "remove `return_sequences` from %s, or add a `pool` after it", giver->name)
            : sl_reader_printf(in->reader, "add a `pool` after %s", giver->name),
        NULL, "%s repeats a vector, but %s gives one for each step of the source", layer->name, giver->name);
}

/* attention: steps of the decoder over those of the encoder's last layer. */
static struct edge infer_attention(const struct inference *in, const struct sl_layer *layer, struct edge query)
{
    int last = (int)in->model->encoder_count - 1;
    struct edge memory = last < 0 ? query : in->edges[last];
    bool products = layer->attention.score == SL_SCORE_DOT || layer->attention.score == SL_SCORE_SCALED;
    if (last < 0)
        return (struct edge){UNKNOWN, UNKNOWN};
    in->layers[last].output_used = true;
    if (query.shape == SL_SHAPE_VECTOR)
        report_needs_sequence(in, layer);
    if (memory.shape == SL_SHAPE_VECTOR)
        sl_reader_report(in->reader, "E0314", layer->place,
                         sl_layer_is_recurrent(&in->layers[last])
                             ? sl_reader_printf(in->reader, "add `return_sequences: true` to %s", in->layers[last].name)
                             : NULL,
                         NULL, "%s attends to the steps of the encoder, but %s gives one vector per sequence",
                         layer->name, in->layers[last].name);
    bool widths = query.width > 0 && memory.width > 0;
    if (widths && products && query.width != memory.width)
        sl_reader_report(in->reader, "E0315", layer->place, "use `score: general`, or make the widths equal", NULL,
                         "%s multiplies %lld feature%s of its query with %lld of %s", layer->name,
                         (long long)query.width, query.width == 1 ? "" : "s", (long long)memory.width,
                         in->layers[last].name);
    return (struct edge){SL_SHAPE_SEQUENCE, widths ? query.width + memory.width : UNKNOWN};
}

static void check_tie(const struct inference *in, const struct sl_layer *layer, struct edge input)
{
    if (layer->dense.tie_layer < 0)
        return;
    const struct sl_layer *embedding = &in->layers[layer->dense.tie_layer];
    if (input.width > 0 && embedding->embedding.dim > 0 && input.width != embedding->embedding.dim)
        sl_reader_report(in->reader, "E0305", sl_layer_find_option_place(layer, "tie"),
                         sl_reader_printf(in->reader, "put a dense layer of %lld unit%s before %s",
                                          (long long)embedding->embedding.dim, embedding->embedding.dim == 1 ? "" : "s",
                                          layer->name),
                         NULL, "%s gets %lld feature%s, but the vectors of %s have %lld", layer->name,
                         (long long)input.width, input.width == 1 ? "" : "s", embedding->name,
                         (long long)embedding->embedding.dim);
}

/* If a sequence has one row, `mask: sequence` has no effect. */
static void check_mask(const struct inference *in, const struct sl_layer *layer, struct edge input)
{
    if (layer->dropout.mask != SL_DROPOUT_MASK_SEQUENCE || input.shape != SL_SHAPE_VECTOR)
        return;
    sl_reader_report(in->reader, "E0205", sl_layer_find_option_place(layer, "mask"), NULL, NULL,
                     "`mask: sequence` has no effect: %s gives one vector per sequence",
                     get_edge_name(in, layer->from[0]));
}

static struct edge infer_layer(const struct inference *in, const struct sl_layer *layer)
{
    struct edge input = get_edge(in, layer->from[0]);
    if (!check_tokens(in, layer, input))
        input = (struct edge){UNKNOWN, UNKNOWN};
    if (layer->from_count > 1 && layer->kind != SL_LAYER_CONCAT && layer->kind != SL_LAYER_ADD)
        sl_reader_report(in->reader, "E0304", sl_layer_find_option_place(layer, "from"),
                         "join them in a `concat` or `add` layer first", NULL, "%s takes one layer, not %zu",
                         layer->name, layer->from_count);
    switch (layer->kind) {
    case SL_LAYER_EMBEDDING:
        return (struct edge){SL_SHAPE_SEQUENCE, layer->embedding.dim};
    case SL_LAYER_LSTM:
    case SL_LAYER_GRU:
    case SL_LAYER_RNN:
        return infer_recurrent(in, layer, input);
    case SL_LAYER_OUTPUT:
        check_tie(in, layer, input);
        return (struct edge){input.shape, UNKNOWN};
    case SL_LAYER_DENSE:
        return (struct edge){input.shape, layer->dense.units > 0 ? layer->dense.units : UNKNOWN};
    case SL_LAYER_CONCAT:
    case SL_LAYER_ADD:
        return infer_join(in, layer);
    case SL_LAYER_POOL:
        if (input.shape == SL_SHAPE_VECTOR)
            report_needs_sequence(in, layer);
        return (struct edge){SL_SHAPE_VECTOR, input.width};
    case SL_LAYER_ATTENTION:
        return infer_attention(in, layer, input);
    case SL_LAYER_REPEAT:
        check_repeat(in, layer, input);
        return (struct edge){SL_SHAPE_SEQUENCE, input.width};
    case SL_LAYER_DROPOUT:
        check_mask(in, layer, input);
        return input;
    default:
        return input;
    }
}

/* A layer is used if its output or its states are. */
static bool gives_states(const struct inference *in, size_t index)
{
    for (size_t i = index + 1; i < in->count; i++)
        if (sl_layer_is_recurrent(&in->layers[i]) && in->layers[i].recurrent.initial_state.layer == (int)index)
            return true;
    return false;
}

static void check_used(const struct inference *in)
{
    for (size_t i = 0; i + 1 < in->count; i++)
        if (!in->layers[i].output_used && in->layers[i].name != NULL && !gives_states(in, i))
            sl_reader_report(in->reader, "E0316", in->layers[i].place,
                             i + 1 == in->model->encoder_count
                                 ? "let the decoder use it: `initial_state` in a recurrent layer, or a `repeat`"
                                 : "name it in the `from` of a later layer, or remove it",
                             NULL, "nothing uses the output of %s", in->layers[i].name);
}

void sl_model_infer_shapes(struct sl_reader *reader, const struct sl_model *model, struct sl_layer *layers)
{
    struct inference in = {reader, model, layers, NULL, model->layer_count};
    in.edges = sl_reader_alloc(reader, in.count, sizeof *in.edges);
    if (in.edges == NULL)
        return;
    bool broken = false;
    for (size_t i = 0; i < in.count && !reader->no_memory; i++) {
        struct sl_layer *layer = &layers[i];
        if ((int)layer->kind < 0 || layer->from_count == 0 || layer->name == NULL) {
            in.edges[i] = (struct edge){UNKNOWN, UNKNOWN};
            broken = true;
        } else {
            in.edges[i] = infer_layer(&in, layer);
        }
        for (size_t j = 0; j < layer->from_count; j++)
            if (layer->from[j] >= 0)
                layers[layer->from[j]].output_used = true;
        layer->output_shape = in.edges[i].shape == UNKNOWN ? SL_SHAPE_FROM_DATA : (enum sl_shape_kind)in.edges[i].shape;
    }
    layers[in.count - 1].output_used = true;
    if (!broken)
        check_used(&in);
}
