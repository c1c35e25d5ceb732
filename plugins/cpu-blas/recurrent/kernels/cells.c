/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the cells: LSTM, GRU, RNN. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/unit.h"
#include "cpu-blas/recurrent/kernels/math.inc"
#include "cpu-blas/recurrent/kernels/lstm_plain.inc"
#include "cpu-blas/recurrent/kernels/lstm.inc"
#include "cpu-blas/recurrent/kernels/lstm_norm.inc"
#include "cpu-blas/recurrent/kernels/gru.inc"
