/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a plugin: from a file to a checked table. The registry and the conformance kit use it.
 *
 * The file is checked before it is mapped (base/system/owner.h, elf.h), and the table afterwards (table.h). Whatever is
 * wrong with a plugin is written into its record; the only error is running out of memory.
 */
#ifndef SL_REGISTRY_LOADER_H
#define SL_REGISTRY_LOADER_H

#include <stdbool.h>

#include <seqlstm/backend.h>

#include "base/memory/arena.h"
#include "registry/kind/kind.h"
#include "registry/record.h"

/* Loads the plugin of this kind at `path` (absolute). `trust`: owner and mode of the file are not checked. As
 * sl_table_query, and fills record->file and record->files. [control] */
seqlstm_status sl_loader_load(struct sl_arena *arena, const struct sl_plugin_kind *kind, const char *path, bool trust,
                              struct sl_backend_record *record, void *out_table, struct seqlstm_error *err);

#endif
