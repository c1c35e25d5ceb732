/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the libraries that a plugin maps in `open`. Vendors' libraries that may be absent are loaded there, so the
 * dynamic linker does not list them as needed by the plugin. Used around `open`:
 *
 *   struct sl_mapped_files mapped;
 *   sl_mapped_files_begin(&mapped, arena);
 *   ... open ...
 *   sl_mapped_files_end(&mapped, record, err);     adds to record->files
 *
 * Libraries stay mapped, so opening a plugin again maps nothing new. What the first `open` mapped is therefore
 * remembered for the life of the process. A library that another plugin or the program had mapped before is not found.
 */
#ifndef SL_REGISTRY_MAPPED_FILES_H
#define SL_REGISTRY_MAPPED_FILES_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"
#include "registry/record.h"

struct sl_mapped_files {
    struct sl_arena *arena;
    struct sl_backend_file *files; /* mapped before; NULL: memory ran out */
    uint32_t count;
};

void sl_mapped_files_begin(struct sl_mapped_files *mapped, struct sl_arena *arena);

/* Errors: NO_MEMORY. Not while another thread calls dlopen. */
seqlstm_status sl_mapped_files_end(const struct sl_mapped_files *mapped, struct sl_backend_record *record,
                                   struct seqlstm_error *err);

#endif
