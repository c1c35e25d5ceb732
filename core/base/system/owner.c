/* SPDX-License-Identifier: Apache-2.0 */
/* See owner.h. */
#include "base/system/owner.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static seqlstm_status check_owner_of(const char *path, bool is_ancestor, struct seqlstm_error *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "cannot be examined: %s: %s", path, strerror(errno));
    if (status.st_uid != 0 && status.st_uid != geteuid())
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "is not safe to load: %s belongs to user %u, neither root nor you",
                     path, (unsigned)status.st_uid);
    if ((status.st_mode & S_IWOTH) && !(is_ancestor && (status.st_mode & S_ISVTX)))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "is not safe to load: any user may write to %s", path);
    return SEQLSTM_OK;
}

seqlstm_status sl_owner_check(const char *path, struct seqlstm_error *err)
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
