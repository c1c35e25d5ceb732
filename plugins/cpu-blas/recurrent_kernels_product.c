/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of products with a packed panel. */
#include <stddef.h>

#include "recurrent_unit.h"
#include "recurrent_tiles.inc"
#include "recurrent_product.inc"
