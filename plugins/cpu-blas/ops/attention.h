/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of ATTENTION. */
#ifndef BLAS_ATTENTION_H
#define BLAS_ATTENTION_H

#include "cpu-blas/ops/attention_work.h"

seqlstm_status blas_attention_backward(const struct blas_call *call, struct seqlstm_error *err);

#endif
