/* SPDX-License-Identifier: Apache-2.0 */
/* Values that several layers have: activations, initializers, regularizers. */
#include <string.h>

#include "model/read/reader.h"
#include "model/read/sections.h"

#define A(kind) (1u << SL_ACTIVATION_##kind)
#define I(kind) (1u << SL_INITIALIZER_##kind)

const struct sl_word sl_words_activation[] = {
    WORD("linear", SL_ACTIVATION_LINEAR, "x"),
    WORD("tanh", SL_ACTIVATION_TANH, "hyperbolic tangent"),
    WORD("sigmoid", SL_ACTIVATION_SIGMOID, "1 / (1 + exp(-x))"),
    WORD("relu", SL_ACTIVATION_RELU, "max(x, 0)"),
    WORD("leaky_relu", SL_ACTIVATION_LEAKY_RELU, "x < 0: alpha x, else x"),
    WORD("thresholded_relu", SL_ACTIVATION_THRESHOLDED_RELU, "x > alpha: x, else 0"),
    WORD("scaled_tanh", SL_ACTIVATION_SCALED_TANH, "alpha tanh(beta x)"),
    WORD("hard_sigmoid", SL_ACTIVATION_HARD_SIGMOID, "alpha x + beta, limited to 0..1"),
    WORD("elu", SL_ACTIVATION_ELU, "x < 0: alpha (exp(x) - 1), else x"),
    WORD("softsign", SL_ACTIVATION_SOFTSIGN, "x / (1 + |x|)"),
    WORD("softplus", SL_ACTIVATION_SOFTPLUS, "log(1 + exp(x))"),
    WORD("affine", SL_ACTIVATION_AFFINE, "alpha x + beta"),
    WORD("softmax", SL_ACTIVATION_SOFTMAX, "normalised over the features; not available inside recurrent layers"),
    WORD_END,
};

static const struct sl_option activation_options[] = {
    OPTION(FLOAT, "alpha", offsetof(struct sl_activation, alpha), .variants = A(LEAKY_RELU), .default_text = "0.01",
           .doc = "slope below 0"),
    OPTION(FLOAT, "alpha", offsetof(struct sl_activation, alpha), .variants = A(THRESHOLDED_RELU), .default_text = "1",
           .doc = "the threshold"),
    OPTION(FLOAT, "alpha", offsetof(struct sl_activation, alpha), .variants = A(SCALED_TANH), .default_text = "1",
           .doc = "scale of the output"),
    OPTION(FLOAT, "alpha", offsetof(struct sl_activation, alpha), .variants = A(HARD_SIGMOID), .default_text = "0.2",
           .doc = "slope"),
    OPTION(FLOAT, "alpha", offsetof(struct sl_activation, alpha), .variants = A(ELU), .default_text = "1",
           .doc = "the output approaches -alpha for large negative x"),
    OPTION(FLOAT, "alpha", offsetof(struct sl_activation, alpha), .variants = A(AFFINE), .default_text = "1",
           .doc = "slope"),
    OPTION(FLOAT, "beta", offsetof(struct sl_activation, beta), .variants = A(SCALED_TANH), .default_text = "1",
           .doc = "scale of the input"),
    OPTION(FLOAT, "beta", offsetof(struct sl_activation, beta), .variants = A(HARD_SIGMOID), .default_text = "0.5",
           .doc = "offset"),
    OPTION(FLOAT, "beta", offsetof(struct sl_activation, beta), .variants = A(AFFINE), .default_text = "0",
           .doc = "offset"),
    OPTION_END,
};

const struct sl_section sl_section_activation = {
    .path = "activation",
    .noun = "the activation",
    .variants = sl_words_activation,
    .variant_offset = offsetof(struct sl_activation, kind),
    .options = activation_options,
    .doc = "the activations of ONNX, with its alpha and beta; a bare word or a map",
};

