/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/batch_rows.h"

const struct seqlstm_axis *sl_batch_get_axis(const struct sl_batch *batch, enum sl_axis axis)
{
    return sl_axis_is_source(axis) ? &batch->source.axis : &batch->axis;
}

int64_t sl_batch_count_rows(const struct sl_batch *batch, enum sl_axis axis)
{
    if (axis == SL_AXIS_FREE)
        return 0;
    return sl_axis_is_steps(axis) ? sl_batch_get_axis(batch, axis)->rows : batch->sequences;
}

int64_t sl_batch_count_node_rows(const struct sl_batch *batch, const struct sl_graph *graph, const struct sl_node *node)
{
    return sl_batch_count_rows(batch, sl_graph_get_axis(graph, node));
}

int64_t sl_batch_count_rows_in(const struct sl_batch *batch, const struct sl_graph *graph, const struct sl_node *node)
{
    uint32_t op = node->desc.head.op;
    int32_t slot = op == SEQLSTM_OP_GATHER      ? SEQLSTM_SLOT_GATHER_X
                   : op == SEQLSTM_OP_ATTENTION ? SEQLSTM_SLOT_ATTENTION_KEYS
                                                : -1;
    return slot < 0 ? sl_batch_count_node_rows(batch, graph, node)
                    : sl_batch_count_rows(batch, graph->tensors[node->slots[slot]].axis);
}

/* For each row of the decoder's steps: its sequence, or what a table says about that sequence. */
static void load_steps(const struct seqlstm_axis *axis, const int32_t *table, double *out)
{
    for (int64_t t = 0; t < axis->steps; t++)
        for (int32_t k = 0; k < axis->batch_sizes[t]; k++)
            out[axis->row_offsets[t] + k] = table ? table[k] : k;
}

/* Where the rows of each memory begin, one memory after the other, and where each row is gathered from. */
static void load_memories(const struct seqlstm_axis *source, int64_t capacity, double *offsets, double *rows)
{
    int64_t first = 0;
    for (int64_t m = 0; m < capacity; m++) {
        int64_t length = m < source->sequences ? source->lengths[m] : 0;
        if (offsets)
            offsets[m] = (double)first;
        for (int64_t t = 0; rows && t < length; t++)
            rows[first + t] = (double)(source->row_offsets[t] + m);
        first += length;
    }
    if (offsets)
        offsets[capacity] = (double)first;
}

bool sl_batch_load_index(const struct sl_batch *batch, const struct sl_tensor *tensor, double *out)
{
    const struct sl_source_side *source = &batch->source;
    switch (tensor->role) {
    case SL_TENSOR_SOURCE:
        for (int64_t i = 0; i < source->axis.rows * tensor->features; i++)
            out[i] =
                source->input.kind == SL_FIELD_IDS ? (double)source->input.ids[i] : (double)source->input.values[i];
        return true;
    case SL_TENSOR_PLACE:
        for (int64_t k = 0; k < batch->sequences; k++)
            out[k] = source->place[k];
        return true;
    case SL_TENSOR_SEQUENCE:
        load_steps(&batch->axis, NULL, out);
        return true;
    case SL_TENSOR_MEMORY_OF:
        load_steps(&batch->axis, source->place, out);
        return true;
    case SL_TENSOR_MEMORY_ROW:
        load_memories(&source->axis, source->axis.sequences, NULL, out);
        return true;
    case SL_TENSOR_MEMORY_OFFSET:
        load_memories(&source->axis, tensor->rows - 1, out, NULL);
        return true;
    default:
        return false;
    }
}

int64_t sl_batch_get_rows(const struct sl_batch *batch)
{
    return batch->has_steps ? batch->axis.rows + batch->source.axis.rows : batch->sequences;
}
