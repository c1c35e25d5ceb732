/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between devices: copy_across of ext/draft/memory.h. */
#ifndef SL_CONFORMANCE_COPIES_CHECK_H
#define SL_CONFORMANCE_COPIES_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "conformance/workbench.h"

/* Copies between two streams of the first device and, if there is a second, between both. False: something is wrong,
 * which out_text says. True also where the backend has no such copy. */
bool sl_copies_check(struct sl_workbench *w, char *out_text, size_t capacity_bytes);

#endif
