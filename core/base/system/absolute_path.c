/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/absolute_path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file_error.h"
#include "base/value/buf.h"

/* Appends the parts of `path` to an absolute path, resolving `.` and `..`. */
static void append_parts(struct sl_buf *buf, const char *path)
{
    while (*path) {
        size_t n = strcspn(path, "/");
        if (n == 2 && path[0] == '.' && path[1] == '.') {
            const char *text = sl_buf_text(buf);
            const char *slash = strrchr(text, '/');
            sl_buf_truncate(buf, slash ? (size_t)(slash - text) : 0);
        } else if (n > 0 && !(n == 1 && path[0] == '.')) {
            sl_buf_append_char(buf, '/');
            sl_buf_append(buf, path, n);
        }
        path += n;
        path += *path == '/';
    }
}

seqlstm_status sl_path_absolute(const char *path, char **out_path, struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    if (path[0] != '/') {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here))
            return sl_file_fail(err, errno, "cannot tell the current folder for", path);
        append_parts(&buf, here);
    }
    append_parts(&buf, path);
    if (buf.length_bytes == 0)
        sl_buf_append_char(&buf, '/');
    char *absolute = sl_buf_take(&buf, NULL);
    if (!absolute)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the path `%s`", path);
    *out_path = absolute;
    return SEQLSTM_OK;
}

seqlstm_status sl_path_real(const char *path, char **out_path, struct seqlstm_error *err)
{
    char *real = realpath(path, NULL);
    if (!real)
        return sl_file_fail(err, errno, "cannot resolve", path);
    *out_path = real;
    return SEQLSTM_OK;
}
