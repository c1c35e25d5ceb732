/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the running shape. See rows.h. */
#include "exec/rows.h"

const struct seqlstm_axis *sl_exec_get_axis(const struct sl_exec_shape *shape, enum sl_axis axis)
{
    const struct sl_exec_axes *axes = &shape->sides[sl_exec_get_side(axis)];
    return sl_axis_is_steps(axis) ? &axes->steps : &axes->rows;
}

int64_t sl_exec_get_rows(const struct sl_exec *exec, enum sl_axis axis)
{
    if (exec->pieces.running >= 0 && axis == SL_AXIS_STEPS) {
        const struct seqlstm_axis *steps = &exec->shape->sides[SL_EXEC_TARGET].steps;
        const int64_t *bounds = &exec->shape->piece_bounds[exec->pieces.running];
        return steps->row_offsets[bounds[1]] - steps->row_offsets[bounds[0]];
    }
    if (exec->loop.step >= 0 && axis == SL_AXIS_STEPS)
        return exec->shape->sides[SL_EXEC_TARGET].steps.batch_sizes[exec->loop.step];
    return sl_axis_is_steps(axis) ? exec->shape->sides[sl_exec_get_side(axis)].steps.rows : exec->shape->sequences;
}

/* A gather may read other rows than it writes; queries read the rows of a memory. */
int64_t sl_exec_get_rows_in(const struct sl_exec *exec, const struct sl_exec_shape *shape, int32_t c, int64_t rows)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    uint32_t op = node->desc.head.op;
    int32_t slot = op == SEQLSTM_OP_GATHER      ? SEQLSTM_SLOT_GATHER_X
                   : op == SEQLSTM_OP_ATTENTION ? SEQLSTM_SLOT_ATTENTION_KEYS
                                                : -1;
    if (slot >= 0)
        rows = sl_exec_get_axis(shape, exec->graph->tensors[node->slots[slot]].axis)->rows;
    return rows > 0 ? rows : 1; /* all memories are empty: one row, which is not read */
}

int64_t sl_exec_get_shift(const struct sl_exec *exec, const struct sl_tensor *tensor)
{
    const struct sl_exec_shape *shape = exec->shape;
    if (tensor->axis != SL_AXIS_STEPS || (exec->loop.step < 0 && exec->pieces.running < 0))
        return 0;
    const int64_t step = exec->loop.step >= 0 ? exec->loop.step : shape->piece_bounds[exec->pieces.running];
    return shape->sides[SL_EXEC_TARGET].steps.row_offsets[step] * tensor->features * sl_dtype_bytes(tensor->dtype);
}

bool sl_exec_has_rows(const struct sl_exec *exec, int32_t c)
{
    bool loops = c >= exec->loop.first && c < exec->loop.end;
    if (exec->shape->piece_count > 0 && exec->shape->piece_bindings[c])
        return true;
    return loops ? exec->shape->step_binding_count > 0 : exec->shape->bindings[c] != NULL;
}
