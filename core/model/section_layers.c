/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the layers and all their options. */
#include <string.h>

#include "model/sections.h"

#define K(kind)    (1u << SL_LAYER_##kind)
#define RECURRENT  (K(LSTM) | K(GRU) | K(RNN))
#define GATED      (K(LSTM) | K(GRU))
#define DENSE      (K(DENSE) | K(OUTPUT))
#define AT(member) offsetof(struct sl_layer, member)
#define INITIALIZER                                                                                                    \
    {                                                                                                                  \
        .section = &sl_section_initializer                                                                             \
    }
#define REGULARIZER                                                                                                    \
    {                                                                                                                  \
        .section = &sl_section_regularizer                                                                             \
    }
/* clang-format off */
#define NONE {NULL}
/* clang-format on */

static const struct sl_word kind_words[] = {
    {"embedding", SL_LAYER_EMBEDDING, "a vector for each token", false},
    {"lstm", SL_LAYER_LSTM, "long short-term memory", false},
    {"gru", SL_LAYER_GRU, "gated recurrent unit", false},
    {"rnn", SL_LAYER_RNN, "simple recurrent layer (Keras: SimpleRNN)", false},
    {"dense", SL_LAYER_DENSE, "fully connected, on each step or vector", false},
    {"output", SL_LAYER_OUTPUT, "dense onto the width of the target", false},
    {"activation", SL_LAYER_ACTIVATION, "a function of each element", false},
    {"dropout", SL_LAYER_DROPOUT, "zeroes elements in training", false},
    {"layer_norm", SL_LAYER_LAYER_NORM, "normalises each row", false},
    {"concat", SL_LAYER_CONCAT, "features of several layers side by side", false},
    {"add", SL_LAYER_ADD, "sum of several layers", false},
    {"pool", SL_LAYER_POOL, "a sequence becomes one vector", false},
    {"attention", SL_LAYER_ATTENTION, "of a decoder over the steps of its encoder", false},
    {"repeat", SL_LAYER_REPEAT, "a vector of the encoder for each step of the decoder", false},
    {NULL, 0, NULL, false}};

static const struct sl_word direction_words[] = {
    {"forward", SL_DIRECTION_FORWARD, "from the first step to the last", false},
    {"backward", SL_DIRECTION_BACKWARD, "from the last step to the first", false},
    {"bidirectional", SL_DIRECTION_BIDIRECTIONAL, "both, joined by `merge`", false},
    {NULL, 0, NULL, false}};

static const struct sl_word merge_words[] = {{"concat", SL_MERGE_CONCAT, "side by side: twice the width", false},
                                             {"sum", SL_MERGE_SUM, "added", false},
                                             {"mul", SL_MERGE_MUL, "multiplied", false},
                                             {"ave", SL_MERGE_AVE, "averaged", false},
                                             {NULL, 0, NULL, false}};

static const struct sl_word mask_words[] = {
    {"step", SL_DROPOUT_MASK_STEP, "a new mask at each step", false},
    {"sequence", SL_DROPOUT_MASK_SEQUENCE, "one mask for the whole sequence", false},
    {NULL, 0, NULL, false}};

static const struct sl_word pool_words[] = {
    {"mean", SL_POOL_MEAN, "mean of the steps", false}, {"max", SL_POOL_MAX, "largest of the steps", false},
    {"sum", SL_POOL_SUM, "sum of the steps", false},    {"first", SL_POOL_FIRST, "the first step", false},
    {"last", SL_POOL_LAST, "the last step", false},     {NULL, 0, NULL, false}};

static const struct sl_word score_words[] = {
    {"dot", SL_SCORE_DOT, "the product of query and key", false},
    {"general", SL_SCORE_GENERAL, "that of a learned image of the query and the key", false},
    {"scaled", SL_SCORE_SCALED, "`dot` over the root of the width", false},
    {"additive", SL_SCORE_ADDITIVE, "a small network of query and key (Bahdanau)", false},
    {NULL, 0, NULL, false}};

