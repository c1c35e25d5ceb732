/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a case: the axis, the step block, and the value of every slot in float64.
 *
 * Values are exact in the slot's own dtype. So the reference, which gets them as float64, and the backend, which
 * gets them in that dtype, read the same numbers, and there are no rounding errors of inputs. */
#ifndef SL_JUDGE_DATA_H
#define SL_JUDGE_DATA_H

#include "base/memory/arena.h"
#include "base/operation/op_signature.h"
#include "judge/case.h"

struct sl_data {
    struct sl_case c;
    struct seqlstm_axis axis; /* steps == 0: there is none */
    struct seqlstm_step step;
    int64_t rows, rows_in; /* of the binding */
    int32_t *offsets;      /* ATTENTION: [max_sequences + 1] first row of each memory; other operations: NULL */
    int32_t count;         /* number of slots */
    struct sl_slot *slots;
    int64_t *elems;    /* [count] elements of the whole slot; 0 if absent */
    double **values;   /* [count] what forward reads; NULL for outputs */
    double **upstream; /* [count] gradients of outputs; NULL: all zero */
    double **base;     /* [count] parameters: what gradients are added to with ACCUMULATE */
};

/* `seed` determines the lengths and the step block, `value_seed` the values. Everything lives in `arena`. Errors:
 * INVALID_ARGUMENT, NO_MEMORY. */
seqlstm_status sl_data_create(struct sl_arena *arena, const struct sl_case *c, uint64_t seed, uint64_t value_seed,
                              struct sl_data **out_data, struct seqlstm_error *err);

/* Returns true if the slot holds floating-point numbers, and so has a gradient. */
bool sl_slot_is_float(const struct sl_slot *slot);

/* Conversions between float64 and a slot's dtype, rounded to nearest even. */
void sl_dtype_store(uint32_t dtype, void *to, const double *from, int64_t elems);
void sl_dtype_load(uint32_t dtype, const void *from, double *to, int64_t elems);
double sl_dtype_round(uint32_t dtype, double value);
/* Half the distance from 1 to the next number: 2^-24 for float32. */
double sl_dtype_eps(uint32_t dtype);

#endif
