/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the layers and all their options. */
#include <string.h>

#include "model/read/sections.h"

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
    {"embedding", SL_LAYER_EMBEDDING, "maps each token to a vector", false},
    {"lstm", SL_LAYER_LSTM, "long short-term memory", false},
    {"gru", SL_LAYER_GRU, "gated recurrent unit", false},
    {"rnn", SL_LAYER_RNN, "simple recurrent layer (Keras: SimpleRNN)", false},
    {"dense", SL_LAYER_DENSE, "fully connected layer, applied to each step or to one vector", false},
    {"output", SL_LAYER_OUTPUT, "dense layer as wide as the target", false},
    {"activation", SL_LAYER_ACTIVATION, "applies a function to each element", false},
    {"dropout", SL_LAYER_DROPOUT, "sets random elements to zero during training", false},
    {"layer_norm", SL_LAYER_LAYER_NORM, "normalises each row", false},
    {"concat", SL_LAYER_CONCAT, "concatenates the features of several layers", false},
    {"add", SL_LAYER_ADD, "adds the outputs of several layers", false},
    {"pool", SL_LAYER_POOL, "reduces a sequence to one vector", false},
    {"attention", SL_LAYER_ATTENTION, "in a decoder: attention over the steps of the encoder", false},
    {"repeat", SL_LAYER_REPEAT, "in a decoder: repeats a vector of the encoder at every step", false},
    {NULL, 0, NULL, false}};

static const struct sl_word direction_words[] = {
    {"forward", SL_DIRECTION_FORWARD, "from the first step to the last", false},
    {"backward", SL_DIRECTION_BACKWARD, "from the last step to the first", false},
    {"bidirectional", SL_DIRECTION_BIDIRECTIONAL, "both directions, joined by `merge`", false},
    {NULL, 0, NULL, false}};

