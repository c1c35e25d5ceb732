/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of products with a packed panel. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/unit.h"
#include "cpu-blas/recurrent/kernels/tiles.inc"
#include "cpu-blas/recurrent/kernels/product.inc"
