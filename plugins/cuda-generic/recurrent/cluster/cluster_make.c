/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers run on clusters of blocks, and in which shape. See cluster.h. */
#include <math.h>

#include "cuda-generic/recurrent/cluster/cluster_shape.h"

/* The largest size that an activation can give; infinite if there is none. */
static float get_bound(struct seqlstm_activation a)
{
    switch (a.kind) {
    case SEQLSTM_ACT_TANH:
    case SEQLSTM_ACT_SIGMOID:
    case SEQLSTM_ACT_HARD_SIGMOID:
    case SEQLSTM_ACT_SOFTSIGN:
        return 1;
    case SEQLSTM_ACT_SCALED_TANH:
        return fabsf(a.alpha);
    default:
        return INFINITY;
    }
}

/* Is a gate never below 0 nor above 1, so that it mixes? */
static bool mixes(struct seqlstm_activation a)
{
    return a.kind == SEQLSTM_ACT_SIGMOID || a.kind == SEQLSTM_ACT_HARD_SIGMOID;
}

bool cg_cluster_is_wild(const struct seqlstm_recurrent_desc *d)
{
    float most = 0;
    for (int direction = 0; direction <= (d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL); direction++) {
        const struct seqlstm_activation gate = d->activations[SEQLSTM_PLACE_GATE][direction];
        const bool lstm = d->cell == SEQLSTM_CELL_LSTM, gru = d->cell == SEQLSTM_CELL_GRU;
        const float of_gate = lstm ? get_bound(gate) : gru && !mixes(gate) ? INFINITY : 1;
        const float bound =
            of_gate * get_bound(d->activations[lstm ? SEQLSTM_PLACE_OUTPUT : SEQLSTM_PLACE_CANDIDATE][direction]);
        most = bound > most || bound != bound ? bound : most;
    }
    return !(most / (1 - d->recurrent_dropout) <= CG_CLUSTER_TAME);
}

static bool is_late(const struct seqlstm_recurrent_desc *d)
{
    return d->cell == SEQLSTM_CELL_GRU && !(d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER);
}

bool cg_cluster_is_linked(const struct seqlstm_recurrent_desc *d)
{
    return is_late(d) || (d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM);
}

bool cg_cluster_make(const struct seqlstm_recurrent_desc *d, int32_t blocks, int32_t room, struct cg_cluster *out)
{
    const int32_t hidden = d->hidden <= 128 ? 128 : d->hidden <= 256 ? 256 : 512;
    const bool exists = hidden == 512 ? blocks == 16 : hidden == 256 ? blocks == 8 || blocks == 16 : blocks <= 8;
    if ((d->hidden < CG_CLUSTER_HIDDEN_LEAST && !is_late(d)) || d->hidden > CG_CLUSTER_HIDDEN_MOST || !exists)
        return false;
    const bool wild = cg_cluster_is_wild(d); /* one float16 has no room for float32 */
    const struct cg_cluster cluster = {.hidden = hidden,
                                       .blocks = blocks,
                                       .parts = d->head.dtype_compute == SEQLSTM_DTYPE_FLOAT32 || wild ? 2 : 1,
                                       .wild = wild,
                                       .linked = cg_cluster_is_linked(d),
                                       .room = room};
    for (int back = 0; back < 2; back++) {
        const struct cg_cluster_sizes sizes = cg_cluster_size(hidden, blocks, cluster.parts, cluster.linked, back);
        if (sizes.head + sizes.group > room)
            return false;
    }
    *out = cluster;
    return true;
}
