/* SPDX-License-Identifier: Apache-2.0 */
/* Which cells the variant small has kernels of two blocks for. */
#include "cuda-generic/plugin.h"

enum {
    CELL_OPTIONS =
        SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES | SEQLSTM_BIT_RECURRENT_LAYER_NORM
};

bool cg_small_is_plain(const struct seqlstm_recurrent_desc *d)
{
    const bool both_ways = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL;
    for (int k = 0; k <= both_ways; k++)
        if (d->activations[SEQLSTM_PLACE_GATE][k].kind != SEQLSTM_ACT_SIGMOID ||
            d->activations[SEQLSTM_PLACE_CANDIDATE][k].kind != SEQLSTM_ACT_TANH ||
            d->activations[SEQLSTM_PLACE_OUTPUT][k].kind != SEQLSTM_ACT_TANH)
            return false;
    return d->cell == SEQLSTM_CELL_LSTM && !(d->options & CELL_OPTIONS) && d->cell_clip == 0 && d->gate_clip == 0 &&
           d->zoneout_cell == 0 && d->zoneout_hidden == 0 && !(both_ways && d->merge == SEQLSTM_KIND_MERGE_MUL);
}
