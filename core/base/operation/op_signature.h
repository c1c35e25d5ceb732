/* SPDX-License-Identifier: Apache-2.0 */
/* What each slot of an operation is: the machine-readable form of the slot comments of ops.h.
 *
 * base/operation: what all layers know of operations. Their slots (this file), and what a step costs (cost.h).
 *
 * One table for all code that walks slots without knowing the operation: the executor (buffers), the conformance kit
 * (filling, guarding, comparing), verify. Derived from a descriptor alone.
 */
#ifndef SL_BASE_OPERATION_OP_SIGNATURE_H
#define SL_BASE_OPERATION_OP_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/any_desc.h>
#include <seqlstm/status.h>

enum sl_slot_role {
    SL_SLOT_ABSENT = 0, /* not used under this descriptor: pass NULL */
    SL_SLOT_INPUT,      /* activation or state that forward reads; differentiable if float */
    SL_SLOT_OUTPUT,     /* activation or state that forward writes */
    SL_SLOT_PARAM,      /* parameter that forward reads */
    SL_SLOT_INOUT,      /* read and written: sums, flat vectors */
    SL_SLOT_CONST       /* read, never differentiated: ids, targets, weights, indices */
};

enum sl_slot_axis {
    SL_SLOT_ON_ROWS = 0,  /* bind.rows rows */
    SL_SLOT_ON_ROWS_IN,   /* bind.rows_in rows */
    SL_SLOT_ON_STATES,    /* one row per sequence alive at t0: axis batch_sizes[t0] */
    SL_SLOT_ON_SEQUENCES, /* axis.sequences rows (POOL's output) */
    SL_SLOT_FREE          /* `rows` of the slot itself */
};

struct sl_slot {
    const char *name; /* "x", "w_h.l1.backward"; static or in `name_storage` */
    enum sl_slot_role role;
    enum sl_slot_axis axis;
    uint32_t dtype;   /* SEQLSTM_DTYPE_FLOAT32 … */
    bool optional;    /* may be NULL though not ABSENT */
    int64_t rows;     /* FREE: rows; otherwise 0 */
    int64_t features; /* elements per row */
    char name_storage[40];
};

/* Largest slot count of any valid descriptor: that of the deepest stack of layers with two directions. */
enum { SL_SLOTS_MAX = SEQLSTM_SLOT_RECURRENT_COUNT(2 * SEQLSTM_MAX_LAYERS) };

/* Checks that the descriptor is well formed by ops.h (known enumerators, ranges, combinations that mean something);
 * what a *backend* may refuse is not checked. INVALID_ARGUMENT names field and value. [any] */
seqlstm_status sl_op_desc_check(const struct seqlstm_desc *desc, struct seqlstm_error *err);

/* Fills out_slots[0 .. *out_count - 1] for a well-formed descriptor. `capacity` >= SL_SLOTS_MAX always suffices. [any]
 */
seqlstm_status sl_op_signature(const struct seqlstm_desc *desc, struct sl_slot *out_slots, int32_t capacity,
                               int32_t *out_count, struct seqlstm_error *err);

/* Whether the operation has a backward. [any] */
bool sl_op_has_backward(uint32_t op);

/* Name of an operation for messages: "recurrent"; never NULL. [any] */
const char *sl_op_name(uint32_t op);
/* Name of an activation as the model file writes it: "leaky_relu". */
const char *sl_activation_name(uint32_t kind);

/* Bytes of one element. */
int64_t sl_dtype_bytes(uint32_t dtype);
/* "float32", "tf32", "bfloat16" …; static. */
const char *sl_dtype_name(uint32_t dtype);

/* Bytes of the descriptor of an operation as this host knows it; 0 for an unknown one. */
uint32_t sl_op_desc_bytes(uint32_t op);

#endif
