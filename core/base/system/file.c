/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, mapping and looking at files; folders. */
#include "base/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value/buf.h"
#include "base/system/file_error.h"

/* Opens a file for reading; a folder is refused here, with the reason, rather than at the first read. `flags`:
 * O_NONBLOCK, with which opening a pipe does not wait for its writer, or 0. */
static seqlstm_status open_for_reading(const char *path, int flags, int *out_fd, struct stat *out_stat,
                                       struct seqlstm_error *err)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return sl_file_fail(err, errno, "cannot open", path);
    int reason = fstat(fd, out_stat) != 0 ? errno : S_ISDIR(out_stat->st_mode) ? EISDIR : 0;
    if (reason != 0) {
        close(fd);
        return sl_file_fail(err, reason, "cannot read", path);
    }
    *out_fd = fd;
    return SEQLSTM_OK;
}

/* Reads up to the end, or to one byte more than `limit_bytes`. The size that fstat says is only a hint: pipes and /proc
 * say 0. */
static seqlstm_status read_to_end(int fd, const char *path, size_t limit_bytes, size_t hint_bytes, struct sl_buf *buf,
                                  struct seqlstm_error *err)
{
    size_t step_bytes = hint_bytes < limit_bytes ? hint_bytes + 1 : 65536;
    for (;;) {
        size_t before_bytes = buf->length_bytes;
        char *room = sl_buf_grow(buf, step_bytes);
        if (!room)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read `%s`", path);
        ssize_t n = read(fd, room, step_bytes);
        sl_buf_truncate(buf, before_bytes + (n > 0 ? (size_t)n : 0));
        if (n == 0)
            return SEQLSTM_OK;
        if (n < 0 && errno != EINTR)
            return sl_file_fail(err, errno, "cannot read", path);
        if (buf->length_bytes > limit_bytes)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "`%s` is larger than %zu bytes", path, limit_bytes);
        step_bytes = 65536;
    }
}

seqlstm_status sl_file_read(const char *path, size_t limit_bytes, char **out_data, size_t *out_bytes,
                            struct seqlstm_error *err)
{
    int fd;
    struct stat info;
    SEQLSTM_TRY(open_for_reading(path, 0, &fd, &info, err));
    struct sl_buf buf = {0};
    seqlstm_status status = SEQLSTM_OK;
    if (S_ISREG(info.st_mode) && (uintmax_t)info.st_size > limit_bytes)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__, "`%s` is larger than %zu bytes", path,
                                   limit_bytes);
    else
        status = read_to_end(fd, path, limit_bytes, (size_t)info.st_size, &buf, err);
    close(fd);
    if (status == SEQLSTM_OK) {
        size_t bytes;
        char *data = sl_buf_take(&buf, &bytes);
        if (!data)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to read `%s`", path);
        *out_data = data;
        if (out_bytes)
            *out_bytes = bytes;
    }
    sl_buf_deinit(&buf);
    return status;
}

static int64_t get_mtime(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

seqlstm_status sl_file_map_open(const char *path, struct sl_file_map *out_map, struct seqlstm_error *err)
{
    int fd;
    struct stat info;
    SEQLSTM_TRY(open_for_reading(path, O_NONBLOCK, &fd, &info, err));
    struct sl_file_map map = {.data = "", .size_bytes = (size_t)info.st_size};
    int failure = 0;
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        SEQLSTM_FAIL(err, SEQLSTM_IO, "cannot read `%s`: it is no regular file", path);
    }
    if (map.size_bytes > 0) {
        void *data = mmap(NULL, map.size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        failure = data == MAP_FAILED ? errno : 0;
        map.data = data;
        map.fd = fd;
        map.mtime_ns = get_mtime(&info);
    }
    if (failure != 0 || map.size_bytes == 0)
        close(fd);
    if (failure != 0)
        return sl_file_fail(err, failure, "cannot map", path);
    *out_map = map;
    return SEQLSTM_OK;
}

seqlstm_status sl_file_map_read(const struct sl_file_map *map, const char *name, const void *from, size_t bytes,
                                void *out, struct seqlstm_error *err)
{
    off_t at = (const char *)from - map->data;
    for (char *to = out; bytes > 0;) {
        ssize_t got = pread(map->fd, to, bytes, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return sl_file_fail(err, errno, "cannot read", name);
        if (got == 0)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the file was cut while it was used (%zu bytes then)", name,
                         map->size_bytes);
        to += got;
        at += got;
        bytes -= (size_t)got;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_file_map_check(const struct sl_file_map *map, const char *name, struct seqlstm_error *err)
{
    struct stat info;
    if (map->size_bytes == 0)
        return SEQLSTM_OK;
    if (fstat(map->fd, &info) != 0)
        return sl_file_fail(err, errno, "cannot read", name);
    if ((size_t)info.st_size != map->size_bytes || get_mtime(&info) != map->mtime_ns)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the file changed while it was used (%zu bytes then, %lld now)",
                     name, map->size_bytes, (long long)info.st_size);
    return SEQLSTM_OK;
}

void sl_file_map_close(struct sl_file_map *map)
{
    if (map->size_bytes > 0) {
        munmap((void *)(uintptr_t)map->data, map->size_bytes);
        close(map->fd);
    }
    *map = (struct sl_file_map){0};
}

bool sl_file_exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

bool sl_file_is_in(const char *folder, const char *name)
{
    char path[PATH_MAX]; /* a longer one cannot be opened */
    return snprintf(path, sizeof path, "%s/%s", *folder ? folder : ".", name) < (int)sizeof path &&
           sl_file_exists(path);
}

bool sl_file_is_regular(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool sl_file_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

seqlstm_status sl_file_make_folders(const char *path, struct seqlstm_error *err)
{
    if (*path == '\0')
        return sl_file_fail(err, ENOENT, "cannot make the folder", path);
    struct sl_buf buf = {0};
    sl_buf_append_text(&buf, path);
    char *copy = sl_buf_take(&buf, NULL);
    if (!copy)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the path `%s`", path);
    seqlstm_status status = SEQLSTM_OK;
    for (char *p = copy + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char end = *p;
        *p = '\0';
        /* Another process may make it at the same time; a file of that name is reported as such. */
        int reason = mkdir(copy, 0777) != 0 ? errno : 0;
        if (reason != 0 && !sl_file_is_folder(copy)) {
            status = sl_file_fail(err, reason == EEXIST ? ENOTDIR : reason, "cannot make the folder", copy);
            break;
        }
        if (end == '\0')
            break;
        *p = end;
    }
    free(copy);
    return status;
}

seqlstm_status sl_file_sync_folder(const char *path, struct seqlstm_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return sl_file_fail(err, errno, "cannot open the folder", path);
    /* Some file systems cannot sync a folder and say EINVAL: there it needs none. */
    int failure = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    close(fd);
    if (failure != 0)
        return sl_file_fail(err, failure, "cannot sync the folder", path);
    return SEQLSTM_OK;
}
