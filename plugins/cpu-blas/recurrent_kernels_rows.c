/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels on rows: layer norm, masks, copies, layouts of weights. */
#include <math.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "recurrent_unit.h"
#include "recurrent_norm.inc"
#include "recurrent_mask.inc"
#include "recurrent_layout.inc"
