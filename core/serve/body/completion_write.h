/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to requests to continue texts: whole, or as server-sent events. */
#ifndef SL_SERVE_BODY_COMPLETION_WRITE_H
#define SL_SERVE_BODY_COMPLETION_WRITE_H

#include "serve/job/completion.h"

/* Appends the whole answer. */
void sl_completion_write(const struct sl_job *job, struct sl_buf *out);
/* Appends an event with what choice k has more than the client, if it has more or has ended. */
void sl_completion_write_event(const struct sl_job *job, int64_t k, struct sl_buf *out);
/* The last events: the use of tokens, if it is wanted, and the end. */
void sl_completion_write_end(const struct sl_job *job, struct sl_buf *out);

#endif
