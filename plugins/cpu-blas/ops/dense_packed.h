/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of DENSE on packed weights: x W' + b with the products of recurrent layers, which read packed weights once,
 * at any number of rows, and transpose nothing.
 *
 * Packed are the rows of W in groups of 16 outputs, as far as they fill groups. The other outputs, at most 15, read W
 * itself. */
#ifndef BLAS_DENSE_PACKED_H
#define BLAS_DENSE_PACKED_H

#include "cpu-blas/plugin.h"

/* Bytes of the packed weights; 0 if the operation reads W itself: in training, where W changes at each update, with
 * tiles, without vectors, and where W is small. */
uint64_t blas_dense_packed_bytes(const struct seqlstm_op *op);

/* Columns that packed products compute at once: parts of a call are multiples of them. */
enum { BLAS_DENSE_PANEL = 64 };

/* Fills `packed` (blas_dense_packed_bytes, aligned to 64 bytes) from W [output, input]. */
void blas_dense_pack(const struct seqlstm_op *op, const float *w, float *packed);

/* y = x W' + b for the rows [r0, r1) and columns [c0, c1). c0 is a multiple of BLAS_DENSE_PANEL, and so is c1, or it is
 * the number of outputs. `bias` may be NULL. */
void blas_dense_packed_block(const struct blas_call *call, const float *bias, int64_t r0, int64_t r1, int64_t c0,
                             int64_t c1);

#endif
