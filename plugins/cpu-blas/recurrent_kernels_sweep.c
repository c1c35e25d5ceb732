/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of many steps in one call. */
#include <stddef.h>
#include <string.h>

#include "recurrent_unit.h"
#include "recurrent_sweep.inc"
