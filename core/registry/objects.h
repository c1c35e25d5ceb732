/* SPDX-License-Identifier: Apache-2.0 */
/* The shared objects that are mapped into the process: path, soname and Build-ID of each. Not while another thread
 * calls dlopen. */
#ifndef SL_REGISTRY_OBJECTS_H
#define SL_REGISTRY_OBJECTS_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"
#include "registry/record.h"

/* The object whose resolved path is `path`, then all that it needs, directly or indirectly. Errors: NO_MEMORY. */
seqlstm_status sl_objects_find(struct sl_arena *arena, const char *path, struct sl_backend_file **out_files,
                               uint32_t *out_count, struct seqlstm_error *err);

/* All objects, in the dynamic linker's order. Errors: NO_MEMORY. */
seqlstm_status sl_objects_list(struct sl_arena *arena, struct sl_backend_file **out_files, uint32_t *out_count,
                               struct seqlstm_error *err);

/* The function of this name in the objects behind the program, which one of the program's own hides; NULL: none. */
typedef void (*sl_hidden_function)(void);
sl_hidden_function sl_objects_find_hidden(const char *name);

/* Path of the object that has this code; NULL: none. */
const char *sl_objects_find_path(const void *code);

#endif
