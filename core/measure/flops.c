/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/flops.h"

/* The products of all layers and directions for one row; those of the first layer's input separately. */
static void count_recurrent(const struct seqlstm_recurrent_desc *d, double *out_first_input, double *out_rest)
{
    double gates = d->cell == SEQLSTM_CELL_LSTM ? 4 : d->cell == SEQLSTM_CELL_GRU ? 3 : 1;
    double hidden = (double)d->hidden, width = d->projection ? (double)d->projection : hidden;
    double directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    double above = directions > 1 && d->merge == SEQLSTM_KIND_MERGE_CONCAT ? 2 * width : width;
    double layers = (double)d->layers, own = gates * hidden * width + (d->projection ? hidden * width : 0);
    *out_first_input = 2 * directions * gates * hidden * (double)d->input;
    *out_rest = 2 * directions * (layers * own + (layers - 1) * gates * hidden * above);
}

double sl_flops_count(const struct sl_node *node, int64_t rows, bool backward, bool input_grad)
{
    const union seqlstm_any_desc *u = &node->desc;
    double input = 0, rest = 0;
    if (u->head.op == SEQLSTM_OP_RECURRENT)
        count_recurrent(&u->recurrent, &input, &rest);
    else if (u->head.op == SEQLSTM_OP_DENSE)
        input = 2 * (double)u->dense.input * (double)u->dense.output;
    else if (u->head.op == SEQLSTM_OP_DENSE_LOSS)
        input = 2 * (double)u->dense_loss.input * (double)u->dense_loss.output;
    double all = backward ? (input_grad ? 3 : 2) * input + 3 * rest : input + rest;
    return (double)rows * all;
}
