/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend: float64 arithmetic in straightforward loops, never optimised. Begin with README.md.
 *
 *   backend.c   the table of functions: what is accepted, create, bind
 *   execute.c   one call: float32 slots -> float64 arrays -> the operation's family -> float32 slots
 *   the rest    one file per family of operations: only its mathematics, on float64 arrays
 *
 * The table calls ref_forward or ref_backward in execute.c, which calls the function of the family. That function can
 * rely on the following:
 *
 *   call->values[k]   slot k as float64 (int32, float64 and 16-bit slots as they are); NULL if it is not given
 *   call->grads[k]    in backward, if forward writes slot k: its gradient, or NULL for zero
 *                     in backward, if forward reads slot k: an array to *add to*, or NULL if it is not wanted
 *   call->scratch     scratch_elems(…) elements
 *   call->reserve     reserve_elems(…) elements
 *
 * Families allocate nothing.
 */
#ifndef REF_REFERENCE_H
#define REF_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/backend.h>
#include <seqlstm/philox.h>

/* How many rows each axis has: in one binding, or at most, by a descriptor. */
struct ref_extent {
    int64_t rows;      /* bind.rows */
    int64_t rows_in;   /* bind.rows_in */
    int64_t states;    /* sequences with a step at t0 */
    int64_t sequences; /* sequences of the axis */
};

enum ref_access {
    REF_ABSENT = 0,
    REF_INPUT,  /* forward reads it, backward computes its gradient */
    REF_STATE,  /* the same, wanted under SEQLSTM_BIT_BACKWARD_STATES */
    REF_PARAM,  /* the same, wanted under SEQLSTM_BIT_BACKWARD_WEIGHTS, and accumulated */
    REF_OUTPUT, /* forward writes it, backward reads its gradient */
    REF_INOUT,  /* read and written, no gradient */
    REF_CONST   /* read, no gradient */
};

struct ref_slot {
    enum ref_access access;
    uint32_t dtype; /* SEQLSTM_DTYPE_FLOAT32 … */
    int64_t elems;
};

struct ref_call {
    const union seqlstm_any_desc *desc;
    const struct seqlstm_bind *bind;
    const struct ref_extent *extent;
    const struct seqlstm_step *step;
    void *const *values;  /* by slot */
    double *const *grads; /* by slot; NULL in forward */
    uint32_t parts;       /* SEQLSTM_BIT_BACKWARD_… */
    double *scratch;
    double *reserve;       /* NULL in inference */
    double slope_distance; /* backward_moved of float64.h; 0: slopes unchanged */
    uint64_t *slope_draw;  /* state of the random numbers for it */
};

/* The functions for one kind of operation. */
struct ref_family {
    /* Fills the slots, which the caller has zeroed; returns their number. */
    int32_t (*slots)(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slots);
    int64_t (*scratch_elems)(const union seqlstm_any_desc *desc, const struct ref_extent *extent); /* NULL: 0 */
    int64_t (*reserve_elems)(const union seqlstm_any_desc *desc, const struct ref_extent *extent); /* NULL: 0 */
    seqlstm_status (*forward)(const struct ref_call *call, struct seqlstm_error *err);
    seqlstm_status (*backward)(const struct ref_call *call, struct seqlstm_error *err); /* NULL: forward only */
};

extern const struct ref_family ref_recurrent, ref_embedding, ref_dense, ref_activation, ref_dropout, ref_layer_norm,
    ref_pool, ref_merge, ref_gather, ref_scatter, ref_cast, ref_loss, ref_dense_loss, ref_top_k, ref_finite_check,
    ref_squared_norm, ref_optimizer, ref_vector, ref_attention;

struct seqlstm_instance {
    struct seqlstm_host host;
};

struct seqlstm_op {
    struct seqlstm_instance *instance;
    const struct ref_family *family;
    union seqlstm_any_desc desc;
};

