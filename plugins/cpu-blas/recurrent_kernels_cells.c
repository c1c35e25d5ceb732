/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the cells: LSTM, GRU, RNN. */
#include <stddef.h>

#include "recurrent_unit.h"
#include "recurrent_math.inc"
#include "recurrent_lstm_plain.inc"
#include "recurrent_lstm.inc"
#include "recurrent_lstm_norm.inc"
#include "recurrent_gru.inc"
