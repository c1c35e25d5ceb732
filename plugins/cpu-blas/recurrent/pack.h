/* SPDX-License-Identifier: Apache-2.0 */
/* Copies gradients from the layout of the kernels to the canonical one, summed over the members that computed them. */
#ifndef BLAS_RECURRENT_PACK_H
#define BLAS_RECURRENT_PACK_H

#include "cpu-blas/recurrent/layout.h"

struct blas_reduce {
    struct blas_gradients gradients; /* of the first member; its region begins at `w` */
    float *first;                    /* == gradients.w */
    int64_t stride;                  /* floats from one member's region to the next */
    int32_t sources;                 /* members that have one */
    bool accumulate;
    bool direct; /* those of W_x and W_h are already in place */
};

/* Like pack_back of the kernels, or its equivalent on tiles. */
void blas_pack_back(const struct blas_recurrent *op, bool tiles, const struct blas_pack *p);

/* Reduces this member's share. `grads` are the parameter slots of (layer, direction), NULL where not wanted. The
 * contents of the regions are lost. */
void blas_gradients_reduce(const struct blas_recurrent *op, const struct blas_reduce *reduce,
                           const struct blas_packed *packed, int32_t layer, int32_t member, int32_t members,
                           float *const *grads);

#endif
