/* SPDX-License-Identifier: Apache-2.0 */
/* Fingerprints of the data files of a run: sources.json. */
#ifndef SL_SESSION_RUN_FOLDER_SOURCES_H
#define SL_SESSION_RUN_FOLDER_SOURCES_H

#include <seqlstm/status.h>

#include "model/model.h"

struct sl_session;

/* Writes the fingerprints of all data files into the run folder. */
seqlstm_status sl_sources_write(const struct sl_session *session, struct seqlstm_error *err);
/* For a saved run: warns of files of the split that have changed since the run began. */
void sl_sources_check(const struct sl_session *session, enum sl_split split);

#endif
