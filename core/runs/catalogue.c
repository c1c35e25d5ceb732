/* SPDX-License-Identifier: Apache-2.0 */
/* See catalogue.h. */
#include "runs/catalogue.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory/arena.h"
#include "base/system/file.h"
#include "base/system/file_error.h"
#include "base/value/path.h"

enum { LEVELS_MOST = 3 };

struct search {
    struct sl_arena *arena;
    struct sl_run_facts *runs; /* malloc */
    size_t count, capacity;
    bool failed; /* no memory */
};

static bool is_run(struct search *search, const char *folder)
{
    char *config = sl_path_join(folder, "config.yaml");
    bool found = config && sl_file_is_regular(config);
    search->failed = search->failed || config == NULL;
    free(config);
    return found;
}

static bool is_real_folder(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void add_run(struct search *search, const char *folder, const char *name)
{
    if (search->count == search->capacity) {
        size_t capacity = search->capacity ? 2 * search->capacity : 64;
        struct sl_run_facts *grown = realloc(search->runs, capacity * sizeof *grown);
        if (grown == NULL) {
            search->failed = true;
            return;
        }
        search->runs = grown;
        search->capacity = capacity;
    }
    if (sl_run_facts_read(search->arena, folder, name, &search->runs[search->count]))
        search->count++;
    else
        search->failed = true;
}

static void look_into(struct search *search, DIR *open, const char *folder, const char *name, int level);

static void look_at(struct search *search, const char *folder, const char *name, int level)
{
    if (!is_real_folder(folder))
        return;
    if (is_run(search, folder)) {
        add_run(search, folder, name);
        return;
    }
    errno = 0;
    DIR *open = level < LEVELS_MOST && !search->failed ? opendir(folder) : NULL;
    search->failed = search->failed || errno == ENOMEM;
    if (open)
        look_into(search, open, folder, name, level + 1);
}

/* Closes the folder. */
static void look_into(struct search *search, DIR *open, const char *folder, const char *name, int level)
{
    for (struct dirent *entry; !search->failed && (entry = readdir(open)) != NULL;) {
        if (entry->d_name[0] == '.' || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
            continue;
        char *path = sl_path_join(folder, entry->d_name), *below = sl_path_join(name, entry->d_name);
        if (path && below)
            look_at(search, path, below, level);
        else
            search->failed = true;
        free(below);
        free(path);
    }
    closedir(open);
}

static int compare_names(const void *left, const void *right)
{
    return strverscmp(((const struct sl_run_facts *)left)->name, ((const struct sl_run_facts *)right)->name);
}

seqlstm_status sl_run_catalogue_read(struct sl_arena *arena, const char *folder, struct sl_run_catalogue *out,
                                     struct seqlstm_error *err)
{
    struct search search = {.arena = arena};
    DIR *open = opendir(folder);
    if (open == NULL)
        return sl_file_fail(err, errno, "cannot read the folder", folder);
    look_into(&search, open, folder, "", 1);
    if (search.count > 0)
        qsort(search.runs, search.count, sizeof *search.runs, compare_names);
    *out = (struct sl_run_catalogue){.runs = SL_ARENA_ARRAY(arena, struct sl_run_facts, search.count),
                                     .count = search.count};
    if (out->runs && search.count > 0)
        memcpy(out->runs, search.runs, search.count * sizeof *search.runs);
    free(search.runs);
    if (search.failed || out->runs == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the runs in %s", folder);
    return SEQLSTM_OK;
}

bool sl_run_catalogue_matches(const struct sl_run_facts *run, const char *word)
{
    size_t bytes = strlen(word);
    while (bytes > 1 && word[bytes - 1] == '/')
        bytes--;
    const char *const names[] = {run->name, run->folder};
    for (int k = 0; k < 2; k++)
        if (strncmp(names[k], word, bytes) == 0 && (names[k][bytes] == '\0' || names[k][bytes] == '/'))
            return true;
    return false;
}
