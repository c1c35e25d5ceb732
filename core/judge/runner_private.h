/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of a runner: one operation, its bindings (one for each segment of the steps) and its buffers. runner.c
 * creates them, runner_call.c makes the calls, runner_result.c reads the results.
 *
 * Segments. Slots on the steps axis point into the whole tensor. The final state of segment k is a buffer of its own
 * (`middle`), which is the initial state of segment k + 1. The rows of sequences that ended inside segment k are copied
 * to the final state of the whole. Backward goes the other way:
 *
 *   forward   h0 -> [segment 0] -> middle 0 -> [segment 1] -> hn rows of the sequences that go on
 *                                   \_ hn rows of those that ended in segment 0
 *
 * Invariants
 * 1. segments[k].slots and .grads are the arguments of forward and backward of segment k. They are fixed at creation,
 *    except that `parts` decides which gradients are present.
 * 2. There is one reserve for each segment, never shared. With `stepwise`, however, that of segment 0 serves all, and
 *    the gradients of parameters come from one more call on the whole. */
#ifndef SL_JUDGE_RUNNER_PRIVATE_H
#define SL_JUDGE_RUNNER_PRIVATE_H

#include "base/memory/arena.h"
#include "dispatch/memory/footprint_query.h"
#include "judge/guarded.h"
#include "judge/runner.h"

struct sl_runner_segment {
    struct seqlstm_bind bind;
    struct seqlstm_binding *binding;
    struct sl_guarded reserve;
    struct sl_guarded *middle;      /* [count] final states of all segments except the last */
    struct sl_guarded *middle_grad; /* [count] their gradients */
    void **slots, **grads;          /* [count] */
};

struct sl_runner {
    struct sl_arena arena;
    struct sl_subject subject;
    const struct sl_data *data;
    union seqlstm_any_desc desc;
    struct seqlstm_answer answer;
    struct seqlstm_sizes sizes;
    struct seqlstm_op *op;
    seqlstm_status (*forward)(struct seqlstm_binding *, struct seqlstm_queue *, const struct seqlstm_forward *,
                              struct seqlstm_error *);
    seqlstm_status (*backward)(struct seqlstm_binding *, struct seqlstm_queue *, const struct seqlstm_backward *,
                               struct seqlstm_error *);
    int32_t count;
    uint32_t *dtypes;          /* [count] as passed */
    struct sl_guarded *values; /* [count] */
    struct sl_guarded *grads;
    struct sl_guarded workspace, packed;
    struct sl_twins twins;
    struct sl_runner_segment segments[SL_SEGMENTS_MAX];
    int32_t segment_count;
    bool stepwise;
    struct sl_runner_segment whole; /* stepwise: for the call that computes dW */
    bool has_backward;
    uint32_t unasked_parts;   /* of the last backward; their gradients have buffers, and may not be written */
    bool watches_idle;        /* the workspace keeps what forward left in it */
    struct seqlstm_idle idle; /* bytes that must stay untouched; zero: not asked */
    double slope_distance;    /* sl_runner_move_slopes */
    uint64_t slope_draw;
};

/* Is the slot an initial state of the layer? Is it a final one? */
bool sl_runner_is_initial(const struct sl_runner *r, int32_t slot);
bool sl_runner_is_final(const struct sl_runner *r, int32_t slot);
/* SEQLSTM_BIT_BACKWARD_… that asks for its gradient; 0: it has none. */
uint32_t sl_runner_get_part(const struct sl_runner *r, int32_t slot);

#endif
