/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the allocations that a plugin makes in forward and backward without the host's `allocate`.
 *
 * The dynamic linker keeps, for each shared object, the addresses of the functions of others that it calls. Those of
 * malloc and similar functions are replaced by functions that count and then do the same. So calls by the plugin's
 * own code can be told from calls by the libraries that it uses. Calls that do not go through the dynamic linker are
 * not seen. */
#ifndef SL_CONFORMANCE_CHECKS_ALLOCATIONS_H
#define SL_CONFORMANCE_CHECKS_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "registry/record.h"

/* Starts counting for those files of the record that are mapped: the first is the plugin, the others are its
 * libraries. Only for one plugin per process, and not while another thread runs code of these files. */
void sl_allocations_watch(const struct sl_backend_record *record);

/* Allocations by the plugin's own code in forward and backward, since the last call of this function. */
int64_t sl_allocations_take_own(void);

/* A library that has allocated in forward or backward and that was not returned before; NULL: none. */
const char *sl_allocations_take_library(void);

#endif
