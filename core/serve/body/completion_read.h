/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request to continue texts. */
#ifndef SL_SERVE_BODY_COMPLETION_READ_H
#define SL_SERVE_BODY_COMPLETION_READ_H

#include "serve/job/completion.h"

/* Finds a model by its name, and gives one use of it to the caller. */
typedef const struct sl_served_model *sl_find_model_fn(void *context, const char *name);

/* Fills job->model and job->completion from the body of a request. NOT_FOUND: no such model; INVALID_ARGUMENT: the
 * message says what is wrong; NO_MEMORY. [any thread] */
seqlstm_status sl_completion_read(struct sl_job *job, const char *body, uint64_t bytes, sl_find_model_fn *find,
                                  void *context, struct seqlstm_error *err);

#endif
