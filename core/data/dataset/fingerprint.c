/* SPDX-License-Identifier: Apache-2.0 */
#include "data/dataset/fingerprint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value/hash.h"

#define CHUNK_BYTES ((size_t)1 << 20)

static seqlstm_status fail_io(const char *path, const char *what, struct seqlstm_error *err)
{
    int code = errno;
    seqlstm_status status = code == ENOENT ? SEQLSTM_NOT_FOUND : SEQLSTM_IO;
    seqlstm_error_set(err, status, __FILE__, __LINE__, "cannot %s `%s`: %s", what, path, strerror(code));
    if (err)
        err->native_code = code;
    return status;
}

seqlstm_status sl_fingerprint_peek(const char *path, struct sl_fingerprint *out, struct seqlstm_error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return fail_io(path, "examine", err);
    *out = (struct sl_fingerprint){.size_bytes = (int64_t)info.st_size};
    out->mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    return SEQLSTM_OK;
}

seqlstm_status sl_fingerprint_compute(const char *path, struct sl_fingerprint *out, struct seqlstm_error *err)
{
    seqlstm_status status = SEQLSTM_OK;
    struct sl_fingerprint found = {0};
    struct stat info;
    char *chunk = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for */
    if (fd < 0)
        return fail_io(path, "open", err);
    if (fstat(fd, &info) != 0) {
        status = fail_io(path, "examine", err);
        goto out;
    }
    if (!S_ISREG(info.st_mode)) { /* what a pipe gave is gone, and a device may never end */
        status = seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "`%s` is no regular file", path);
        goto out;
    }
    found.mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    chunk = malloc(CHUNK_BYTES);
    if (!chunk) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory to read `%s`", path);
        goto out;
    }
    for (;;) {
        ssize_t got = read(fd, chunk, CHUNK_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            status = fail_io(path, "read", err);
            goto out;
        }
        if (got == 0)
            break;
        found.crc64 = sl_crc64(found.crc64, chunk, (size_t)got);
        found.size_bytes += got;
    }
    *out = found;
out:
    free(chunk);
    close(fd);
    return status;
}
