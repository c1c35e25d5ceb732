/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, GRU and RNN nodes: terms for each direction's outputs. */
#include <string.h>

#include "interop/import/onnx_rules.h"

enum { INPUT_W = 1, INPUT_R = 2, INPUT_B = 3, INPUT_LENGTHS = 4, INPUT_H = 5, INPUT_C = 6, INPUT_P = 7 };

static bool read_weights(const struct sl_onnx_job *job, struct sl_onnx_cell_use *cell, const char **reason)
{
    static const int inputs[] = {INPUT_W, INPUT_R, INPUT_B, INPUT_P};
    for (int k = 0; k < 4; k++) {
        bool is_given = inputs[k] < job->input_count && job->inputs[inputs[k]];
        cell->weights[k] = is_given ? job->constants[inputs[k]] : NULL;
        if ((is_given || k < 2) && (cell->weights[k] == NULL || cell->weights[k]->floats == NULL)) {
            *reason = "its weights are not constants of the file";
            return false;
        }
        if (cell->weights[k] == NULL || !cell->weights[k]->is_fill)
            continue;
        struct sl_onnx_constant *spread = SL_ARENA_NEW(job->lift->arena, struct sl_onnx_constant);
        float *values = SL_ARENA_ARRAY(job->lift->arena, float, (size_t)cell->weights[k]->elems + 1);
        if (spread == NULL || values == NULL)
            return false;
        for (int64_t e = 0; e < cell->weights[k]->elems; e++)
            values[e] = cell->weights[k]->floats[0];
        *spread = *cell->weights[k];
        spread->floats = values;
        spread->is_fill = false;
        cell->weights[k] = spread;
    }
    return true;
}

/* Reads the lengths: an input of the file, or a constant. Constant lengths that are shorter than the input cannot be
 * imported; the model's records have to have them. */
static bool read_lengths(const struct sl_onnx_job *job, struct sl_onnx_cell_use *cell, const char **reason)
{
    struct sl_onnx_lift *lift = job->lift;
    const struct sl_onnx_value *lengths = job->input_count > INPUT_LENGTHS ? job->inputs[INPUT_LENGTHS] : NULL;
    if (lengths == NULL)
        return true;
    if (lengths->kind == SL_ONNX_LENGTHS && lengths->shift == 0 && !lengths->is_capped) {
        lift->uses_lengths = true;
        return true;
    }
    *reason = "its sequence_lens are computed";
    if (lengths->kind != SL_ONNX_CONSTANT)
        return false;
    int64_t most = 0;
    for (int64_t k = 0; k < lengths->constant.elems && (k == 0 || !lengths->constant.is_fill); k++) {
        int64_t length = sl_onnx_constant_get_int(&lengths->constant, k);
        most = length > most ? length : most;
    }
    if (sl_onnx_constant_is_all(&lengths->constant, (double)lift->time))
        return true;
    *reason = "its sequence_lens cut all sequences to a fixed length";
    cell->has_fixed_lengths = true;
    lift->uses_lengths = true;
    return most == lift->time || lift->is_time_free;
}

static bool read_input(const struct sl_onnx_job *job, const struct sl_onnx_cell_use *cell, const char **reason)
{
    struct sl_onnx_lift *lift = job->lift;
    const struct sl_onnx_value *x = job->inputs[0];
    int32_t time = cell->is_batch_first, batch = !cell->is_batch_first;
    *reason = "its input is no sequence of features";
    if (x->kind != SL_ONNX_DATA || x->dims.rank != 3 || !sl_onnx_dims_is_features(&x->dims, 2))
        return false;
    if (sl_onnx_dims_is(&x->dims, time, SL_ONNX_ATOM_TIME, lift->time) &&
        sl_onnx_dims_is(&x->dims, batch, SL_ONNX_ATOM_BATCH, lift->batch))
        return true;
    lift->has_order_error = lift->has_order_error || (sl_onnx_dims_is(&x->dims, batch, SL_ONNX_ATOM_TIME, lift->time) &&
                                                      sl_onnx_dims_is(&x->dims, time, SL_ONNX_ATOM_BATCH, lift->batch));
    *reason = "its input does not have time and batch where the operator wants them";
    return false;
}