/* `units` of a dense layer: an integer, or the width of the target. */
static void read_units(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option number = {.key = "units", .kind = SL_VALUE_INT, .min = 1, .max = INT32_MAX};
    (void)option;
    if (node->kind == SL_NODE_SCALAR && strcmp(node->text, "from_target") == 0)
        *(int64_t *)field = SL_UNITS_FROM_TARGET;
    else
        sl_reader_read_value(reader, &number, node, field);
}

/* Names of layers: looked up once all layers are known (model_layers.c). */
static void read_from(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    (void)field;
    bool fine = node->kind != SL_NODE_MAP && (node->kind == SL_NODE_SCALAR || node->count > 0);
    for (size_t i = 0; i < node->count && fine; i++)
        fine = node->kind == SL_NODE_LIST && node->items[i]->kind == SL_NODE_SCALAR;
    if (!fine)
        sl_reader_report_type(reader, option, node, "the name of a layer, or a list of names");
}

static const struct sl_custom units_custom = {
    read_units, "integer, or `from_target`",
    "{\"anyOf\": [{\"type\": \"integer\", \"minimum\": 1}, {\"const\": \"from_target\"}]}"};
static const struct sl_custom from_custom = {
    read_from, "name, or list of names",
    "{\"anyOf\": [{\"type\": \"string\"}, {\"type\": \"array\", \"items\": {\"type\": \"string\"}, "
    "\"minItems\": 1}]}"};

