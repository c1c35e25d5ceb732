/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one instruction set (compiled once for each). */
#include "rowmath_unit.h"

const struct blas_rowmath BLAS_NAME(rowmath) = {
    .lanes = BLAS_LANES,
    .act_forward = BLAS_NAME(act_forward),
    .act_backward = BLAS_NAME(act_backward),
    .softmax = BLAS_NAME(softmax),
    .softmax_backward = BLAS_NAME(softmax_backward),
    .add = BLAS_NAME(add),
    .loss = BLAS_NAME(loss),
    .loss_backward = BLAS_NAME(loss_backward),
    .row_stats = BLAS_NAME(row_stats),
    .softmax_grad = BLAS_NAME(softmax_grad),
    .exp_row = BLAS_NAME(exp_row),
    .scale_shift = BLAS_NAME(scale_shift),
    .column_sums = BLAS_NAME(column_sums),
    .norm_forward = BLAS_NAME(norm_forward),
    .norm_backward = BLAS_NAME(norm_backward),
    .norm_gain_sums = BLAS_NAME(norm_gain_sums),
    .mask_row = BLAS_NAME(mask_row),
    .multiply = BLAS_NAME(multiply),
    .maximum = BLAS_NAME(maximum),
    .find_above = BLAS_NAME(find_above),
    .product_dots = BLAS_NAME(product_dots),
    .product_rows = BLAS_NAME(product_rows),
    .vector = BLAS_NAME(vector),
    .update = BLAS_NAME(update),
    .squared_norm = BLAS_NAME(squared_norm),
    .finite = BLAS_NAME(finite),
    .cast = BLAS_NAME(cast),
};
