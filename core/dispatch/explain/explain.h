/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a plan: as JSON for programs, and as a table for people. */
#ifndef SL_DISPATCH_EXPLAIN_EXPLAIN_H
#define SL_DISPATCH_EXPLAIN_EXPLAIN_H

#include "base/value/buf.h"
#include "dispatch/plan/plan.h"

/* An encoder and a decoder that runs step by step. Zeroed: there are none. */
struct sl_plan_pair {
    const struct sl_plan *encoder, *step;
    int64_t own_bytes; /* of the code that runs them, e.g. a beam search */
};

/* Other plans whose buffers a run holds at the same time. Zeroed: none. */
struct sl_plan_beside {
    const struct sl_plan *evaluate; /* NULL: there is none */
    struct sl_plan_pair decoding;   /* of texts, for metrics */
    const struct sl_plan *test; /* at the end, instead of decoding; NULL: a test split is evaluated like `evaluate` */
    struct sl_plan_pair test_decoding;
    struct sl_plan_pair sampling; /* of tokens that training reads instead of the target's */
};

/* Appends one JSON object, "schema": "seqlstm.plan/1". Its "layers" (and those of evaluation, decoding and sampling)
 * are what a replay needs (sl_plan_request.stored); the bits of the results also depend on "threads" and "devices".
 * Errors: NO_MEMORY. [any thread] */
seqlstm_status sl_plan_write_json(const struct sl_plan *plan, const struct sl_plan_beside *beside, struct sl_buf *out,
                                  struct seqlstm_error *err);

/* Appends the table: layer, output, parameters, backend, time; below each layer the other backends and why they were
 * not chosen. `brief` leaves out those that are only slower, and memory. Failure is sticky in the buffer. */
void sl_plan_write_table(const struct sl_plan *plan, const struct sl_plan_beside *beside, bool brief,
                         struct sl_buf *out);

/* "measured", "cache", "estimate"; "guess": by the amount of work. */
const char *sl_cost_source_get_name(enum sl_cost_source source);

/* The memory of a run that holds all of these buffers at once. */
struct sl_plan_memory sl_plan_sum_memory(const struct sl_plan *plan, const struct sl_plan_beside *beside);

/* An activation that one call writes in one memory domain and another reads in another. */
struct sl_copy {
    const struct sl_tensor *tensor;
    const char *from, *to; /* domains */
    int64_t bytes;         /* in the largest batch, forward; training copies the gradient back */
};

/* Copies of one step, in the order of the calls that need them. Returns how many there are; fills at most
 * `capacity`. */
int32_t sl_plan_list_copies(const struct sl_plan *plan, struct sl_copy *out_copies, int32_t capacity);

/* A cast: a call that computes in another type converts an activation from or to float32, the type of all activations
 * between calls. */
struct sl_cast {
    const struct sl_tensor *tensor;
    const struct sl_call *call;
    uint32_t from, to; /* SEQLSTM_DTYPE_FLOAT32 … */
    int64_t bytes;     /* of the float32 side in the largest batch, forward; training casts the gradient as well */
};

/* Casts of one step; their time is part of the time of their calls. Returns how many there are; fills at most
 * `capacity`. */
int32_t sl_plan_list_casts(const struct sl_plan *plan, struct sl_cast *out_casts, int32_t capacity);

/* Parameters (elements) that the nodes of a call own. */
int64_t sl_call_param_elems(const struct sl_graph *graph, const struct sl_call *call);

#endif
