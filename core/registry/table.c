/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. */
#include "registry/table.h"

#include <string.h>

#include "base/value/backend_id.h"
#include "registry/watch/running.h"
#include "registry/watch/watch.h"

#define REFUSE(...) return sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err, __VA_ARGS__)

/* While the ABI is a draft (major 0) both numbers must be equal. Later a host supports all earlier minors. */
static bool abi_fits(const struct sl_plugin_kind *kind, const struct sl_plugin_head *head)
{
    return head->abi_major == kind->abi_major && (kind->abi_major == 0 ? head->abi_minor_needed == kind->abi_minor
                                                                       : head->abi_minor_needed <= kind->abi_minor);
}

static seqlstm_status read_table(struct sl_arena *arena, const struct sl_plugin_kind *kind, const void *table,
                                 struct sl_backend_record *record, void *out_table, struct seqlstm_error *err)
{
    const struct sl_plugin_head *found = table;
    struct sl_plugin_head *out = out_table;
    if (!found)
        REFUSE("its query function returned NULL");
    if (found->magic != SEQLSTM_MAGIC)
        REFUSE("its table has the magic number %#x, expected %#x", found->magic, SEQLSTM_MAGIC);
    record->has_abi = true;
    record->abi_major = found->abi_major;
    record->abi_minor_needed = found->abi_minor_needed;
    if (!abi_fits(kind, found))
        REFUSE("it is built for ABI %u.%u, this program has %u.%u%s; use a build with the headers of this program",
               found->abi_major, found->abi_minor_needed, kind->abi_major, kind->abi_minor,
               kind->abi_major == 0 ? " (a draft: both must be equal)" : "");
    if (found->struct_size < kind->required_bytes || found->struct_size > 64 * 1024)
        REFUSE("its table claims a size of %u bytes, expected %u to %u", found->struct_size, kind->required_bytes,
               64 * 1024);
    memcpy(out_table, table, found->struct_size < kind->table_bytes ? found->struct_size : kind->table_bytes);
    out->struct_size = kind->table_bytes;
    if (!out->id || !sl_backend_id_is_valid(out->id))
        REFUSE("its id is missing or not of the form [a-z][a-z0-9-]*, at most %d characters", SEQLSTM_MAX_ID_BYTES - 1);
    if (!record->id || !record->id[0])
        record->id = out->id;
    if (!out->version || !out->vendor || !out->license || !out->build)
        REFUSE("its version, vendor, license or build text is NULL");
    record->version = sl_arena_strdup_printable(arena, out->version);
    record->vendor = sl_arena_strdup_printable(arena, out->vendor);
    record->license = sl_arena_strdup_printable(arena, out->license);
    record->build = sl_arena_strdup_printable(arena, out->build);
    if (!record->version || !record->vendor || !record->license || !record->build)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading %s", out->id);
    const char *slot = kind->find_missing(out_table);
    if (slot)
        REFUSE("its table has no function for the required slot '%s'", slot);
    const char *wrong = kind->find_bad_list(out_table);
    if (wrong)
        REFUSE("%s", wrong);
    return SEQLSTM_OK;
}

seqlstm_status sl_table_query(struct sl_arena *arena, const struct sl_plugin_kind *kind, sl_query_fn *query,
                              struct sl_backend_record *record, void *out_table, struct seqlstm_error *err)
{
    struct sl_watched_code code;
    struct sl_running running;
    record->status = SL_BACKEND_OK;
    memset(out_table, 0, kind->table_bytes);
    sl_watch_begin_code(&code);
    sl_running_begin(&running, record->file ? record->file : "built in", SL_FUNCTION_QUERY);
    const void *found = kind->ask(query, kind->abi_minor);
    const void *again = kind->ask(query, kind->abi_minor);
    sl_running_end(&running);
    const uint32_t changes = sl_watch_end_code(&code, running.plugin, SL_FUNCTION_QUERY);
    if (code.wrote[0])
        SEQLSTM_TRY(sl_record_note_output(arena, record, "query function", code.wrote, err));
    if (changes)
        SEQLSTM_TRY(sl_record_note_change(arena, record, changes, "query function", code.change, err));
    if (record->status != SL_BACKEND_OK)
        return SEQLSTM_OK;
    if (found != again)
        REFUSE("its query function returned another table when called again");
    SEQLSTM_TRY(read_table(arena, kind, found, record, out_table, err));
    if (record->status != SL_BACKEND_OK)
        memset(out_table, 0, kind->table_bytes);
    return SEQLSTM_OK;
}
