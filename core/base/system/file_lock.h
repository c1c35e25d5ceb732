/* SPDX-License-Identifier: Apache-2.0 */
/* A file that one process holds at a time, by a lock of the open file description: the system drops it when the process
 * ends, however it ends. The file says which process holds it, and is removed when the lock is released. */
#ifndef SL_BASE_SYSTEM_FILE_LOCK_H
#define SL_BASE_SYSTEM_FILE_LOCK_H

#include <stdbool.h>

#include <seqlstm/status.h>

struct sl_file_lock;

/* Makes the file at `path` if it is missing, locks it, and writes the host, the process and the time into it. Errors:
 * IO with native_code EAGAIN: another process holds it, which the message names; IO, NOT_FOUND, NO_MEMORY. A process
 * that was killed may still be ending, and hold it that long: it is waited for, up to three seconds. Where the file
 * system has no locks the result is a lock that is not held. */
seqlstm_status sl_file_lock_take(const char *path, struct sl_file_lock **out_lock, struct seqlstm_error *err);

/* False: the file system has no locks, so nothing keeps another process away. */
bool sl_file_lock_is_held(const struct sl_file_lock *lock);

/* Does `path` still name the locked file? False after the folder was moved, removed or replaced. [any thread] */
bool sl_file_lock_is_there(const struct sl_file_lock *lock);

/* Has something else in this process, such as a plugin, closed the locked file? [any thread] */
bool sl_file_lock_is_closed(const struct sl_file_lock *lock);

enum { SL_FILE_LOCK_HOLDER_BYTES = 240 };

/* Does a process hold the lock of the file at `path`? Then `out_holder` says which, in printable ASCII: "process 12 on
 * host since …". It neither makes nor changes the file. Where the file system has no locks, the file and a living
 * process count. [any thread] */
bool sl_file_lock_find_holder(const char *path, char out_holder[SL_FILE_LOCK_HOLDER_BYTES]);

/* The process of this host that holds the lock of the file at `path`; 0: none, or one of another host. [any thread] */
long sl_file_lock_find_process(const char *path);

/* Removes the file and releases the lock. NULL is fine. */
void sl_file_lock_release(struct sl_file_lock *lock);

#endif