static const struct sl_word initializer_words[] = {
    WORD("zeros", SL_INITIALIZER_ZEROS, "0"),
    WORD("ones", SL_INITIALIZER_ONES, "1"),
    WORD("constant", SL_INITIALIZER_CONSTANT, "`value`"),
    WORD("uniform", SL_INITIALIZER_UNIFORM, "uniform between -range and range"),
    WORD("normal", SL_INITIALIZER_NORMAL, "normal with `mean` and `stddev`"),
    WORD("truncated_normal", SL_INITIALIZER_TRUNCATED_NORMAL,
         "normal; values more than two `stddev` from the mean are drawn again"),
    WORD("glorot_uniform", SL_INITIALIZER_GLOROT_UNIFORM, "uniform within ±sqrt(6 / (in + out))"),
    WORD("glorot_normal", SL_INITIALIZER_GLOROT_NORMAL, "truncated normal, stddev sqrt(2 / (in + out))"),
    WORD("he_uniform", SL_INITIALIZER_HE_UNIFORM, "uniform within ±sqrt(6 / in)"),
    WORD("he_normal", SL_INITIALIZER_HE_NORMAL, "truncated normal, stddev sqrt(2 / in)"),
    WORD("lecun_uniform", SL_INITIALIZER_LECUN_UNIFORM, "uniform within ±sqrt(3 / in)"),
    WORD("lecun_normal", SL_INITIALIZER_LECUN_NORMAL, "truncated normal, stddev sqrt(1 / in)"),
    WORD("orthogonal", SL_INITIALIZER_ORTHOGONAL, "`gain` times an orthonormal matrix"),
    WORD("fan_uniform", SL_INITIALIZER_FAN_UNIFORM,
         "PyTorch's default: uniform within ±1 / sqrt(n); n is the number of units in a recurrent layer, otherwise the "
         "input width"),
    WORD_END,
};

/* `range: r` is from -r to r. */
static void read_range(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option number = {
        .key = "range", .kind = SL_VALUE_FLOAT, .flags = SL_OPTION_ABOVE, .max = SL_NO_LIMIT};
    struct sl_initializer *initializer = field;
    (void)option;
    sl_reader_read_value(reader, &number, node, &initializer->max);
    initializer->min = -initializer->max;
}

static const struct sl_custom range_custom = {read_range, "number above 0",
                                              "{\"type\": \"number\", \"exclusiveMinimum\": 0}"};

static const struct sl_option initializer_options[] = {
    OPTION(FLOAT, "value", offsetof(struct sl_initializer, value), .variants = I(CONSTANT), .flags = SL_OPTION_REQUIRED,
           .doc = "value of every element"),
    OPTION(CUSTOM, "range", SL_NO_FIELD, .variants = I(UNIFORM), .default_text = "0.05", .custom = &range_custom,
           .doc = "largest magnitude"),
    OPTION(FLOAT, "mean", offsetof(struct sl_initializer, mean), .variants = I(NORMAL) | I(TRUNCATED_NORMAL),
           .default_text = "0", .doc = "mean"),
    OPTION(FLOAT, "stddev", offsetof(struct sl_initializer, stddev), .variants = I(NORMAL) | I(TRUNCATED_NORMAL),
           .flags = SL_OPTION_ABOVE, .default_text = "0.05", .min = 0, .max = SL_NO_LIMIT, .doc = "standard deviation"),
    OPTION(FLOAT, "gain", offsetof(struct sl_initializer, gain), .variants = I(ORTHOGONAL), .flags = SL_OPTION_ABOVE,
           .default_text = "1", .min = 0, .max = SL_NO_LIMIT, .doc = "factor"),
    OPTION_END,
};

const struct sl_section sl_section_initializer = {
    .path = "initializer",
    .noun = "the initializer",
    .variants = initializer_words,
    .variant_offset = offsetof(struct sl_initializer, kind),
    .options = initializer_options,
    .doc = "how the first values of a parameter are made; they follow from `seed` and are the same with every backend",
};

static const struct sl_option regularizer_options[] = {
    OPTION(FLOAT, "l1", offsetof(struct sl_regularizer, l1), .default_text = "0", .min = 0, .max = SL_NO_LIMIT,
           .doc = "adds l1 times the sum of the magnitudes to the loss"),
    OPTION(FLOAT, "l2", offsetof(struct sl_regularizer, l2), .default_text = "0", .min = 0, .max = SL_NO_LIMIT,
           .doc = "adds l2 times the sum of the squares to the loss"),
    OPTION_END,
};

const struct sl_section sl_section_regularizer = {
    .path = "regularizer",
    .noun = "the regularizer",
    .options = regularizer_options,
    .doc = "a penalty on a parameter: `{l1: …, l2: …}`",
};

