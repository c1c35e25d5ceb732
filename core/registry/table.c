/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. */
#include "registry/table.h"

#include <string.h>

#include "base/value/backend_id.h"
#include "registry/watch/guard.h"
#include "registry/watch/plugin_text.h"
#include "registry/watch/running.h"
#include "registry/watch/watch.h"

enum { OPS_MAX = 4096, OPTIONS_MAX = 1024, DESC_BYTES_MAX = 1 << 16 };

#define REFUSE(...) return sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err, __VA_ARGS__)

/* The name of the first required function that is NULL; NULL: none is. */
static const char *missing_slot(const struct seqlstm_backend *t)
{
    const struct {
        const char *name;
        bool present;
    } slots[] = {
        {"open", t->open != NULL},
        {"close", t->close != NULL},
        {"device_count", t->device_count != NULL},
        {"device_info", t->device_info != NULL},
        {"supports", t->supports != NULL},
        {"op_create", t->op_create != NULL},
        {"op_sizes", t->op_sizes != NULL},
        {"op_bind", t->op_bind != NULL},
        {"forward", t->forward != NULL},
        {"binding_destroy", t->binding_destroy != NULL},
        {"op_destroy", t->op_destroy != NULL},
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (!slots[i].present)
            return slots[i].name;
    return NULL;
}

/* What is wrong with the lists of descriptor sizes and options; NULL: nothing. */
static const char *bad_lists(const struct seqlstm_backend *t)
{
    if (t->desc_count > OPS_MAX || (t->desc_count > 0 && !t->desc_bytes))
        return "its list of operations (desc_bytes) is missing or too long";
    for (uint32_t i = 0; i < t->desc_count; i++)
        if (t->desc_bytes[i] != 0 && (t->desc_bytes[i] < sizeof(struct seqlstm_desc) || t->desc_bytes[i] % 8 != 0 ||
                                      t->desc_bytes[i] > DESC_BYTES_MAX))
            return "an entry of desc_bytes cannot be the size of a descriptor";
    if (t->option_count > OPTIONS_MAX || (t->option_count > 0 && !t->options))
        return "its list of options is missing or too long";
    for (uint32_t i = 0; i < t->option_count; i++)
        if (!t->options[i].key || !t->options[i].type || !t->options[i].help)
            return "an option has no key, type or help";
        else if (!sl_plugin_text_is_clean(t->options[i].key) || !sl_plugin_text_is_clean(t->options[i].type) ||
                 !sl_plugin_text_is_clean(t->options[i].help))
            return "a text of an option has control characters or is no UTF-8";
    return NULL;
}

/* While the ABI is a draft (major 0) both numbers must be equal. Later a host supports all earlier minors. */
static bool abi_fits(uint32_t major, uint32_t minor_needed)
{
    return major == SEQLSTM_ABI_MAJOR &&
           (SEQLSTM_ABI_MAJOR == 0 ? minor_needed == SEQLSTM_ABI_MINOR : minor_needed <= SEQLSTM_ABI_MINOR);
}

static const char *copy_text(struct sl_arena *arena, const char *text)
{
    char *copy = sl_arena_strdup(arena, text);
    if (copy)
        sl_plugin_text_clean(copy, strlen(copy) + 1);
    return copy;
}

static seqlstm_status read_table(struct sl_arena *arena, const struct seqlstm_backend *found,
                                 struct sl_backend_record *record, struct seqlstm_backend *out,
                                 struct seqlstm_error *err)
{
    const uint32_t required = SEQLSTM_END_OF(out, op_destroy);
    if (!found)
        REFUSE("its query function returned NULL");
    if (found->magic != SEQLSTM_MAGIC)
        REFUSE("its table has the magic number %#x, expected %#x", found->magic, SEQLSTM_MAGIC);
    record->has_abi = true;
    record->abi_major = found->abi_major;
    record->abi_minor_needed = found->abi_minor_needed;
    if (!abi_fits(found->abi_major, found->abi_minor_needed))
        REFUSE("it is built for ABI %u.%u, this program has %u.%u%s; build it again with the headers of this program",
               found->abi_major, found->abi_minor_needed, SEQLSTM_ABI_MAJOR, SEQLSTM_ABI_MINOR,
               SEQLSTM_ABI_MAJOR == 0 ? " (a draft: both must be equal)" : "");
    if (found->struct_size < required || found->struct_size > 64 * 1024)
        REFUSE("its table claims a size of %u bytes, expected %u to %u", found->struct_size, required, 64 * 1024);
    memcpy(out, found, found->struct_size < sizeof *out ? found->struct_size : sizeof *out);
    out->struct_size = (uint32_t)sizeof *out;
    if (!out->id || !sl_backend_id_is_valid(out->id))
        REFUSE("its id is missing or not of the form [a-z][a-z0-9-]*, at most %d characters", SEQLSTM_MAX_ID_BYTES - 1);
    if (!record->id || !record->id[0])
        record->id = out->id;
    if (!out->version || !out->vendor || !out->license || !out->build)
        REFUSE("its version, vendor, license or build text is NULL");
    record->version = copy_text(arena, out->version);
    record->vendor = copy_text(arena, out->vendor);
    record->license = copy_text(arena, out->license);
    record->build = copy_text(arena, out->build);
    if (!record->version || !record->vendor || !record->license || !record->build)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading backend %s", out->id);
    const char *slot = missing_slot(out);
    if (slot)
        REFUSE("its table has no function for the required slot '%s'", slot);
    const char *wrong = bad_lists(out);
    if (wrong)
        REFUSE("%s", wrong);
    return SEQLSTM_OK;
}

seqlstm_status sl_table_query(struct sl_arena *arena, seqlstm_backend_query_fn query, struct sl_backend_record *record,
                              struct seqlstm_backend *out_table, struct seqlstm_error *err)
{
    struct sl_process_guard guard;
    struct sl_running running;
    char change[400], wrote[400];
    record->status = SL_BACKEND_OK;
    memset(out_table, 0, sizeof *out_table);
    bool captures = sl_watch_begin_capture();
    sl_process_guard_begin(&guard);
    sl_running_begin(&running, record->file ? record->file : "built in", SL_FUNCTION_QUERY);
    const struct seqlstm_backend *found = query(SEQLSTM_ABI_MINOR);
    const struct seqlstm_backend *again = query(SEQLSTM_ABI_MINOR);
    sl_running_end(&running);
    uint32_t changes = sl_process_guard_end(&guard, change, sizeof change);
    if (captures && sl_watch_end_capture(wrote, sizeof wrote))
        SEQLSTM_TRY(sl_record_note_output(arena, record, "query function", wrote, err));
    if (changes)
        SEQLSTM_TRY(sl_record_note_change(arena, record, changes, "query function", change, err));
    if (record->status != SL_BACKEND_OK)
        return SEQLSTM_OK;
    if (found != again)
        REFUSE("its query function returned another table when called again");
    SEQLSTM_TRY(read_table(arena, found, record, out_table, err));
    if (record->status != SL_BACKEND_OK)
        memset(out_table, 0, sizeof *out_table);
    return SEQLSTM_OK;
}
