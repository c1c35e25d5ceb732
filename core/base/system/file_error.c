/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/file_error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/near_file.h"

seqlstm_status sl_file_fail(struct seqlstm_error *err, int error_number, const char *action, const char *path)
{
    seqlstm_status code = error_number == ENOENT || error_number == ENOTDIR ? SEQLSTM_NOT_FOUND
                          : error_number == ENOMEM                          ? SEQLSTM_NO_MEMORY
                                                                            : SEQLSTM_IO;
    char reason[128] = "";
    const char *text = strerror_r(error_number, reason, sizeof reason);
    char *near = error_number == ENOENT && strcmp(action, "cannot open") == 0 ? sl_near_file_find(path) : NULL;
    seqlstm_error_set(err, code, __FILE__, __LINE__, "%s `%s`: %s%s%s%s", action, path, text,
                      near ? "; did you mean `" : "", near ? near : "", near ? "`, which is there?" : "");
    free(near);
    if (err && err->struct_size >= sizeof *err)
        err->native_code = error_number;
    return code;
}
