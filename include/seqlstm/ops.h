/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the backend ABI: their mathematics, their flat descriptors and their slots.
 *
 * Axes. Every tensor is `[rows, features]`, row-major, without gaps. Rows live on an axis:
 *   sequences   B rows, one a sequence, in the order of the batch
 *   steps       R packed rows (a ragged axis): sequences sorted by length, longest first; all rows of
 *               step 0, then all of step 1 … (`struct seqlstm_axis` in backend.h)
 *   free        parameters, flat vectors, scalars
 *
 *   lengths 4 2 1:   step 0: rows 0 1 2   step 1: rows 3 4   step 2: row 5   step 3: row 6
 *                    batch_sizes = 3 2 1 1     row_offsets = 0 3 5 6 7     R = 7
 *
 * There is no padding. Zero-length sequences never reach a backend. B below is batch_sizes[t0].
 * Letters: T steps, B sequences, R packed rows, I input, H hidden, P projection, O = P or H (what a
 * layer hands on), L layers, D directions, V vocabulary, G gates.
 *
 * Descriptors are flat: no pointers, multiples of 8 bytes, zeroed by the host before filling. Zero
 * is "off" (or float32, or the first of an enumeration that says so). A backend must answer *no* to any
 * value or bit in a field it knows whose meaning it does not know; bytes beyond those it knows are
 * answered *no* by the host without asking.
 *
 * Slots. A call passes an array of pointers, one per slot of the operation. In backward, `grads`
 * has the same numbering: the gradient of slot k stands at grads[k]; for a slot that forward reads it
 * is an output, for one that forward writes it is an input. NULL: absent (where the slot allows it) or
 * not wanted. Gradients of activations are overwritten; gradients of parameters are added to when
 * SEQLSTM_BIT_BACKWARD_ACCUMULATE is set and overwritten otherwise.
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

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operations -------------------------------------------------------------------------- */

enum {
    SEQLSTM_OP_NONE = 0,
    SEQLSTM_OP_RECURRENT = 1,     /* LSTM, GRU or simple RNN stack over a packed range */
    SEQLSTM_OP_EMBEDDING = 2,     /* rows of a table by id */
    SEQLSTM_OP_DENSE = 3,         /* y = act(x W' + b) */
    SEQLSTM_OP_ACTIVATION = 4,    /* y = act(x) */
    SEQLSTM_OP_DROPOUT = 5,       /* y = x * mask */
    SEQLSTM_OP_LAYER_NORM = 6,    /* over the features of a row */
    SEQLSTM_OP_POOL = 7,          /* steps -> sequences: last, mean, max */
    SEQLSTM_OP_MERGE = 8,         /* several inputs of equal rows: concat, sum, mul, ave */
    SEQLSTM_OP_GATHER = 9,        /* y[i] = x[index[i]] */
    SEQLSTM_OP_SCATTER = 10,      /* y[index[i]] = x[i] */
    SEQLSTM_OP_CAST = 11,         /* change of dtype */
    SEQLSTM_OP_LOSS = 12,         /* sum of a loss over rows, and its gradient */
    SEQLSTM_OP_DENSE_LOSS = 13,   /* compound: dense, then loss; no [R, V] matrix need exist */
    SEQLSTM_OP_TOP_K = 14,        /* the k best of a row, or one drawn from it */
    SEQLSTM_OP_FINITE_CHECK = 15, /* is any element NaN or infinite? */
    SEQLSTM_OP_SQUARED_NORM = 16, /* sum of squares, for the global norm */
    SEQLSTM_OP_OPTIMIZER = 17,    /* one update of a flat parameter vector */
    SEQLSTM_OP_VECTOR = 18,       /* zero, axpy, scale … over flat vectors */
    SEQLSTM_OP_ATTENTION = 19,    /* draft: ext/draft/attention.h */
    SEQLSTM_OP_COUNT = 20
};

/* ---- enumerations shared by descriptors -------------------------------------------------- */

enum {
    SEQLSTM_DTYPE_FLOAT32 = 0,
    SEQLSTM_DTYPE_TF32 = 1, /* as compute type only */
    SEQLSTM_DTYPE_BFLOAT16 = 2,
    SEQLSTM_DTYPE_FLOAT16 = 3,
    SEQLSTM_DTYPE_FLOAT64 = 4,
    SEQLSTM_DTYPE_INT32 = 5,
    SEQLSTM_DTYPE_INT8 = 6,
    SEQLSTM_DTYPE_UINT8 = 7
};