/* Y, Y_h and Y_c. Their terms are adjacent: sequence, final h and final c of each direction. */
static bool make_outputs(const struct sl_onnx_job *job, const struct sl_onnx_cell_use *cell)
{
    struct sl_onnx_lift *lift = job->lift;
    int64_t hidden = cell->hidden, width = cell->directions * hidden;
    int32_t first = lift->term_count;
    for (int32_t d = 0; d < cell->directions; d++)
        for (int kind = SL_ONNX_TERM_SEQUENCE; kind <= SL_ONNX_TERM_FINAL_C; kind++) {
            struct sl_onnx_term *term = sl_onnx_lift_add_term(lift, (enum sl_onnx_term_kind)kind, job->node, hidden);
            if (term == NULL)
                return false;
            term->cell = lift->cell_count;
            term->direction = d;
        }
    for (int32_t k = 0; k < 3; k++) {
        struct sl_onnx_value *out = &job->outputs[k];
        struct sl_onnx_channel *list = SL_ARENA_ARRAY(lift->arena, struct sl_onnx_channel, (size_t)width + 1);
        if (list == NULL)
            return false;
        for (int64_t e = 0; e < width; e++)
            list[e] = (struct sl_onnx_channel){first + 3 * (int32_t)(e / hidden) + k, (int32_t)(e % hidden)};
        out->kind = SL_ONNX_DATA;
        out->features = (struct sl_onnx_features){list, width, job->node};
        int32_t at = 0, batch_first = cell->is_batch_first;
        out->dims.rank = k == 0 ? 4 : 3;
        if (batch_first)
            sl_onnx_dims_set(&out->dims, at++, SL_ONNX_ATOM_BATCH, lift->batch);
        if (k == 0)
            sl_onnx_dims_set(&out->dims, at++, SL_ONNX_ATOM_TIME, lift->time);
        sl_onnx_dims_set(&out->dims, at++, SL_ONNX_ATOM_FEATURE, cell->directions);
        if (!batch_first)
            sl_onnx_dims_set(&out->dims, at++, SL_ONNX_ATOM_BATCH, lift->batch);
        sl_onnx_dims_set(&out->dims, at, SL_ONNX_ATOM_FEATURE, hidden);
    }
    return true;
}

static bool has_shape(const struct sl_onnx_constant *weights, int64_t directions, int64_t rows, int64_t columns)
{
    return weights->rank == 3 && weights->shape[0] == directions && weights->shape[1] == rows &&
           weights->shape[2] == columns;
}

/* Those of B and P are compared with the layer that they are for. */
static bool check_weights(const struct sl_onnx_cell_use *cell, const char **reason)
{
    const char *op = cell->node->op;
    const int64_t rows = cell->hidden * (strcmp(op, "LSTM") == 0 ? 4 : strcmp(op, "GRU") == 0 ? 3 : 1);
    *reason = "its R has another shape than the operator wants";
    if (cell->hidden < 1 || !has_shape(cell->weights[1], cell->directions, rows, cell->hidden))
        return false;
    *reason = "its W has another shape than the operator wants";
    return has_shape(cell->weights[0], cell->directions, rows, cell->x.count);
}

bool sl_onnx_lift_recurrent(const struct sl_onnx_job *job, const char **reason)
{
    const char *op = job->node->op;
    if (strcmp(op, "LSTM") && strcmp(op, "GRU") && strcmp(op, "RNN"))
        return false;
    struct sl_onnx_cell_use *cell = &job->lift->cells[job->lift->cell_count];
    const struct sl_onnx_attribute *direction = sl_onnx_node_find_attribute(job->node, "direction");
    *cell = (struct sl_onnx_cell_use){.node = job->node};
    cell->is_batch_first = sl_onnx_node_get_int(job->node, "layout", 0) != 0;
    cell->directions = direction && direction->text && strcmp(direction->text, "bidirectional") == 0 ? 2 : 1;
    if (!read_input(job, cell, reason) || !read_weights(job, cell, reason) || !read_lengths(job, cell, reason))
        return false;
    const struct sl_onnx_constant *r = cell->weights[1];
    cell->x = job->inputs[0]->features;
    cell->hidden = sl_onnx_node_get_int(job->node, "hidden_size", r->rank == 3 ? r->shape[2] : 0);
    cell->states[0] = job->input_count > INPUT_H ? job->inputs[INPUT_H] : NULL;
    cell->states[1] = job->input_count > INPUT_C ? job->inputs[INPUT_C] : NULL;
    if (!check_weights(cell, reason) || !make_outputs(job, cell))
        return false;
    job->lift->cell_count++;
    return true;
}
