/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a stored plan back. */
#ifndef SL_SESSION_RUN_FOLDER_STORED_PLAN_H
#define SL_SESSION_RUN_FOLDER_STORED_PLAN_H

#include <stddef.h>

#include <seqlstm/status.h>

#include "session/record/stored.h"

struct sl_session;

/* Reads choices, threads, devices, batching and whole steps of a plan's JSON. NOT_FOUND, CORRUPT_DATA, NO_MEMORY. */
seqlstm_status sl_stored_plan_read(const char *path, struct sl_stored_plan *out, struct seqlstm_error *err);
/* The same for a text; `path` names it in messages. */
seqlstm_status sl_stored_plan_parse(const char *path, const char *text, size_t bytes, struct sl_stored_plan *out,
                                    struct seqlstm_error *err);

/* The comparison of whole steps behind the choices of the phase; NULL: there was none. */
const struct sl_whole_steps *sl_stored_plan_find_whole_steps(const struct sl_stored_plan *stored, enum sl_phase phase);

/* How many threads the pool gets (0: auto): the number given for this command, else that of the stored plan when it is
 * replayed. Logs it when they differ. */
int32_t sl_stored_plan_choose_threads(const struct sl_session *session);

/* Warns of backends that compute on another device than in the replayed plan, or with other instructions. */
void sl_stored_plan_compare_devices(const struct sl_session *session);

#endif
