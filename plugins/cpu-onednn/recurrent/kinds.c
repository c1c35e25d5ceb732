/* SPDX-License-Identifier: Apache-2.0 */
/* What a descriptor says, in the terms of the library. */
#include <string.h>

#include "cpu-onednn/recurrent/recurrent.h"

static void describe_cell(struct odn_recurrent *r)
{
    const struct seqlstm_recurrent_desc *d = r->desc;
    static const int32_t plain[4] = {0, 1, 2, 3}, gru[4] = {1, 0, 2, 3}; /* in the library, the update gate is first */
    const bool after = (d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER) != 0;
    r->lstm = d->cell == SEQLSTM_CELL_LSTM;
    r->cell = r->lstm ? ODN_LSTM : d->cell == SEQLSTM_CELL_RNN ? ODN_RNN : after ? ODN_GRU_RESET_AFTER : ODN_GRU;
    r->gates = r->lstm ? 4 : d->cell == SEQLSTM_CELL_GRU ? 3 : 1;
    r->bias_gates = r->cell == ODN_GRU_RESET_AFTER ? 4 : r->gates;
    memcpy(r->gate_map, d->cell == SEQLSTM_CELL_GRU ? gru : plain, sizeof r->gate_map);
    switch (d->activations[SEQLSTM_PLACE_CANDIDATE][0].kind) {
    case SEQLSTM_ACT_RELU:
        r->activation = dnnl_eltwise_relu;
        break;
    case SEQLSTM_ACT_SIGMOID:
        r->activation = dnnl_eltwise_logistic;
        break;
    default:
        r->activation = dnnl_eltwise_tanh;
    }
}

static void describe_stack(struct odn_recurrent *r, const struct seqlstm_instance *instance)
{
    const struct seqlstm_recurrent_desc *d = r->desc;
    r->layers = (int32_t)d->layers;
    r->directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    r->concat = r->directions == 2 && d->merge == SEQLSTM_KIND_MERGE_CONCAT;
    r->hidden = d->hidden;
    r->output = d->projection > 0 ? d->projection : d->hidden;
    r->projection = d->projection > 0;
    r->peephole = (d->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE) != 0;
    r->training = r->op->training;
    r->elem = odn_float32;
    if (d->head.dtype_compute == SEQLSTM_DTYPE_BFLOAT16)
        r->elem = (struct odn_elem){.type = dnnl_bf16, .bytes = 2};
    r->quantized = d->head.dtype_compute == SEQLSTM_DTYPE_INT8;
    if (r->quantized)
        r->elem = (struct odn_elem){.type = dnnl_u8, .bytes = 1, .scale = d->data_scale, .shift = d->data_shift};
    r->weight_type = r->quantized ? dnnl_s8 : r->elem.type;
    r->slices_max = r->op->exclusive ? 1 : instance->members_max;
    if (d->head.max_sequences < r->slices_max)
        r->slices_max = (int32_t)d->head.max_sequences;
    r->kind[0].input = d->input;
    r->kind[1].input = odn_y_width(r);
    r->kinds = r->layers > 1 && r->kind[1].input != d->input ? 2 : 1;
    for (int32_t k = 0; k < r->kinds; k++) {
        struct odn_kind *kind = &r->kind[k];
        const int64_t x[] = {1, 1, kind->input, r->gates, r->hidden}, h[] = {1, 1, r->output, r->gates, r->hidden};
        const int64_t p[] = {1, 1, r->hidden, r->output};
        for (int i = 0; i < 5; i++) {
            kind->dims[ODN_WEIGHT_X][i] = x[i];
            kind->dims[ODN_WEIGHT_H][i] = h[i];
        }
        for (int i = 0; i < 4; i++)
            kind->dims[ODN_WEIGHT_P][i] = p[i];
        kind->n_dims[ODN_WEIGHT_X] = kind->n_dims[ODN_WEIGHT_H] = 5;
        kind->n_dims[ODN_WEIGHT_P] = 4;
    }
}

void odn_recurrent_read_desc(struct odn_recurrent *r)
{
    describe_cell(r);
    describe_stack(r, r->op->instance);
}

bool odn_plain_layout(struct odn_layout *layout, const struct odn_kind *kind, int w, dnnl_data_type_t type, bool outer)
{
    const int n = kind->n_dims[w];
    const int64_t *dims = kind->dims[w];
    const int64_t inputs = dims[2], gates = n == 5 ? dims[3] : 1, outputs = dims[n - 1];
    int64_t strides[5] = {inputs * gates * outputs, inputs * gates * outputs, 1, 0, 0};
    if (n == 5)
        strides[3] = outer ? inputs * outputs : outputs;
    strides[n - 1] = outer ? inputs : 1;
    strides[2] = outer ? 1 : gates * outputs;
    return odn_layout_init(layout, n, dims, type, strides);
}
