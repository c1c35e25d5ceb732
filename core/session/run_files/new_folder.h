/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a new run: made and locked, and removed again if the run fails before it has trained. */
#ifndef SL_SESSION_RUN_FILES_NEW_FOLDER_H
#define SL_SESSION_RUN_FILES_NEW_FOLDER_H

#include <seqlstm/status.h>

struct sl_session;

/* Makes the folder (run_folder/run_folder.h), locks it and writes flags.json and config.yaml. INVALID_CONFIG: a path of
 * the run is not UTF-8, which no file of the run could hold: nothing is made then; adds a finding. */
seqlstm_status sl_new_folder_begin(struct sl_session *session, struct seqlstm_error *err);

/* Removes what was made since, the folders above it too: the session has no folder then. Does nothing for a saved run.
 */
void sl_new_folder_discard(struct sl_session *session);

#endif
