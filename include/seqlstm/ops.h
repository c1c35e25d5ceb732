/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the backend ABI: their mathematics, their flat descriptors and their slots.
 *
 * Include this header. ops/head.h has what all descriptors share and ops/recurrent.h the recurrent layers; the other
 * operations follow below. ext/draft/attention.h has the draft of ATTENTION.
 *
 * Axes. Every tensor is `[rows, features]`, row-major, without gaps. Its rows lie on an axis:
 *   sequences   B rows, one per sequence, in the order of the batch
 *   steps       R packed rows (a ragged axis): sequences sorted by length, longest first; all rows of
 *               step 0, then all rows of step 1 … (`struct seqlstm_axis` in backend.h)
 *   free        no axis: parameters, flat vectors, scalars
 *
 *   lengths 4 2 1:   step 0: rows 0 1 2   step 1: rows 3 4   step 2: row 5   step 3: row 6
 *                    batch_sizes = 3 2 1 1     row_offsets = 0 3 5 6 7     R = 7
 *
 * There is no padding. Sequences of length zero never reach a backend. B below is batch_sizes[t0].
 * Letters: T steps, B sequences, R packed rows, I input, H hidden, P projection, O = P or H (the width of a layer's
 * output), L layers, D directions, V vocabulary, G gates.
 *
 * Descriptors are flat: they contain no pointers, their sizes are multiples of 8 bytes, and the host zeroes them before
 * it fills them. Zero means "off" (or float32, or the first value of an enumeration that begins at 0). A backend must
 * answer *no* to every value or bit that it does not know in a field that it knows. If a descriptor has bytes set
 * beyond those that a backend knows, the host answers *no* without asking it.
 *
 * Slots. A call passes an array of pointers, one per slot of the operation. In backward, `grads` has the same
 * numbering: grads[k] is the gradient of slot k. It is an output if forward reads the slot, and an input if forward
 * writes it. NULL means absent (where the slot allows it) or not wanted. Gradients of activations are overwritten.
 * Gradients of parameters are added to if SEQLSTM_BIT_BACKWARD_ACCUMULATE is set, and overwritten otherwise.
 *
 * Names. The word after SEQLSTM_ says what a constant is:
 *   BIT_    one bit of a field of bits (`flags`, `options`, `parts`, `code`), as in BIT_LOSS_CLASS_WEIGHT
 *   SLOT_   an index into `slots` and `grads`, as in SLOT_LOSS_CLASS_WEIGHT; SLOT_…_COUNT is their number
 *   KIND_   a value of a descriptor's `kind`, as in KIND_LOSS_MSE
 *   MAX_    a limit
 * Any other word names the field or array that it is a value or an index of: OP, MODE, DTYPE, CELL, DIRECTION, ACT …
 */
#ifndef SEQLSTM_OPS_H
#define SEQLSTM_OPS_H

#include <stdint.h>

#include "ops/head.h"
#include "ops/recurrent.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- row-wise operations ---------------------------------------------------------------------- */

/* Rows of a table: y_r = W[id_r]. A negative id gives a row of zeros and no gradient. Ids are < V; the host has checked
 * this. W [V, E]. */
struct seqlstm_embedding_desc {
    struct seqlstm_desc head;
    int64_t vocabulary; /* V */
    int64_t features;   /* E */
};
/* IDS [R] int32 in · Y [R, E] out · W [V, E] parameter */
enum {
    SEQLSTM_SLOT_EMBEDDING_IDS = 0,
    SEQLSTM_SLOT_EMBEDDING_Y = 1,
    SEQLSTM_SLOT_EMBEDDING_W = 2,
    SEQLSTM_SLOT_EMBEDDING_COUNT = 3
};

enum { SEQLSTM_BIT_DENSE_USE_BIAS = 1u << 0 };

/* y = act(x W' + b), W [output, input], b [output]. */
struct seqlstm_dense_desc {
    struct seqlstm_desc head;
    int64_t input;
    int64_t output;
    uint32_t options; /* SEQLSTM_BIT_DENSE_… */
    uint32_t reserved0;
    struct seqlstm_activation activation;
};
/* X [R, input] in · Y [R, output] out · W · BIAS (absent without USE_BIAS) */
enum {
    SEQLSTM_SLOT_DENSE_X = 0,
    SEQLSTM_SLOT_DENSE_Y = 1,
    SEQLSTM_SLOT_DENSE_W = 2,
    SEQLSTM_SLOT_DENSE_BIAS = 3,
    SEQLSTM_SLOT_DENSE_COUNT = 4
};

