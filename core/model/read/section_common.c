/* SPDX-License-Identifier: Apache-2.0 */
/* Values that several layers share: activations, initializers, regularizers. */
#include <string.h>

#include "model/read/reader.h"
#include "model/read/sections.h"

#define A(kind) (1u << SL_ACTIVATION_##kind)
#define I(kind) (1u << SL_INITIALIZER_##kind)

const struct sl_word sl_words_activation[] = {
    {"linear", SL_ACTIVATION_LINEAR, "x", false},
    {"tanh", SL_ACTIVATION_TANH, "hyperbolic tangent", false},
    {"sigmoid", SL_ACTIVATION_SIGMOID, "1 / (1 + exp(-x))", false},
    {"relu", SL_ACTIVATION_RELU, "max(x, 0)", false},
    {"leaky_relu", SL_ACTIVATION_LEAKY_RELU, "x < 0: alpha x, else x", false},
    {"thresholded_relu", SL_ACTIVATION_THRESHOLDED_RELU, "x > alpha: x, else 0", false},
    {"scaled_tanh", SL_ACTIVATION_SCALED_TANH, "alpha tanh(beta x)", false},
    {"hard_sigmoid", SL_ACTIVATION_HARD_SIGMOID, "alpha x + beta, limited to 0..1", false},
    {"elu", SL_ACTIVATION_ELU, "x < 0: alpha (exp(x) - 1), else x", false},
    {"softsign", SL_ACTIVATION_SOFTSIGN, "x / (1 + |x|)", false},
    {"softplus", SL_ACTIVATION_SOFTPLUS, "log(1 + exp(x))", false},
    {"affine", SL_ACTIVATION_AFFINE, "alpha x + beta", false},
    {"softmax", SL_ACTIVATION_SOFTMAX, "normalised over the features; not available inside recurrent layers", false},
    {NULL, 0, NULL, false}};

static const struct sl_option activation_options[] = {
    {"alpha",
     SL_VALUE_FLOAT,
     offsetof(struct sl_activation, alpha),
     A(LEAKY_RELU),
     0,
     "0.01",
     0,
     0,
     {NULL},
     "slope below 0"},
    {"alpha",
     SL_VALUE_FLOAT,
     offsetof(struct sl_activation, alpha),
     A(THRESHOLDED_RELU),
     0,
     "1",
     0,
     0,
     {NULL},
     "the threshold"},
    {"alpha",
     SL_VALUE_FLOAT,
     offsetof(struct sl_activation, alpha),
     A(SCALED_TANH),
     0,
     "1",
     0,
     0,
     {NULL},
     "scale of the output"},
    {"alpha", SL_VALUE_FLOAT, offsetof(struct sl_activation, alpha), A(HARD_SIGMOID), 0, "0.2", 0, 0, {NULL}, "slope"},
    {"alpha",
     SL_VALUE_FLOAT,
     offsetof(struct sl_activation, alpha),
     A(ELU),
     0,
     "1",
     0,
     0,
     {NULL},
     "the output approaches -alpha for large negative x"},
    {"alpha", SL_VALUE_FLOAT, offsetof(struct sl_activation, alpha), A(AFFINE), 0, "1", 0, 0, {NULL}, "slope"},
    {"beta",
     SL_VALUE_FLOAT,
     offsetof(struct sl_activation, beta),
     A(SCALED_TANH),
     0,
     "1",
     0,
     0,
     {NULL},
     "scale of the input"},
    {"beta", SL_VALUE_FLOAT, offsetof(struct sl_activation, beta), A(HARD_SIGMOID), 0, "0.5", 0, 0, {NULL}, "offset"},
    {"beta", SL_VALUE_FLOAT, offsetof(struct sl_activation, beta), A(AFFINE), 0, "0", 0, 0, {NULL}, "offset"},
    {0}};

const struct sl_section sl_section_activation = {
    "activation",
    "the activation",
    sl_words_activation,
    offsetof(struct sl_activation, kind),
    NULL,
    NULL,
    activation_options,
    "the activations of ONNX, with its alpha and beta; a bare word or a map"};

