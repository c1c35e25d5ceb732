/* SPDX-License-Identifier: Apache-2.0 */
/* What the host offers a plugin: the services of struct seqlstm_host, and queues on the thread pool.
 *
 * Nothing here is global: the caller owns both. A queue uses a whole pool; one caller at a time.
 */
#ifndef SL_REGISTRY_HOST_H
#define SL_REGISTRY_HOST_H

#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "base/memory/memory.h"
#include "base/system/pool.h"

/* Services for one instance. Must stay at its address while the instance lives. */
struct sl_host {
    struct seqlstm_host services; /* services.context is this struct */
    const struct sl_log *log;
    const struct sl_interrupt *interrupt;
    struct sl_memory memory;       /* what the plugin allocated */
    char id[SEQLSTM_MAX_ID_BYTES]; /* put before its log messages */
    int64_t fail_after;            /* < 0: never; n: allocation n (from 0) and later ones give NULL (tests) */
};

/* `log` and `interrupt` may be NULL. */
void sl_host_init(struct sl_host *host, const char *id, const struct sl_log *log, const struct sl_interrupt *interrupt);

/* A host with log and memory only: cancelled and trace are NULL. */
void sl_host_init_minimal(struct sl_host *host, const char *id, const struct sl_log *log);

/* A CPU queue of all members of `pool`. Must stay at its address while bindings on it live. */
struct sl_queue {
    struct seqlstm_queue queue; /* what plugins see; queue.host_data is this struct */
    struct sl_pool *pool;       /* borrowed; NULL: one member, which is the caller */
};

void sl_queue_init(struct sl_queue *queue, struct sl_pool *pool);

#endif
