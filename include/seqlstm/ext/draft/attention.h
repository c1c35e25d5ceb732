/* SPDX-License-Identifier: Apache-2.0 */
/* Draft operation ATTENTION: for each query, a mean of the values of a memory, weighted by how well their keys fit.
 *
 * The memories lie one after the other in the slots KEYS and VALUES, without padding: memory m has the rows
 * [offsets[m], offsets[m + 1]), where offsets is the slot OFFSETS. memory_of (the slot MEMORY_OF) gives the memory of
 * each query. Queries may come in any order, and many may share a memory, as the steps of a target sentence and the
 * hypotheses of a beam search do.
 *
 *   lengths 3 0 2:   offsets 0 3 3 5      keys, values: rows a0 a1 a2 c0 c1      memory_of 0 2 0 -1
 *
 * For query q and the S rows j of its memory m:
 *
 *   DOT       e_j = scale q . k_j               scale 1: Luong et al. 2015, eq. 8 "dot" (for "general", apply a DENSE
 *                                               to the queries first); 1/sqrt(K): Vaswani et al. 2017, eq. 1
 *   ADDITIVE  e_j = s . tanh(q + k_j)           Bahdanau et al. 2015, appendix A.1.2: s is the parameter SCORE; DENSE
 *                                               operations before this one compute W q and U k
 *   a = softmax(e) over the S rows              Bahdanau et al. 2015, eq. 6; Luong et al. 2015, eq. 7
 *   context_q = sum_j a_j v_j
 *
 * If S = 0 or memory_of[q] < 0, the context and the weights are 0 and the query gives no gradients.
 *
 * Rows of queries: bind.rows; of keys and values: bind.rows_in; head.max_rows bounds both. head.max_sequences bounds
 * the number of memories, head.max_steps their length. The axis is not read. Gradients of keys and values are sums over
 * the queries of a memory; rows of memories without queries get 0. Draft: it may change with any release before 1.0.
 */
#ifndef SEQLSTM_EXT_DRAFT_ATTENTION_H
#define SEQLSTM_EXT_DRAFT_ATTENTION_H

#include <seqlstm/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SEQLSTM_KIND_ATTENTION_DOT = 1, SEQLSTM_KIND_ATTENTION_ADDITIVE = 2 };

enum {
    SEQLSTM_BIT_ATTENTION_SHARED = 1u << 0, /* values are the keys (V = K); the gradient of KEYS is the sum of both */
    SEQLSTM_BIT_ATTENTION_WEIGHTS = 1u << 1 /* slot WEIGHTS is wanted */
};

struct seqlstm_attention_desc {
    struct seqlstm_desc head;
    int64_t key;      /* K, features of queries and keys */
    int64_t value;    /* V, features of values and contexts */
    uint32_t kind;    /* SEQLSTM_KIND_ATTENTION_DOT … */
    uint32_t options; /* SEQLSTM_BIT_ATTENTION_SHARED … */
    float scale;      /* > 0 with DOT; 0 with ADDITIVE */
    uint32_t reserved0;
};

/* QUERIES [Q, K] in · KEYS [M, K] in · VALUES [M, V] in (absent with SHARED) · CONTEXT [Q, V] out ·
 * OFFSETS [max_sequences + 1] int32 in: not decreasing, from 0 to M, no memory longer than max_steps; if a batch has
 * fewer memories, the others are empty · MEMORY_OF [Q] int32 in, below max_sequences · WEIGHTS [Q, max_steps] out
 * (absent without its option): row q begins with a, then come zeros; it has no gradient · SCORE [K], the parameter s of
 * ADDITIVE (absent with DOT). OFFSETS and MEMORY_OF lie in the same memory domain as the other slots; the host has
 * checked them. */
enum {
    SEQLSTM_SLOT_ATTENTION_QUERIES = 0,
    SEQLSTM_SLOT_ATTENTION_KEYS = 1,
    SEQLSTM_SLOT_ATTENTION_VALUES = 2,
    SEQLSTM_SLOT_ATTENTION_CONTEXT = 3,
    SEQLSTM_SLOT_ATTENTION_OFFSETS = 4,
    SEQLSTM_SLOT_ATTENTION_MEMORY_OF = 5,
    SEQLSTM_SLOT_ATTENTION_WEIGHTS = 6,
    SEQLSTM_SLOT_ATTENTION_SCORE = 7,
    SEQLSTM_SLOT_ATTENTION_COUNT = 8
};

#ifdef __cplusplus
}
#endif

#endif
