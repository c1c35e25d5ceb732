/* SPDX-License-Identifier: Apache-2.0 */
/* What --set and overlays change in a saved run. */
#ifndef SL_SESSION_RUN_FOLDER_CHANGES_H
#define SL_SESSION_RUN_FOLDER_CHANGES_H

#include <stddef.h>

#include <seqlstm/status.h>

struct sl_model;
struct sl_session;

/* Logs each key that differs from the saved configuration `before`, and counts them. INVALID_ARGUMENT if what the
 * run is opened for (`options.use`) does not read one of them. NO_MEMORY: nothing was compared. */
seqlstm_status sl_session_review_changes(const struct sl_session *session, const struct sl_model *before,
                                         size_t *out_changes, struct seqlstm_error *err);

#endif