static const struct sl_word merge_words[] = {{"concat", SL_MERGE_CONCAT, "concatenated: twice the width", false},
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
    {"dot", SL_SCORE_DOT, "dot product of query and key", false},
    {"general", SL_SCORE_GENERAL, "dot product of a learned projection of the query and the key", false},
    {"scaled", SL_SCORE_SCALED, "`dot` divided by the square root of the width", false},
    {"additive", SL_SCORE_ADDITIVE, "a small network over query and key (Bahdanau)", false},
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
     "unique name of the layer; default: its type and a number, such as `lstm_1`"},
    {"from",
     SL_VALUE_CUSTOM,
     0,
     0,
     0,
     NULL,
     0,
     0,
     {.custom = &from_custom},
     "the layers whose outputs this layer reads, or `input`; default: the layer before it"},
    {"trainable", SL_VALUE_BOOL, AT(trainable), 0, 0, "true", 0, 0, NONE,
     "false: the parameters of this layer are not updated"},

    {"units", SL_VALUE_INT, AT(recurrent.units), RECURRENT, SL_OPTION_REQUIRED, NULL, 1, INT32_MAX, NONE,
     "number of hidden units H"},
    {"layers", SL_VALUE_INT, AT(recurrent.layers), RECURRENT, 0, "1", 1, 1000, NONE,
     "number of layers in the stack; the lower ones return sequences"},
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
     "how the outputs of the two directions are joined"},
    {"activation",
     SL_VALUE_CUSTOM,
     AT(recurrent.activation),
     RECURRENT,
     0,
     "tanh",
     0,
     0,
     {.custom = &sl_custom_activation_pair},
     "activation of the candidate"},
    {"recurrent_activation",
     SL_VALUE_CUSTOM,
     AT(recurrent.recurrent_activation),
     GATED,
     0,
     "sigmoid",
     0,
     0,
     {.custom = &sl_custom_activation_pair},
     "activation of the gates"},
    {"output_activation",
     SL_VALUE_CUSTOM,
     AT(recurrent.output_activation),
     K(LSTM),
     0,
     NULL,
     0,
     0,
     {.custom = &sl_custom_activation_pair},
     "activation of the cell state before the output gate; default: same as `activation`"},
    {"use_bias", SL_VALUE_BOOL, AT(recurrent.use_bias), RECURRENT, 0, "true", 0, 0, NONE,
     "whether the layer has biases"},
    {"unit_forget_bias", SL_VALUE_BOOL, AT(recurrent.unit_forget_bias), K(LSTM), 0, "true", 0, 0, NONE,
     "adds 1 to the initial forget gate bias; the default is false if `init` is not `keras`"},
    {"reset_after", SL_VALUE_BOOL, AT(recurrent.reset_after), K(GRU), 0, "true", 0, 0, NONE,
     "true: the reset gate is applied after the recurrent product (Keras, cuDNN); false: before it"},
    {"kernel_initializer", SL_VALUE_SECTION, AT(recurrent.kernel_initializer), RECURRENT, 0, "glorot_uniform", 0, 0,
     INITIALIZER, "initializer of the input weights"},
    {"recurrent_initializer", SL_VALUE_SECTION, AT(recurrent.recurrent_initializer), RECURRENT, 0, "orthogonal", 0, 0,
     INITIALIZER, "initializer of the recurrent weights"},
    {"bias_initializer", SL_VALUE_SECTION, AT(recurrent.bias_initializer), RECURRENT, 0, "zeros", 0, 0, INITIALIZER,
     "initializer of the biases"},
    {"projection_initializer", SL_VALUE_SECTION, AT(recurrent.projection_initializer), K(LSTM), 0, "glorot_uniform", 0,
     0, INITIALIZER, "initializer of the projection"},
    {"peephole_initializer", SL_VALUE_SECTION, AT(recurrent.peephole_initializer), K(LSTM), 0, "zeros", 0, 0,
     INITIALIZER, "initializer of the peepholes"},
    {"kernel_regularizer", SL_VALUE_SECTION, AT(recurrent.kernel_regularizer), RECURRENT, 0, NULL, 0, 0, REGULARIZER,
     "penalty on the input weights"},
    {"recurrent_regularizer", SL_VALUE_SECTION, AT(recurrent.recurrent_regularizer), RECURRENT, 0, NULL, 0, 0,
     REGULARIZER, "penalty on the recurrent weights"},
    {"bias_regularizer", SL_VALUE_SECTION, AT(recurrent.bias_regularizer), RECURRENT, 0, NULL, 0, 0, REGULARIZER,
     "penalty on the biases"},
    {"dropout", SL_VALUE_FLOAT, AT(recurrent.dropout), RECURRENT, SL_OPTION_BELOW | SL_OPTION_MASK, "0", 0, 1, NONE,
     "dropout rate of the input; one mask per sequence"},
    {"recurrent_dropout", SL_VALUE_FLOAT, AT(recurrent.recurrent_dropout), RECURRENT, SL_OPTION_BELOW | SL_OPTION_MASK,
     "0", 0, 1, NONE, "dropout rate of the hidden state; one mask per sequence, shared by all gates"},
    {"zoneout",
     SL_VALUE_SECTION,
     AT(recurrent),
     K(LSTM),
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_zoneout},
     "elements of the states keep their old values at random"},
    {"weight_drop", SL_VALUE_FLOAT, AT(recurrent.weight_drop), RECURRENT, SL_OPTION_BELOW | SL_OPTION_MASK, "0", 0, 1,
     NONE, "rate at which recurrent weights are set to zero (DropConnect); a new mask for each batch"},
    {"peephole", SL_VALUE_BOOL, AT(recurrent.peephole), K(LSTM), 0, "false", 0, 0, NONE,
     "the gates also read the cell state"},
    {"projection", SL_VALUE_INT, AT(recurrent.projection), K(LSTM), 0, NULL, 1, INT32_MAX, NONE,
     "width P of the projection of the hidden state"},
    {"cell_clip", SL_VALUE_FLOAT, AT(recurrent.cell_clip), K(LSTM), SL_OPTION_ABOVE, NULL, 0, SL_NO_LIMIT, NONE,
     "limits the cell state to this magnitude"},
    {"gate_clip", SL_VALUE_FLOAT, AT(recurrent.gate_clip), RECURRENT, SL_OPTION_ABOVE, NULL, 0, SL_NO_LIMIT, NONE,
     "limits the pre-activations of gates and candidate to this magnitude (ONNX: `clip`)"},
    {"coupled_gates", SL_VALUE_BOOL, AT(recurrent.coupled_gates), K(LSTM), 0, "false", 0, 0, NONE,
     "the forget gate is 1 minus the input gate (ONNX: `input_forget`)"},
    {"layer_norm", SL_VALUE_BOOL, AT(recurrent.layer_norm), RECURRENT, 0, "false", 0, 0, NONE,
     "layer normalisation inside the cell"},
    {"layer_norm_epsilon", SL_VALUE_FLOAT, AT(recurrent.layer_norm_epsilon), RECURRENT, SL_OPTION_ABOVE, "1e-3", 0, 1,
     NONE, "added to the variance in that normalisation"},
    {"return_sequences", SL_VALUE_BOOL, AT(recurrent.return_sequences), RECURRENT, 0, "false", 0, 0, NONE,
     "true: the layer returns h of every step; false: only h of the last step"},
    {"initial_state",
     SL_VALUE_SECTION,
     AT(recurrent.initial_state),
     RECURRENT,
     0,
     NULL,
     0,
     0,
     {.section = &sl_section_initial_state},
     "the layer whose final states this layer starts from, or `none`; default in a decoder: the matching recurrent "
     "layer of the encoder"},

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
     "activation of the output"},
    {"use_bias", SL_VALUE_BOOL, AT(dense.use_bias), DENSE, 0, "true", 0, 0, NONE, "whether the layer has a bias"},
    {"kernel_initializer", SL_VALUE_SECTION, AT(dense.kernel_initializer), DENSE, 0, "glorot_uniform", 0, 0,
     INITIALIZER, "initializer of the weights"},
    {"bias_initializer", SL_VALUE_SECTION, AT(dense.bias_initializer), DENSE, 0, "zeros", 0, 0, INITIALIZER,
     "initializer of the bias"},
    {"kernel_regularizer", SL_VALUE_SECTION, AT(dense.kernel_regularizer), DENSE, 0, NULL, 0, 0, REGULARIZER,
     "penalty on the weights"},
    {"bias_regularizer", SL_VALUE_SECTION, AT(dense.bias_regularizer), DENSE, 0, NULL, 0, 0, REGULARIZER,
     "penalty on the bias"},
    {"tie", SL_VALUE_NAME, AT(dense.tie), K(OUTPUT), 0, NULL, 0, 0, NONE,
     "the embedding layer whose matrix is used here, transposed"},

    {"dim", SL_VALUE_INT, AT(embedding.dim), K(EMBEDDING), SL_OPTION_REQUIRED, NULL, 1, INT32_MAX, NONE,
     "width of the vectors"},
    {"embeddings_initializer", SL_VALUE_SECTION, AT(embedding.initializer), K(EMBEDDING), 0, "uniform", 0, 0,
     INITIALIZER, "initializer of the vectors"},
    {"embeddings_regularizer", SL_VALUE_SECTION, AT(embedding.regularizer), K(EMBEDDING), 0, NULL, 0, 0, REGULARIZER,
     "penalty on the vectors"},
    {"weights", SL_VALUE_PATH, AT(embedding.weights), K(EMBEDDING), 0, NULL, 0, 0, NONE,
     "a file of pretrained vectors, one word per line (GloVe, word2vec or fastText in text format); other words are "
     "initialised"},
    {"share", SL_VALUE_NAME, AT(embedding.share), K(EMBEDDING), 0, NULL, 0, 0, NONE,
     "an earlier embedding layer whose vectors are used here"},

    {"activation",
     SL_VALUE_SECTION,
     AT(activation),
     K(ACTIVATION),
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.section = &sl_section_activation},
     "function that is applied"},
    {"rate", SL_VALUE_FLOAT, AT(dropout.rate), K(DROPOUT), SL_OPTION_REQUIRED | SL_OPTION_BELOW | SL_OPTION_MASK, NULL,
     0, 1, NONE, "fraction of the elements that are set to 0"},
    {"mask",
     SL_VALUE_WORD,
     AT(dropout.mask),
     K(DROPOUT),
     0,
     "step",
     0,
     0,
     {.words = mask_words},
     "whether each step or each sequence gets a new mask"},
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
     "how the match between a decoder step and an encoder step is scored"},
    {"units", SL_VALUE_INT, AT(attention.units), K(ATTENTION), 0, NULL, 1, INT32_MAX, NONE,
     "`additive` only: width of the score network; default: the width of the encoder's output"},
    {"kernel_initializer", SL_VALUE_SECTION, AT(attention.kernel_initializer), K(ATTENTION), 0, "glorot_uniform", 0, 0,
     INITIALIZER, "initializer of the weights of `general` and `additive`"},
    {"input_feeding", SL_VALUE_BOOL, AT(attention.input_feeding), K(ATTENTION), 0, "false", 0, 0, NONE,
     "the decoder's first recurrent layer also reads the attention output of the previous step"},
    {"mode",
     SL_VALUE_WORD,
     AT(pool.mode),
     K(POOL),
     SL_OPTION_REQUIRED,
     NULL,
     0,
     0,
     {.words = pool_words},
     "how the steps are reduced"},
    {0}};