/* Activations: ONNX's names and defaults; alpha and beta are always filled in by the host. */
enum {
    SEQLSTM_ACT_NONE = 0, /* y = x */
    SEQLSTM_ACT_TANH = 1,
    SEQLSTM_ACT_SIGMOID = 2,          /* 1 / (1 + exp(-x)) */
    SEQLSTM_ACT_RELU = 3,             /* max(0, x) */
    SEQLSTM_ACT_LEAKY_RELU = 4,       /* x >= 0 ? x : alpha x */
    SEQLSTM_ACT_THRESHOLDED_RELU = 5, /* x > alpha ? x : 0 */
    SEQLSTM_ACT_SCALED_TANH = 6,      /* alpha tanh(beta x) */
    SEQLSTM_ACT_HARD_SIGMOID = 7,     /* min(max(alpha x + beta, 0), 1) */
    SEQLSTM_ACT_ELU = 8,              /* x >= 0 ? x : alpha (exp(x) - 1) */
    SEQLSTM_ACT_SOFTSIGN = 9,         /* x / (1 + |x|) */
    SEQLSTM_ACT_SOFTPLUS = 10,        /* log(1 + exp(x)) */
    SEQLSTM_ACT_AFFINE = 11,          /* alpha x + beta */
    SEQLSTM_ACT_SOFTMAX = 12,         /* over the row; dense and activation operations only */
    SEQLSTM_ACT_LOG_SOFTMAX = 13,     /* over the row; dense and activation operations only */
    SEQLSTM_ACT_COUNT = 14
};
/* At a kink the derivative is that of the branch the condition above selects (relu: 0 at x = 0;
 * hard_sigmoid: alpha strictly inside, 0 at and beyond the ends). */

struct seqlstm_activation {
    uint32_t kind; /* SEQLSTM_ACT_… */
    float alpha;
    float beta;
    uint32_t reserved0; /* zero */
};

/* Option ids: what a refusal names. The host knows each one's key and place in the model file. */
enum {
    SEQLSTM_OPTION_NONE = 0, /* the operation as a whole */
    SEQLSTM_OPTION_SHAPE = 1,
    SEQLSTM_OPTION_DTYPE = 2,
    SEQLSTM_OPTION_MODE = 3,
    SEQLSTM_OPTION_DETERMINISM = 4,
    SEQLSTM_OPTION_CELL = 5,
    SEQLSTM_OPTION_LAYERS = 6,
    SEQLSTM_OPTION_DIRECTION = 7,
    SEQLSTM_OPTION_MERGE = 8,
    SEQLSTM_OPTION_UNITS = 9,
    SEQLSTM_OPTION_PROJECTION = 10,
    SEQLSTM_OPTION_ACTIVATION = 11,           /* candidate activation; `activation` of other layers */
    SEQLSTM_OPTION_RECURRENT_ACTIVATION = 12, /* of the gates */
    SEQLSTM_OPTION_OUTPUT_ACTIVATION = 13,
    SEQLSTM_OPTION_USE_BIAS = 14,
    SEQLSTM_OPTION_PEEPHOLE = 15,
    SEQLSTM_OPTION_COUPLED_GATES = 16,
    SEQLSTM_OPTION_CELL_CLIP = 17,
    SEQLSTM_OPTION_GATE_CLIP = 18,
    SEQLSTM_OPTION_LAYER_NORM = 19,
    SEQLSTM_OPTION_DROPOUT = 20,
    SEQLSTM_OPTION_RECURRENT_DROPOUT = 21,
    SEQLSTM_OPTION_ZONEOUT = 22,
    SEQLSTM_OPTION_WEIGHT_DROP = 23,
    SEQLSTM_OPTION_RESET_AFTER = 24,
    SEQLSTM_OPTION_STATES = 25,  /* initial or final states, absent output */
    SEQLSTM_OPTION_LENGTHS = 26, /* mixed lengths, time ranges */
    SEQLSTM_OPTION_RATE = 27,
    SEQLSTM_OPTION_MASK = 28,
    SEQLSTM_OPTION_LOSS = 29,
    SEQLSTM_OPTION_OPTIMIZER = 30,
    SEQLSTM_OPTION_KIND = 31,
    SEQLSTM_OPTION_COUNT = 32
};

