/* SPDX-License-Identifier: Apache-2.0 */
/* See run_list.h. */
#include "session/run_folder/run_list.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/path.h"
#include "session/run_folder/run_name.h"

/* Is the folder a run, or does it hold some (`runs/NAME/001`)? */
static bool holds_runs(const char *path)
{
    bool found = sl_run_folder_is_run(path);
    DIR *folder = found ? NULL : opendir(path);
    for (struct dirent *entry; folder && !found && (entry = readdir(folder)) != NULL;) {
        char *run = entry->d_name[0] == '.' ? NULL : sl_path_join(path, entry->d_name);
        found = run != NULL && sl_run_folder_is_run(run);
        free(run);
    }
    if (folder)
        closedir(folder);
    return found;
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

size_t sl_run_folder_list(const char *folder, char *out_names[SL_RUN_LIST_MOST])
{
    DIR *open = opendir(folder);
    size_t count = 0;
    for (struct dirent *entry; open && count < SL_RUN_LIST_MOST && (entry = readdir(open)) != NULL;) {
        char *path = entry->d_name[0] == '.' ? NULL : sl_path_join(folder, entry->d_name);
        if (path != NULL && holds_runs(path) && (out_names[count] = strdup(entry->d_name)) != NULL)
            count++;
        free(path);
    }
    if (open)
        closedir(open);
    qsort(out_names, count, sizeof *out_names, compare_names);
    return count;
}