static const struct sl_option layer_options[] = {
    {"name", SL_VALUE_NAME, AT(name), 0, 0, NULL, 0, 0, NONE,
     "name of the layer, unique; default: the type and a number, `lstm_1`"},
    {"from",
     SL_VALUE_CUSTOM,
     0,
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &from_custom},
     "the layers whose outputs it takes, or `input`; default: the layer before it"},
    {"trainable", SL_VALUE_BOOL, AT(trainable), 0, 0, "true", 0, 0, NONE, "false: its parameters stay as they are"},

    {"units", SL_VALUE_INT, AT(recurrent.units), RECURRENT, SL_OPTION_REQUIRED, NULL, 1, INT32_MAX, NONE,
     "hidden width H"},
    {"layers", SL_VALUE_INT, AT(recurrent.layers), RECURRENT, 0, "1", 1, 1000, NONE,
     "so many of them on top of each other; the lower ones return sequences"},
    {"direction",
     SL_VALUE_WORD,
     AT(recurrent.direction),
     RECURRENT,
     0,
     "forward",
     0,
     0,
     {.words = direction_words},
     "the order in which the steps are read"},
    {"merge",
     SL_VALUE_WORD,
     AT(recurrent.merge),
     RECURRENT,
     0,
     "concat",
     0,
     0,
     {.words = merge_words},
     "how the two directions are joined"},
    {"activation",
     SL_VALUE_CUSTOM,
     AT(recurrent.activation),
     RECURRENT,
     0,
     "tanh",
     0,
     0,
     {.custom = &sl_custom_activation_pair},
     "of the candidate"},
    {"recurrent_activation",
     SL_VALUE_CUSTOM,
     AT(recurrent.recurrent_activation),
     GATED,
     0,
     "sigmoid",
     0,
     0,
     {.custom = &sl_custom_activation_pair},
     "of the gates"},
    {"output_activation",
     SL_VALUE_CUSTOM,
     AT(recurrent.output_activation),
     K(LSTM),
     0,
     NULL,
     0,
     0,
     {.custom = &sl_custom_activation_pair},
     "of the cell state before the output gate; default: `activation`"},
    {"use_bias", SL_VALUE_BOOL, AT(recurrent.use_bias), RECURRENT, 0, "true", 0, 0, NONE, "whether there are biases"},
    {"unit_forget_bias", SL_VALUE_BOOL, AT(recurrent.unit_forget_bias), K(LSTM), 0, "true", 0, 0, NONE,
     "adds 1 to the first forget bias; default false with an `init` other than keras"},
    {"reset_after", SL_VALUE_BOOL, AT(recurrent.reset_after), K(GRU), 0, "true", 0, 0, NONE,
     "the reset gate acts behind the recurrent product (Keras, cuDNN), else before it"},
    {"kernel_initializer", SL_VALUE_SECTION, AT(recurrent.kernel_initializer), RECURRENT, 0, "glorot_uniform", 0, 0,
     INITIALIZER, "of the input weights"},
    {"recurrent_initializer", SL_VALUE_SECTION, AT(recurrent.recurrent_initializer), RECURRENT, 0, "orthogonal", 0, 0,
     INITIALIZER, "of the recurrent weights"},
    {"bias_initializer", SL_VALUE_SECTION, AT(recurrent.bias_initializer), RECURRENT, 0, "zeros", 0, 0, INITIALIZER,
     "of the biases"},
    {"projection_initializer", SL_VALUE_SECTION, AT(recurrent.projection_initializer), K(LSTM), 0, "glorot_uniform", 0,
     0, INITIALIZER, "of the projection"},
    {"peephole_initializer", SL_VALUE_SECTION, AT(recurrent.peephole_initializer), K(LSTM), 0, "zeros", 0, 0,
     INITIALIZER, "of the peepholes"},
    {"kernel_regularizer", SL_VALUE_SECTION, AT(recurrent.kernel_regularizer), RECURRENT, 0, NULL, 0, 0, REGULARIZER,
     "of the input weights"},
    {"recurrent_regularizer", SL_VALUE_SECTION, AT(recurrent.recurrent_regularizer), RECURRENT, 0, NULL, 0, 0,
     REGULARIZER, "of the recurrent weights"},
    {"bias_regularizer", SL_VALUE_SECTION, AT(recurrent.bias_regularizer), RECURRENT, 0, NULL, 0, 0, REGULARIZER,
     "of the biases"},
    {"dropout", SL_VALUE_FLOAT, AT(recurrent.dropout), RECURRENT, SL_OPTION_BELOW | SL_OPTION_MASK, "0", 0, 1, NONE,
     "of the input, one mask per sequence"},
    {"recurrent_dropout", SL_VALUE_FLOAT, AT(recurrent.recurrent_dropout), RECURRENT, SL_OPTION_BELOW | SL_OPTION_MASK,
     "0", 0, 1, NONE, "of the hidden state, one mask per sequence, shared by the gates"},
    {"zoneout",
     SL_VALUE_SECTION,
     AT(recurrent),
     K(LSTM),
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_zoneout},
     "keeps old values of the states at random"},
    {"weight_drop", SL_VALUE_FLOAT, AT(recurrent.weight_drop), RECURRENT, SL_OPTION_BELOW | SL_OPTION_MASK, "0", 0, 1,
     NONE, "zeroes recurrent weights at random, anew for each update"},
    {"peephole", SL_VALUE_BOOL, AT(recurrent.peephole), K(LSTM), 0, "false", 0, 0, NONE,
     "the gates see the cell state"},
    {"projection", SL_VALUE_INT, AT(recurrent.projection), K(LSTM), 0, NULL, 1, INT32_MAX, NONE,
     "width P that the hidden state is projected to"},
    {"cell_clip", SL_VALUE_FLOAT, AT(recurrent.cell_clip), K(LSTM), SL_OPTION_ABOVE, NULL, 0, SL_NO_LIMIT, NONE,
     "limits the cell state to this magnitude"},
    {"gate_clip", SL_VALUE_FLOAT, AT(recurrent.gate_clip), RECURRENT, SL_OPTION_ABOVE, NULL, 0, SL_NO_LIMIT, NONE,
     "limits the pre-activations of gates and candidate to this magnitude (ONNX: clip)"},
    {"coupled_gates", SL_VALUE_BOOL, AT(recurrent.coupled_gates), K(LSTM), 0, "false", 0, 0, NONE,
     "the forget gate is 1 minus the input gate (ONNX: input_forget)"},
    {"layer_norm", SL_VALUE_BOOL, AT(recurrent.layer_norm), RECURRENT, 0, "false", 0, 0, NONE,
     "layer normalisation inside the cell"},
    {"layer_norm_epsilon", SL_VALUE_FLOAT, AT(recurrent.layer_norm_epsilon), RECURRENT, SL_OPTION_ABOVE, "1e-3", 0, 1,
     NONE, "added to the variance there"},
    {"return_sequences", SL_VALUE_BOOL, AT(recurrent.return_sequences), RECURRENT, 0, "false", 0, 0, NONE,
     "yields h of every step, else that of the last"},
    {"initial_state",
     SL_VALUE_SECTION,
     AT(recurrent.initial_state),
     RECURRENT,
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_initial_state},
     "the layer whose final states are its first ones, or `none`; default in a decoder: the encoder's, one by one"},

    {"units",
     SL_VALUE_CUSTOM,
     AT(dense.units),
     K(DENSE),
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.custom = &units_custom},
     "width of the output"},
    {"activation",
     SL_VALUE_SECTION,
     AT(dense.activation),
     DENSE,
     0,
     "linear",
     0,
     0,
     {.section = &sl_section_activation},
     "of the output"},
    {"use_bias", SL_VALUE_BOOL, AT(dense.use_bias), DENSE, 0, "true", 0, 0, NONE, "whether there is a bias"},
    {"kernel_initializer", SL_VALUE_SECTION, AT(dense.kernel_initializer), DENSE, 0, "glorot_uniform", 0, 0,
     INITIALIZER, "of the weights"},
    {"bias_initializer", SL_VALUE_SECTION, AT(dense.bias_initializer), DENSE, 0, "zeros", 0, 0, INITIALIZER,
     "of the bias"},
    {"kernel_regularizer", SL_VALUE_SECTION, AT(dense.kernel_regularizer), DENSE, 0, NULL, 0, 0, REGULARIZER,
     "of the weights"},
    {"bias_regularizer", SL_VALUE_SECTION, AT(dense.bias_regularizer), DENSE, 0, NULL, 0, 0, REGULARIZER,
     "of the bias"},
    {"tie", SL_VALUE_NAME, AT(dense.tie), K(OUTPUT), 0, NULL, 0, 0, NONE,
     "the embedding whose matrix it uses, transposed"},

    {"dim", SL_VALUE_INT, AT(embedding.dim), K(EMBEDDING), SL_OPTION_REQUIRED, NULL, 1, INT32_MAX, NONE,
     "width of the vectors"},
    {"embeddings_initializer", SL_VALUE_SECTION, AT(embedding.initializer), K(EMBEDDING), 0, "uniform", 0, 0,
     INITIALIZER, "of the vectors"},
    {"embeddings_regularizer", SL_VALUE_SECTION, AT(embedding.regularizer), K(EMBEDDING), 0, NULL, 0, 0, REGULARIZER,
     "of the vectors"},
    {"weights", SL_VALUE_PATH, AT(embedding.weights), K(EMBEDDING), 0, NULL, 0, 0, NONE,
     "a file of ready vectors, a line for each word (GloVe, word2vec, fastText as text); other words are initialised"},
    {"share", SL_VALUE_NAME, AT(embedding.share), K(EMBEDDING), 0, NULL, 0, 0, NONE,
     "the embedding above whose vectors it uses"},

    {"activation",
     SL_VALUE_SECTION,
     AT(activation),
     K(ACTIVATION),
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.section = &sl_section_activation},
     "the function"},
    {"rate", SL_VALUE_FLOAT, AT(dropout.rate), K(DROPOUT), SL_OPTION_REQUIRED | SL_OPTION_BELOW | SL_OPTION_MASK, NULL,
     0, 1, NONE, "share of the elements that become 0"},
    {"mask",
     SL_VALUE_WORD,
     AT(dropout.mask),
     K(DROPOUT),
     0,
     "step",
     0,
     0,
     {.words = mask_words},
     "how long a mask holds"},
    {"epsilon", SL_VALUE_FLOAT, AT(layer_norm.epsilon), K(LAYER_NORM), SL_OPTION_ABOVE, "1e-3", 0, 1, NONE,
     "added to the variance"},
    {"score",
     SL_VALUE_WORD,
     AT(attention.score),
     K(ATTENTION),
     0,
     "dot",
     0,
     0,
     {.words = score_words},
     "how well a step of the encoder fits"},
    {"units", SL_VALUE_INT, AT(attention.units), K(ATTENTION), 0, NULL, 1, INT32_MAX, NONE,
     "width of the additive score's network; default: that of the encoder's output"},
    {"kernel_initializer", SL_VALUE_SECTION, AT(attention.kernel_initializer), K(ATTENTION), 0, "glorot_uniform", 0, 0,
     INITIALIZER, "of the weights of `general` and `additive`"},
    {"input_feeding", SL_VALUE_BOOL, AT(attention.input_feeding), K(ATTENTION), 0, "false", 0, 0, NONE,
     "the decoder's first recurrent layer also reads what attention gave the step before"},
    {"mode",
     SL_VALUE_WORD,
     AT(pool.mode),
     K(POOL),
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.words = pool_words},
     "what becomes of the steps"},
    {0}};

