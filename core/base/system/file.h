/* SPDX-License-Identifier: Apache-2.0 */
/* base/system: the operating system. Files, the thread pool, processors, clocks, signals, the log, private modules.
 *
 * This file: reading files whole, mapping, and folders.
 *
 * Errors are SEQLSTM_NOT_FOUND (no such file), SEQLSTM_NO_MEMORY or SEQLSTM_IO; the message names the path and the
 * system's reason, native_code is errno. */
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

/* Makes the folder and those above it that are missing. An existing folder is fine. */
seqlstm_status sl_file_make_folders(const char *path, struct seqlstm_error *err);

/* fsync of a folder, so that names made or removed in it survive a power cut. */
seqlstm_status sl_file_sync_folder(const char *path, struct seqlstm_error *err);

bool sl_file_exists(const char *path);                    /* anything of that name, a dangling link too */
bool sl_file_is_in(const char *folder, const char *name); /* the same; needs no memory */
bool sl_file_is_regular(const char *path);                /* follows links; no pipe, no device */
bool sl_file_is_folder(const char *path);                 /* follows links */

#endif
