/* SPDX-License-Identifier: Apache-2.0 */
/* Included first by every unit of the recurrent kernels: the vectors of its instruction set, and the kernels of the
 * table. Each unit defines some of the kernels and may call the others. */
#ifndef BLAS_RECURRENT_UNIT_H
#define BLAS_RECURRENT_UNIT_H

#include "cpu-blas/isa/vector.h"
#include "cpu-blas/recurrent/kernels/kernels.h"

#define kernel_product               BLAS_NAME(kernel_product)
#define kernel_outer                 BLAS_NAME(kernel_outer)
#define kernel_outer_tile_a          BLAS_NAME(kernel_outer_tile_a)
#define kernel_lstm_forward          BLAS_NAME(kernel_lstm_forward)
#define kernel_lstm_backward         BLAS_NAME(kernel_lstm_backward)
#define kernel_lstm_plain_forward    BLAS_NAME(kernel_lstm_plain_forward)
#define kernel_lstm_plain_backward   BLAS_NAME(kernel_lstm_plain_backward)
#define kernel_sweep_forward         BLAS_NAME(kernel_sweep_forward)
#define kernel_sweep_backward        BLAS_NAME(kernel_sweep_backward)
#define kernel_lstm_norm_forward_1   BLAS_NAME(kernel_lstm_norm_forward_1)
#define kernel_lstm_norm_forward_2   BLAS_NAME(kernel_lstm_norm_forward_2)
#define kernel_lstm_norm_backward_1  BLAS_NAME(kernel_lstm_norm_backward_1)
#define kernel_lstm_norm_backward_2  BLAS_NAME(kernel_lstm_norm_backward_2)
#define kernel_gru_forward           BLAS_NAME(kernel_gru_forward)
#define kernel_gru_backward          BLAS_NAME(kernel_gru_backward)
#define kernel_gru_before_forward_1  BLAS_NAME(kernel_gru_before_forward_1)
#define kernel_gru_before_backward_2 BLAS_NAME(kernel_gru_before_backward_2)
#define kernel_rnn_forward           BLAS_NAME(kernel_rnn_forward)
#define kernel_rnn_backward          BLAS_NAME(kernel_rnn_backward)
#define kernel_norm_forward          BLAS_NAME(kernel_norm_forward)
#define kernel_norm_restore          BLAS_NAME(kernel_norm_restore)
#define kernel_norm_backward         BLAS_NAME(kernel_norm_backward)
#define kernel_row_stats             BLAS_NAME(kernel_row_stats)
#define kernel_fold                  BLAS_NAME(kernel_fold)
#define kernel_keep_bits             BLAS_NAME(kernel_keep_bits)
#define kernel_keep_apply            BLAS_NAME(kernel_keep_apply)
#define kernel_mask_apply            BLAS_NAME(kernel_mask_apply)
#define kernel_copy                  BLAS_NAME(kernel_copy)
#define kernel_add                   BLAS_NAME(kernel_add)
#define kernel_put_end               BLAS_NAME(kernel_put_end)
#define kernel_pack_forward          BLAS_NAME(kernel_pack_forward)
#define kernel_pack_back             BLAS_NAME(kernel_pack_back)
#define kernel_transpose16           BLAS_NAME(kernel_transpose16)

void kernel_product(const struct blas_product *p);
void kernel_outer(const struct blas_outer *o);
void kernel_outer_tile_a(const struct blas_outer *o, float *out);
void kernel_lstm_forward(const struct blas_cell_forward *f);
void kernel_lstm_backward(const struct blas_cell_backward *b);
/* The cell without options, called by the two kernels above. */
void kernel_lstm_plain_forward(const struct blas_cell_forward *f);
void kernel_lstm_plain_backward(const struct blas_cell_backward *b);
void kernel_sweep_forward(const struct blas_sweep_forward *w);
void kernel_sweep_backward(const struct blas_sweep_backward *w);
void kernel_lstm_norm_forward_1(const struct blas_cell_forward *f);
void kernel_lstm_norm_forward_2(const struct blas_cell_forward *f);
void kernel_lstm_norm_backward_1(const struct blas_cell_backward *b);
void kernel_lstm_norm_backward_2(const struct blas_cell_backward *b);
void kernel_gru_forward(const struct blas_cell_forward *f);
void kernel_gru_backward(const struct blas_cell_backward *b);
void kernel_gru_before_forward_1(const struct blas_cell_forward *f);
void kernel_gru_before_backward_2(const struct blas_cell_backward *b);
void kernel_rnn_forward(const struct blas_cell_forward *f);
void kernel_rnn_backward(const struct blas_cell_backward *b);
void kernel_norm_forward(const struct blas_norm *n);
void kernel_norm_restore(const struct blas_norm *n);
void kernel_norm_backward(const struct blas_norm *n);
void kernel_row_stats(const float *x, int64_t panel_stride, int64_t rows, int64_t units, float epsilon, float *mean,
                      float *rstd);
void kernel_fold(int64_t rows, const float *x, float scale, float *y);
void kernel_keep_bits(const struct blas_keep *k);
void kernel_keep_apply(const struct blas_keep *k, const float *x, float *y);
void kernel_mask_apply(const float *x, const uint16_t *bits, int64_t first, float scale, int64_t n, float *y);
void kernel_copy(const struct blas_rows *c);
void kernel_add(const struct blas_rows *c);
void kernel_put_end(void);
void kernel_pack_forward(const struct blas_pack *p);
void kernel_pack_back(const struct blas_pack *p);
void kernel_transpose16(const float *in, int64_t in_row, int rows, int columns, float *out, int64_t out_row);

#endif
