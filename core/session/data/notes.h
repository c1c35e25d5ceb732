/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says about the data. */
#ifndef SL_SESSION_DATA_NOTES_H
#define SL_SESSION_DATA_NOTES_H

#include "model/model.h"

struct sl_batcher;
struct sl_dataset;
struct sl_session;

/* Logs what reading a split dropped, cut or filled in. */
void sl_session_note_split(const struct sl_session *session, enum sl_split split, const struct sl_dataset *data);
/* The same for data that are no split, under `name`. */
void sl_session_note_data(const struct sl_session *session, const char *name, const struct sl_dataset *data);
/* Logs the steps that parallel streams leave over. */
void sl_session_note_batches(const struct sl_session *session, enum sl_split split, const struct sl_batcher *batcher);

#endif