/* Created by op_bind; the arrays have slot_count elements and lie behind the struct. */
struct seqlstm_binding {
    const struct seqlstm_op *op;
    struct seqlstm_bind bind;
    struct ref_extent extent;
    int32_t slot_count;
    struct ref_slot *slots;
    void **values;
    double **grads;
};

/* The largest number of slots of any operation. */
#define REF_SLOTS_MAX SEQLSTM_SLOT_RECURRENT_COUNT(128)

/* execute.c: the calls of the vtable and their float64 twins. */
seqlstm_status ref_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                           const struct seqlstm_forward *args, struct seqlstm_error *err);
seqlstm_status ref_backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                            const struct seqlstm_backward *args, struct seqlstm_error *err);
seqlstm_status ref_forward64(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                             const struct seqlstm_forward *args, struct seqlstm_error *err);
seqlstm_status ref_backward64(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_backward *args, struct seqlstm_error *err);
seqlstm_status ref_backward64_moved(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                    const struct seqlstm_backward *args, double distance, uint64_t draw,
                                    struct seqlstm_error *err);

/* Fills one slot. */
static inline void ref_slot_set(struct ref_slot *slot, enum ref_access access, int64_t elems)
{
    slot->access = elems > 0 ? access : REF_ABSENT;
    slot->elems = elems;
}

static inline void ref_slot_set_typed(struct ref_slot *slot, enum ref_access access, uint32_t dtype, int64_t elems)
{
    ref_slot_set(slot, access, elems);
    slot->dtype = dtype;
}

/* activation.c: y = act(x) of one element, its derivative, and whole rows (where it may be a softmax). */
double ref_activate(const struct seqlstm_activation *activation, double x);
double ref_activation_slope(const struct seqlstm_activation *activation, double x);
void ref_activate_row(const struct seqlstm_activation *activation, const double *x, double *y, int64_t n);
/* dx from dy, given the pre-activation x and y = act(x); dx may be dy. */
void ref_activation_backward_row(const struct seqlstm_activation *activation, const double *x, const double *y,
                                 const double *dy, double *dx, int64_t n);

/* loss.c: the loss of one row of n logits or values. grad (may be NULL) receives its derivative; `weight` the class
 * weight of the row's target, 0 if the row does not count. */
struct ref_loss_rule {
    uint32_t kind;
    double label_smoothing, delta;
    const double *class_weights; /* NULL: all 1 */
    const int32_t *classes;      /* [R], cross-entropy */
    const double *targets;       /* [R, n], other losses */
    int64_t n;
};
seqlstm_status ref_loss_row(const struct ref_loss_rule *rule, int64_t row, const double *x, double *out_loss,
                            double *out_weight, double *grad, struct seqlstm_error *err);

/* y += a x */
static inline void ref_axpy(int64_t n, double a, const double *x, double *y)
{
    for (int64_t k = 0; k < n; k++)
        y[k] += a * x[k];
}

static inline double ref_dot(int64_t n, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += x[k] * y[k];
    return sum;
}

/* y = W x (+ bias), W [m, n] */
static inline void ref_matvec(int64_t m, int64_t n, const double *w, const double *x, const double *bias, double *y)
{
    for (int64_t j = 0; j < m; j++)
        y[j] = ref_dot(n, w + j * n, x) + (bias ? bias[j] : 0);
}

/* dx += W' dy and dW += dy x', each unless NULL; W [m, n]. Rows with a zero gradient are skipped: parameters which an
 * option leaves unused may have any value. */
static inline void ref_matvec_backward(int64_t m, int64_t n, const double *w, const double *x, const double *dy,
                                       double *dx, double *dw)
{
    for (int64_t j = 0; j < m; j++) {
        if (dy[j] == 0)
            continue;
        if (dx)
            ref_axpy(n, dy[j], w + j * n, dx);
        if (dw)
            ref_axpy(n, dy[j], x, dw + j * n);
    }
}

#endif