static const struct sl_word bridge_words[] = {
    {"copy", SL_BRIDGE_COPY, "the states as they are; those of two directions side by side", false},
    {"sum", SL_BRIDGE_SUM, "those of two directions added", false},
    {"dense", SL_BRIDGE_DENSE, "a learned layer for each state: tanh(W h + b), W c + b", false},
    {NULL, 0, NULL, false}};

static const struct sl_option initial_state_options[] = {
    {"from", SL_VALUE_NAME, offsetof(struct sl_initial_state, from), 0, SL_OPTION_REQUIRED, NULL, 0, 0, NONE,
     "a recurrent layer of as many `layers`, or one that yields a vector; `none`: the states begin at zero"},
    {"bridge",
     SL_VALUE_WORD,
     offsetof(struct sl_initial_state, bridge),
     0,
     0,
     "copy",
     0,
     0,
     {.words = bridge_words},
     "how the states become those of this layer"},
    {0}};

const struct sl_section sl_section_initial_state = {
    "model.initial_state",
    "the initial state",
    NULL,
    0,
    NULL,
    "from",
    initial_state_options,
    "where the states of a recurrent layer begin; a bare word is `from`"};

static const struct sl_custom side_custom = {
    sl_model_read_side, "list of layers",
    "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/$defs/model\"}}"};

