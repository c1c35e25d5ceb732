/* SPDX-License-Identifier: Apache-2.0 */
/* The models of a server by name. Each is its newest version; older ones live as long as a job, a stream or a worker
 * uses them. */
#ifndef SL_SERVE_MODELS_H
#define SL_SERVE_MODELS_H

#include <pthread.h>

#include "serve/compute/worker.h"

struct sl_server_request;

struct sl_models {
    const struct sl_server_request *made; /* borrowed */
    pthread_mutex_t lock;
    struct sl_served_model **newest; /* [made->count] */
    struct sl_served_model *older;   /* a list; of the thread that replaces models */
};

/* Prepares the first version of each. Deinit accepts a zeroed struct; no job, stream or worker may be left. Errors of
 * predictors; NO_MEMORY. */
seqlstm_status sl_models_init(struct sl_models *models, const struct sl_server_request *made,
                              struct seqlstm_error *err);
void sl_models_deinit(struct sl_models *models);

/* These give one use of the model to the caller, who releases it (served_model.h). NULL: there is none. [any thread] */
const struct sl_served_model *sl_models_find(struct sl_models *models, const char *name);
/* The model of "/v2/models/NAME…", and what follows its name. */
const struct sl_served_model *sl_models_find_path(struct sl_models *models, const char *path, const char **out_rest);

/* The newest versions, [made->count]; until they are unlocked none is replaced. [any thread] */
const struct sl_served_model *const *sl_models_lock(struct sl_models *models);
void sl_models_unlock(struct sl_models *models);

/* Opens another version of model `slot` from a session that was opened again, and which is closed with it, or after an
 * error now; the version is not found yet. */
seqlstm_status sl_models_open(const struct sl_models *models, int slot, struct sl_session *session,
                              struct sl_served_model **out_model, struct seqlstm_error *err);
/* The version is found from now on, and the one before is older. [one thread at a time, as the next two] */
void sl_models_replace(struct sl_models *models, struct sl_served_model *model);
/* Takes over a version that will not be found. */
void sl_models_put_aside(struct sl_models *models, struct sl_served_model *model);
/* How many older versions of model `slot` are in use, after those that are not were closed. Those that only the
 * `workers` use are marked as over. */
int sl_models_count_older(struct sl_models *models, int slot, int workers);

#endif
