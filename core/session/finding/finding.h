/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of later phases, as findings with a place in the model file. */
#ifndef SL_SESSION_FINDING_FINDING_H
#define SL_SESSION_FINDING_FINDING_H

#include <seqlstm/status.h>

#include "model/model.h"

struct sl_session;

/* Adds an error to the findings if the user can fix it: at the place that `err->where` names, else at that of `key`
 * (may be NULL). A message that ends in "; use …" becomes message and help. Returns `status`.
 *
 *   E0501 data    E0502 model against data    E0503 plan    E0504 backends
 *   E0505 initial weights    E0506 options of a backend    E0507 weights of the run
 */
seqlstm_status sl_session_add_finding(struct sl_session *session, const char *code, const char *key,
                                      seqlstm_status status, const struct seqlstm_error *err);
/* The same for an error of the data of a split: at the option of the file that the message names. */
seqlstm_status sl_session_add_data_finding(struct sl_session *session, enum sl_split split, seqlstm_status status,
                                           const struct seqlstm_error *err);
/* Adds a finding at a known place. */
void sl_session_add_finding_at(struct sl_session *session, const char *code, struct sl_place place, const char *text);

/* The place of the value of a key, or of what is nearest to it. */
struct sl_place sl_session_find_value(const struct sl_session *session, const char *key);

/* NOT_FOUND and IO of a data file become CORRUPT_DATA, the class of all errors of data. */
seqlstm_status sl_session_blame_data(seqlstm_status status, struct seqlstm_error *err);

#endif
