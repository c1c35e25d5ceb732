/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of a model as the user described it, with every option resolved: defaults filled in, both directions set,
 * initializers chosen. Plain values, owned by the model's arena, immutable.
 *
 * Widths that depend on the data stay symbolic: `units` is SL_UNITS_FROM_TARGET, and no layer holds an input width.
 * Rates, clips and the like are 0 when they are off. Nothing here names a backend.
 */
#ifndef SL_MODEL_LAYER_H
#define SL_MODEL_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/place.h"

enum sl_layer_kind {
    SL_LAYER_EMBEDDING,
    SL_LAYER_LSTM,
    SL_LAYER_GRU,
    SL_LAYER_RNN,
    SL_LAYER_DENSE,
    SL_LAYER_OUTPUT, /* a dense layer as wide as the target (a vocabulary, classes, values) */
    SL_LAYER_ACTIVATION,
    SL_LAYER_DROPOUT,
    SL_LAYER_LAYER_NORM,
    SL_LAYER_CONCAT,
    SL_LAYER_ADD,
    SL_LAYER_POOL,
    SL_LAYER_ATTENTION, /* in a decoder, over the steps of its encoder */
    SL_LAYER_REPEAT     /* repeats a vector of the encoder at each step of the decoder */
};

/* Which list of the model a layer belongs to. */
enum sl_side {
    SL_SIDE_DECODER, /* also the layers of a plain list */
    SL_SIDE_ENCODER  /* reads the source */
};

/* ONNX's activations, with ONNX's default alpha and beta, and softmax for dense, output and
 * activation layers. x is the input:
 *   affine            alpha x + beta                        (1, 0)
 *   leaky_relu        x < 0 ? alpha x : x                   (0.01)
 *   thresholded_relu  x > alpha ? x : 0                     (1)
 *   scaled_tanh       alpha tanh(beta x)                    (1, 1)
 *   hard_sigmoid      min(max(alpha x + beta, 0), 1)        (0.2, 0.5)
 *   elu               x < 0 ? alpha (exp(x) - 1) : x        (1)
 *   softsign          x / (1 + |x|)       softplus  log(1 + exp(x)) */
enum sl_activation_kind {
    SL_ACTIVATION_LINEAR,
    SL_ACTIVATION_TANH,
    SL_ACTIVATION_SIGMOID,
    SL_ACTIVATION_RELU,
    SL_ACTIVATION_LEAKY_RELU,
    SL_ACTIVATION_THRESHOLDED_RELU,
    SL_ACTIVATION_SCALED_TANH,
    SL_ACTIVATION_HARD_SIGMOID,
    SL_ACTIVATION_ELU,
    SL_ACTIVATION_SOFTSIGN,
    SL_ACTIVATION_SOFTPLUS,
    SL_ACTIVATION_AFFINE,
    SL_ACTIVATION_SOFTMAX
};

struct sl_activation {
    enum sl_activation_kind kind;
    double alpha; /* always set, by the user or by default; 0 if unused */
    double beta;
};

/* An activation may differ by direction: [0] forward, [1] backward. One that is said once fills
 * both. */
enum { SL_FORWARD = 0, SL_BACKWARD = 1 };

/* n_in and n_out are the fans of the matrix; a recurrent kernel is drawn gate by gate for
 * orthogonal and as one [n_in, gates * H] matrix for the fan rules, as Keras does. */
enum sl_initializer_kind {
    SL_INITIALIZER_ZEROS,
    SL_INITIALIZER_ONES,
    SL_INITIALIZER_CONSTANT,         /* value */
    SL_INITIALIZER_UNIFORM,          /* [min, max) */
    SL_INITIALIZER_NORMAL,           /* mean, stddev */
    SL_INITIALIZER_TRUNCATED_NORMAL, /* the same, redrawn beyond two stddev */
    SL_INITIALIZER_GLOROT_UNIFORM,   /* +- sqrt(6 / (n_in + n_out)) */
    SL_INITIALIZER_GLOROT_NORMAL,    /* truncated, stddev sqrt(2 / (n_in + n_out)) */
    SL_INITIALIZER_HE_UNIFORM,       /* +- sqrt(6 / n_in) */
    SL_INITIALIZER_HE_NORMAL,        /* truncated, stddev sqrt(2 / n_in) */
    SL_INITIALIZER_LECUN_UNIFORM,    /* +- sqrt(3 / n_in) */
    SL_INITIALIZER_LECUN_NORMAL,     /* truncated, stddev sqrt(1 / n_in) */
    SL_INITIALIZER_ORTHOGONAL,       /* gain times a matrix with orthonormal rows or columns */
    SL_INITIALIZER_FAN_UNIFORM       /* +- 1 / sqrt(n), n = units in a recurrent layer, else n_in */
};