/* ---- the head of every descriptor ---------------------------------------------------------- */

enum {
    SEQLSTM_MODE_INFERENCE = 1, /* forward only; no masks, expectations instead */
    SEQLSTM_MODE_TRAINING = 2   /* forward fills `reserve`; backward follows */
};

enum {
    SEQLSTM_BIT_DESC_DETERMINISTIC = 1u << 0, /* same inputs, threads and plan: same bits */
    SEQLSTM_BIT_DESC_UNIFORM = 1u << 1        /* all sequences of every batch have one length */
};

/* Head of every descriptor. 72 bytes. */
struct seqlstm_desc {
    uint32_t struct_size; /* bytes of the whole descriptor, the host's */
    uint32_t op;          /* SEQLSTM_OP_… */
    uint32_t mode;        /* SEQLSTM_MODE_… */
    uint32_t flags;       /* SEQLSTM_BIT_DESC_… */
    /* dtype per role; zero: float32 */
    uint32_t dtype_activation;      /* x, y and other activations */
    uint32_t dtype_activation_grad; /* their gradients */
    uint32_t dtype_state;           /* carried c (and h between steps) */
    uint32_t dtype_compute;         /* products */
    uint32_t dtype_weight;          /* weights as the kernel reads them; masters are float32 */
    uint32_t dtype_weight_grad;     /* gradients as the kernel leaves them */
    /* upper bounds over all calls; op_sizes answers for these. Zero: unbounded is not allowed */
    int64_t max_rows;      /* R, or the number of elements of a flat vector */
    int64_t max_sequences; /* B; 0 where the operation knows no sequences */
    int64_t max_steps;     /* T; 0 likewise */
    int64_t reserved0;     /* zero */
};

/* ---- recurrent ----------------------------------------------------------------------------- */

enum {
    SEQLSTM_CELL_LSTM = 1, /* G = 4, gates i f g o */
    SEQLSTM_CELL_GRU = 2,  /* G = 3, gates r z n */
    SEQLSTM_CELL_RNN = 3   /* G = 1 */
};

enum {
    SEQLSTM_DIRECTION_FORWARD = 0,
    SEQLSTM_DIRECTION_BACKWARD = 1,     /* runs from each sequence's own last step to its first */
    SEQLSTM_DIRECTION_BIDIRECTIONAL = 2 /* D = 2: forward is direction 0, backward 1 */
};

/* How D = 2 outputs become one row (and how MERGE joins its inputs). */
enum {
    SEQLSTM_KIND_MERGE_CONCAT = 0,
    SEQLSTM_KIND_MERGE_SUM = 1,
    SEQLSTM_KIND_MERGE_MUL = 2,
    SEQLSTM_KIND_MERGE_AVE = 3
};

enum {
    SEQLSTM_BIT_RECURRENT_USE_BIAS = 1u << 0,
    SEQLSTM_BIT_RECURRENT_PEEPHOLE = 1u << 1,      /* LSTM */
    SEQLSTM_BIT_RECURRENT_COUPLED_GATES = 1u << 2, /* LSTM: f = 1 - i; the f rows of parameters are unused */
    SEQLSTM_BIT_RECURRENT_LAYER_NORM = 1u << 3,    /* LSTM, RNN, GRU with RESET_AFTER */
    SEQLSTM_BIT_RECURRENT_RESET_AFTER = 1u << 4,   /* GRU */
    SEQLSTM_BIT_RECURRENT_INITIAL_STATE = 1u << 5, /* h0 (c0) are given; otherwise zero */
    SEQLSTM_BIT_RECURRENT_FINAL_STATE = 1u << 6,   /* hn (cn) are wanted */
    SEQLSTM_BIT_RECURRENT_OUTPUT = 1u << 7,        /* y is wanted (return_sequences) */
    SEQLSTM_BIT_RECURRENT_STEPWISE = 1u << 8       /* dW by a later call over all steps: backend.h */
};

/* Index into `activations`. GRU uses GATE and CANDIDATE, RNN uses CANDIDATE. */
enum { SEQLSTM_PLACE_GATE = 0, SEQLSTM_PLACE_CANDIDATE = 1, SEQLSTM_PLACE_OUTPUT = 2 };

