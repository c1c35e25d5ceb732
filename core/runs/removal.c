/* SPDX-License-Identifier: Apache-2.0 */
/* See removal.h. */
#include "runs/removal.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file_error.h"
#include "base/system/file_lock.h"
#include "base/value/path.h"
#include "runs/run_facts.h"

enum { DESCRIPTORS = 16 };

/* nftw has no argument for its caller. */
static _Thread_local int64_t counted_bytes;

static int count_file(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)path, (void)where;
    counted_bytes += kind == FTW_F ? (int64_t)info->st_size : 0;
    return 0;
}

int64_t sl_run_count_bytes(const struct sl_run_facts *run)
{
    counted_bytes = 0;
    nftw(run->folder, count_file, DESCRIPTORS, FTW_PHYS);
    return counted_bytes;
}

/* The lock stays until the rest is gone; it goes with the folder. */
static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind;
    if (where->level == 0 || (where->level == 1 && strcmp(path + where->base, "lock") == 0))
        return 0;
    return remove(path);
}

seqlstm_status sl_run_remove(const struct sl_run_facts *run, struct seqlstm_error *err)
{
    struct sl_file_lock *lock = NULL;
    char *path = sl_path_join(run->folder, "lock"), *above = sl_path_folder(run->folder);
    seqlstm_status status = path && above ? sl_file_lock_take(path, &lock, err)
                                          : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
                                                              "no memory for the path of %s", run->folder);
    if (status == SEQLSTM_OK && nftw(run->folder, remove_entry, DESCRIPTORS, FTW_PHYS | FTW_DEPTH) != 0)
        status = sl_file_fail(err, errno, "cannot remove all of", run->folder);
    sl_file_lock_release(lock);
    if (status == SEQLSTM_OK && rmdir(run->folder) != 0)
        status = sl_file_fail(err, errno, "cannot remove", run->folder);
    if (status == SEQLSTM_OK && strchr(run->name, '/') != NULL)
        rmdir(above); /* stays if another run is in it */
    free(above);
    free(path);
    return status;
}
