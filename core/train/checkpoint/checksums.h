/* SPDX-License-Identifier: Apache-2.0 */
/* checksums.json of a run folder: the checksum of each of its files, as the program wrote them. A file that was changed
 * afterwards, by a person or a disk, is used with a warning. It finds changes, not malice: a person who changes a file
 * can change this one, too.
 *
 *   {"schema": "seqlstm.checksums/1", "files": {"data.json": "16 hexadecimal digits", "final.safetensors": …}}
 *
 * That of a weights file is the checksum in its metadata, that of any other file CRC-64 over its bytes. Before a file
 * is replaced its entry is removed, so that no instant of a crash leaves an entry that does not fit. A file without an
 * entry is not compared: runs of older versions have none.
 */
#ifndef SL_TRAIN_CHECKPOINT_CHECKSUMS_H
#define SL_TRAIN_CHECKPOINT_CHECKSUMS_H

#include <seqlstm/status.h>

struct sl_log;

/* Removes the entry of a file (`name` relative to the folder) that is about to be written with this content, unless it
 * has just this checksum. `checksum` NULL: whatever the content. */
seqlstm_status sl_checksums_forget(const char *folder, const char *name, const char *checksum,
                                   struct seqlstm_error *err);

/* Stores the checksum of a file that was written; entries of files that are no longer there go. */
seqlstm_status sl_checksums_note(const char *folder, const char *name, const char *checksum, struct seqlstm_error *err);

/* The same, computed from the file, which may be missing. */
seqlstm_status sl_checksums_note_bytes(const char *folder, const char *name, struct seqlstm_error *err);

/* The same for a weights file, whose checksum is in its metadata. */
seqlstm_status sl_checksums_note_weights(const char *folder, const char *name, struct seqlstm_error *err);

/* Warns of those files among `names` (NULL at the end) whose bytes are not those that were written, notes those that
 * are gone, and warns of a checksums.json that cannot be read. */
void sl_checksums_compare(const char *folder, const char *const *names, const struct sl_log *log);

/* Warns if a weights file at `path`, in the folder or a folder in it, is not the one that was written. */
void sl_checksums_compare_weights(const char *folder, const char *path, const struct sl_log *log);

#endif
