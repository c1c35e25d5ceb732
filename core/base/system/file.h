/* SPDX-License-Identifier: Apache-2.0 */
/* base/system: the operating system. Files, the thread pool, processors, clocks, signals, the log, private modules.
 *
 * This file: reading files whole, mapping, and writing so that a file is either the old or the new one.
 *
 * Errors are SEQLSTM_NOT_FOUND (no such file), SEQLSTM_NO_MEMORY or SEQLSTM_IO; the message names the path and the
 * system's reason, native_code is errno. Returned strings are freed with free(). */
#ifndef SL_BASE_SYSTEM_FILE_H
#define SL_BASE_SYSTEM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

/* Reads all of a file (or pipe). The data is NUL-terminated; the NUL does not count. A file larger than `limit_bytes`
 * is SEQLSTM_CORRUPT_DATA. `out_bytes` may be NULL. */
seqlstm_status sl_file_read(const char *path, size_t limit_bytes, char **out_data, size_t *out_bytes,
                            struct seqlstm_error *err);

/* A file mapped for reading. An empty file has data "" and size 0. Where the file shrinks, reading `data` ends the
 * program: what is used for a long time is read with sl_file_map_read. */
struct sl_file_map {
    const char *data;
    size_t size_bytes;
    int fd; /* open while size_bytes > 0 */
    int64_t mtime_ns;
};

seqlstm_status sl_file_map_open(const char *path, struct sl_file_map *out_map, struct seqlstm_error *err);
/* Copies bytes that are at `from` in the map out of the file. CORRUPT_DATA: the file was truncated. `name` is what
 * messages call it. [any thread] */
seqlstm_status sl_file_map_read(const struct sl_file_map *map, const char *name, const void *from, size_t bytes,
                                void *out, struct seqlstm_error *err);
/* CORRUPT_DATA if the file has been written since it was opened. [any thread] */
seqlstm_status sl_file_map_check(const struct sl_file_map *map, const char *name, struct seqlstm_error *err);
/* A zeroed map is fine. */
void sl_file_map_close(struct sl_file_map *map);

/* Writes a file atomically: a hidden temporary beside it, fsync, rename over `path`, fsync of the folder. Until commit
 * returns OK the old file is untouched, at any instant of a crash. After a failed write further writes do nothing and
 * commit returns the first error. [one thread at a time] */
struct sl_file_writer;

seqlstm_status sl_file_writer_open(const char *path, struct sl_file_writer **out_writer, struct seqlstm_error *err);
seqlstm_status sl_file_writer_write(struct sl_file_writer *writer, const void *data, size_t bytes,
                                    struct seqlstm_error *err);
/* Destroys the writer, whatever it returns; on failure the temporary is removed. */
seqlstm_status sl_file_writer_commit(struct sl_file_writer *writer, struct seqlstm_error *err);
/* Removes the temporary and destroys the writer. NULL is fine. */
void sl_file_writer_abort(struct sl_file_writer *writer);

/* open, write, commit in one call. */
seqlstm_status sl_file_write(const char *path, const void *data, size_t bytes, struct seqlstm_error *err);

/* Removes the temporaries that killed writers have left in a folder; the caller knows that none is at work in it. What
 * cannot be removed stays. */
void sl_file_remove_temporaries(const char *folder);
/* Is this the name of such a temporary? */
bool sl_file_is_temporary(const char *name);

/* Makes the folder and those above it that are missing. An existing folder is fine. */
seqlstm_status sl_file_make_folders(const char *path, struct seqlstm_error *err);

/* fsync of a folder, so that names made or removed in it survive a power cut. */
seqlstm_status sl_file_sync_folder(const char *path, struct seqlstm_error *err);

bool sl_file_exists(const char *path);     /* anything of that name, a dangling link too */
bool sl_file_is_regular(const char *path); /* follows links; no pipe, no device */
bool sl_file_is_folder(const char *path);  /* follows links */

/* The absolute path: relative ones are taken in the current folder; `.`, `..` and double slashes are resolved in the
 * text only; links are not followed, and nothing need exist. */
seqlstm_status sl_file_absolute(const char *path, char **out_path, struct seqlstm_error *err);

/* The path with every link resolved; it must exist. */
seqlstm_status sl_file_real(const char *path, char **out_path, struct seqlstm_error *err);

/* "folder/name"; `name` alone when it is absolute or `folder` is "" or NULL. NULL on no memory. */
char *sl_path_join(const char *folder, const char *name);
/* The part before the last slash ("." if none, "/" for the root). NULL on no memory. */
char *sl_path_folder(const char *path);
/* The part after the last slash, borrowed. */
const char *sl_path_name(const char *path);

#endif
