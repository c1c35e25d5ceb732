/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what a plugin allocates by itself, past the host's `allocate`, inside forward and backward.
 *
 * The dynamic linker keeps, for each shared object, the addresses of the functions of others that it calls. Those of
 * malloc and its like are replaced by functions that count and then do the same. So calls of the plugin's own code are
 * told apart from those of the libraries that it uses. What an object does without the dynamic linker is not seen.
 */
#ifndef SL_CONFORMANCE_CHECKS_ALLOCATIONS_H
#define SL_CONFORMANCE_CHECKS_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "registry/record.h"

/* From now on, for the files of the record that are mapped: the first is the plugin, the others are its libraries. For
 * one plugin of the process. Not while another thread runs code of these files. */
void sl_allocations_watch(const struct sl_backend_record *record);

/* Since the last call, in forward and backward: allocations of the plugin's own code. */
int64_t sl_allocations_take_own(void);

/* A library that has allocated in forward or backward, and was not told of before; NULL: none. */
const char *sl_allocations_take_library(void);

#endif
