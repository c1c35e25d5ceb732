/* SPDX-License-Identifier: Apache-2.0 */
/* What all descriptors share: operations, dtypes, activations, option ids, the head. Include ../ops.h instead. */
#ifndef SEQLSTM_OPS_HEAD_H
#define SEQLSTM_OPS_HEAD_H

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
    SEQLSTM_OP_DENSE_LOSS = 13,   /* dense and loss in one, so that no [R, V] matrix is needed */
    SEQLSTM_OP_TOP_K = 14,        /* the k largest elements of a row, or one drawn at random */
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
    SEQLSTM_DTYPE_TF32 = 1, /* as dtype_compute only */
    SEQLSTM_DTYPE_BFLOAT16 = 2,
    SEQLSTM_DTYPE_FLOAT16 = 3,
    SEQLSTM_DTYPE_FLOAT64 = 4,
    SEQLSTM_DTYPE_INT32 = 5,
    SEQLSTM_DTYPE_INT8 = 6,
    SEQLSTM_DTYPE_UINT8 = 7
};

/* Activations, with the names and defaults of ONNX. The host always fills in alpha and beta. */
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
/* At a kink the derivative is that of the branch which the condition above selects (relu: 0 at x = 0; hard_sigmoid:
 * alpha strictly inside, 0 at the ends and beyond). */

struct seqlstm_activation {
    uint32_t kind; /* SEQLSTM_ACT_… */
    float alpha;
    float beta;
    uint32_t reserved0; /* zero */
};

/* Option ids: a refusal names one. The host knows its key and its place in the model file. */
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
    SEQLSTM_OPTION_ACTIVATION = 11,           /* of the candidate; `activation` of other layers */
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
    SEQLSTM_OPTION_STATES = 25,  /* initial or final states, no output */
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
    SEQLSTM_MODE_INFERENCE = 1, /* forward only; expectations instead of masks */
    SEQLSTM_MODE_TRAINING = 2   /* forward fills `reserve`; backward follows */
};

enum {
    SEQLSTM_BIT_DESC_DETERMINISTIC = 1u << 0, /* the same inputs, threads and plan give the same bits */
    SEQLSTM_BIT_DESC_UNIFORM = 1u << 1        /* all sequences of a batch have the same length */
};

/* Head of every descriptor. 72 bytes. */
struct seqlstm_desc {
    uint32_t struct_size; /* bytes of the host's whole descriptor */
    uint32_t op;          /* SEQLSTM_OP_… */
    uint32_t mode;        /* SEQLSTM_MODE_… */
    uint32_t flags;       /* SEQLSTM_BIT_DESC_… */
    /* dtype of each role; zero: float32 */
    uint32_t dtype_activation;      /* x, y and other activations */
    uint32_t dtype_activation_grad; /* their gradients */
    uint32_t dtype_state;           /* carried c (and h between steps) */
    uint32_t dtype_compute;         /* products */
    uint32_t dtype_weight;          /* weights that the kernel reads; the master copies are float32 */
    uint32_t dtype_weight_grad;     /* gradients that the kernel writes */
    /* upper bounds of all calls, for which op_sizes answers; there is no value for "unbounded" */
    int64_t max_rows;      /* R, or the number of elements of a flat vector */
    int64_t max_sequences; /* B; 0 if the operation has no sequences */
    int64_t max_steps;     /* T; 0 if it has no steps */
    int64_t reserved0;     /* zero */
};

#ifdef __cplusplus
}
#endif

#endif
