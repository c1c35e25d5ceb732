/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the C library share. */
#ifndef SL_SESSION_API_H
#define SL_SESSION_API_H

#include <seqlstm/seqlstm.h>

#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "model/model.h"
#include "session/record/options.h"

struct sl_diagnostics;
struct sl_session;

/* Data of the caller in a file without a name, which lives as long as it is open. */
struct sl_api_memory {
    int fd;
    char path[32]; /* "/proc/self/fd/7" */
};

/* What a public session holds besides the inner one: everything that the inner one's options borrow. */
struct seqlstm_session {
    struct sl_session *session;
    struct sl_diagnostics *diagnostics;
    struct sl_model_request request;
    struct sl_override *overrides;
    struct sl_session_options options;
    struct sl_log log;
    struct sl_interrupt interrupt;
    struct sl_api_memory *memory; /* [memory_count] */
    uint32_t memory_count;
    struct sl_memory_data *memory_data; /* the same for the request */
    void (*log_fn)(void *context, int32_t level, const char *message);
    void *log_context;
    const int32_t *stop;
};

/* Ends a function of the C library: makes the text of an error fit for a terminal. Returns `status`. [any] */
seqlstm_status sl_api_end(seqlstm_status status, struct seqlstm_error *err);

/* The same for a function that may have found something in the user's files: the error becomes the findings, and
 * warnings are logged. */
seqlstm_status sl_api_finish(struct seqlstm_session *session, seqlstm_status status, struct seqlstm_error *err);

#endif
