/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a plugin, reads its table without trusting it, opens an instance without trusting that. */
#include "registry/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registry/elf.h"
#include "registry/guard.h"
#include "registry/mapped_files.h"

enum { DEVICES_MAX = 1024, OPS_MAX = 4096, OPTIONS_MAX = 1024, DESC_BYTES_MAX = 1 << 16 };

seqlstm_status sl_record_refuse(struct sl_arena *arena, struct sl_backend_record *record, enum sl_backend_status status,
                                struct seqlstm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record->status = status;
    record->reason = sl_arena_vprintf(arena, format, args);
    va_end(args);
    if (!record->reason)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading a backend");
    return SEQLSTM_OK;
}

#define REFUSE(...) return sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err, __VA_ARGS__)

/* ---- who may have written the file ----------------------------------------------------------- */

static seqlstm_status check_owner_of(const char *path, bool is_ancestor, struct seqlstm_error *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "cannot be examined: %s: %s", path, strerror(errno));
    if (status.st_uid != 0 && status.st_uid != geteuid())
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "is not safe to load: %s belongs to user %u, neither root nor you",
                     path, (unsigned)status.st_uid);
    if ((status.st_mode & S_IWOTH) && !(is_ancestor && (status.st_mode & S_ISVTX)))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "is not safe to load: anybody may write to %s", path);
    return SEQLSTM_OK;
}

seqlstm_status sl_loader_check_owner(const char *path, struct seqlstm_error *err)
{
    char folder[PATH_MAX];
    if (strlen(path) >= sizeof folder)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "has a path of more than %d bytes", PATH_MAX - 1);
    SEQLSTM_TRY(check_owner_of(path, false, err));
    strcpy(folder, path);
    for (bool first = true;; first = false) {
        char *slash = strrchr(folder, '/');
        if (!slash)
            return SEQLSTM_OK;
        slash[slash == folder ? 1 : 0] = 0;
        SEQLSTM_TRY(check_owner_of(folder, !first, err));
        if (folder[1] == 0)
            return SEQLSTM_OK;
    }
}

/* ---- the table -------------------------------------------------------------------------------- */

static bool id_is_valid(const char *id)
{
    if (!id || id[0] < 'a' || id[0] > 'z')
        return false;
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return id[n] == 0 && n < 48;
}

/* The first required slot that is NULL, by name, or NULL. */
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

/* Descriptor sizes and options. Returns what is wrong with them, or NULL. */
static const char *bad_lists(const struct seqlstm_backend *t)
{
    if (t->desc_count > OPS_MAX || (t->desc_count > 0 && !t->desc_bytes))
        return "its list of operations (desc_bytes) is missing or too long";
    for (uint32_t i = 0; i < t->desc_count; i++)
        if (t->desc_bytes[i] != 0 && (t->desc_bytes[i] < sizeof(struct seqlstm_desc) || t->desc_bytes[i] % 8 != 0 ||
                                      t->desc_bytes[i] > DESC_BYTES_MAX))
            return "an entry of desc_bytes is no possible size of a descriptor";
    if (t->option_count > OPTIONS_MAX || (t->option_count > 0 && !t->options))
        return "its list of options is missing or too long";
    for (uint32_t i = 0; i < t->option_count; i++)
        if (!t->options[i].key || !t->options[i].type || !t->options[i].help)
            return "an option has no key, type or help";
    return NULL;
}

