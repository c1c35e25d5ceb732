/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels on rows: layer norm, masks, copies, layouts of weights. */
#include <math.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "cpu-blas/recurrent/kernels/unit.h"
#include "cpu-blas/recurrent/kernels/norm.inc"
#include "cpu-blas/recurrent/kernels/mask.inc"
#include "cpu-blas/recurrent/kernels/layout.inc"
