/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of many steps in one call. */
#include <stddef.h>
#include <string.h>

#include "cpu-blas/recurrent/kernels/unit.h"
#include "cpu-blas/recurrent/kernels/sweep.inc"
