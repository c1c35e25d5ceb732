/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of checkpoints: finds the newest valid one, and removes those that are no longer needed. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file_error.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "train/checkpoint/checkpoint.h"

static const char PREFIX[] = "update-", SUFFIX[] = ".safetensors";

struct found {
    int64_t update;
    char *path;
};

struct scan {
    struct found *items; /* newest first */
    size_t count;
    size_t capacity;
};

static void scan_deinit(struct scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        free(scan->items[i].path);
    free(scan->items);
}

/* update-N.safetensors -> N. */
static bool parse_name(const char *name, int64_t *out_update)
{
    size_t length = strlen(name), prefix = sizeof PREFIX - 1, suffix = sizeof SUFFIX - 1;
    if (length <= prefix + suffix || strncmp(name, PREFIX, prefix) != 0 || strcmp(name + length - suffix, SUFFIX) != 0)
        return false;
    for (size_t i = prefix; i < length - suffix; i++)
        if (name[i] < '0' || name[i] > '9')
            return false;
    return sl_text_parse_int64(name + prefix, length - prefix - suffix, out_update);
}

static int compare_updates(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->update > y->update ? -1 : x->update < y->update;
}

static bool scan_add(struct scan *scan, const char *folder, const char *name, int64_t update)
{
    if (scan->count == scan->capacity) {
        size_t capacity = scan->capacity ? 2 * scan->capacity : 16;
        struct found *grown = realloc(scan->items, capacity * sizeof *grown);
        if (!grown)
            return false;
        scan->items = grown;
        scan->capacity = capacity;
    }
    char *path = sl_path_join(folder, name);
    if (!path)
        return false;
    scan->items[scan->count++] = (struct found){update, path};
    return true;
}

/* A folder that does not exist holds nothing. */
static seqlstm_status scan_folder(const char *folder, struct scan *scan, struct seqlstm_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir && errno == ENOENT)
        return SEQLSTM_OK;
    if (!dir)
        return sl_file_fail(err, errno, "cannot read the folder", folder);
    bool room = true;
    for (struct dirent *entry; room && (entry = readdir(dir)) != NULL;) {
        int64_t update = 0;
        if (parse_name(entry->d_name, &update))
            room = scan_add(scan, folder, entry->d_name, update);
    }
    closedir(dir);
    if (!room)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to list `%s`", folder);
    if (scan->count > 0)
        qsort(scan->items, scan->count, sizeof *scan->items, compare_updates);
    return SEQLSTM_OK;
}

bool sl_checkpoint_folder_has_any(const char *folder)
{
    DIR *dir = opendir(folder);
    int64_t update;
    bool found = false;
    for (struct dirent *entry; dir && !found && (entry = readdir(dir)) != NULL;)
        found = parse_name(entry->d_name, &update);
    if (dir)
        closedir(dir);
    return found;
}

seqlstm_status sl_checkpoint_folder_visit(const char *folder, void (*visit)(void *context, const char *path),
                                          void *context, struct seqlstm_error *err)
{
    struct scan scan = {0};
    const seqlstm_status status = scan_folder(folder, &scan, err);
    if (status == SEQLSTM_OK)
        for (size_t i = 0; i < scan.count; i++)
            visit(context, scan.items[i].path);
    scan_deinit(&scan);
    return status;
}

static bool is_best(const struct sl_train_state *state, int64_t update)
{
    for (int64_t i = 0; i < state->best_count; i++)
        if (state->best_entries[i].update == update)
            return true;
    return false;
}

static void remove_file(const char *path, const struct sl_log *log)
{
    if (unlink(path) != 0 && errno != ENOENT)
        sl_log_printf(log, SL_LOG_WARN, "cannot remove the old checkpoint %s: %s", path, strerror(errno));
}

/* Temporary files of writers that were killed: ".update-N.safetensors.tmp-PID-K". There is one writer per run. */
static void remove_temporaries(const char *folder, const struct sl_log *log)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        if (name[0] != '.' || strncmp(name + 1, PREFIX, sizeof PREFIX - 1) != 0 || !strstr(name, ".safetensors.tmp-"))
            continue;
        char *path = sl_path_join(folder, name);
        if (path)
            remove_file(path, log);
        free(path);
    }
    closedir(dir);
}

void sl_checkpoint_prune(const char *folder, int64_t keep_last, const struct sl_train_state *state,
                         const struct sl_log *log)
{
    struct scan scan = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    remove_temporaries(folder, log);
    if (scan_folder(folder, &scan, &err) != SEQLSTM_OK)
        sl_log_printf(log, SL_LOG_WARN, "old checkpoints could not be removed: %s", err.message);
    int64_t kept = 0;
    for (size_t i = 0; i < scan.count; i++) {
        /* Checkpoints of later updates are from before a resume at an older one: they were damaged. */
        bool last = scan.items[i].update <= state->updates && kept < (keep_last > 1 ? keep_last : 1);
        kept += last;
        if (!last && !is_best(state, scan.items[i].update))
            remove_file(scan.items[i].path, log);
    }
    scan_deinit(&scan);
}

seqlstm_status sl_checkpoint_open_latest(const char *folder, const struct sl_log *log, struct sl_safetensors **out_file,
                                         char **out_path, struct seqlstm_error *err)
{
    struct scan scan = {0};
    struct sl_safetensors *file = NULL;
    seqlstm_status status = scan_folder(folder, &scan, err);
    size_t i = 0;
    for (; status == SEQLSTM_OK && !file && i < scan.count; i++) {
        struct seqlstm_error reason = SEQLSTM_ERROR_INIT;
        seqlstm_status opened = sl_checkpoint_open(scan.items[i].path, &file, &reason);
        if (opened == SEQLSTM_NO_MEMORY)
            status = seqlstm_error_set(err, opened, __FILE__, __LINE__, "%s", reason.message);
        else if (opened != SEQLSTM_OK)
            sl_log_printf(log, SL_LOG_WARN, "skipped a checkpoint: %s", reason.message);
    }
    if (status == SEQLSTM_OK && !file && scan.count > 0)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                   "none of the %zu checkpoints in `%s` is valid", scan.count, folder);
    char *path = NULL;
    if (status == SEQLSTM_OK && file) {
        path = strdup(scan.items[i - 1].path);
        if (!path) {
            sl_safetensors_close(file);
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory");
        }
    }
    scan_deinit(&scan);
    if (status != SEQLSTM_OK)
        return status;
    *out_file = file;
    if (out_path)
        *out_path = path;
    else
        free(path);
    return SEQLSTM_OK;
}
