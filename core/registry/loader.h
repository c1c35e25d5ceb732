/* SPDX-License-Identifier: Apache-2.0 */
/* From a file to a checked table: the only dlopen of the program. Used by the registry and by the
 * conformance kit, which opens instances with hosts of its own.
 *
 * What is refused and why is written into the record; only running out of memory is an error.
 */
#ifndef SL_REGISTRY_LOADER_H
#define SL_REGISTRY_LOADER_H

#include <stdbool.h>

#include <seqlstm/backend.h>

#include "base/memory/arena.h"
#include "registry/registry.h"

/* Loads the plugin at `path` (absolute). On success record->status is OK, the record's texts, ABI
 * numbers and files are filled and *out_table is the table in the host's full size. Otherwise the
 * status and reason say why and *out_table is zeroed. All texts live in `arena`. [control] */
seqlstm_status sl_loader_load(struct sl_arena *arena, const char *path, bool trust, struct sl_backend_record *record,
                              struct seqlstm_backend *out_table, struct seqlstm_error *err);

/* The same for a query function that is already in the program. [control] */
seqlstm_status sl_loader_query(struct sl_arena *arena, seqlstm_backend_query_fn query, struct sl_backend_record *record,
                               struct seqlstm_backend *out_table, struct seqlstm_error *err);

/* Opens an instance with `host`, watched by the process guard, and reads its devices into the record.
 * On refusal *out_instance is NULL and the record says why. Errors: NO_MEMORY, the
 * plugin's own included. [control] */
seqlstm_status sl_loader_open(struct sl_arena *arena, const struct seqlstm_backend *table,
                              const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                              uint32_t setting_count, struct sl_backend_record *record,
                              struct seqlstm_instance **out_instance, struct seqlstm_error *err);

/* OK when `path` (resolved) belongs to root or the user and nobody else can write to it or put another
 * file in its place. Errors: INVALID_ARGUMENT with the reason, as the end of "it …". */
seqlstm_status sl_loader_check_owner(const char *path, struct seqlstm_error *err);

/* Sets status and reason of a record. NO_MEMORY if the text cannot be kept. */
seqlstm_status sl_record_refuse(struct sl_arena *arena, struct sl_backend_record *record, enum sl_backend_status status,
                                struct seqlstm_error *err, const char *format, ...) SEQLSTM_PRINTF(5, 6);

#endif
