/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are either the old or the new one, at any instant.
 *
 *   open    .NAME.tmp-PID-N beside the target, exclusively
 *   write   through a buffer
 *   commit  flush, fsync(file), close, rename over the target, fsync(folder)
 *
 * Invariants: (1) only the rename touches the target; (2) a writer ends in commit or abort, and unless the rename was
 * reached the temporary is then gone; (3) after a failure nothing more is written and commit reports the first failure.
 */
#include "base/system/file_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value/buf.h"
#include "base/system/file.h"
#include "base/system/file_error.h"
#include "base/value/path.h"

#define WRITER_BUFFER_BYTES 65536
#define WRITER_NAMES_MOST   100

struct sl_file_writer {
    char *path;      /* the target; a link is followed once, so that the link survives */
    char *temporary; /* beside it */
    char *folder;
    int fd;
    int error_number; /* of the first failure */
    size_t n_buffered;
    char buffer[WRITER_BUFFER_BYTES];
};

static void writer_destroy(struct sl_file_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    free(writer->path);
    free(writer->temporary);
    free(writer->folder);
    free(writer);
}

/* The target itself, links followed; a target that does not exist yet is its own. */
static char *target_of(const char *path)
{
    char *real = realpath(path, NULL);
    return real ? real : sl_path_join(NULL, path);
}

/* Makes the temporary; names left by a crashed process with the same number are skipped. */
static int open_temporary(struct sl_file_writer *writer)
{
    for (int i = 0; i < WRITER_NAMES_MOST; i++) {
        struct sl_buf buf = {0};
        sl_buf_printf(&buf, "%s/.%s.tmp-%ld-%d", writer->folder, sl_path_name(writer->path), (long)getpid(), i);
        char *name = sl_buf_take(&buf, NULL);
        if (!name)
            return ENOMEM;
        writer->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (writer->fd >= 0) {
            writer->temporary = name;
            return 0;
        }
        int failure = errno;
        free(name);
        if (failure != EEXIST && failure != EINTR)
            return failure;
    }
    return EEXIST;
}

/* ".NAME.tmp-PID-N" */
bool sl_file_is_temporary(const char *name)
{
    const char *mark = strstr(name, ".tmp-");
    if (name[0] != '.' || mark == NULL || mark == name)
        return false;
    const char *pid = mark + strlen(".tmp-"), *number = pid + strspn(pid, "0123456789");
    return number > pid && *number == '-' && number[1] != '\0' &&
           strspn(number + 1, "0123456789") == strlen(number + 1);
}

void sl_file_remove_temporaries(const char *folder)
{
    DIR *stream = opendir(folder);
    for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL;)
        if (sl_file_is_temporary(entry->d_name))
            unlinkat(dirfd(stream), entry->d_name, 0);
    if (stream)
        closedir(stream);
}

seqlstm_status sl_file_writer_open(const char *path, struct sl_file_writer **out_writer, struct seqlstm_error *err)
{
    if (sl_file_is_folder(path))
        return sl_file_fail(err, EISDIR, "cannot write", path);
    struct sl_file_writer *writer = malloc(sizeof *writer);
    if (!writer)
        return sl_file_fail(err, ENOMEM, "cannot write", path);
    memset(writer, 0, offsetof(struct sl_file_writer, buffer));
    writer->fd = -1;
    writer->path = target_of(path);
    writer->folder = writer->path ? sl_path_folder(writer->path) : NULL;
    int failure = writer->folder ? open_temporary(writer) : ENOMEM;
    if (failure != 0) {
        writer_destroy(writer);
        return sl_file_fail(err, failure, "cannot write", path);
    }
    /* An existing file keeps its permissions; failing to is not worth losing the file. */
    struct stat info;
    if (stat(writer->path, &info) == 0 && fchmod(writer->fd, info.st_mode & 07777) != 0)
        errno = 0;
    *out_writer = writer;
    return SEQLSTM_OK;
}

static void write_out(struct sl_file_writer *writer, const char *data, size_t bytes)
{
    while (bytes > 0 && writer->error_number == 0) {
        ssize_t n = write(writer->fd, data, bytes);
        if (n < 0) {
            if (errno != EINTR)
                writer->error_number = errno;
            continue;
        }
        data += n;
        bytes -= (size_t)n;
    }
}

static void flush(struct sl_file_writer *writer)
{
    write_out(writer, writer->buffer, writer->n_buffered);
    writer->n_buffered = 0;
}

seqlstm_status sl_file_writer_write(struct sl_file_writer *writer, const void *data, size_t bytes,
                                    struct seqlstm_error *err)
{
    if (bytes > WRITER_BUFFER_BYTES - writer->n_buffered)
        flush(writer);
    if (bytes >= WRITER_BUFFER_BYTES) {
        write_out(writer, data, bytes);
    } else if (bytes > 0) {
        memcpy(writer->buffer + writer->n_buffered, data, bytes);
        writer->n_buffered += bytes;
    }
    if (writer->error_number != 0)
        return sl_file_fail(err, writer->error_number, "cannot write", writer->path);
    return SEQLSTM_OK;
}

seqlstm_status sl_file_writer_commit(struct sl_file_writer *writer, struct seqlstm_error *err)
{
    flush(writer);
    if (writer->error_number == 0 && fsync(writer->fd) != 0)
        writer->error_number = errno;
    int closed = close(writer->fd);
    writer->fd = -1;
    if (writer->error_number == 0 && closed != 0)
        writer->error_number = errno;
    if (writer->error_number == 0 && rename(writer->temporary, writer->path) != 0)
        writer->error_number = errno;
    if (writer->error_number != 0) {
        seqlstm_status status = sl_file_fail(err, writer->error_number, "cannot write", writer->path);
        unlink(writer->temporary);
        writer_destroy(writer);
        return status;
    }
    seqlstm_status status = sl_file_sync_folder(writer->folder, err);
    writer_destroy(writer);
    return status;
}

void sl_file_writer_abort(struct sl_file_writer *writer)
{
    if (!writer)
        return;
    unlink(writer->temporary);
    writer_destroy(writer);
}

seqlstm_status sl_file_write(const char *path, const void *data, size_t bytes, struct seqlstm_error *err)
{
    struct sl_file_writer *writer;
    SEQLSTM_TRY(sl_file_writer_open(path, &writer, err));
    seqlstm_status status = sl_file_writer_write(writer, data, bytes, err);
    if (status != SEQLSTM_OK) {
        sl_file_writer_abort(writer);
        return status;
    }
    return sl_file_writer_commit(writer, err);
}
