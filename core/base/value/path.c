/* SPDX-License-Identifier: Apache-2.0 */
#include "base/value/path.h"

#include <string.h>

#include "base/value/buf.h"

char *sl_path_join(const char *folder, const char *name)
{
    struct sl_buf buf = {0};
    if (name[0] != '/' && folder && folder[0] != '\0') {
        sl_buf_append_text(&buf, folder);
        if (folder[strlen(folder) - 1] != '/')
            sl_buf_append_char(&buf, '/');
    }
    sl_buf_append_text(&buf, name);
    return sl_buf_take(&buf, NULL);
}

char *sl_path_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct sl_buf buf = {0};
    if (!slash)
        sl_buf_append_char(&buf, '.');
    else
        sl_buf_append(&buf, path, slash == path ? 1 : (size_t)(slash - path));
    return sl_buf_take(&buf, NULL);
}

const char *sl_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
