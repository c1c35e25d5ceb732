/* SPDX-License-Identifier: Apache-2.0 */
/* May the program read and write the files of a run folder? The folder may come from another person. */
#ifndef SL_SESSION_RUN_FILES_TRUSTED_FILES_H
#define SL_SESSION_RUN_FILES_TRUSTED_FILES_H

#include <seqlstm/status.h>

struct sl_session;

/* INVALID_CONFIG if a file that the program reads or writes in the folder is a link, a pipe, a device or a folder, so
 * that it would work on something elsewhere; adds a finding. With --trust links are fine, if they lead to a file. */
seqlstm_status sl_trusted_files_check(struct sl_session *session, const char *folder, struct seqlstm_error *err);

/* The same for the data, vocabularies and weights that the saved configuration names: INVALID_CONFIG if one is a pipe
 * or a device, for which the program would wait, or which never ends. What the command line names is fine. */
seqlstm_status sl_trusted_files_check_paths(struct sl_session *session, struct seqlstm_error *err);

/* UNAVAILABLE if the saved configuration names a file with a plugin: that is loaded only with --trust. A plugin that
 * the command line names is fine. Adds a finding. */
seqlstm_status sl_trusted_files_check_plugins(struct sl_session *session, struct seqlstm_error *err);

#endif
