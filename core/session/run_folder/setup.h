/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a run begins with. */
#ifndef SL_SESSION_RUN_FOLDER_SETUP_H
#define SL_SESSION_RUN_FOLDER_SETUP_H

#include <seqlstm/status.h>

struct sl_session;

/* config.yaml (of a new run), data.json, sources.json and plan.json. */
seqlstm_status sl_run_folder_write_setup(struct sl_session *session, struct seqlstm_error *err);
/* config.yaml. */
seqlstm_status sl_run_folder_write_config(struct sl_session *session, struct seqlstm_error *err);

#endif
