/* SPDX-License-Identifier: Apache-2.0 */
/* A case of the conformance kit. One string is the name of the test, the way to repeat it, and the key of its
 * benchmark.
 *
 *   lstm:bwd:T37B5I16H33L2D2:f32:ragged:recurrent_dropout
 *   ^op  ^pass ^sizes        ^dtype ^lengths ^options, separated by commas; the last field may be absent
 *
 *   op       an operation of ops.h; recurrent ones by their cell: lstm, gru, rnn
 *   pass     what is tested, enum sl_case_pass
 *   sizes    T steps, B sequences, I input, H hidden, P projection, L layers, D directions, V vocabulary,
 *            E embedding, C features or classes, O outputs of a dense layer, N elements of a flat vector,
 *            R rows (operations without a steps axis), Q rows_in, K of top-k, W inputs of a merge;
 *            attention: R queries, B memories of at most T rows, K key and V value features
 *   dtype    f32, bf16, f16 of inputs and outputs;
 *            f32-tf32, f32-bf16, f32-f16, f32-i8: float32 outside, narrower products
 *   lengths  ragged | uniform | ones | long (one long, the others 1) | flat (no steps axis)
 *   options  a name, or name=value: see `options` in case_options.c
 *
 * The data of a case is a pure function of the string and the seed. */
#ifndef SL_JUDGE_CASE_H
#define SL_JUDGE_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

enum sl_case_pass {
    SL_PASS_INFERENCE = 0, /* inf: forward in inference mode against the reference */
    SL_PASS_FORWARD,       /* fwd: forward in training mode */
    SL_PASS_BACKWARD,      /* bwd: forward and backward; all gradients, also accumulated, and each part alone */
    SL_PASS_RANGES,        /* ranges: the steps in three segments give the results of the whole */
    SL_PASS_DIFFERENCES,   /* fd: backward against finite differences, in float64 */
    SL_PASS_REPEAT,        /* repeat: the same bits again, from the same binding, a second binding and a second op */
    SL_PASS_SAME,          /* same: training with all rates 0 gives the results of inference */
    SL_PASS_MEMORY,        /* memory: the n-th allocation fails; forward and backward allocate nothing */
    SL_PASS_THREADS,       /* threads: 1, 2 and 3 members; two queues at the same time */
    SL_PASS_ALTERNATE,     /* alternate: alternates with the reference on one queue; the same bits as alone */
    SL_PASS_CLAIM,         /* claim: supports is pure and quick, and refuses what it does not know */
    SL_PASS_IDLE,          /* idle: calls leave alone the bytes that are said to stay untouched */
    SL_PASS_COUNT
};

enum sl_case_lengths { SL_LENGTHS_RAGGED = 0, SL_LENGTHS_UNIFORM, SL_LENGTHS_ONES, SL_LENGTHS_LONG, SL_LENGTHS_FLAT };

enum { SL_CASE_TEXT_BYTES = 256 };

/* ATTENTION: which memory each query uses. */
enum sl_case_queries {
    SL_QUERIES_MIXED = 0, /* in any order; some have none */
    SL_QUERIES_PACKED,    /* step by step, like the rows of a decoder's batch */
    SL_QUERIES_BEAMS      /* neighbouring queries share one */
};

struct sl_case {
    char text[SL_CASE_TEXT_BYTES];
    enum sl_case_pass pass;
    enum sl_case_lengths lengths;
    uint32_t dtype;              /* of activations; SEQLSTM_DTYPE_FLOAT32 … */
    int64_t steps;               /* T; 0 with FLAT */
    int64_t sequences;           /* B; 0 with FLAT */
    int64_t rows;                /* FLAT: R or N */
    int64_t rows_in;             /* GATHER, SCATTER */
    uint32_t memories;           /* ATTENTION: enum sl_case_lengths; with RAGGED some are empty */
    uint32_t queries;            /* ATTENTION: enum sl_case_queries */
    bool stream;                 /* axis flag STREAM; positions do not begin at 0 */
    bool on_sequences;           /* rows are on the sequences axis */
    bool no_input_grad;          /* dx is not wanted */
    bool no_output_grad;         /* dy is NULL: zero everywhere */
    bool no_state_grad;          /* dhn, dcn are NULL */
    bool saturated;              /* large values, where activations saturate */
    bool nan;                    /* pool: an element in the middle of each sequence of three steps or more is NaN;
                                  * vector: elements of x, or of y where there is no x, are NaN or infinite */
    bool skip;                   /* optimizer: step with SEQLSTM_BIT_STEP_SKIP */
    uint32_t diverged;           /* optimizer: 1: the loss is NaN, 2: the sum of squares is infinite */
    union seqlstm_any_desc desc; /* complete; the pass sets the mode */
};

/* Errors: INVALID_ARGUMENT names the part of the string that is wrong. */
seqlstm_status sl_case_parse(const char *text, struct sl_case *out_case, struct seqlstm_error *err);

/* Applies one option to a case; for sl_case_parse. INVALID_ARGUMENT. */
seqlstm_status sl_case_apply_option(struct sl_case *c, const char *option, size_t length, struct seqlstm_error *err);

/* Sets all mask rates of a recurrent case to 0. */
void sl_case_clear_rates(struct sl_case *c);

#endif
