/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the layers and all their options. */
#include <string.h>

#include "model/read/sections.h"

#define K(kind)    (1u << SL_LAYER_##kind)
#define RECURRENT  (K(LSTM) | K(GRU) | K(RNN))
#define GATED      (K(LSTM) | K(GRU))
#define DENSE      (K(DENSE) | K(OUTPUT))
#define AT(member) offsetof(struct sl_layer, member)

static const struct sl_word kind_words[] = {
    WORD("embedding", SL_LAYER_EMBEDDING, "maps each token to a vector"),
    WORD("lstm", SL_LAYER_LSTM, "long short-term memory"),
    WORD("gru", SL_LAYER_GRU, "gated recurrent unit"),
    WORD("rnn", SL_LAYER_RNN, "simple recurrent layer (Keras: SimpleRNN)"),
    WORD("dense", SL_LAYER_DENSE, "fully connected layer, applied to each step or to one vector"),
    WORD("output", SL_LAYER_OUTPUT, "dense layer as wide as the target"),
    WORD("activation", SL_LAYER_ACTIVATION, "applies a function to each element"),
    WORD("dropout", SL_LAYER_DROPOUT, "sets random elements to zero during training"),
    WORD("layer_norm", SL_LAYER_LAYER_NORM, "normalises each row"),
    WORD("concat", SL_LAYER_CONCAT, "concatenates the features of several layers"),
    WORD("add", SL_LAYER_ADD, "adds the outputs of several layers"),
    WORD("pool", SL_LAYER_POOL, "reduces a sequence to one vector"),
    WORD("attention", SL_LAYER_ATTENTION, "in a decoder: attention over the steps of the encoder"),
    WORD("repeat", SL_LAYER_REPEAT, "in a decoder: repeats a vector of the encoder at every step"),
    WORD_END,
};

static const struct sl_word direction_words[] = {
    WORD("forward", SL_DIRECTION_FORWARD, "from the first step to the last"),
    WORD("backward", SL_DIRECTION_BACKWARD, "from the last step to the first"),
    WORD("bidirectional", SL_DIRECTION_BIDIRECTIONAL, "both directions, joined by `merge`"),
    WORD_END,
};

static const struct sl_word merge_words[] = {
    WORD("concat", SL_MERGE_CONCAT, "concatenated: twice the width"),
    WORD("sum", SL_MERGE_SUM, "added"),
    WORD("mul", SL_MERGE_MUL, "multiplied"),
    WORD("ave", SL_MERGE_AVE, "averaged"),
    WORD_END,
};

static const struct sl_word mask_words[] = {
    WORD("step", SL_DROPOUT_MASK_STEP, "a new mask at each step"),
    WORD("sequence", SL_DROPOUT_MASK_SEQUENCE, "one mask for the whole sequence"),
    WORD_END,
};

static const struct sl_word pool_words[] = {
    WORD("mean", SL_POOL_MEAN, "mean of the steps"), WORD("max", SL_POOL_MAX, "largest of the steps"),
    WORD("sum", SL_POOL_SUM, "sum of the steps"),    WORD("first", SL_POOL_FIRST, "the first step"),
    WORD("last", SL_POOL_LAST, "the last step"),     WORD_END,
};

static const struct sl_word score_words[] = {
    WORD("dot", SL_SCORE_DOT, "dot product of query and key"),
    WORD("general", SL_SCORE_GENERAL, "dot product of a learned projection of the query and the key"),
    WORD("scaled", SL_SCORE_SCALED, "`dot` divided by the square root of the width"),
    WORD("additive", SL_SCORE_ADDITIVE, "a small network over query and key (Bahdanau)"),
    WORD_END,
};