struct seqlstm_activation_desc {
    struct seqlstm_desc head;
    int64_t features;
    struct seqlstm_activation activation;
};
/* ACTIVATION, DROPOUT, CAST: X [R, features] in · Y [R, features] out */
enum { SEQLSTM_SLOT_UNARY_X = 0, SEQLSTM_SLOT_UNARY_Y = 1, SEQLSTM_SLOT_UNARY_COUNT = 2 };

enum { SEQLSTM_KIND_DROPOUT_STEP = 0, SEQLSTM_KIND_DROPOUT_SEQUENCE = 1 };

/* y = x * mask in training, y = x in inference. The mask (philox.h) uses `stream`, and the index of the feature as its
 * element. On the steps axis DROPOUT_STEP draws a mask per row (step = position0[b] + t), DROPOUT_SEQUENCE one per
 * sequence (step 0, or position0[b] with SEQLSTM_BIT_AXIS_STREAM). On the sequences axis
 * (SEQLSTM_BIT_BIND_ON_SEQUENCES, backend.h) the step is 0. */
struct seqlstm_dropout_desc {
    struct seqlstm_desc head;
    int64_t features;
    uint64_t stream;
    float rate;    /* [0, 1) */
    uint32_t mask; /* SEQLSTM_KIND_DROPOUT_… */
};

enum { SEQLSTM_BIT_LAYER_NORM_GAIN = 1u << 0, SEQLSTM_BIT_LAYER_NORM_BIAS = 1u << 1 };

/* y = (x - mean) / sqrt(var + epsilon) * gain + bias, over the features of each row; biased variance. */
struct seqlstm_layer_norm_desc {
    struct seqlstm_desc head;
    int64_t features;
    float epsilon;
    uint32_t options; /* SEQLSTM_BIT_LAYER_NORM_… */
};
/* X · Y · GAIN [features] · BIAS [features]; GAIN and BIAS are absent without their options */
enum {
    SEQLSTM_SLOT_LAYER_NORM_X = 0,
    SEQLSTM_SLOT_LAYER_NORM_Y = 1,
    SEQLSTM_SLOT_LAYER_NORM_GAIN = 2,
    SEQLSTM_SLOT_LAYER_NORM_BIAS = 3,
    SEQLSTM_SLOT_LAYER_NORM_COUNT = 4
};

enum {
    SEQLSTM_KIND_POOL_LAST = 0,
    SEQLSTM_KIND_POOL_MEAN = 1,
    SEQLSTM_KIND_POOL_MAX = 2,
    SEQLSTM_KIND_POOL_SUM = 3,
    SEQLSTM_KIND_POOL_FIRST = 4
};

/* Reduces the steps of each sequence to one row. Only for whole axes; bind.rows are the rows of X. MAX: the first step
 * that has the maximum gets the gradient; NaN is above all numbers, so that it is not hidden. */
struct seqlstm_pool_desc {
    struct seqlstm_desc head;
    int64_t features;
    uint32_t kind; /* SEQLSTM_KIND_POOL_… */
    uint32_t reserved0;
};
/* X [R, features] in, on steps · Y [B, features] out, on sequences: SEQLSTM_SLOT_UNARY_X, _Y */

#define SEQLSTM_MAX_MERGE_INPUTS 8

/* Joins 2 to 8 inputs with the same number of rows; all kinds but CONCAT require equal widths. */
struct seqlstm_merge_desc {
    struct seqlstm_desc head;
    uint32_t kind; /* SEQLSTM_KIND_MERGE_… */
    uint32_t inputs;
    int64_t widths[SEQLSTM_MAX_MERGE_INPUTS]; /* features of each input; zero beyond `inputs` */
};
/* Y [R, sum of widths or width] out at 0 · input k at SEQLSTM_SLOT_MERGE_X + k */
enum { SEQLSTM_SLOT_MERGE_Y = 0, SEQLSTM_SLOT_MERGE_X = 1, SEQLSTM_SLOT_MERGE_COUNT = 1 + SEQLSTM_MAX_MERGE_INPUTS };