/* A draft must be matched exactly; from major 1 on a host has all that its minors brought. */
static bool abi_fits(uint32_t major, uint32_t minor_needed)
{
    return major == SEQLSTM_ABI_MAJOR &&
           (SEQLSTM_ABI_MAJOR == 0 ? minor_needed == SEQLSTM_ABI_MINOR : minor_needed <= SEQLSTM_ABI_MINOR);
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
        REFUSE("it is built for ABI %u.%u, this program has %u.%u%s", found->abi_major, found->abi_minor_needed,
               SEQLSTM_ABI_MAJOR, SEQLSTM_ABI_MINOR, SEQLSTM_ABI_MAJOR == 0 ? " (a draft: both must be equal)" : "");
    if (found->struct_size < required || found->struct_size > 64 * 1024)
        REFUSE("its table says that it has %u bytes, expected %u to %u", found->struct_size, required, 64 * 1024);
    memcpy(out, found, found->struct_size < sizeof *out ? found->struct_size : sizeof *out);
    out->struct_size = (uint32_t)sizeof *out;
    if (!id_is_valid(out->id))
        REFUSE("its id is missing or not of the form [a-z][a-z0-9-]*");
    if (!record->id || !record->id[0])
        record->id = out->id;
    if (!out->version || !out->vendor || !out->license || !out->build)
        REFUSE("its version, vendor, license or build text is NULL");
    record->version = sl_arena_strdup(arena, out->version);
    record->vendor = sl_arena_strdup(arena, out->vendor);
    record->license = sl_arena_strdup(arena, out->license);
    record->build = sl_arena_strdup(arena, out->build);
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

seqlstm_status sl_loader_query(struct sl_arena *arena, seqlstm_backend_query_fn query, struct sl_backend_record *record,
                               struct seqlstm_backend *out_table, struct seqlstm_error *err)
{
    struct sl_process_guard guard;
    char change[256];
    record->status = SL_BACKEND_OK;
    memset(out_table, 0, sizeof *out_table);
    sl_process_guard_begin(&guard);
    const struct seqlstm_backend *found = query(SEQLSTM_ABI_MINOR);
    const struct seqlstm_backend *again = query(SEQLSTM_ABI_MINOR);
    if (sl_process_guard_end(&guard, change, sizeof change))
        REFUSE("its query function %s", change);
    if (found != again)
        REFUSE("its query function returned another table when called again");
    SEQLSTM_TRY(read_table(arena, found, record, out_table, err));
    if (record->status != SL_BACKEND_OK)
        memset(out_table, 0, sizeof *out_table);
    return SEQLSTM_OK;
}

/* ---- the file ----------------------------------------------------------------------------------- */

static seqlstm_status map_file(struct sl_arena *arena, const char *path, struct sl_backend_record *record,
                               seqlstm_backend_query_fn *out_query, struct seqlstm_error *err)
{
    struct sl_process_guard guard;
    char change[256];
    sl_process_guard_begin(&guard);
    dlerror();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *problem = handle ? NULL : dlerror();
    bool changed = sl_process_guard_end(&guard, change, sizeof change);
    if (!handle) {
        record->dlerror = sl_arena_strdup(arena, problem ? problem : "unknown reason");
        if (!record->dlerror)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading %s", path);
        bool absent = strstr(record->dlerror, "cannot open shared object file") != NULL;
        return sl_record_refuse(arena, record, absent ? SL_BACKEND_UNAVAILABLE : SL_BACKEND_REFUSED, err,
                                "it cannot be mapped: %s", record->dlerror);
    }
    struct sl_backend_file *files;
    SEQLSTM_TRY(sl_elf_collect(arena, path, &files, &record->file_count, err));
    record->files = files;
    if (changed)
        REFUSE("it %s while it was loaded", change);
    void *symbol = dlsym(handle, SEQLSTM_QUERY_SYMBOL);
    if (!symbol)
        REFUSE("it does not export %s", SEQLSTM_QUERY_SYMBOL);
    memcpy(out_query, &symbol, sizeof symbol);
    return SEQLSTM_OK;
}

seqlstm_status sl_loader_load(struct sl_arena *arena, const char *path, bool trust, struct sl_backend_record *record,
                              struct seqlstm_backend *out_table, struct seqlstm_error *err)
{
    char real[PATH_MAX];
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct stat status;
    memset(out_table, 0, sizeof *out_table);
    record->status = SL_BACKEND_OK;
    record->file = sl_arena_strdup(arena, path);
    if (!record->file)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading %s", path);
    if (path[0] != '/')
        REFUSE("its path is not absolute");
    if (!realpath(path, real))
        return sl_record_refuse(arena, record, errno == ENOENT ? SL_BACKEND_NOT_FOUND : SL_BACKEND_REFUSED, err,
                                "%s: %s", path, strerror(errno));
    if (stat(real, &status) != 0 || !S_ISREG(status.st_mode))
        REFUSE("%s is not a file", path);
    if (!trust && sl_loader_check_owner(real, &why) != SEQLSTM_OK)
        REFUSE("it %s (--trust loads it all the same)", why.message);
    if (sl_elf_check_plugin(real, &why) != SEQLSTM_OK)
        REFUSE("%s", why.message);
    seqlstm_backend_query_fn query = NULL;
    SEQLSTM_TRY(map_file(arena, real, record, &query, err));
    if (record->status != SL_BACKEND_OK)
        return SEQLSTM_OK;
    return sl_loader_query(arena, query, record, out_table, err);
}

/* ---- the instance --------------------------------------------------------------------------------- */

static bool is_text(const char *text, size_t capacity)
{
    return text[0] != 0 && memchr(text, 0, capacity) != NULL;
}

static seqlstm_status read_devices(struct sl_arena *arena, const struct seqlstm_backend *table,
                                   struct seqlstm_instance *instance, struct sl_backend_record *record,
                                   struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    uint32_t count = 0;
    if (table->device_count(instance, &count, &why) != SEQLSTM_OK)
        REFUSE("its device_count failed: %.500s", why.message);
    if (count == 0)
        return sl_record_refuse(arena, record, SL_BACKEND_UNAVAILABLE, err, "it found no device");
    if (count > DEVICES_MAX)
        REFUSE("it reports %u devices", count);
    struct seqlstm_device_info *devices = SL_ARENA_ARRAY(arena, struct seqlstm_device_info, count);
    if (!devices)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening backend %s", table->id);
    for (uint32_t i = 0; i < count; i++) {
        devices[i].struct_size = (uint32_t)sizeof *devices;
        if (table->device_info(instance, i, &devices[i], &why) != SEQLSTM_OK)
            REFUSE("its device_info failed for device %u: %.500s", i, why.message);
        if (!is_text(devices[i].name, sizeof devices[i].name) ||
            !is_text(devices[i].device_class, sizeof devices[i].device_class) ||
            !is_text(devices[i].domain, sizeof devices[i].domain))
            REFUSE("it gives device %u no proper name, class or domain", i);
        if (strcmp(devices[i].domain, "host") != 0 && (!table->memory || !table->streams))
            REFUSE("its device %u works in the domain %s, and it offers no memory and streams there", i,
                   devices[i].domain);
    }
    record->devices = devices;
    record->device_count = count;
    return SEQLSTM_OK;
}

seqlstm_status sl_loader_open(struct sl_arena *arena, const struct seqlstm_backend *table,
                              const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                              uint32_t setting_count, struct sl_backend_record *record,
                              struct seqlstm_instance **out_instance, struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_process_guard guard;
    char change[256];
    struct seqlstm_instance *instance = NULL;
    *out_instance = NULL;
    record->status = SL_BACKEND_OK;
    struct sl_mapped_files mapped;
    sl_mapped_files_begin(&mapped, arena);
    sl_process_guard_begin(&guard);
    seqlstm_status rc = table->open(host, settings, setting_count, &instance, &why);
    bool changed = sl_process_guard_end(&guard, change, sizeof change);
    why.message[sizeof why.message - 1] = 0;
    if (rc == SEQLSTM_OK) {
        seqlstm_status noted = sl_mapped_files_end(&mapped, record, err);
        if (noted != SEQLSTM_OK) {
            if (instance)
                table->close(instance);
            return noted;
        }
    }
    if (rc == SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while opening backend %s: %.500s", table->id, why.message);
    if (rc != SEQLSTM_OK) {
        const char *text = why.message[0] ? why.message : "it gave no reason";
        record->misconfigured = rc == SEQLSTM_INVALID_CONFIG && setting_count > 0;
        return sl_record_refuse(arena, record, rc == SEQLSTM_UNAVAILABLE ? SL_BACKEND_UNAVAILABLE : SL_BACKEND_REFUSED,
                                err, rc == SEQLSTM_UNAVAILABLE ? "%s" : "it did not open: %s", text);
    }
    if (!instance)
        REFUSE("its open said OK and returned no instance");
    seqlstm_status kept = SEQLSTM_OK;
    if (changed)
        kept = sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err, "its open %s", change);
    else
        kept = read_devices(arena, table, instance, record, err);
    if (kept == SEQLSTM_OK && record->status == SL_BACKEND_OK)
        *out_instance = instance;
    else
        table->close(instance);
    return kept;
}
