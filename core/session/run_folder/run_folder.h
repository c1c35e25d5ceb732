/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the folder of a run, and writes files into it. */
#ifndef SL_SESSION_RUN_FOLDER_RUN_FOLDER_H
#define SL_SESSION_RUN_FOLDER_RUN_FOLDER_H

#include <stddef.h>

#include <seqlstm/status.h>

struct sl_model;
struct sl_session;

/* Makes the folder of a new run: `out_dir`, or output.dir with {name} and {run} (the next free number) filled in.
 * `*out_made` is the first folder of its path that did not exist, "" if it was there and empty. INVALID_CONFIG when it
 * exists and is not empty; IO with native_code EAGAIN when another process writes into it. Both are freed with free().
 */
seqlstm_status sl_run_folder_make(const struct sl_model *model, const char *out_dir, char **out_made, char **out_folder,
                                  struct seqlstm_error *err);

/* Writes a file of the run folder atomically, and its checksum into checksums.json. */
seqlstm_status sl_run_folder_write(const char *folder, const char *name, const void *data, size_t bytes,
                                   struct seqlstm_error *err);
/* The same from a buffer, unless `status` is an error already; NO_MEMORY when the buffer has failed. */
struct sl_buf;
seqlstm_status sl_run_folder_write_buf(const char *folder, const char *name, const struct sl_buf *buf,
                                       seqlstm_status status, struct seqlstm_error *err);

#endif
