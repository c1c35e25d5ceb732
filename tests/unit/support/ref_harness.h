/* SPDX-License-Identifier: Apache-2.0 */
/* One operation of the built-in reference, ready to run in float64 or float32: slots from its signature,
 * random contents, forward, backward, finite differences. Failures end the cmocka test.
 *
 * The objective that is differentiated is the sum over all outputs of (a fixed random weight) * output, plus
 * normaliser * loss_scale * SUMS[0] for losses.
 */
#ifndef REF_HARNESS_H
#define REF_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/operation/op_signature.h"

struct rh {
    union seqlstm_any_desc desc;
    struct seqlstm_axis axis;
    struct seqlstm_bind bind;
    struct seqlstm_step step;
    const struct seqlstm_backend *backend;
    struct seqlstm_instance *instance;
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    struct seqlstm_queue queue;
    struct sl_slot *slots;
    int64_t *elems;
    void **values;  /* float64 for float32 slots, otherwise as the slot says; NULL: absent */
    double **grads; /* of float slots: of outputs, the weights of the objective */
    void *workspace, *reserve;
    int32_t count;
    uint64_t random;
};

/* A head with bounds that suit the axis; `sequences` lengths, or NULL and `rows`. */
struct seqlstm_desc rh_head(uint32_t op, uint32_t mode);

/* Creates and binds over [t0, t1) of the axis of `lengths`. Slots are filled with random numbers: floats in
 * [-1, 1], sequence ids and positions distinct, integers zero. */
void rh_open(struct rh *rh, const union seqlstm_any_desc *desc, const int32_t *lengths, int64_t sequences, int64_t t0,
             int64_t t1, uint64_t seed);
/* The same without an axis. */
void rh_open_rows(struct rh *rh, const union seqlstm_any_desc *desc, int64_t rows, int64_t rows_in, uint64_t seed);
void rh_close(struct rh *rh);

double rh_uniform(struct rh *rh, double low, double high);
double *rh_value(struct rh *rh, int32_t slot);
void rh_scale(struct rh *rh, int32_t slot, double factor);

void rh_forward(struct rh *rh);
/* Every gradient of inputs and parameters is zeroed before, unless parts has ACCUMULATE. */
void rh_backward(struct rh *rh, uint32_t parts);
double rh_objective(const struct rh *rh);

/* Runs forward and backward and compares every gradient with central differences. Returns the largest
 * |difference| / max(1, |gradient|) and fails above `tolerance`, naming the element. `name` is for the message. */
double rh_check_gradients(struct rh *rh, const char *name, double tolerance);

/* Runs the float32 entry points on rounded slots; compares every output and gradient with the float64 ones on
 * the same rounded slots, within float32 rounding. */
void rh_check_float32(struct rh *rh, const char *name);

/* The built-in reference: its table and an instance (closed by rh_reference_close). */
const struct seqlstm_backend *rh_reference(struct seqlstm_instance **out_instance);

enum { RH_ALL = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES | SEQLSTM_BIT_BACKWARD_WEIGHTS };

#endif