/* A homogeneous stack of L recurrent layers over a packed range.
 *
 * Layer l reads x (l = 0, width I) or the merged output of layer l - 1 (width O, or 2 O for a
 * concatenated bidirectional one). For every layer, direction and real step t of a sequence, with
 * h' and c' the states before it (zero, or h0 and c0), in training mode:
 *
 *   x~ = x_t * m_x          m_x: `dropout`, one mask per sequence, shared by the gates
 *   h~ = h'  * m_h          m_h: `recurrent_dropout`, one mask per sequence, shared by the gates
 *   W_h~ = W_h * m_w        m_w: `weight_drop`, one mask per batch (applied by weights_pack)
 *   u = W_x x~              [G H]      v = W_h~ h~   [G H]
 *   LAYER_NORM:  u = N(u) * norm_x,  v = N(v) * norm_h,  N(z) = (z - mean z) / sqrt(var z + epsilon) over all
 *                G H elements (Ba, Kiros, Hinton 2016, eq. 20 to 22; biased variance); with COUPLED_GATES
 *                over the 3 H elements of i, g and o
 *   C(z) = min(max(z, -gate_clip), gate_clip) where gate_clip > 0, else z      (ONNX `clip`)
 *
 *   LSTM  zi = u_i + v_i + b_i + p_i * c'        i = gate(C(zi))
 *         zf = u_f + v_f + b_f + p_f * c'        f = gate(C(zf)), or 1 - i with COUPLED_GATES
 *         zg = u_g + v_g + b_g                   g = candidate(C(zg))
 *         c^ = f * c' + i * g                    then limited to [-cell_clip, cell_clip] where cell_clip > 0
 *         zo = u_o + v_o + b_o + p_o * c^        o = gate(C(zo))
 *         q  = c^, or N(c^) * norm_c + norm_c_bias over H with LAYER_NORM
 *         h^ = o * output(q)                  with projection: h^ = W_p h^    [P]
 *         c  = k_c ? c' : c^                     zoneout (Krueger et al. 2017): k_c where zoneout_cell drops
 *         h  = k_h ? h' : h^                     k_h where zoneout_hidden drops; both drawn per step
 *   GRU   r = gate(C(u_r + v_r + b_r))           z = gate(C(u_z + v_z + b_z))
 *         RESET_AFTER:  n = candidate(C(u_n + b_n + r * (v_n + b_hn)))              b = [b_r b_z b_n b_hn], 4 H
 *         otherwise:    n = candidate(C(u_n + b_n + W_hn~ (r * h~)))                b = [b_r b_z b_n], 3 H
 *         h^ = (1 - z) * n + z * h'              then zoneout_hidden as above
 *   RNN   h^ = candidate(C(u + v + b))           then zoneout_hidden as above
 *
 * Every rate acts as the nearest multiple of 2^-16 (seqlstm_mask_rate).
 * In inference mode masks are 1 and zoneout is its expectation: c = rate c' + (1 - rate) c^, h likewise.
 * Output row of (sequence, t): h of that step, both directions merged at the row of their input.
 * Final state: after the sequence's own last step (backward direction: after its first), or at t1
 * when the range ends before the sequence does (bidirectional and backward ops take whole ranges only).
 * Where a clip limits, its derivative is 0; inside (and at the ends) it is 1.
 *
 * With dtype_compute INT8 (inference, one layer) products read x and h' as q(v) = min(max(round(data_scale v +
 * data_shift), 0), 255), and row r of W_x and of W_h as signed bytes, times 127 over the largest element of both.
 * Sums are exact integers; bias, gates and c are float32, and c is never rounded. Y, HN and a given H0 may hold the
 * values of q, (q(h) - data_shift) / data_scale. The first forward after weights_pack may allocate: libraries want
 * the scales of weights when they make a kernel.
 *
 * d counts the directions that exist: BACKWARD alone has D = 1, d = 0; activations[…][1] is then not read.
 * Mask streams (philox.h): stream(l, d, p) = stream_base + 32 l + 16 d + p with p from
 * SEQLSTM_MASK_…; element = index of the feature. Per-step masks use step = position0[b] + t. Per-sequence
 * masks use step 0, or position0[b] where the axis has SEQLSTM_BIT_AXIS_STREAM. The weight mask uses
 * sequence SEQLSTM_WEIGHT_SEQUENCE, step = step block's weight_mask_step, element = index into W_h.
 *
 * Sizes of parameters, for each (l, d), I_l the width of the layer's input:
 *   W_x [G H, I_l]   W_h [G H, O]   bias [G H] (GRU RESET_AFTER: [4 H])   peephole [3 H]: i f o
 *   projection [P, H]
 *   norm: norm_x [G H], norm_h [G H], and for LSTM norm_c [H], norm_c_bias [H], in one vector
 */
