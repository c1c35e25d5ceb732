/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the splits of a model. */
#ifndef SL_SESSION_DATA_READ_DATA_H
#define SL_SESSION_DATA_READ_DATA_H

#include <seqlstm/status.h>

#include "model/model.h"

struct sl_dataset;
struct sl_session;

/* Opens the training data, and for a new model learns vocabulary, scaling and facts. */
seqlstm_status sl_session_read_data(struct sl_session *session, struct seqlstm_error *err);

/* Reads the test split, if there is one, and logs what is to be said of it: a training of hours must not end with an
 * error in the test data. */
seqlstm_status sl_session_scan_test(struct sl_session *session, struct seqlstm_error *err);

/* Reads a split, with vocabulary and scaling of the session. */
seqlstm_status sl_session_read_split(struct sl_session *session, enum sl_split split, struct sl_dataset **out_data,
                                     struct seqlstm_error *err);
/* The same for a split that is asked for by name: learns what is not known yet, compares the files with those of the
 * run, and logs. INVALID_CONFIG: the model has no such split. */
seqlstm_status sl_session_open_split(struct sl_session *session, enum sl_split split, struct sl_dataset **out_data,
                                     struct seqlstm_error *err);

#endif
