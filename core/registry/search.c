/* SPDX-License-Identifier: Apache-2.0 */
/* See search.h. */
#include "registry/search.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/value/text.h"

#define SUFFIX ".so"

enum { FOLDERS_MAX = 64 };

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory while looking for backends");
}

static seqlstm_status add_folder(struct sl_search *search, struct sl_arena *arena, const char *folder,
                                 struct seqlstm_error *err)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    char *copy = sl_arena_strndup(arena, folder, length);
    if (!copy)
        return no_memory(err);
    for (uint32_t i = 0; i < search->folder_count; i++)
        if (strcmp(search->folders[i], copy) == 0)
            return SEQLSTM_OK;
    if (search->folder_count < FOLDERS_MAX)
        search->folders[search->folder_count++] = copy;
    return SEQLSTM_OK;
}

/* A colon-separated list. Empty parts are skipped; relative ones are refused, as they depend on the current folder. */
static seqlstm_status add_list(struct sl_search *search, struct sl_arena *arena, const char *list,
                               struct seqlstm_error *err)
{
    while (list && *list) {
        size_t length = strcspn(list, ":");
        char *part = sl_arena_strndup(arena, list, length);
        if (!part)
            return no_memory(err);
        if (part[0] && part[0] != '/')
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                         "SEQLSTM_BACKEND_PATH: the folder `%.300s` is relative; expected one that begins with /",
                         part);
        if (part[0])
            SEQLSTM_TRY(add_folder(search, arena, part, err));
        list += length;
        list += *list == ':';
    }
    return SEQLSTM_OK;
}

static seqlstm_status add_user_folder(struct sl_search *search, struct sl_arena *arena, struct seqlstm_error *err)
{
    const char *data = secure_getenv("XDG_DATA_HOME");
    const char *home = secure_getenv("HOME");
    char path[PATH_MAX];
    int length;
    if (data && data[0] == '/')
        length = sl_text_snprintf(path, sizeof path, "%s/seqlstm/backends", data);
    else if (home && home[0] == '/')
        length = sl_text_snprintf(path, sizeof path, "%s/.local/share/seqlstm/backends", home);
    else
        return SEQLSTM_OK;
    return length < (int)sizeof path ? add_folder(search, arena, path, err) : SEQLSTM_OK;
}

/* Cuts the last component of `path`; false: there is none. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
    return slash != NULL;
}

/* Does `path` end with `tail`? Then it is cut off. */
static bool cut_tail(char *path, const char *tail)
{
    size_t length = strlen(path), end = strlen(tail);
    if (length <= end || path[length - end - 1] != '/' || strcmp(path + length - end, tail) != 0)
        return false;
    path[length - end - 1] = 0;
    return true;
}

/* The build tree in which the program lies, or the backends of the prefix in which it is installed, even if the prefix
 * was moved. */
static seqlstm_status add_program_folders(struct sl_search *search, struct sl_arena *arena, struct seqlstm_error *err)
{
    char program[PATH_MAX], path[PATH_MAX + 64];
    struct stat status;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return SEQLSTM_OK;
    program[length] = 0;
    if (!cut_last(program))
        return SEQLSTM_OK;
    sl_text_snprintf(path, sizeof path, "%s/meson-info", program);
    if (stat(path, &status) == 0) {
        sl_text_snprintf(path, sizeof path, "%s/backends", program);
        SEQLSTM_TRY(add_folder(search, arena, path, err));
    }
    if (!cut_tail(program, SL_BINDIR))
        return SEQLSTM_OK;
    sl_text_snprintf(path, sizeof path, "%s/" SL_LIBDIR "/seqlstm/backends", program);
    return add_folder(search, arena, path, err);
}

/* For another program that uses libseqlstm.so: the backends lie beside the library. */
static seqlstm_status add_library_folder(struct sl_search *search, struct sl_arena *arena, struct seqlstm_error *err)
{
    Dl_info info;
    char library[PATH_MAX], path[PATH_MAX + 64];
    struct stat status;
    if (dladdr(SL_BACKENDS_DIR, &info) == 0 || !info.dli_fname || info.dli_fname[0] != '/' ||
        realpath(info.dli_fname, library) == NULL || !cut_last(library))
        return SEQLSTM_OK;
    sl_text_snprintf(path, sizeof path, "%s/seqlstm/backends", library);
    return stat(path, &status) == 0 ? add_folder(search, arena, path, err) : SEQLSTM_OK;
}