/* GATHER: y[i] = x[index[i]] for i < rows of y; a negative index gives zeros. Backward adds up the gradients of an
 * index that occurs more than once. SCATTER: y = 0, then y[index[i]] = x[i] for i < rows of x; indices are distinct,
 * rows with a negative index are skipped. Rows of x: bind.rows_in; rows of y: bind.rows; head.max_rows bounds both. */
struct seqlstm_gather_desc {
    struct seqlstm_desc head;
    int64_t features;
};
/* X in · Y out · INDEX int32 in: [rows of y] for GATHER, [rows of x] for SCATTER */
enum {
    SEQLSTM_SLOT_GATHER_X = 0,
    SEQLSTM_SLOT_GATHER_Y = 1,
    SEQLSTM_SLOT_GATHER_INDEX = 2,
    SEQLSTM_SLOT_GATHER_COUNT = 3
};

/* y = x in another dtype, rounding to nearest even. Backward casts back. */
struct seqlstm_cast_desc {
    struct seqlstm_desc head;
    int64_t features;
    uint32_t from; /* SEQLSTM_DTYPE_…; head.dtype_activation is not read */
    uint32_t to;
};

/* ---- losses ------------------------------------------------------------------------------------- */

enum {
    SEQLSTM_KIND_LOSS_MSE = 1,                  /* mean over the features of (x - target)^2 */
    SEQLSTM_KIND_LOSS_MAE = 2,                  /* mean over the features of |x - target|; derivative 0 at 0 */
    SEQLSTM_KIND_LOSS_HUBER = 3,                /* mean of d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2) */
    SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY = 4, /* x are logits: mean of softplus(x) - target x */
    SEQLSTM_KIND_LOSS_CROSS_ENTROPY = 5         /* x are logits: -log softmax(x)[target] */
};

enum {
    SEQLSTM_BIT_LOSS_ROW_WEIGHT = 1u << 0,   /* slot ROW_WEIGHT is given */
    SEQLSTM_BIT_LOSS_CLASS_WEIGHT = 1u << 1, /* slot CLASS_WEIGHT is given; CROSS_ENTROPY */
    SEQLSTM_BIT_LOSS_ROW_LOSS = 1u << 2      /* slot ROW_LOSS is wanted */
};

/* With w_r = row_weight[r] class_weight[target_r] (each 1 where absent; w_r = 0 where a class target is < 0):
 *   SUMS[0] += sum_r w_r loss_r      SUMS[1] += sum_r w_r           (float64, added to)
 *   dx_r = normaliser * loss_scale * w_r * d loss_r / dx_r           (both from the step block)
 * label_smoothing s (CROSS_ENTROPY): target distribution (1 - s) one_hot + s / C. */
struct seqlstm_loss_desc {
    struct seqlstm_desc head;
    int64_t features;      /* C */
    uint32_t kind;         /* SEQLSTM_KIND_LOSS_… */
    uint32_t options;      /* SEQLSTM_BIT_LOSS_… */
    float label_smoothing; /* [0, 1) */
    float delta;           /* huber, > 0 */
};
/* X [R, C] in · TARGET in: [R] int32 for CROSS_ENTROPY, else [R, C] float32 · ROW_WEIGHT [R] in ·
 * CLASS_WEIGHT [C] in · SUMS [2] float64 in and out · ROW_LOSS [R] out: loss_r without w_r, 0 if target < 0 */
enum {
    SEQLSTM_SLOT_LOSS_X = 0,
    SEQLSTM_SLOT_LOSS_TARGET = 1,
    SEQLSTM_SLOT_LOSS_ROW_WEIGHT = 2,
    SEQLSTM_SLOT_LOSS_CLASS_WEIGHT = 3,
    SEQLSTM_SLOT_LOSS_SUMS = 4,
    SEQLSTM_SLOT_LOSS_ROW_LOSS = 5,
    SEQLSTM_SLOT_LOSS_COUNT = 6
};