/* `units` of a dense layer: an integer, or the width of the target. */
static void read_units(struct sl_reader *reader, const struct sl_option *option, struct sl_node *node, void *field)
{
    static const struct sl_option number = {.key = "units", .kind = SL_VALUE_INT, .min = 1, .max = INT32_MAX};
    if (node->kind == SL_NODE_SCALAR && strcmp(node->text, "from_target") == 0)
        *(int64_t *)field = SL_UNITS_FROM_TARGET;
    else if (!sl_reader_may_be_number(node))
        sl_reader_report_type(reader, option, node, "an integer or `from_target`");
    else
        sl_reader_read_value(reader, &number, node, field);
}

/* Names of layers: looked up when all layers are known (resolve/names.c). */
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
    OPTION(NAME, "name", AT(name), .doc = "unique name of the layer; default: its type and a number, such as `lstm_1`"),
    OPTION(CUSTOM, "from", SL_NO_FIELD, .custom = &from_custom,
           .doc = "the layers whose outputs this layer reads, or `input`; default: the layer before it"),
    OPTION(BOOL, "trainable", AT(trainable), .default_text = "true",
           .doc = "false: the parameters of this layer are not updated"),

    OPTION(INT, "units", AT(recurrent.units), .variants = RECURRENT, .flags = SL_OPTION_REQUIRED, .min = 1,
           .max = INT32_MAX, .doc = "number of hidden units H"),
    OPTION(INT, "layers", AT(recurrent.layers), .variants = RECURRENT, .default_text = "1", .min = 1, .max = 1000,
           .doc = "number of layers in the stack; the lower ones return sequences"),
    OPTION(WORD, "direction", AT(recurrent.direction), .variants = RECURRENT, .default_text = "forward",
           .words = direction_words, .doc = "the order in which the steps are read"),
    OPTION(WORD, "merge", AT(recurrent.merge), .variants = RECURRENT, .default_text = "concat", .words = merge_words,
           .doc = "how the outputs of the two directions are joined"),
    OPTION(CUSTOM, "activation", AT(recurrent.activation), .variants = RECURRENT, .default_text = "tanh",
           .custom = &sl_custom_activation_pair, .map = &sl_section_activation_pair,
           .doc = "activation of the candidate"),
    OPTION(CUSTOM, "recurrent_activation", AT(recurrent.recurrent_activation), .variants = GATED,
           .default_text = "sigmoid", .custom = &sl_custom_activation_pair, .map = &sl_section_activation_pair,
           .doc = "activation of the gates"),
    OPTION(CUSTOM, "output_activation", AT(recurrent.output_activation), .variants = K(LSTM),
           .custom = &sl_custom_activation_pair, .map = &sl_section_activation_pair,
           .doc = "activation of the cell state before the output gate; default: same as `activation`"),
    OPTION(BOOL, "use_bias", AT(recurrent.use_bias), .variants = RECURRENT, .default_text = "true",
           .doc = "whether the layer has biases"),
    OPTION(BOOL, "unit_forget_bias", AT(recurrent.unit_forget_bias), .variants = K(LSTM), .default_text = "true",
           .doc = "adds 1 to the initial forget gate bias; the default is false if `init` is not `keras`"),
    OPTION(BOOL, "reset_after", AT(recurrent.reset_after), .variants = K(GRU), .default_text = "true",
           .doc = "true: the reset gate is applied after the recurrent product (Keras, cuDNN); false: before it"),
    OPTION(SECTION, "kernel_initializer", AT(recurrent.kernel_initializer), .variants = RECURRENT,
           .default_text = "glorot_uniform", .section = &sl_section_initializer,
           .doc = "initializer of the input weights"),
    OPTION(SECTION, "recurrent_initializer", AT(recurrent.recurrent_initializer), .variants = RECURRENT,
           .default_text = "orthogonal", .section = &sl_section_initializer,
           .doc = "initializer of the recurrent weights"),
    OPTION(SECTION, "bias_initializer", AT(recurrent.bias_initializer), .variants = RECURRENT, .default_text = "zeros",
           .section = &sl_section_initializer, .doc = "initializer of the biases"),
    OPTION(SECTION, "projection_initializer", AT(recurrent.projection_initializer), .variants = K(LSTM),
           .default_text = "glorot_uniform", .section = &sl_section_initializer,
           .doc = "initializer of the projection"),
    OPTION(SECTION, "peephole_initializer", AT(recurrent.peephole_initializer), .variants = K(LSTM),
           .default_text = "zeros", .section = &sl_section_initializer, .doc = "initializer of the peepholes"),
    OPTION(SECTION, "kernel_regularizer", AT(recurrent.kernel_regularizer), .variants = RECURRENT,
           .section = &sl_section_regularizer, .doc = "penalty on the input weights"),
    OPTION(SECTION, "recurrent_regularizer", AT(recurrent.recurrent_regularizer), .variants = RECURRENT,
           .section = &sl_section_regularizer, .doc = "penalty on the recurrent weights"),
    OPTION(SECTION, "bias_regularizer", AT(recurrent.bias_regularizer), .variants = RECURRENT,
           .section = &sl_section_regularizer, .doc = "penalty on the biases"),
    OPTION(FLOAT, "dropout", AT(recurrent.dropout), .variants = RECURRENT, .flags = SL_OPTION_BELOW | SL_OPTION_MASK,
           .default_text = "0", .min = 0, .max = 1, .doc = "dropout rate of the input; one mask per sequence"),
    OPTION(FLOAT, "recurrent_dropout", AT(recurrent.recurrent_dropout), .variants = RECURRENT,
           .flags = SL_OPTION_BELOW | SL_OPTION_MASK, .default_text = "0", .min = 0, .max = 1,
           .doc = "dropout rate of the hidden state; one mask per sequence, shared by all gates"),
    OPTION(SECTION, "zoneout", AT(recurrent), .variants = K(LSTM), .section = &sl_section_zoneout,
           .doc = "elements of the states keep their old values at random"),
    OPTION(FLOAT, "weight_drop", AT(recurrent.weight_drop), .variants = RECURRENT,
           .flags = SL_OPTION_BELOW | SL_OPTION_MASK, .default_text = "0", .min = 0, .max = 1,
           .doc = "rate at which recurrent weights are set to zero (DropConnect); a new mask for each batch"),
    OPTION(BOOL, "peephole", AT(recurrent.peephole), .variants = K(LSTM), .default_text = "false",
           .doc = "the gates also read the cell state"),
    OPTION(INT, "projection", AT(recurrent.projection), .variants = K(LSTM), .min = 1, .max = INT32_MAX,
           .doc = "width P of the projection of the hidden state"),
    OPTION(FLOAT, "cell_clip", AT(recurrent.cell_clip), .variants = K(LSTM), .flags = SL_OPTION_ABOVE, .min = 0,
           .max = SL_NO_LIMIT, .doc = "limits the cell state to this magnitude"),
    OPTION(FLOAT, "gate_clip", AT(recurrent.gate_clip), .variants = RECURRENT, .flags = SL_OPTION_ABOVE, .min = 0,
           .max = SL_NO_LIMIT,
           .doc = "limits the pre-activations of gates and candidate to this magnitude (ONNX: `clip`)"),
    OPTION(BOOL, "coupled_gates", AT(recurrent.coupled_gates), .variants = K(LSTM), .default_text = "false",
           .doc = "the forget gate is 1 minus the input gate (ONNX: `input_forget`)"),
    OPTION(BOOL, "layer_norm", AT(recurrent.layer_norm), .variants = RECURRENT, .default_text = "false",
           .doc = "layer normalisation inside the cell"),
    OPTION(FLOAT, "layer_norm_epsilon", AT(recurrent.layer_norm_epsilon), .variants = RECURRENT,
           .flags = SL_OPTION_ABOVE, .default_text = "1e-3", .min = 0, .max = 1,
           .doc = "added to the variance in that normalisation"),
    OPTION(BOOL, "return_sequences", AT(recurrent.return_sequences), .variants = RECURRENT, .default_text = "false",
           .doc = "true: the layer returns h of every step; false: only h of the last step"),
    OPTION(SECTION, "initial_state", AT(recurrent.initial_state), .variants = RECURRENT,
           .section = &sl_section_initial_state,
           .doc = "the layer whose final states this layer starts from, or `none`; default in a decoder: the matching "
                  "recurrent layer of the encoder"),

    OPTION(CUSTOM, "units", AT(dense.units), .variants = K(DENSE), .flags = SL_OPTION_REQUIRED, .custom = &units_custom,
           .doc = "width of the output"),
    OPTION(SECTION, "activation", AT(dense.activation), .variants = DENSE, .default_text = "linear",
           .section = &sl_section_activation, .doc = "activation of the output"),
    OPTION(BOOL, "use_bias", AT(dense.use_bias), .variants = DENSE, .default_text = "true",
           .doc = "whether the layer has a bias"),
    OPTION(SECTION, "kernel_initializer", AT(dense.kernel_initializer), .variants = DENSE,
           .default_text = "glorot_uniform", .section = &sl_section_initializer, .doc = "initializer of the weights"),
    OPTION(SECTION, "bias_initializer", AT(dense.bias_initializer), .variants = DENSE, .default_text = "zeros",
           .section = &sl_section_initializer, .doc = "initializer of the bias"),
    OPTION(SECTION, "kernel_regularizer", AT(dense.kernel_regularizer), .variants = DENSE,
           .section = &sl_section_regularizer, .doc = "penalty on the weights"),
    OPTION(SECTION, "bias_regularizer", AT(dense.bias_regularizer), .variants = DENSE,
           .section = &sl_section_regularizer, .doc = "penalty on the bias"),
    OPTION(NAME, "tie", AT(dense.tie), .variants = K(OUTPUT),
           .doc = "the embedding layer whose matrix is used here, transposed"),

    OPTION(INT, "dim", AT(embedding.dim), .variants = K(EMBEDDING), .flags = SL_OPTION_REQUIRED, .min = 1,
           .max = INT32_MAX, .doc = "width of the vectors"),
    OPTION(SECTION, "embeddings_initializer", AT(embedding.initializer), .variants = K(EMBEDDING),
           .default_text = "uniform", .section = &sl_section_initializer, .doc = "initializer of the vectors"),
    OPTION(SECTION, "embeddings_regularizer", AT(embedding.regularizer), .variants = K(EMBEDDING),
           .section = &sl_section_regularizer, .doc = "penalty on the vectors"),
    OPTION(PATH, "weights", AT(embedding.weights), .variants = K(EMBEDDING),
           .doc = "a file of pretrained vectors, one word per line (GloVe, word2vec or fastText in text format); other "
                  "words are initialised"),
    OPTION(NAME, "share", AT(embedding.share), .variants = K(EMBEDDING),
           .doc = "an earlier embedding layer whose vectors are used here"),

    OPTION(SECTION, "activation", AT(activation), .variants = K(ACTIVATION), .flags = SL_OPTION_REQUIRED,
           .section = &sl_section_activation, .doc = "function that is applied"),
    OPTION(FLOAT, "rate", AT(dropout.rate), .variants = K(DROPOUT),
           .flags = SL_OPTION_REQUIRED | SL_OPTION_BELOW | SL_OPTION_MASK, .min = 0, .max = 1,
           .doc = "fraction of the elements that are set to 0"),
    OPTION(WORD, "mask", AT(dropout.mask), .variants = K(DROPOUT), .default_text = "step", .words = mask_words,
           .doc = "whether each step or each sequence gets a new mask"),
    OPTION(FLOAT, "epsilon", AT(layer_norm.epsilon), .variants = K(LAYER_NORM), .flags = SL_OPTION_ABOVE,
           .default_text = "1e-3", .min = 0, .max = 1, .doc = "added to the variance"),
    OPTION(WORD, "score", AT(attention.score), .variants = K(ATTENTION), .default_text = "dot", .words = score_words,
           .doc = "how the match between a decoder step and an encoder step is scored"),
    OPTION(INT, "units", AT(attention.units), .variants = K(ATTENTION), .min = 1, .max = INT32_MAX,
           .doc = "`additive` only: width of the score network; default: the width of the encoder's output"),
    OPTION(SECTION, "kernel_initializer", AT(attention.kernel_initializer), .variants = K(ATTENTION),
           .default_text = "glorot_uniform", .section = &sl_section_initializer,
           .doc = "initializer of the weights of `general` and `additive`"),
    OPTION(BOOL, "input_feeding", AT(attention.input_feeding), .variants = K(ATTENTION), .default_text = "false",
           .doc = "the decoder's first recurrent layer also reads the attention output of the previous step"),
    OPTION(WORD, "mode", AT(pool.mode), .variants = K(POOL), .flags = SL_OPTION_REQUIRED, .words = pool_words,
           .doc = "how the steps are reduced"),
    OPTION_END,
};

