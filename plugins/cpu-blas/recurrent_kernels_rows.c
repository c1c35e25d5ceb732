/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels on rows: layer norm, masks, copies. */
#include <math.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "recurrent_unit.h"
#include "recurrent_norm.inc"
#include "recurrent_mask.inc"

void kernel_transpose16(const float *in, int64_t in_row, int rows, int columns, float *out, int64_t out_row)
{
    v_transpose16(in, in_row, rows, columns, out, out_row);
}