/* DENSE without activation and LOSS in one: x W' + b, then the loss of its rows. */
struct seqlstm_dense_loss_desc {
    struct seqlstm_desc head;
    int64_t input;
    int64_t output;         /* C */
    uint32_t dense_options; /* SEQLSTM_BIT_DENSE_… */
    uint32_t kind;          /* SEQLSTM_KIND_LOSS_… */
    uint32_t options;       /* SEQLSTM_BIT_LOSS_… */
    float label_smoothing;
    float delta;
    uint32_t reserved0;
};
/* Slots as in LOSS (X is [R, input]), then W [C, input] and BIAS [C] */
enum { SEQLSTM_SLOT_DENSE_LOSS_W = 6, SEQLSTM_SLOT_DENSE_LOSS_BIAS = 7, SEQLSTM_SLOT_DENSE_LOSS_COUNT = 8 };

/* ---- choices ------------------------------------------------------------------------------------ */

enum { SEQLSTM_KIND_TOP_K_BEST = 0, SEQLSTM_KIND_TOP_K_SAMPLE = 1 };

/* BEST: the k largest elements of each row, largest first; of equal elements the one with the lower index first. VALUE
 * holds these elements.
 * SAMPLE (k = 1): one draw from softmax(x / temperature), restricted to the top_k largest elements (0: all) and to the
 * smallest set of largest elements whose probabilities reach top_p (1: all). The draw uses the uniform number
 * (philox.h) of (stream, element 0, step = position0[b] + t, sequence id). VALUE is the log-probability of the drawn
 * element in the restricted distribution. */
struct seqlstm_top_k_desc {
    struct seqlstm_desc head;
    int64_t features; /* C */
    int64_t k;        /* 1 .. C */
    uint64_t stream;
    uint32_t kind; /* SEQLSTM_KIND_TOP_K_… */
    uint32_t top_k;
    float temperature; /* > 0 */
    float top_p;       /* (0, 1] */
};
/* X [R, C] in · INDEX [R, k] int32 out · VALUE [R, k] out. Forward only. */
enum {
    SEQLSTM_SLOT_TOP_K_X = 0,
    SEQLSTM_SLOT_TOP_K_INDEX = 1,
    SEQLSTM_SLOT_TOP_K_VALUE = 2,
    SEQLSTM_SLOT_TOP_K_COUNT = 3
};

/* ---- flat vectors: bind.rows elements, forward only ---------------------------------------------- */

/* FINITE_CHECK: FLAG |= 1 when an element of X is NaN or infinite. SQUARED_NORM: SUM += sum of x^2.
 * X [n] in · FLAG [1] int32 or SUM [1] float64, in and out, at SEQLSTM_SLOT_REDUCE_RESULT */
struct seqlstm_reduce_desc {
    struct seqlstm_desc head;
};
enum { SEQLSTM_SLOT_REDUCE_X = 0, SEQLSTM_SLOT_REDUCE_RESULT = 1, SEQLSTM_SLOT_REDUCE_COUNT = 2 };

enum {
    SEQLSTM_KIND_OPTIMIZER_SGD = 1,      /* p -= lr g */
    SEQLSTM_KIND_OPTIMIZER_MOMENTUM = 2, /* m = mu m + g; p -= lr m       (as in PyTorch, dampening 0) */
    SEQLSTM_KIND_OPTIMIZER_NESTEROV = 3, /* m = mu m + g; p -= lr (g + mu m) */
    SEQLSTM_KIND_OPTIMIZER_ADAM = 4,     /* Kingma and Ba 2015, algorithm 1 (AdamW with weight_decay):
                                       m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
                                       p -= lr (m / (1-b1^t)) / (sqrt(w / (1-b2^t)) + epsilon)
                                       w = v, or with AMSGRAD the largest v so far */
    SEQLSTM_KIND_OPTIMIZER_RMSPROP = 5,  /* v = rho v + (1-rho) g^2; q = g / (sqrt(v) + epsilon);
                                       CENTERED: a = rho a + (1-rho) g, sqrt(v - a^2) instead of sqrt(v);
                                       mu = 0: p -= lr q; otherwise m = mu m + lr q; p -= m */
    SEQLSTM_KIND_OPTIMIZER_ADAGRAD = 6,  /* v += g^2; p -= lr g / (sqrt(v) + epsilon) */
    SEQLSTM_KIND_OPTIMIZER_ADADELTA = 7  /* v = rho v + (1-rho) g^2; d = sqrt(u + epsilon) / sqrt(v + epsilon) g;
                                       u = rho u + (1-rho) d^2; p -= lr d */
};