static const struct sl_word bridge_words[] = {
    WORD("copy", SL_BRIDGE_COPY, "the states themselves; those of two directions are concatenated"),
    WORD("sum", SL_BRIDGE_SUM, "the states of two directions are added"),
    WORD("dense", SL_BRIDGE_DENSE, "a learned layer for each state: tanh(W h + b), W c + b"),
    WORD_END,
};

static const struct sl_option initial_state_options[] = {
    OPTION(NAME, "from", offsetof(struct sl_initial_state, from), .flags = SL_OPTION_REQUIRED,
           .doc = "a recurrent layer with the same number of `layers`, or a layer that returns one vector; `none`: the "
                  "states start at zero"),
    OPTION(WORD, "bridge", offsetof(struct sl_initial_state, bridge), .default_text = "copy", .words = bridge_words,
           .doc = "how those states become the initial states of this layer"),
    OPTION_END,
};

const struct sl_section sl_section_initial_state = {
    .path = "model.initial_state",
    .noun = "the initial state",
    .bare_key = "from",
    .options = initial_state_options,
    .doc = "initial states of a recurrent layer; a bare word is `from`",
};

static const struct sl_custom side_custom = {
    sl_model_read_side, "list of layers",
    "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"$ref\": \"#/$defs/model\"}}"};