static const struct sl_word bridge_words[] = {
    {"copy", SL_BRIDGE_COPY, "the states themselves; those of two directions are concatenated", false},
    {"sum", SL_BRIDGE_SUM, "the states of two directions are added", false},
    {"dense", SL_BRIDGE_DENSE, "a learned layer for each state: tanh(W h + b), W c + b", false},
    {NULL, 0, NULL, false}};

static const struct sl_option initial_state_options[] = {
    {"from", SL_VALUE_NAME, offsetof(struct sl_initial_state, from), 0, SL_OPTION_REQUIRED, NULL, 0, 0, NONE,
     "a recurrent layer with the same number of `layers`, or a layer that returns one vector; `none`: the states start "
     "at zero"},
    {"bridge",
     SL_VALUE_WORD,
     offsetof(struct sl_initial_state, bridge),
     0,
     0,
     "copy",
     0,
     0,
     {.words = bridge_words},
     "how those states become the initial states of this layer"},
    {0}};

const struct sl_section sl_section_initial_state = {"model.initial_state",
                                                    "the initial state",
                                                    NULL,
                                                    0,
                                                    NULL,
                                                    "from",
                                                    initial_state_options,
                                                    "initial states of a recurrent layer; a bare word is `from`"};

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
     "the layers that read the target, shifted by one step, and predict its next token"},
    {"embedding", SL_VALUE_NAME, offsetof(struct sl_model_sides, embedding), 0, 0, NULL, 0, 0, NONE,
     "the layer of the encoder whose vectors `seqlstm embed` writes; default: the last one"},
    {0}};

const struct sl_section sl_section_sides = {
    "model.sides", "a model of encoder and decoder",
    NULL,          0,
    NULL,          NULL,
    sides_options, "an encoder and a decoder instead of one list of layers, for sequence to sequence"};

const struct sl_section sl_section_layer = {
    "model",
    "a layer",
    kind_words,
    AT(kind),
    NULL,
    NULL,
    layer_options,
    "a list of layers in order, or an encoder and a decoder; each layer is a map with `type:`, or a bare word"};

const char *sl_layer_kind_get_name(enum sl_layer_kind kind)
{
    return sl_word_get_name(kind_words, (int)kind);
}

const char *sl_activation_kind_get_name(enum sl_activation_kind kind)
{
    return sl_word_get_name(sl_words_activation, (int)kind);
}