seqlstm_status sl_search_init(struct sl_search *search, struct sl_arena *arena, const char *const *folders,
                              uint32_t folder_count, bool only_folders, struct seqlstm_error *err)
{
    search->folder_count = 0;
    search->folders = SL_ARENA_ARRAY(arena, const char *, FOLDERS_MAX);
    if (!search->folders)
        return no_memory(err);
    for (uint32_t i = 0; i < folder_count; i++) {
        if (folders[i][0] != '/')
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "the backend folder '%.300s' is relative; expected one that begins with /", folders[i]);
        SEQLSTM_TRY(add_folder(search, arena, folders[i], err));
    }
    if (only_folders)
        return SEQLSTM_OK;
    SEQLSTM_TRY(add_list(search, arena, secure_getenv("SEQLSTM_BACKEND_PATH"), err));
    SEQLSTM_TRY(add_user_folder(search, arena, err));
    SEQLSTM_TRY(add_program_folders(search, arena, err));
    SEQLSTM_TRY(add_library_folder(search, arena, err));
    return add_folder(search, arena, SL_BACKENDS_DIR, err);
}

/* NULL: no name of a plugin of this kind. */
static const char *find_id(const struct sl_plugin_kind *kind, const char *file, size_t *out_bytes)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    const size_t stem = strlen(kind->file_stem), length = strlen(name), fixed = stem + strlen(SUFFIX);
    if (length <= fixed || strncmp(name, kind->file_stem, stem) != 0 ||
        strcmp(name + length - strlen(SUFFIX), SUFFIX) != 0)
        return NULL;
    *out_bytes = length - fixed;
    return name + stem;
}

const char *sl_search_copy_id(struct sl_arena *arena, const struct sl_plugin_kind *kind, const char *file)
{
    size_t bytes = 0;
    const char *id = find_id(kind, file, &bytes);
    return id ? sl_arena_strndup(arena, id, bytes) : NULL;
}

/* ---- files -------------------------------------------------------------------------------------- */

struct files {
    struct sl_arena *arena;
    const char **list;
    uint32_t count, capacity;
};

static seqlstm_status add_file(struct files *files, const char *folder, const char *name, struct seqlstm_error *err)
{
    if (files->count == files->capacity) {
        uint32_t capacity = files->capacity ? 2 * files->capacity : 16;
        const char **grown = SL_ARENA_ARRAY(files->arena, const char *, capacity);
        if (!grown)
            return no_memory(err);
        if (files->count)
            memcpy(grown, files->list, files->count * sizeof *grown);
        files->list = grown;
        files->capacity = capacity;
    }
    const char *path = sl_arena_printf(files->arena, "%s/%s", folder, name);
    if (!path)
        return no_memory(err);
    files->list[files->count++] = path;
    return SEQLSTM_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static seqlstm_status list_folder(struct files *files, const struct sl_plugin_kind *kind, const char *folder,
                                  struct seqlstm_error *err)
{
    DIR *stream = opendir(folder);
    if (!stream)
        return SEQLSTM_OK; /* a folder that does not exist holds nothing */
    seqlstm_status rc = SEQLSTM_OK;
    uint32_t first = files->count;
    size_t bytes;
    for (const struct dirent *entry; rc == SEQLSTM_OK && (entry = readdir(stream)) != NULL;)
        if (find_id(kind, entry->d_name, &bytes))
            rc = add_file(files, folder, entry->d_name, err);
    closedir(stream);
    if (files->count > first)
        qsort(files->list + first, files->count - first, sizeof *files->list, compare_names);
    return rc;
}

seqlstm_status sl_search_find(const struct sl_search *search, struct sl_arena *arena, const struct sl_plugin_kind *kind,
                              const char *id, const char ***out_files, uint32_t *out_count, struct seqlstm_error *err)
{
    struct files files = {.arena = arena};
    for (uint32_t i = 0; i < search->folder_count; i++) {
        if (!id) {
            SEQLSTM_TRY(list_folder(&files, kind, search->folders[i], err));
            continue;
        }
        char path[PATH_MAX], name[NAME_MAX];
        struct stat status;
        int a = sl_text_snprintf(name, sizeof name, "%s%s" SUFFIX, kind->file_stem, id);
        int b = sl_text_snprintf(path, sizeof path, "%s/%s", search->folders[i], name);
        if (a < (int)sizeof name && b < (int)sizeof path && stat(path, &status) == 0)
            SEQLSTM_TRY(add_file(&files, search->folders[i], name, err));
    }
    *out_files = files.list;
    *out_count = files.count;
    return SEQLSTM_OK;
}
