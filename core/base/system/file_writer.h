/* SPDX-License-Identifier: Apache-2.0 */
/* Writing so that a file is either the old or the new one. Errors are those of file.h. */
#ifndef SL_BASE_SYSTEM_FILE_WRITER_H
#define SL_BASE_SYSTEM_FILE_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include <seqlstm/status.h>

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

#endif
