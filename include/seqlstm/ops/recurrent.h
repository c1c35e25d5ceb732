/* SPDX-License-Identifier: Apache-2.0 */
/* The operation RECURRENT: a stack of LSTM, GRU or simple RNN layers. Include ../ops.h instead. */
#ifndef SEQLSTM_OPS_RECURRENT_H
#define SEQLSTM_OPS_RECURRENT_H

#include "head.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- recurrent ----------------------------------------------------------------------------- */

enum {
    SEQLSTM_CELL_LSTM = 1, /* G = 4, gates i f g o */
    SEQLSTM_CELL_GRU = 2,  /* G = 3, gates r z n */
    SEQLSTM_CELL_RNN = 3   /* G = 1 */
};

enum {
    SEQLSTM_DIRECTION_FORWARD = 0,
    SEQLSTM_DIRECTION_BACKWARD = 1,     /* from the last step of each sequence to its first */
    SEQLSTM_DIRECTION_BIDIRECTIONAL = 2 /* D = 2: forward is direction 0, backward 1 */
};

/* How the outputs of two directions become one row, and how the operation MERGE joins its inputs. */
enum {
    SEQLSTM_KIND_MERGE_CONCAT = 0,
    SEQLSTM_KIND_MERGE_SUM = 1,
    SEQLSTM_KIND_MERGE_MUL = 2,
    SEQLSTM_KIND_MERGE_AVE = 3
};

enum {
    SEQLSTM_BIT_RECURRENT_USE_BIAS = 1u << 0,
    SEQLSTM_BIT_RECURRENT_PEEPHOLE = 1u << 1,      /* LSTM */
    SEQLSTM_BIT_RECURRENT_COUPLED_GATES = 1u << 2, /* LSTM: f = 1 - i; rows f of the parameters are unused */
    SEQLSTM_BIT_RECURRENT_LAYER_NORM = 1u << 3,    /* LSTM, RNN, GRU with RESET_AFTER */
    SEQLSTM_BIT_RECURRENT_RESET_AFTER = 1u << 4,   /* GRU */
    SEQLSTM_BIT_RECURRENT_INITIAL_STATE = 1u << 5, /* h0 (and c0) are given; otherwise they are zero */
    SEQLSTM_BIT_RECURRENT_FINAL_STATE = 1u << 6,   /* hn (and cn) are wanted */
    SEQLSTM_BIT_RECURRENT_OUTPUT = 1u << 7,        /* y is wanted (return_sequences) */
    SEQLSTM_BIT_RECURRENT_STEPWISE = 1u << 8       /* a later call over all steps computes dW: backend.h */
};

/* Index into `activations`. GRU uses GATE and CANDIDATE, RNN uses CANDIDATE. */
enum { SEQLSTM_PLACE_GATE = 0, SEQLSTM_PLACE_CANDIDATE = 1, SEQLSTM_PLACE_OUTPUT = 2 };

/* A stack of L recurrent layers of the same kind over a packed range.
 *
 * Layer l reads x (l = 0, width I) or the merged output of layer l - 1 (width O, or 2 O if it concatenates two
 * directions). For every layer, every direction and each step t of a sequence, where h' and c' are the states before
 * the step (at first h0 and c0, or zero), in training mode:
 *
 *   x~ = x_t * m_x          m_x: `dropout`, one mask per sequence, shared by the gates
 *   h~ = h'  * m_h          m_h: `recurrent_dropout`, one mask per sequence, shared by the gates
 *   W_h~ = W_h * m_w        m_w: `weight_drop`, one mask per batch (applied by weights_pack where there is one)
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
 *         q  = c^, with LAYER_NORM N(c^) * norm_c + norm_c_bias over H
 *         h^ = o * output(q)                  with projection: h^ = W_p h^    [P]
 *         c  = k_c ? c' : c^                     zoneout (Krueger et al. 2017): k_c if the mask zoneout_cell drops
 *         h  = k_h ? h' : h^                     k_h if the mask zoneout_hidden drops; both masks are drawn per step
 *   GRU   r = gate(C(u_r + v_r + b_r))           z = gate(C(u_z + v_z + b_z))
 *         RESET_AFTER:  n = candidate(C(u_n + b_n + r * (v_n + b_hn)))              b = [b_r b_z b_n b_hn], 4 H
 *         otherwise:    n = candidate(C(u_n + b_n + W_hn~ (r * h~)))                b = [b_r b_z b_n], 3 H
 *         h^ = (1 - z) * n + z * h'              then zoneout_hidden as above
 *   RNN   h^ = candidate(C(u + v + b))           then zoneout_hidden as above
 *
 * Every rate is rounded to a multiple of 2^-16 (seqlstm_mask_rate).
 * In inference mode masks are 1, and zoneout is replaced by its expectation: c = rate c' + (1 - rate) c^, h likewise.
 * Output row of (sequence, t): h of that step; both directions are merged in the row of their input.
 * Final state: the state after the last step of the sequence (backward direction: after its first step), or at the end
 * of the range if the sequence goes on after it. BACKWARD and BIDIRECTIONAL run on the whole axis only.
 * The derivative of a clip is 0 outside its limits, and 1 inside and at the limits.
 *
 * dtype_compute INT8 (inference, one layer): products read x and h' as q(v) = min(max(round(data_scale v + data_shift),
 * 0), 255), and row r of W_x and W_h as signed bytes, scaled by 127 / the largest absolute value of that row in both.
 * Sums are exact integers; bias, gates and c are float32, and c is never rounded. Y, HN and a given H0 may hold the
 * values that q represents: (q(h) - data_shift) / data_scale. The first forward after weights_pack may allocate, since
 * libraries need the scales of the weights when they create a kernel.
 *
 * d counts the directions that exist: BACKWARD alone has D = 1 and d = 0; activations[…][1] is then not read.
 * Mask streams (philox.h): stream(l, d, p) = stream_base + 32 l + 16 d + p, where p is one of SEQLSTM_MASK_…; the
 * element is the index of the feature. Masks per step use step = position0[b] + t. Masks per sequence use step 0, or
 * position0[b] if the axis has SEQLSTM_BIT_AXIS_STREAM. The weight mask uses sequence SEQLSTM_WEIGHT_SEQUENCE, step =
 * weight_mask_step of the step block, and the index into W_h as element.
 *
 * Sizes of the parameters for each (l, d), where I_l is the width of the layer's input:
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
#define SEQLSTM_MAX_LAYERS        64
#define SEQLSTM_STREAMS_PER_LAYER 32
#define SEQLSTM_WEIGHT_SEQUENCE   UINT64_C(0xFFFFFFFFFFFFFFFF)

struct seqlstm_recurrent_desc {
    struct seqlstm_desc head;
    uint32_t cell;      /* SEQLSTM_CELL_… */
    uint32_t direction; /* SEQLSTM_DIRECTION_… */
    uint32_t merge;     /* SEQLSTM_KIND_MERGE_…; read if bidirectional */
    uint32_t options;   /* SEQLSTM_BIT_RECURRENT_… */
    int64_t layers;     /* L, 1 .. SEQLSTM_MAX_LAYERS */
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
 * grads: X out (NULL if it is not wanted, as for a first layer), Y in, H0 and C0 out, HN and CN in, parameters out. */
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

#ifdef __cplusplus
}
#endif

#endif