enum {
    SEQLSTM_MASK_INPUT = 0,
    SEQLSTM_MASK_RECURRENT = 1,
    SEQLSTM_MASK_ZONEOUT_CELL = 2,
    SEQLSTM_MASK_ZONEOUT_HIDDEN = 3,
    SEQLSTM_MASK_WEIGHT = 4
};
#define SEQLSTM_STREAMS_PER_LAYER 32
#define SEQLSTM_WEIGHT_SEQUENCE   UINT64_C(0xFFFFFFFFFFFFFFFF)

struct seqlstm_recurrent_desc {
    struct seqlstm_desc head;
    uint32_t cell;      /* SEQLSTM_CELL_… */
    uint32_t direction; /* SEQLSTM_DIRECTION_… */
    uint32_t merge;     /* SEQLSTM_KIND_MERGE_…, read when bidirectional */
    uint32_t options;   /* SEQLSTM_BIT_RECURRENT_… */
    int64_t layers;     /* L, 1 .. 64 */
    int64_t input;      /* I */
    int64_t hidden;     /* H */
    int64_t projection; /* P; 0: none (O = H). LSTM only */
    uint64_t stream_base;
    struct seqlstm_activation activations[3][2]; /* [SEQLSTM_PLACE_…][direction] */
    float dropout;                               /* rates in [0, 1); 0: off */
    float recurrent_dropout;
    float zoneout_cell; /* in [0, 1] */
    float zoneout_hidden;
    float weight_drop;
    float cell_clip;          /* > 0, 0: off */
    float gate_clip;          /* > 0, 0: off */
    float layer_norm_epsilon; /* > 0 with LAYER_NORM */
    float data_scale;         /* > 0 with dtype_compute INT8, else 0 */
    float data_shift;         /* 0 .. 255, likewise */
};

/* Slots of RECURRENT. State and parameter slots exist for every (l, d), n = l D + d.
 * X [R, I] in · Y [R, O or 2 O] out · H0 [B, O], C0 [B, H] in · HN [B, O], CN [B, H] out (C only for LSTM).
 * With FINAL_STATE each of HN and CN may be NULL; with INITIAL_STATE H0 (and C0) must be given.
 * grads: X out (NULL for a first layer), Y in, H0/C0 out, HN/CN in, parameters out. */
enum {
    SEQLSTM_SLOT_RECURRENT_X = 0,
    SEQLSTM_SLOT_RECURRENT_Y = 1,
    SEQLSTM_SLOT_RECURRENT_STATES = 2,
    SEQLSTM_STATE_H0 = 0,
    SEQLSTM_STATE_C0 = 1,
    SEQLSTM_STATE_HN = 2,
    SEQLSTM_STATE_CN = 3
};
enum {
    SEQLSTM_PARAM_W_X = 0,
    SEQLSTM_PARAM_W_H = 1,
    SEQLSTM_PARAM_BIAS = 2,       /* absent without USE_BIAS */
    SEQLSTM_PARAM_PEEPHOLE = 3,   /* absent without PEEPHOLE */
    SEQLSTM_PARAM_PROJECTION = 4, /* absent without projection */
    SEQLSTM_PARAM_NORM = 5,       /* absent without LAYER_NORM */
    SEQLSTM_PARAM_COUNT = 6
};
#define SEQLSTM_SLOT_RECURRENT_STATE(n, which) (SEQLSTM_SLOT_RECURRENT_STATES + 4 * (n) + (which))
#define SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, which)                                                                     \
    (SEQLSTM_SLOT_RECURRENT_STATES + 4 * (ld) + SEQLSTM_PARAM_COUNT * (n) + (which)) /* ld = L D */
#define SEQLSTM_SLOT_RECURRENT_COUNT(ld) (SEQLSTM_SLOT_RECURRENT_STATES + (4 + SEQLSTM_PARAM_COUNT) * (ld))

/* ---- row-wise operations ---------------------------------------------------------------------- */

/* Rows of a table: y_r = W[id_r]; a negative id gives a row of zeros and no gradient. Ids are < V (the
 * host has checked). W [V, E]. */
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

