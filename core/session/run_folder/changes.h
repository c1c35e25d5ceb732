/* SPDX-License-Identifier: Apache-2.0 */
/* What --set and overlays change in a saved run. */
#ifndef SL_SESSION_RUN_FOLDER_CHANGES_H
#define SL_SESSION_RUN_FOLDER_CHANGES_H

#include <stddef.h>

struct sl_model;
struct sl_session;

/* Logs each key that differs from the saved configuration `before`; returns how many there are. */
size_t sl_session_log_changes(const struct sl_session *session, const struct sl_model *before);

#endif
