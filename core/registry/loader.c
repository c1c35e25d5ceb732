/* SPDX-License-Identifier: Apache-2.0 */
/* See loader.h. */
#include "registry/loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/owner.h"
#include "registry/kind/elf.h"
#include "registry/objects.h"
#include "registry/watch/running.h"
#include "registry/table.h"
#include "registry/watch/watch.h"

#define REFUSE(...) return sl_record_refuse(arena, record, SL_BACKEND_REFUSED, err, __VA_ARGS__)

static seqlstm_status map_file(struct sl_arena *arena, const struct sl_plugin_kind *kind, const char *path,
                               struct sl_backend_record *record, sl_query_fn **out_query, struct seqlstm_error *err)
{
    struct sl_watched_code code;
    struct sl_running running;
    sl_watch_begin_code(&code);
    sl_running_begin(&running, path, SL_FUNCTION_LOAD);
    dlerror();
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *problem = handle ? NULL : dlerror();
    sl_running_end(&running);
    const uint32_t changes = sl_watch_end_code(&code, path, SL_FUNCTION_LOAD);
    if (!handle) {
        record->dlerror = sl_arena_strdup(arena, problem ? problem : "unknown reason");
        if (!record->dlerror)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while loading %s", path);
        bool absent = strstr(record->dlerror, "cannot open shared object file") != NULL;
        return sl_record_refuse(arena, record, absent ? SL_BACKEND_UNAVAILABLE : SL_BACKEND_REFUSED, err,
                                "it cannot be mapped: %s", record->dlerror);
    }
    struct sl_backend_file *files;
    SEQLSTM_TRY(sl_objects_find(arena, path, &files, &record->file_count, err));
    record->files = files;
    if (code.wrote[0])
        SEQLSTM_TRY(sl_record_note_output(arena, record, "constructor", code.wrote, err));
    if (changes)
        SEQLSTM_TRY(sl_record_note_change(arena, record, changes, "constructor", code.change, err));
    if (record->status != SL_BACKEND_OK)
        return SEQLSTM_OK;
    void *symbol = dlsym(handle, kind->symbol);
    if (!symbol)
        REFUSE("it does not export %s", kind->symbol);
    memcpy(out_query, &symbol, sizeof symbol);
    return SEQLSTM_OK;
}

seqlstm_status sl_loader_load(struct sl_arena *arena, const struct sl_plugin_kind *kind, const char *path, bool trust,
                              struct sl_backend_record *record, void *out_table, struct seqlstm_error *err)
{
    char real[PATH_MAX];
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct stat status;
    memset(out_table, 0, kind->table_bytes);
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
    if (!trust && sl_owner_check(real, &why) != SEQLSTM_OK)
        REFUSE("it %s (--trust loads it anyway)", why.message);
    if (sl_elf_check_plugin(real, kind, &why) != SEQLSTM_OK)
        REFUSE("%s", why.message);
    sl_query_fn *query = NULL;
    SEQLSTM_TRY(map_file(arena, kind, real, record, &query, err));
    if (record->status != SL_BACKEND_OK)
        return SEQLSTM_OK;
    return sl_table_query(arena, kind, query, record, out_table, err);
}