static const struct sl_option sides_options[] = {
    {"encoder",
     SL_VALUE_CUSTOM,
     0,
     0,
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.custom = &side_custom},
     "the layers that read the source"},
    {"decoder",
     SL_VALUE_CUSTOM,
     0,
     0,
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.custom = &side_custom},
     "the layers that read the target shifted by one step, and predict its next token"},
    {"embedding", SL_VALUE_NAME, offsetof(struct sl_model_sides, embedding), 0, 0, NULL, 0, 0, NONE,
     "the layer of the encoder whose vectors `seqlstm embed` writes"},
    {0}};

const struct sl_section sl_section_sides = {
    "model.sides", "a model of encoder and decoder",
    NULL,          0,
    NULL,          NULL,
    sides_options, "a model in place of the list of layers: an encoder and a decoder, for sequence to sequence"};

const struct sl_section sl_section_layer = {
    "model",       "a layer",
    kind_words,    AT(kind),
    NULL,          NULL,
    layer_options, "a list of layers in order, each a map with `type:` or a bare word; or an encoder and a decoder"};

const char *sl_layer_kind_get_name(enum sl_layer_kind kind)
{
    return sl_word_get_name(kind_words, (int)kind);
}

const char *sl_activation_kind_get_name(enum sl_activation_kind kind)
{
    return sl_word_get_name(sl_words_activation, (int)kind);
}
