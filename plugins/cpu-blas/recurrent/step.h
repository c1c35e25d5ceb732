/* SPDX-License-Identifier: Apache-2.0 */
/* One step forward: what step.c passes to step_norm.c. */
#ifndef BLAS_RECURRENT_STEP_H
#define BLAS_RECURRENT_STEP_H

#include "cpu-blas/recurrent/run.h"

/* A step while it runs. */
struct blas_step {
    int64_t s, t, rows, q, q_all;
    float *gates, *gates_h;   /* panel 0 */
    int64_t stride, h_stride; /* between panels */
    int64_t kept;             /* where gates are put: offset of panel 0 in the reserve; or -1 */
    float *raw, *rh;
    uint16_t *new_c, *new_h;
    struct blas_cell_forward cell; /* of panel 0 */
};

/* Cells with layer norm: both products are kept apart, and every row needs its statistics first. */
void blas_step_norm(const struct blas_forward_run *f, const struct blas_step *step, float *stats, float *c_mean,
                    float *c_rstd);

#endif
