/* SPDX-License-Identifier: Apache-2.0 */
/* Where everything of a block of a cluster lies, for host and device: sizes, shared memory, the division of a batch.
 * See cluster.h.
 *
 *   head    barriers [groups][2] | barriers of links [groups][2] | struct cg_layer | constants of the units | notes |
 *           backward: gradients of the gates 2 x [steps of the depth][lane][words] | the lower parts of the weights,
 *           if registers hold only the upper | forward, linked: sums of warps [warps][sequences][2]
 *   group   what is received 2 x [...] | forward: sums that warps swap | states [...][threads] |
 *           forward: 8 scales | linked: what is received within a step
 *
 * A chunk is what is sent at once. Forward it holds four units of a sequence, in `words` words; backward the parts of
 * two units for two sequences. Within a step, either sums of two sequences are sent (LAYER_NORM) or such chunks (a late
 * GRU), which need the larger room. */
#ifndef CG_CLUSTER_SHAPE_H
#define CG_CLUSTER_SHAPE_H

#include "cuda-generic/recurrent/cluster/cluster.h"

enum {
    CG_CLUSTER_LINKS_AT = 2 * 8 * CG_CLUSTER_GROUPS_MOST,
    CG_CLUSTER_LAYER_AT = 2 * CG_CLUSTER_LINKS_AT,
    CG_CLUSTER_CONSTANTS = 13, /* of a unit: see cg_cluster_constant */
    CG_CLUSTER_CONSTANTS_AT = CG_CLUSTER_LAYER_AT + 704,
    CG_CLUSTER_NOTES_AT = CG_CLUSTER_CONSTANTS_AT + CG_CLUSTER_CONSTANTS * 32 * 4,
    CG_CLUSTER_FIXED_BYTES = CG_CLUSTER_NOTES_AT + 320,
};

#ifdef __cplusplus
#define CG_CONSTANT constexpr /* kernels need the sizes as constants */
#else
#define CG_CONSTANT
#endif

/* The sizes that follow from a shape. */
struct cg_cluster_sizes {
    int32_t units, threads, words;
    int32_t received;    /* bytes of one of the two buffers of a group */
    int32_t lower_bytes; /* of the lower parts of the weights in shared memory */
    int32_t states;      /* of a cell, in floats */
    int32_t warp_sums;   /* bytes for the sums of the warps */
    int32_t head, group; /* bytes */
};

CG_CONSTANT CG_HD struct cg_cluster_sizes cg_cluster_size(int32_t hidden, int32_t blocks, int32_t parts, int linked,
                                                          int back)
{
    struct cg_cluster_sizes s = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    s.units = hidden / blocks;
    s.threads = 8 * s.units;
    s.words = 2 * parts;
    s.received = back ? 32 * hidden : 8 * hidden * s.words;
    s.lower_bytes = parts == 2 && hidden > 256 ? 8 * s.units * hidden : 0;
    s.states = linked && !back ? 6 : 4;
    s.warp_sums = linked && !back ? 2 * s.threads : 0;
    s.head = CG_CLUSTER_FIXED_BYTES + (back ? 2 * 32 * s.units * s.words : 0) + s.lower_bytes + s.warp_sums;
    s.group = (linked ? 3 : 2) * s.received + 4 * s.states * s.threads;
    if (!back)
        s.group += 32 + (s.units == 32 ? 16 * s.threads : 0);
    return s;
}

/* How a call divides its sequences: cluster c has `groups` groups of `slots` sequences from c * groups * slots on. */
struct cg_cluster_share {
    int32_t clusters, groups, slots;
};

/* A wave is what runs at the same time. A further group costs a cluster about 0.4 of what the first one does. Every
 * cluster of a wave gets about the same number of sequences, since a sequence fewer is a store fewer. */
CG_HD struct cg_cluster_share cg_cluster_divide(int64_t sequences, int32_t together, int32_t groups_most)
{
    struct cg_cluster_share best = {0, 0, 0};
    int64_t least = INT64_MAX;
    for (int32_t groups = 1; groups <= groups_most; groups++) {
        const int64_t each = (int64_t)CG_CLUSTER_COLUMNS * groups, clusters = (sequences + each - 1) / each;
        const int64_t waves = (clusters + together - 1) / together, cost = waves * (3 + 2 * groups);
        if (cost >= least)
            continue;
        const int64_t share = (sequences + waves * together - 1) / (waves * together);
        least = cost;
        best.groups = groups;
        best.slots = (int32_t)((share + groups - 1) / groups);
        best.clusters = (int32_t)((sequences + best.groups * best.slots - 1) / (best.groups * best.slots));
    }
    return best;
}

#endif
