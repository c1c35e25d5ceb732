/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of weight gradients. */
#include <stddef.h>

#include "recurrent_unit.h"
#include "recurrent_tiles.inc"
#include "recurrent_outer.inc"
