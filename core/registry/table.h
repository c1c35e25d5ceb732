/* SPDX-License-Identifier: Apache-2.0 */
/* The table of functions that a plugin exports: asked for, and checked before anything in it is used. */
#ifndef SL_REGISTRY_TABLE_H
#define SL_REGISTRY_TABLE_H

#include "base/memory/arena.h"
#include "registry/kind/kind.h"
#include "registry/record.h"

/* Calls the query function of a plugin of this kind, watched by guard.h. `out_table`: a table of the kind. If the table
 * passes, record->status is OK, the record has its texts and ABI numbers, and *out_table is the table in the host's
 * full size. Otherwise the record says why not, and *out_table is zeroed. Errors: NO_MEMORY. [control] */
seqlstm_status sl_table_query(struct sl_arena *arena, const struct sl_plugin_kind *kind, sl_query_fn *query,
                              struct sl_backend_record *record, void *out_table, struct seqlstm_error *err);

#endif
