/* SPDX-License-Identifier: Apache-2.0 */
/* Does a binding fit its operation? The checks that every `op_bind` must make, as source that plugins compile in.
 *
 * Checked are: an axis, if the operation needs one; a range of steps on that axis with as many rows as the binding
 * says, and the whole axis if the operation is defined only there (ops.h); rows, sequences and steps within the bounds
 * of the descriptor. It is not part of the ABI.
 */
#ifndef SEQLSTM_BIND_CHECK_H
#define SEQLSTM_BIND_CHECK_H

#include <stdint.h>
#include <stdio.h>

#include "any_desc.h"
#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 1: the operation must know to which sequence a row belongs, or where sequences end: it needs bind.axis. [any] */
static inline int32_t seqlstm_needs_axis(const union seqlstm_any_desc *desc)
{
    switch (desc->head.op) {
    case SEQLSTM_OP_RECURRENT:
    case SEQLSTM_OP_POOL:
        return 1;
    case SEQLSTM_OP_DROPOUT:
        return desc->head.mode == SEQLSTM_MODE_TRAINING && desc->dropout.rate > 0;
    case SEQLSTM_OP_TOP_K:
        return desc->top_k.kind == SEQLSTM_KIND_TOP_K_SAMPLE;
    default:
        return 0;
    }
}

/* 1: input and output have different numbers of rows, bind.rows_in and bind.rows. [any] */
static inline int32_t seqlstm_has_rows_in(const union seqlstm_any_desc *desc)
{
    return desc->head.op == SEQLSTM_OP_GATHER || desc->head.op == SEQLSTM_OP_SCATTER ||
           desc->head.op == SEQLSTM_OP_ATTENTION;
}

/* 1: the operation is defined only for the whole axis, not for a range of its steps. [any] */
static inline int32_t seqlstm_needs_whole_range(const union seqlstm_any_desc *desc)
{
    return desc->head.op == SEQLSTM_OP_POOL ||
           (desc->head.op == SEQLSTM_OP_RECURRENT && desc->recurrent.direction != SEQLSTM_DIRECTION_FORWARD);
}

/* Checks the range of steps of an operation that needs an axis. */
static inline seqlstm_status seqlstm_bind_check_range(const union seqlstm_any_desc *desc,
                                                      const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    const struct seqlstm_axis *axis = bind->axis;
    const long long t0 = (long long)bind->t0, t1 = (long long)bind->t1, steps = (long long)axis->steps;
    if (t0 < 0 || t0 >= t1 || t1 > steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the range [%lld, %lld) of an axis of %lld steps", t0, t1, steps);
    if (seqlstm_needs_whole_range(desc) && (t0 != 0 || t1 != steps))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the range [%lld, %lld) where only the whole of %lld steps runs",
                     t0, t1, steps);
    const long long rows = (long long)(axis->row_offsets[t1] - axis->row_offsets[t0]);
    if (rows != bind->rows)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "rows is %lld, the range has %lld", (long long)bind->rows, rows);
    if (desc->head.max_sequences > 0 && axis->batch_sizes[t0] > desc->head.max_sequences)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%lld sequences, the descriptor allows %lld",
                     (long long)axis->batch_sizes[t0], (long long)desc->head.max_sequences);
    if (desc->head.max_steps > 0 && t1 - t0 > desc->head.max_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%lld steps, the descriptor allows %lld", t1 - t0,
                     (long long)desc->head.max_steps);
    return SEQLSTM_OK;
}

/* INVALID_ARGUMENT: the binding does not fit the operation of `desc`. [any] */
static inline seqlstm_status seqlstm_bind_check(const union seqlstm_any_desc *desc, const struct seqlstm_bind *bind,
                                                struct seqlstm_error *err)
{
    const int64_t most = desc->head.max_rows;
    const int64_t rows_in = seqlstm_has_rows_in(desc) ? bind->rows_in : bind->rows;
    if (bind->rows < 1 || bind->rows > most || rows_in < 1 || rows_in > most)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%lld rows (%lld in), the descriptor allows 1 to %lld",
                     (long long)bind->rows, (long long)rows_in, (long long)most);
    if (!seqlstm_needs_axis(desc))
        return SEQLSTM_OK;
    if (bind->axis == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "operation %lu needs an axis", (unsigned long)desc->head.op);
    return bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES ? SEQLSTM_OK : seqlstm_bind_check_range(desc, bind, err);
}

#ifdef __cplusplus
}
#endif

#endif
