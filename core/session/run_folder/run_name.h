/* SPDX-License-Identifier: Apache-2.0 */
/* Which folder RUN means on the command line. */
#ifndef SL_SESSION_RUN_FOLDER_RUN_NAME_H
#define SL_SESSION_RUN_FOLDER_RUN_NAME_H

#include <stdbool.h>

#include <seqlstm/status.h>

struct sl_log;

/* Does the folder hold a run, finished or not? */
bool sl_run_folder_is_run(const char *path);
/* Does it hold weights: final ones or a checkpoint? */
bool sl_run_folder_holds_weights(const char *path);

/* The folder that RUN means: itself, or the latest run in runs/RUN that holds weights, or the latest one if none does.
 * Logs it when a newer run is passed over (`log` may be NULL). NOT_FOUND. Freed with free(). */
seqlstm_status sl_run_folder_find(const char *run, const struct sl_log *log, char **out_folder,
                                  struct seqlstm_error *err);

/* The same, but the latest run in any case: it may just have begun. */
seqlstm_status sl_run_folder_find_newest(const char *run, char **out_folder, struct seqlstm_error *err);

#endif
