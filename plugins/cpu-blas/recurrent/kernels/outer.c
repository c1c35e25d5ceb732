/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of weight gradients. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/unit.h"
#include "cpu-blas/recurrent/kernels/tiles.inc"
#include "cpu-blas/recurrent/kernels/outer.inc"