/* y = x * mask in training, y = x in inference. Stream: `stream`; element: the feature. On the steps axis
 * DROPOUT_STEP draws per row (step = position0[b] + t), DROPOUT_SEQUENCE once per sequence (step 0, or
 * position0[b] with SEQLSTM_BIT_AXIS_STREAM). On the sequences axis (SEQLSTM_BIT_BIND_ON_SEQUENCES, backend.h) step is
 * 0. */
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
/* X · Y · GAIN [features] · BIAS [features], each absent without its option */
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

/* One row per sequence out of its steps; whole ranges only; bind.rows are the rows of X. MAX: the first step
 * that attains it gets the gradient. */
struct seqlstm_pool_desc {
    struct seqlstm_desc head;
    int64_t features;
    uint32_t kind; /* SEQLSTM_KIND_POOL_… */
    uint32_t reserved0;
};
/* X [R, features] in, on steps · Y [B, features] out, on sequences: SEQLSTM_SLOT_UNARY_X, _Y */

#define SEQLSTM_MAX_MERGE_INPUTS 8

/* Joins 2 to 8 inputs of equal rows; all but CONCAT want equal widths. */
struct seqlstm_merge_desc {
    struct seqlstm_desc head;
    uint32_t kind; /* SEQLSTM_KIND_MERGE_… */
    uint32_t inputs;
    int64_t widths[SEQLSTM_MAX_MERGE_INPUTS]; /* features of each input; zero beyond `inputs` */
};
/* Y [R, sum of widths or width] out at 0 · input k at SEQLSTM_SLOT_MERGE_X + k */
enum { SEQLSTM_SLOT_MERGE_Y = 0, SEQLSTM_SLOT_MERGE_X = 1, SEQLSTM_SLOT_MERGE_COUNT = 1 + SEQLSTM_MAX_MERGE_INPUTS };

/* GATHER: y[i] = x[index[i]] for i < rows of y; index < 0 gives zeros. Backward adds up where an index
 * repeats. SCATTER: y = 0, then y[index[i]] = x[i] for i < rows of x; indices are distinct, < 0 skips.
 * Rows of x: bind.rows_in; rows of y: bind.rows; head.max_rows bounds both. */
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
    uint32_t from; /* dtypes; head.dtype_activation is not read */
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

/* Compound: x W' + b without activation, then the loss of its rows. */
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
/* slots as LOSS (X is [R, input]), then W [C, input] and BIAS [C] */
enum { SEQLSTM_SLOT_DENSE_LOSS_W = 6, SEQLSTM_SLOT_DENSE_LOSS_BIAS = 7, SEQLSTM_SLOT_DENSE_LOSS_COUNT = 8 };

/* ---- choices ------------------------------------------------------------------------------------ */

enum { SEQLSTM_KIND_TOP_K_BEST = 0, SEQLSTM_KIND_TOP_K_SAMPLE = 1 };

/* BEST: the k largest of each row, largest first, ties by lower index; VALUE the x themselves.
 * SAMPLE (k = 1): softmax(x / temperature), restricted to the top_k best (0: all) and to the smallest set of
 * best elements whose probability reaches top_p (1: all), drawn with the uniform number of
 * (stream, element 0, step = position0[b] + t, sequence id); VALUE is the log-probability drawn from. */
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
    SEQLSTM_KIND_OPTIMIZER_MOMENTUM = 2, /* m = mu m + g; p -= lr m       (PyTorch's form, dampening 0) */
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
 *   norm = grad_scale sqrt(SQUARES)                        float64
 *   g = s GRAD,  s = clip_norm > 0 and norm > clip_norm ? grad_scale clip_norm / norm : grad_scale
 * Weight decay is decoupled (Loshchilov and Hutter 2019): p -= lr weight_decay p, before the rest.
 * Nothing is changed where SUMS[0] or SQUARES is not finite, or the step block has the flag SEQLSTM_BIT_STEP_SKIP. */
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
 * SUMS [2] float64 in: those of the loss · SQUARES [1] float64 in: the sum of GRAD^2, of all parameters of the model.
 * All states start at zero (ADAGRAD: at what the host chooses). Unused state slots are NULL. */
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
    SEQLSTM_KIND_VECTOR_SIGN_AXPY = 5, /* y += a sign(x), sign(0) = 0 */
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
