/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the registry of backends, and the thread pool. */
#ifndef SL_SESSION_PREPARE_BACKENDS_H
#define SL_SESSION_PREPARE_BACKENDS_H

#include <stdbool.h>

#include <seqlstm/status.h>

#include "registry/registry.h"

struct sl_session;

/* Loads the backends that the model lists, and makes the pool. */
seqlstm_status sl_session_load_backends(struct sl_session *session, struct seqlstm_error *err);

/* A registry beside the session's own, with its folders, trust and log: `first`, then with `listed` those that the
 * model lists, then the reference. Entries of an id or file that came before are left out; one without options has
 * those of the model. The session must outlive it. */
seqlstm_status sl_session_open_registry(const struct sl_session *session, const struct sl_registry_entry *first,
                                        uint32_t first_count, bool listed, struct sl_registry **out_registry,
                                        struct seqlstm_error *err);

/* For comparisons of other backends than those of the model: opens these and closes them again. Like
 * sl_session_find_missing_backends: UNAVAILABLE where one that is required is missing. */
seqlstm_status sl_session_check_backends(struct sl_session *session, struct seqlstm_error *err);

#endif
