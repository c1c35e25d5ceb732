/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in words: the JSON that programs read and the table that people read. */
#ifndef SL_DISPATCH_EXPLAIN_EXPLAIN_H
#define SL_DISPATCH_EXPLAIN_EXPLAIN_H

#include "base/value/buf.h"
#include "dispatch/plan/plan.h"

/* An encoder and a decoder that runs step by step. Zeroed: there are none. */
struct sl_plan_pair {
    const struct sl_plan *encoder, *step;
    int64_t own_bytes; /* of whoever drives them, e.g. a beam */
};

/* What a run holds beside the buffers of its plan, all at once. Zeroed: nothing. */
struct sl_plan_beside {
    const struct sl_plan *evaluate; /* NULL: there is none */
    struct sl_plan_pair decoding;   /* of texts for metrics */
    const struct sl_plan *test;     /* at the end, in place of decoding; NULL: of a test split, it is like `evaluate` */
    struct sl_plan_pair test_decoding;
    struct sl_plan_pair sampling; /* of tokens that training reads in place of the target's */
};

/* Appends one JSON object, "schema": "seqlstm.plan/1". Its "layers" (and those of evaluation, decoding and sampling)
 * replay the plan (sl_plan_request.stored); "threads" and "devices" say what else its bits depend on. Errors:
 * NO_MEMORY. [any thread] */
seqlstm_status sl_plan_write_json(const struct sl_plan *plan, const struct sl_plan_beside *beside, struct sl_buf *out,
                                  struct seqlstm_error *err);

/* Appends the table: layer, output, parameters, backend, time, and below each layer why not another. `brief` leaves out
 * who would only be slower, and memory. Failure is sticky in the buffer. */
void sl_plan_write_table(const struct sl_plan *plan, const struct sl_plan_beside *beside, bool brief,
                         struct sl_buf *out);

/* "measured", "cache", "estimate"; "guess" is the host's own. */
const char *sl_cost_source_get_name(enum sl_cost_source source);

/* Of a run that holds all of these buffers at once. */
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

/* An activation that a call reads or hands on as float32, as all of them stand between calls, and computes in another
 * type. */
struct sl_cast {
    const struct sl_tensor *tensor;
    const struct sl_call *call;
    uint32_t from, to; /* SEQLSTM_DTYPE_FLOAT32 … */
    int64_t bytes;     /* of the float32 side in the largest batch, forward; training casts the gradient as well */
};

/* Casts of one step; their time is in that of the calls that make them. Returns how many there are; fills at most
 * `capacity`. */
int32_t sl_plan_list_casts(const struct sl_plan *plan, struct sl_cast *out_casts, int32_t capacity);

/* Parameters (elements) that the nodes of a call own. */
int64_t sl_call_param_elems(const struct sl_graph *graph, const struct sl_call *call);

#endif