static const struct sl_option sides_options[] = {
    OPTION(CUSTOM, "encoder", SL_NO_FIELD, .flags = SL_OPTION_REQUIRED, .custom = &side_custom,
           .items = &sl_section_layer, .doc = "the layers that read the source"),
    OPTION(CUSTOM, "decoder", SL_NO_FIELD, .flags = SL_OPTION_REQUIRED, .custom = &side_custom,
           .items = &sl_section_layer,
           .doc = "the layers that read the target, shifted by one step, and predict its next token"),
    OPTION(NAME, "embedding", offsetof(struct sl_model_sides, embedding),
           .doc = "the layer of the encoder whose vectors `seqlstm embed` writes; default: the last one"),
    OPTION_END,
};

const struct sl_section sl_section_sides = {
    .path = "model.sides",
    .noun = "a model of encoder and decoder",
    .options = sides_options,
    .doc = "an encoder and a decoder instead of one list of layers, for sequence to sequence",
};

const struct sl_section sl_section_layer = {
    .path = "model",
    .noun = "a layer",
    .variants = kind_words,
    .variant_offset = AT(kind),
    .options = layer_options,
    .doc = "a list of layers in order, or an encoder and a decoder; each layer is a map with `type:`, or a bare word",
};

const char *sl_layer_kind_get_name(enum sl_layer_kind kind)
{
    return sl_word_get_name(kind_words, (int)kind);
}

const char *sl_activation_kind_get_name(enum sl_activation_kind kind)
{
    return sl_word_get_name(sl_words_activation, (int)kind);
}
