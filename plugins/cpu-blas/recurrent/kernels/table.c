/* SPDX-License-Identifier: Apache-2.0 */
/* The table of recurrent kernels of one instruction set. */
#include "cpu-blas/recurrent/kernels/unit.h"

#define SET_NAME_(set) #set
#define SET_NAME(set)  SET_NAME_(set)

const struct blas_recurrent_kernels BLAS_NAME(recurrent_kernels) = {
    .name = SET_NAME(BLAS_SET),
    .strips = BLAS_LANES == 8,
    .product = kernel_product,
    .outer = kernel_outer,
    .outer_tile_a = kernel_outer_tile_a,
    .lstm_forward = kernel_lstm_forward,
    .lstm_backward = kernel_lstm_backward,
    .sweep_forward = kernel_sweep_forward,
    .sweep_backward = kernel_sweep_backward,
    .lstm_norm_forward_1 = kernel_lstm_norm_forward_1,
    .lstm_norm_forward_2 = kernel_lstm_norm_forward_2,
    .lstm_norm_backward_1 = kernel_lstm_norm_backward_1,
    .lstm_norm_backward_2 = kernel_lstm_norm_backward_2,
    .gru_forward = kernel_gru_forward,
    .gru_backward = kernel_gru_backward,
    .gru_before_forward_1 = kernel_gru_before_forward_1,
    .gru_before_backward_2 = kernel_gru_before_backward_2,
    .rnn_forward = kernel_rnn_forward,
    .rnn_backward = kernel_rnn_backward,
    .norm_forward = kernel_norm_forward,
    .norm_restore = kernel_norm_restore,
    .norm_backward = kernel_norm_backward,
    .row_stats = kernel_row_stats,
    .fold = kernel_fold,
    .keep_bits = kernel_keep_bits,
    .keep_apply = kernel_keep_apply,
    .mask_apply = kernel_mask_apply,
    .copy = kernel_copy,
    .add = kernel_add,
    .put_end = kernel_put_end,
    .pack_forward = kernel_pack_forward,
    .pack_back = kernel_pack_back,
    .transpose16 = kernel_transpose16,
};
