/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that follow from a batch: the sequence of each step, the place of the memories that attention reads, and the
 * weights of rows whose classes are values.
 *
 *   source lengths 3 2:  memory_row 0 2 4 1 3   memory_offset 0 3 5 5 …   (packed steps 0 1 | 2 3 | 4)
 */
#include "exec/shape/indices.h"

#include <stdlib.h>

static int32_t *get(const struct sl_exec *exec, enum sl_tensor_role role)
{
    return exec->indices[role - SL_TENSOR_SEQUENCE];
}

seqlstm_status sl_exec_open_indices(struct sl_exec *exec, struct seqlstm_error *err)
{
    for (int32_t t = 0; t < exec->graph->tensor_count; t++) {
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        if (tensor->role < SL_TENSOR_SEQUENCE || tensor->role > SL_TENSOR_ROW_WEIGHT || get(exec, tensor->role))
            continue;
        int32_t **index = &exec->indices[tensor->role - SL_TENSOR_SEQUENCE];
        *index = calloc((size_t)sl_graph_get_rows(exec->graph, tensor) + 1, sizeof(int32_t));
        if (*index == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    }
    return SEQLSTM_OK;
}

void sl_exec_close_indices(struct sl_exec *exec)
{
    for (int k = 0; k < SL_EXEC_INDICES; k++)
        free(exec->indices[k]);
}

/* For each row of the decoder's steps: its sequence, or the entry of a table for that sequence. */
static void fill_steps(const struct seqlstm_axis *axis, const int32_t *table, int32_t *index)
{
    for (int64_t t = 0; index && t < axis->steps; t++)
        for (int32_t k = 0; k < axis->batch_sizes[t]; k++)
            index[axis->row_offsets[t] + k] = table ? table[k] : k;
}

/* Memories follow one another in the order of the source; those that the batch does not have are empty. */
static void fill_memories(const struct seqlstm_axis *source, int64_t capacity, int32_t *offset, int32_t *row)
{
    int32_t first = 0;
    for (int64_t m = 0; m < capacity; m++) {
        int32_t length = m < source->sequences ? source->lengths[m] : 0;
        offset[m] = first;
        for (int32_t t = 0; row && t < length; t++)
            row[first + t] = (int32_t)source->row_offsets[t] + (int32_t)m;
        first += length;
    }
    offset[capacity] = first;
}

/* The weight of a row of the target in the loss. */
static double weigh_row(const struct sl_exec *exec, const struct sl_batch *batch, int64_t row)
{
    const struct sl_field *target = &batch->target;
    const float *classes = exec->places[SL_PLACE_HOST].class_weights;
    const double weight = batch->weight.kind == SL_FIELD_VALUES ? (double)batch->weight.values[row] : 1.0;
    if (target->kind == SL_FIELD_IDS)
        return target->ids[row] < 0 ? 0 : weight * (double)classes[target->ids[row]];
    return exec->indices[SL_TENSOR_ROW_WEIGHT - SL_TENSOR_SEQUENCE] == NULL
               ? weight
               : weight * (double)classes[target->values[row] > 0.5f];
}

double sl_exec_weigh(const struct sl_exec *exec, const struct sl_batch *batch)
{
    const struct sl_field *target = &batch->target;
    int64_t rows = target->on_steps ? batch->axis.rows : batch->sequences;
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += weigh_row(exec, batch, r);
    return sum;
}

static void fill_weights(struct sl_exec *exec, const struct sl_batch *batch)
{
    float *weights = (float *)(void *)get(exec, SL_TENSOR_ROW_WEIGHT);
    const int64_t rows = batch->target.on_steps ? batch->axis.rows : batch->sequences;
    for (int64_t r = 0; weights && r < rows; r++)
        weights[r] = (float)weigh_row(exec, batch, r);
}

void sl_exec_fill_indices(struct sl_exec *exec, const struct sl_batch *batch)
{
    fill_weights(exec, batch);
    int32_t *offset = get(exec, SL_TENSOR_MEMORY_OFFSET);
    fill_steps(&batch->axis, NULL, get(exec, SL_TENSOR_SEQUENCE));
    if (!batch->source.present)
        return;
    fill_steps(&batch->axis, batch->source.place, get(exec, SL_TENSOR_MEMORY_OF));
    if (offset)
        fill_memories(&batch->source.axis, exec->graph->facts.envelope.sequences, offset,
                      get(exec, SL_TENSOR_MEMORY_ROW));
}
