/* SPDX-License-Identifier: Apache-2.0 */
/* What grow_headers.py appended to the contract: every struct that begins with struct_size, and every descriptor, has
 * a member `grown` at its end in the newer headers (SEQLSTM_GROWN is defined), and none in the older ones. */
#ifndef GROWTH_H
#define GROWTH_H

#include <seqlstm/backend.h>
#include <seqlstm/desc_check.h>

enum { GROWTH_FACTOR = 3, GROWTH_MARK = 7, GROWTH_FEATURES = 4 };

#endif
