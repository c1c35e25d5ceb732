/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the kernels' layout into the canonical one, summed over the members that made them. */
#ifndef BLAS_RECURRENT_PACK_H
#define BLAS_RECURRENT_PACK_H

#include "cpu-blas/recurrent/op.h"

struct blas_reduce {
    struct blas_gradients gradients; /* of the first member; its `w` begins the member's region */
    float *first;                    /* == gradients.w */
    int64_t stride;                  /* floats from one member's region to the next */
    int32_t sources;                 /* members that have one */
    bool accumulate;
    bool direct; /* those of W_x and W_h are in place already */
};

/* pack_back of the kernels, or on tiles. */
void blas_pack_back(const struct blas_recurrent *op, bool tiles, const struct blas_pack *p);

/* This member's share; `grads` are the parameter slots of (layer, direction), NULL where not wanted. Contents of the
 * regions are lost. */
void blas_gradients_reduce(const struct blas_recurrent *op, const struct blas_reduce *reduce,
                           const struct blas_packed *packed, int32_t layer, int32_t member, int32_t members,
                           float *const *grads);

#endif