static const struct sl_option zoneout_options[] = {
    OPTION(FLOAT, "cell", offsetof(struct sl_recurrent, zoneout_cell), .flags = SL_OPTION_BELOW | SL_OPTION_MASK,
           .default_text = "0", .min = 0, .max = 1, .doc = "probability that an element of c keeps its old value"),
    OPTION(FLOAT, "hidden", offsetof(struct sl_recurrent, zoneout_hidden), .flags = SL_OPTION_BELOW | SL_OPTION_MASK,
           .default_text = "0", .min = 0, .max = 1, .doc = "probability that an element of h keeps its old value"),
    OPTION_END,
};

const struct sl_section sl_section_zoneout = {
    .path = "zoneout",
    .noun = "the zoneout",
    .options = zoneout_options,
    .doc = "for lstm layers: `{cell: 0.15, hidden: 0.05}`",
};

static const struct sl_option activation_option = {
    .key = "activation", .kind = SL_VALUE_SECTION, .section = &sl_section_activation};

static void read_one(struct sl_reader *reader, struct sl_node *node, struct sl_activation *out)
{
    sl_reader_read_value(reader, &activation_option, node, out);
    if (out->kind == SL_ACTIVATION_SOFTMAX)
        sl_reader_report(reader, "E0102", node->place, NULL, NULL,
                         "softmax is for dense, output and activation layers, not for a cell");
}

/* One activation for both directions, or `{forward: …, backward: …}`. */
static void read_activation_pair(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node,
                                 void *field)
{
    static const char *const sides[] = {"forward", "backward"};
    struct sl_activation *pair = field;
    if (sl_node_find(node, "forward") == NULL && sl_node_find(node, "backward") == NULL) {
        read_one(reader, node, &pair[SL_FORWARD]);
        pair[SL_BACKWARD] = pair[SL_FORWARD];
        return;
    }
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->pairs[i].key, "forward") != 0 && strcmp(node->pairs[i].key, "backward") != 0)
            sl_reader_report(reader, "E0203", node->pairs[i].place, NULL, NULL,
                             "unknown key `%.60s` beside `forward` and `backward`", node->pairs[i].key);
    for (int side = 0; side < 2; side++) {
        struct sl_node *value = sl_node_find(node, sides[side]);
        if (value == NULL)
            sl_reader_report(reader, "E0204", node->place,
                             option->default_text ? sl_reader_printf(reader, "the default is `%s: %s`", sides[side],
                                                                     option->default_text)
                                                  : NULL,
                             NULL, "`%s` gives one direction, but not `%s`", option->key, sides[side]);
        else
            read_one(reader, value, &pair[side]);
    }
}

const struct sl_custom sl_custom_activation_pair = {
    read_activation_pair, "activation, or `{forward: …, backward: …}`",
    "{\"anyOf\": [{\"$ref\": \"#/$defs/activation\"}, {\"type\": \"object\", \"required\": "
    "[\"forward\", \"backward\"], \"additionalProperties\": false, \"properties\": {\"forward\": "
    "{\"$ref\": \"#/$defs/activation\"}, \"backward\": {\"$ref\": \"#/$defs/activation\"}}}]}"};

static const struct sl_option activation_pair_options[] = {
    OPTION(SECTION, "forward", SL_NO_FIELD, .section = &sl_section_activation, .doc = ""),
    OPTION(SECTION, "backward", SL_NO_FIELD, .section = &sl_section_activation, .doc = ""),
    OPTION_END,
};
static const struct sl_form activation_pair_forms[] = {
    {"forward", {"type", "alpha", "beta"}, "backward"},
    {"backward", {"type", "alpha", "beta"}, "forward"},
    {"type", {"forward", "backward"}, NULL},
    {.key = NULL},
};

const struct sl_section sl_section_activation_pair = {
    .path = "activation",
    .noun = "the activation",
    .variants = sl_words_activation,
    .options = activation_pair_options,
    .forms = activation_pair_forms,
};

void sl_reader_drop_idle(struct sl_reader *reader, struct sl_node *map, const char *key, bool active, const char *needs)
{
    if (active || sl_node_find(map, key) == NULL)
        return;
    if (sl_reader_was_said(map, key) && !sl_reader_is_saved(reader, sl_reader_get_place(map, key)))
        sl_reader_report(reader, "E0205", sl_reader_get_place(map, key), NULL, NULL, "`%s` has no effect without %s",
                         key, needs);
    else
        sl_node_remove(map, key);
}