enum { SEQLSTM_BIT_OPTIMIZER_AMSGRAD = 1u << 0 /* ADAM */, SEQLSTM_BIT_OPTIMIZER_CENTERED = 1u << 1 /* RMSPROP */ };

/* One update of n parameters. learning_rate, grad_scale and update (t, counted from 1) come from the step block.
 *   norm = grad_scale sqrt(SQUARES)                        in float64
 *   g = s GRAD,  s = clip_norm > 0 and norm > clip_norm ? grad_scale clip_norm / norm : grad_scale
 * Weight decay is decoupled (Loshchilov and Hutter 2019): p -= lr weight_decay p, before the rest.
 * Nothing changes if SUMS[0] or SQUARES is not finite, or if the step block has the flag SEQLSTM_BIT_STEP_SKIP. */
struct seqlstm_optimizer_desc {
    struct seqlstm_desc head;
    uint32_t kind; /* SEQLSTM_KIND_OPTIMIZER_… */
    float beta_1;
    float beta_2;
    float rho;
    float momentum;
    float epsilon;
    float weight_decay;
    uint32_t options; /* SEQLSTM_BIT_OPTIMIZER_AMSGRAD … */
    float clip_norm;  /* >= 0; 0: off */
    uint32_t reserved0;
};
/* PARAM [n] in and out · GRAD [n] in · STATE_1 [n]: m (MOMENTUM, NESTEROV, ADAM), v (RMSPROP, ADAGRAD, ADADELTA) ·
 * STATE_2 [n]: v (ADAM), m (RMSPROP with momentum), u (ADADELTA) · STATE_3 [n]: largest v (AMSGRAD), a (CENTERED).
 * SUMS [2] float64 in: those of the loss · SQUARES [1] float64 in: the sum of GRAD^2 over all parameters of the model.
 * All states start at zero (ADAGRAD: at a value that the host chooses). Unused state slots are NULL. */
enum {
    SEQLSTM_SLOT_OPTIMIZER_PARAM = 0,
    SEQLSTM_SLOT_OPTIMIZER_GRAD = 1,
    SEQLSTM_SLOT_OPTIMIZER_STATE_1 = 2,
    SEQLSTM_SLOT_OPTIMIZER_STATE_2 = 3,
    SEQLSTM_SLOT_OPTIMIZER_STATE_3 = 4,
    SEQLSTM_SLOT_OPTIMIZER_SUMS = 5,
    SEQLSTM_SLOT_OPTIMIZER_SQUARES = 6,
    SEQLSTM_SLOT_OPTIMIZER_COUNT = 7
};

enum {
    SEQLSTM_KIND_VECTOR_FILL = 1,      /* y = a */
    SEQLSTM_KIND_VECTOR_AXPY = 2,      /* y += a x */
    SEQLSTM_KIND_VECTOR_SCALE = 3,     /* y *= a */
    SEQLSTM_KIND_VECTOR_LERP = 4,      /* y += a (x - y) */
    SEQLSTM_KIND_VECTOR_SIGN_AXPY = 5, /* y += a sign(x), sign(0) = 0; NaN where x is NaN */
    SEQLSTM_KIND_VECTOR_CLAMP = 6,     /* y = min(max(y, -a), a); NaN where y is not finite */
    SEQLSTM_KIND_VECTOR_COPY = 7       /* y = x */
};

/* a = `alpha` of the step block. */
struct seqlstm_vector_desc {
    struct seqlstm_desc head;
    uint32_t kind; /* SEQLSTM_KIND_VECTOR_… */
    uint32_t reserved0;
};
/* Y [n] in and out · X [n] in (absent for FILL, SCALE, CLAMP) */
enum { SEQLSTM_SLOT_VECTOR_Y = 0, SEQLSTM_SLOT_VECTOR_X = 1, SEQLSTM_SLOT_VECTOR_COUNT = 2 };

#ifdef __cplusplus
}
#endif

#endif
