/* SPDX-License-Identifier: Apache-2.0 */
/* Files and backends that a model names and that are not there. */
#ifndef SL_SESSION_FINDING_MISSING_H
#define SL_SESSION_FINDING_MISSING_H

#include <stddef.h>

#include <seqlstm/status.h>

struct sl_registry;
struct sl_session;

/* Adds a finding for each data file that is missing; returns how many. Reads none. */
size_t sl_session_find_missing_files(struct sl_session *session);
/* The same for all other files. Errors, the first that applies: UNAVAILABLE (the file of a required backend), NOT_FOUND
 * (initial weights). */
seqlstm_status sl_session_find_missing_parts(struct sl_session *session, struct seqlstm_error *err);

/* Of a registry that was opened for the model: logs the listed backends that are absent. UNAVAILABLE, with a finding
 * each, for those that are required, and INVALID_CONFIG for options that a backend does not know or accept. */
seqlstm_status sl_session_find_missing_backends(struct sl_session *session, const struct sl_registry *registry,
                                                struct seqlstm_error *err);

#endif