static const struct sl_word initializer_words[] = {
    {"zeros", SL_INITIALIZER_ZEROS, "0", false},
    {"ones", SL_INITIALIZER_ONES, "1", false},
    {"constant", SL_INITIALIZER_CONSTANT, "`value`", false},
    {"uniform", SL_INITIALIZER_UNIFORM, "uniform between -range and range", false},
    {"normal", SL_INITIALIZER_NORMAL, "normal with `mean` and `stddev`", false},
    {"truncated_normal", SL_INITIALIZER_TRUNCATED_NORMAL,
     "normal; values more than two `stddev` from the mean are drawn again", false},
    {"glorot_uniform", SL_INITIALIZER_GLOROT_UNIFORM, "uniform within ±sqrt(6 / (in + out))", false},
    {"glorot_normal", SL_INITIALIZER_GLOROT_NORMAL, "truncated normal, stddev sqrt(2 / (in + out))", false},
    {"he_uniform", SL_INITIALIZER_HE_UNIFORM, "uniform within ±sqrt(6 / in)", false},
    {"he_normal", SL_INITIALIZER_HE_NORMAL, "truncated normal, stddev sqrt(2 / in)", false},
    {"lecun_uniform", SL_INITIALIZER_LECUN_UNIFORM, "uniform within ±sqrt(3 / in)", false},
    {"lecun_normal", SL_INITIALIZER_LECUN_NORMAL, "truncated normal, stddev sqrt(1 / in)", false},
    {"orthogonal", SL_INITIALIZER_ORTHOGONAL, "`gain` times an orthonormal matrix", false},
    {"fan_uniform", SL_INITIALIZER_FAN_UNIFORM,
     "PyTorch's default: uniform within ±1 / sqrt(n); n is the number of units in a recurrent layer, otherwise the "
     "input width",
     false},
    {NULL, 0, NULL, false}};

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
    {"value",
     SL_VALUE_FLOAT,
     offsetof(struct sl_initializer, value),
     I(CONSTANT),
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {NULL},
     "value of every element"},
    {"range", SL_VALUE_CUSTOM, 0, I(UNIFORM), 0, "0.05", 0, 0, {.custom = &range_custom}, "largest magnitude"},
    {"mean",
     SL_VALUE_FLOAT,
     offsetof(struct sl_initializer, mean),
     I(NORMAL) | I(TRUNCATED_NORMAL),
     0,
     "0",
     0,
     0,
     {NULL},
     "mean"},
    {"stddev",
     SL_VALUE_FLOAT,
     offsetof(struct sl_initializer, stddev),
     I(NORMAL) | I(TRUNCATED_NORMAL),
     SL_OPTION_ABOVE,
     "0.05",
     0,
     SL_NO_LIMIT,
     {NULL},
     "standard deviation"},
    {"gain",
     SL_VALUE_FLOAT,
     offsetof(struct sl_initializer, gain),
     I(ORTHOGONAL),
     SL_OPTION_ABOVE,
     "1",
     0,
     SL_NO_LIMIT,
     {NULL},
     "factor"},
    {0}};

const struct sl_section sl_section_initializer = {
    "initializer",
    "the initializer",
    initializer_words,
    offsetof(struct sl_initializer, kind),
    NULL,
    NULL,
    initializer_options,
    "how the first values of a parameter are made; they follow from `seed` and are the same with every backend"};

static const struct sl_option regularizer_options[] = {{"l1",
                                                        SL_VALUE_FLOAT,
                                                        offsetof(struct sl_regularizer, l1),
                                                        0,
                                                        0,
                                                        "0",
                                                        0,
                                                        SL_NO_LIMIT,
                                                        {NULL},
                                                        "adds l1 times the sum of the magnitudes to the loss"},
                                                       {"l2",
                                                        SL_VALUE_FLOAT,
                                                        offsetof(struct sl_regularizer, l2),
                                                        0,
                                                        0,
                                                        "0",
                                                        0,
                                                        SL_NO_LIMIT,
                                                        {NULL},
                                                        "adds l2 times the sum of the squares to the loss"},
                                                       {0}};

const struct sl_section sl_section_regularizer = {"regularizer",
                                                  "the regularizer",
                                                  NULL,
                                                  0,
                                                  NULL,
                                                  NULL,
                                                  regularizer_options,
                                                  "a penalty on a parameter: `{l1: …, l2: …}`"};

static const struct sl_option zoneout_options[] = {{"cell",
                                                    SL_VALUE_FLOAT,
                                                    offsetof(struct sl_recurrent, zoneout_cell),
                                                    0,
                                                    SL_OPTION_BELOW | SL_OPTION_MASK,
                                                    "0",
                                                    0,
                                                    1,
                                                    {NULL},
                                                    "probability that an element of c keeps its old value"},
                                                   {"hidden",
                                                    SL_VALUE_FLOAT,
                                                    offsetof(struct sl_recurrent, zoneout_hidden),
                                                    0,
                                                    SL_OPTION_BELOW | SL_OPTION_MASK,
                                                    "0",
                                                    0,
                                                    1,
                                                    {NULL},
                                                    "probability that an element of h keeps its old value"},
                                                   {0}};

const struct sl_section sl_section_zoneout = {
    "zoneout", "the zoneout", NULL, 0, NULL, NULL, zoneout_options, "for lstm layers: `{cell: 0.15, hidden: 0.05}`"};

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
            sl_reader_report(reader, "E0204", node->place, NULL, NULL, "`%s` says one direction and not `%s`",
                             option->key, sides[side]);
        else
            read_one(reader, value, &pair[side]);
    }
}

const struct sl_custom sl_custom_activation_pair = {
    read_activation_pair, "activation, or `{forward: …, backward: …}`",
    "{\"anyOf\": [{\"$ref\": \"#/$defs/activation\"}, {\"type\": \"object\", \"required\": "
    "[\"forward\", \"backward\"], \"additionalProperties\": false, \"properties\": {\"forward\": "
    "{\"$ref\": \"#/$defs/activation\"}, \"backward\": {\"$ref\": \"#/$defs/activation\"}}}]}"};

void sl_reader_drop_idle(struct sl_reader *reader, struct sl_node *map, const char *key, bool active, const char *needs)
{
    if (active || sl_node_find(map, key) == NULL)
        return;
    if (sl_reader_was_said(map, key))
        sl_reader_report(reader, "E0205", sl_reader_get_place(map, key), NULL, NULL, "`%s` has no effect without %s",
                         key, needs);
    else
        sl_node_remove(map, key);
}
