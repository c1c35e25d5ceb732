/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the folder that RUN means on the command line: itself, or the latest run of that name. */
#include "session/run_folder/run_name.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/log.h"
#include "base/value/path.h"
#include "train/checkpoint/checkpoint.h"

bool sl_run_folder_is_run(const char *path)
{
    return sl_file_is_in(path, "config.yaml");
}

bool sl_run_folder_holds_weights(const char *path)
{
    char checkpoints[PATH_MAX]; /* a longer one cannot be opened */
    return sl_file_is_in(path, "final.safetensors") ||
           (snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", path) < (int)sizeof checkpoints &&
            sl_checkpoint_folder_has_any(checkpoints));
}

/* A run below a folder; path NULL: none. */
struct candidate {
    char *path;
    long number;
};

/* Keeps the candidate with the larger number; takes ownership of the path. *failed: there was no memory for it. */
static void prefer(struct candidate *best, char *path, long number, bool *failed)
{
    *failed = *failed || path == NULL;
    if (path == NULL || (best->path && number <= best->number)) {
        free(path);
        return;
    }
    free(best->path);
    *best = (struct candidate){path, number};
}

/* The subfolder with the largest number that holds a run. Unless `any`, one with weights is preferred, so that a run
 * which failed early or has just begun is passed over. NULL: no run. */
static char *find_latest(const char *path, bool any, const struct sl_log *log, bool *failed)
{
    DIR *folder = opendir(path);
    struct candidate newest = {0}, best = {0};
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || *end || number < 0)
            continue;
        char *run = sl_path_join(path, entry->d_name);
        *failed = *failed || run == NULL;
        if (run && sl_run_folder_is_run(run)) {
            if (!any && sl_run_folder_holds_weights(run))
                prefer(&best, strdup(run), number, failed);
            prefer(&newest, run, number, failed);
        } else {
            free(run);
        }
    }
    if (folder)
        closedir(folder);
    if (best.path == NULL)
        return newest.path;
    if (newest.path && newest.number > best.number)
        sl_log_printf(log, SL_LOG_WARN, "%s holds no weights yet; the latest run that does is %s", newest.path,
                      best.path);
    free(newest.path);
    return best.path;
}

static seqlstm_status find(const char *run, bool any, const struct sl_log *log, char **out_folder,
                           struct seqlstm_error *err)
{
    bool failed = false;
    char *found = NULL;
    if (sl_run_folder_is_run(run)) {
        found = strdup(run);
        failed = found == NULL;
    } else {
        found = find_latest(run, any, log, &failed);
        char *below = found || run[0] == '/' ? NULL : sl_path_join("runs", run);
        failed = failed || (below == NULL && found == NULL && run[0] != '/');
        if (below && sl_run_folder_is_run(below)) {
            found = strdup(below);
            failed = failed || found == NULL;
        } else if (below) {
            found = find_latest(below, any, log, &failed);
        }
        free(below);
    }
    if (failed) { /* what was found need not be what is meant */
        free(found);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to find the run %s", run);
    }
    if (found == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND,
                     "%s: no run there: neither a run folder nor a name below runs/ (a run folder holds config.yaml)",
                     run);
    *out_folder = found;
    return SEQLSTM_OK;
}

seqlstm_status sl_run_folder_find(const char *run, const struct sl_log *log, char **out_folder,
                                  struct seqlstm_error *err)
{
    return find(run, false, log, out_folder, err);
}

seqlstm_status sl_run_folder_find_newest(const char *run, char **out_folder, struct seqlstm_error *err)
{
    return find(run, true, NULL, out_folder, err);
}
