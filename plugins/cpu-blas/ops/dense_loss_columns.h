/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy over many classes, by columns: the second implementation of DENSE_LOSS. */
#ifndef BLAS_DENSE_LOSS_COLUMNS_H
#define BLAS_DENSE_LOSS_COLUMNS_H

#include "cpu-blas/share.h"

/* Whether it fits this descriptor, which variants it has, what memory it needs, and the passes. */
bool blas_columns_fit(const struct seqlstm_dense_loss_desc *d);
void blas_columns_supports(const struct seqlstm_dense_loss_desc *d, bool with_tiles, struct seqlstm_answer *answer);
void blas_columns_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *out);
void blas_columns_forward(const struct blas_call *call);
void blas_columns_backward(const struct blas_call *call);

#endif