struct sl_initializer {
    enum sl_initializer_kind kind;
    double value; /* constant */
    double min;   /* uniform */
    double max;
    double mean; /* normal, truncated_normal */
    double stddev;
    double gain; /* orthogonal */
};

/* l1 sum|w| + l2 sum w^2 is added to the loss (Keras: no factor one half). Both 0: none. */
struct sl_regularizer {
    double l1;
    double l2;
};

enum sl_direction { SL_DIRECTION_FORWARD, SL_DIRECTION_BACKWARD, SL_DIRECTION_BIDIRECTIONAL };

enum sl_merge { SL_MERGE_CONCAT, SL_MERGE_SUM, SL_MERGE_MUL, SL_MERGE_AVE };

#define SL_UNITS_FROM_TARGET INT64_C(-1)

/* How final states become initial states. */
enum sl_bridge {
    SL_BRIDGE_COPY, /* unchanged; two directions are concatenated */
    SL_BRIDGE_SUM,  /* two directions added */
    SL_BRIDGE_DENSE /* h0 = tanh(W h + b), c0 = W c + b; two directions side by side. Of a vector v, or where the giver
                     * has no c: v (or h) in place of both */
};

#define SL_NO_LAYER (-1)

/* `initial_state` of a recurrent layer, for each layer of its stack. */
struct sl_initial_state {
    const char *from; /* the name of a layer, as given; NULL: not given */
    enum sl_bridge bridge;
    int layer; /* index of the layer whose final states or vector are used; SL_NO_LAYER: from zero */
};

/* lstm, gru, rnn. Gate and cell equations with all options: include/seqlstm/ops.h. */
struct sl_recurrent {
    int64_t units;  /* H, at least 1 */
    int64_t layers; /* L, at least 1; lower ones return sequences; dropout is on each one's input */
    enum sl_direction direction;
    enum sl_merge merge;                          /* joins two directions */
    struct sl_activation activation[2];           /* candidate (rnn: the only one) */
    struct sl_activation recurrent_activation[2]; /* gates; unused by rnn */
    struct sl_activation output_activation[2];    /* of c, before the output gate; lstm only */
    bool use_bias;
    bool unit_forget_bias; /* lstm: 1 is added to the initial forget bias; false without use_bias */
    bool reset_after;      /* gru: Keras's and cuDNN's variant, two biases for the candidate */
    struct sl_initializer kernel_initializer;
    struct sl_initializer recurrent_initializer;
    struct sl_initializer bias_initializer;
    struct sl_initializer projection_initializer; /* used only if the option is on */
    struct sl_initializer peephole_initializer;
    struct sl_regularizer kernel_regularizer;
    struct sl_regularizer recurrent_regularizer;
    struct sl_regularizer bias_regularizer;
    double dropout;           /* of the input, one mask per sequence; 0: off */
    double recurrent_dropout; /* of h(t-1), one mask per sequence, shared by the gates; 0: off */
    double zoneout_cell;      /* probability that c keeps its old value; 0: off */
    double zoneout_hidden;
    double weight_drop; /* DropConnect on the recurrent kernel, per update; 0: off */
    bool peephole;
    int64_t projection; /* P; 0: off */
    double cell_clip;   /* |c| is limited to this; 0: off */
    double gate_clip;   /* |input of every activation| is limited to this (ONNX's clip); 0: off */
    bool coupled_gates; /* f = 1 - i */
    bool layer_norm;
    double layer_norm_epsilon;
    bool return_sequences;
    struct sl_initial_state initial_state;
    bool gives_state; /* another layer starts from its final states */
};

/* dense, output */
struct sl_dense {
    int64_t units; /* or SL_UNITS_FROM_TARGET; always that for `output` */
    struct sl_activation activation;
    bool use_bias;
    struct sl_initializer kernel_initializer;
    struct sl_initializer bias_initializer;
    struct sl_regularizer kernel_regularizer;
    struct sl_regularizer bias_regularizer;
    const char *tie; /* output only: the embedding whose matrix it uses, transposed; or NULL */
    int tie_layer;   /* its index in the model's layers, or -1 */
};

