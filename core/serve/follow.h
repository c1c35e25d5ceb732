/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over newer weights of the runs that are served. A thread looks five times a second for a newer checkpoint, or
 * for the final weights, prepares another version of the model beside the one that answers, and lets new requests go to
 * it. Requests and streams end on the version on which they began. */
#ifndef SL_SERVE_FOLLOW_H
#define SL_SERVE_FOLLOW_H

#include <stdatomic.h>

#include "serve/models.h"

struct sl_follower {
    struct sl_models *models;
    struct sl_serving *serving;
    struct sl_worker *workers; /* [made->workers] */
    uint64_t *seen;            /* [made->count] signs of the weights that were last tried */
    pthread_t thread;
    bool started;
    atomic_bool ends;
};

/* Notes which weights there are, before the models are opened. NO_MEMORY. Deinit accepts a zeroed struct. */
seqlstm_status sl_follower_init(struct sl_follower *follower, const struct sl_server_request *made,
                                struct seqlstm_error *err);
void sl_follower_deinit(struct sl_follower *follower);

/* Starts the thread. UNAVAILABLE: it cannot be started. */
seqlstm_status sl_follower_start(struct sl_follower *follower, struct sl_models *models, struct sl_serving *serving,
                                 struct sl_worker *workers, struct seqlstm_error *err);
/* Waits for the thread; accepts a follower that was not started. */
void sl_follower_end(struct sl_follower *follower);

#endif
