/* SPDX-License-Identifier: Apache-2.0 */
/* See desc_option.h. */
#include "dispatch/cost/desc_option.h"

#include <string.h>

static void set_activation(struct seqlstm_recurrent_desc *d, int place, uint32_t kind)
{
    int directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    for (int k = 0; k < directions; k++)
        d->activations[place][k] = (struct seqlstm_activation){.kind = kind};
}

static void remove_recurrent(struct seqlstm_recurrent_desc *d, uint32_t option)
{
    switch (option) {
    case SEQLSTM_OPTION_ACTIVATION:
        set_activation(d, SEQLSTM_PLACE_CANDIDATE, SEQLSTM_ACT_TANH);
        break;
    case SEQLSTM_OPTION_RECURRENT_ACTIVATION:
        set_activation(d, SEQLSTM_PLACE_GATE, SEQLSTM_ACT_SIGMOID);
        break;
    case SEQLSTM_OPTION_OUTPUT_ACTIVATION:
        set_activation(d, SEQLSTM_PLACE_OUTPUT, SEQLSTM_ACT_TANH);
        break;
    case SEQLSTM_OPTION_DIRECTION:
        d->direction = SEQLSTM_DIRECTION_FORWARD;
        d->merge = 0;
        for (int place = 0; place < 3; place++)
            memset(&d->activations[place][1], 0, sizeof d->activations[place][1]);
        break;
    case SEQLSTM_OPTION_MERGE:
        d->merge = SEQLSTM_KIND_MERGE_CONCAT;
        break;
    case SEQLSTM_OPTION_PROJECTION:
        d->projection = 0;
        break;
    case SEQLSTM_OPTION_USE_BIAS:
        d->options |= SEQLSTM_BIT_RECURRENT_USE_BIAS;
        break;
    case SEQLSTM_OPTION_PEEPHOLE:
        d->options &= ~(uint32_t)SEQLSTM_BIT_RECURRENT_PEEPHOLE;
        break;
    case SEQLSTM_OPTION_COUPLED_GATES:
        d->options &= ~(uint32_t)SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
        break;
    case SEQLSTM_OPTION_LAYER_NORM:
        d->options &= ~(uint32_t)SEQLSTM_BIT_RECURRENT_LAYER_NORM;
        d->layer_norm_epsilon = 0;
        break;
    case SEQLSTM_OPTION_RESET_AFTER:
        d->options ^= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
        break;
    case SEQLSTM_OPTION_CELL_CLIP:
        d->cell_clip = 0;
        break;
    case SEQLSTM_OPTION_GATE_CLIP:
        d->gate_clip = 0;
        break;
    case SEQLSTM_OPTION_DROPOUT:
        d->dropout = 0;
        break;
    case SEQLSTM_OPTION_RECURRENT_DROPOUT:
        d->recurrent_dropout = 0;
        break;
    case SEQLSTM_OPTION_ZONEOUT:
        d->zoneout_cell = d->zoneout_hidden = 0;
        break;
    case SEQLSTM_OPTION_WEIGHT_DROP:
        d->weight_drop = 0;
        break;
    default:
        break;
    }
}

bool sl_desc_remove_option(union seqlstm_any_desc *desc, uint32_t option)
{
    union seqlstm_any_desc before = *desc;
    if (desc->head.op == SEQLSTM_OP_RECURRENT)
        remove_recurrent(&desc->recurrent, option);
    else if (desc->head.op == SEQLSTM_OP_DENSE && option == SEQLSTM_OPTION_ACTIVATION)
        memset(&desc->dense.activation, 0, sizeof desc->dense.activation);
    return memcmp(&before, desc, sizeof before) != 0;
}
