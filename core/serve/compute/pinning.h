/* SPDX-License-Identifier: Apache-2.0 */
/* A processor of its own for each worker. Else threads that read and write for it often run on its processor, and all
 * requests of its batch wait. */
#ifndef SL_SERVE_COMPUTE_PINNING_H
#define SL_SERVE_COMPUTE_PINNING_H

#include <pthread.h>
#include <stdint.h>

#include <seqlstm/status.h>

struct sl_pinning {
    int *processors; /* [count] */
    int32_t count;
};

/* Takes `count` of the processors that the calling thread may use from it, and so from the threads that it will start:
 * at least one is left. Errors: UNAVAILABLE, NO_MEMORY. */
seqlstm_status sl_pinning_begin(struct sl_pinning *pinning, int32_t count, struct seqlstm_error *err);
/* The thread runs on the k-th of them from now on. Errors: UNAVAILABLE. */
seqlstm_status sl_pinning_keep(const struct sl_pinning *pinning, int32_t k, pthread_t thread,
                               struct seqlstm_error *err);
/* Gives them back to the calling thread. A zeroed struct is fine. */
void sl_pinning_end(struct sl_pinning *pinning);

#endif