struct sl_embedding {
    int64_t dim;         /* E */
    const char *weights; /* file of pretrained vectors; NULL: none */
    const char *share;   /* the embedding whose matrix it uses; or NULL */
    int share_layer;     /* its index; -1: none */
    struct sl_initializer initializer;
    struct sl_regularizer regularizer;
};

enum sl_dropout_mask {
    SL_DROPOUT_MASK_STEP,    /* a new mask for each time step */
    SL_DROPOUT_MASK_SEQUENCE /* one mask per sequence */
};

struct sl_dropout {
    double rate; /* [0, 1) */
    enum sl_dropout_mask mask;
};

struct sl_layer_norm {
    double epsilon;
};

enum sl_pool_mode { SL_POOL_MEAN, SL_POOL_MAX, SL_POOL_SUM, SL_POOL_FIRST, SL_POOL_LAST };

struct sl_pool {
    enum sl_pool_mode mode; /* over the real steps of each sequence; 0 if there are none */
};

/* How well a row k of the encoder's output fits a query q (Luong et al. 2015, eq. 8; Vaswani et al. 2017, eq. 1;
 * Bahdanau et al. 2015, appendix A.1.2). */
enum sl_attention_score {
    SL_SCORE_DOT,     /* q . k */
    SL_SCORE_GENERAL, /* (W q) . k */
    SL_SCORE_SCALED,  /* q . k / sqrt(width) */
    SL_SCORE_ADDITIVE /* v . tanh(W q + U k) */
};

/* Yields [context, query]: as wide as the encoder's output and the query together. */
struct sl_attention {
    enum sl_attention_score score;
    int64_t units;                            /* additive: rows of W and U; 0: as wide as the output of the encoder */
    struct sl_initializer kernel_initializer; /* of W, U and v */
    bool input_feeding;                       /* see struct sl_feeding */
};

/* The kind of a layer's output. */
enum sl_shape_kind {
    SL_SHAPE_TOKENS,   /* one integer per step: the input of an embedding */
    SL_SHAPE_SEQUENCE, /* [N, T, features] */
    SL_SHAPE_VECTOR,   /* [N, features] */
    SL_SHAPE_FROM_DATA /* SEQUENCE or VECTOR, as the arrays of an npy source are */
};

/* The entry of `from` that means the model's input. */
#define SL_LAYER_MODEL_INPUT (-1)

struct sl_layer {
    enum sl_layer_kind kind;
    const char *name; /* given, or kind_ordinal ("lstm_1"); unique in the model */
    int index;        /* in sl_model.layers */
    enum sl_side side;
    /* The layers whose outputs it reads, or SL_LAYER_MODEL_INPUT (of its side); default: the one before it in the list.
     * More than one only for concat and add. A repeat takes one of the encoder. */
    const int *from;
    size_t from_count;
    bool output_used; /* another layer reads its output, or it is the output of the model */
    bool trainable;
    enum sl_shape_kind output_shape;   /* its output */
    union {                            /* by kind */
        struct sl_recurrent recurrent; /* lstm, gru, rnn */
        struct sl_dense dense;         /* dense, output */
        struct sl_embedding embedding;
        struct sl_activation activation;
        struct sl_dropout dropout;
        struct sl_layer_norm layer_norm;
        struct sl_pool pool;
        struct sl_attention attention;
    };
    struct sl_place place;       /* of the layer's entry in the list */
    struct sl_place_list places; /* of each option that was given */
};

static inline bool sl_layer_is_recurrent(const struct sl_layer *layer)
{
    return layer->kind == SL_LAYER_LSTM || layer->kind == SL_LAYER_GRU || layer->kind == SL_LAYER_RNN;
}

/* The place where `key` ("recurrent_dropout", "activation.alpha", "zoneout.cell") was said, that of
 * the longest said prefix of it ("activation"), or the place of the layer's entry where it is a
 * default. Never fails; borrowed texts. [any thread] */
struct sl_place sl_layer_find_option_place(const struct sl_layer *layer, const char *key);

/* Whether the user gave `key` in this layer (false: it has its default). [any thread] */
bool sl_layer_has_option(const struct sl_layer *layer, const char *key);

/* "lstm", "layer_norm", … as written in a file; static. [any thread] */
const char *sl_layer_kind_get_name(enum sl_layer_kind kind);
const char *sl_activation_kind_get_name(enum sl_activation_kind kind);

#endif
