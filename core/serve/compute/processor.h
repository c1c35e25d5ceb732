/* SPDX-License-Identifier: Apache-2.0 */
/* The processor that a worker keeps, as long as it has it to itself.
 *
 * A worker that is kept waiting there, by another program or another server that has chosen the same, may run anywhere
 * for a while, then tries again; the longer, the more often in a row it was kept waiting. */
#ifndef SL_SERVE_COMPUTE_PROCESSOR_H
#define SL_SERVE_COMPUTE_PROCESSOR_H

#include <pthread.h>

#include "serve/compute/pinning.h"

struct sl_processor {
    bool used; /* false: the worker runs anywhere, always */
    bool left; /* it runs anywhere at present */
    cpu_set_t own, all;
    int64_t took_ns, had_ns;   /* of computing since it was last judged */
    int64_t pause_ns, back_ns; /* how long it was left last, and until when */
};

/* That of worker k. */
void sl_processor_init(struct sl_processor *processor, const struct sl_pinning *pinning, int32_t k);
/* Starts its thread there; else as pthread_create. */
int sl_processor_start(const struct sl_processor *processor, pthread_t *out_thread, void *(*start)(void *),
                       void *context);
/* The running thread has computed for so long until `now_ns`, and had a processor for `had_ns` of it. */
void sl_processor_note(struct sl_processor *processor, int64_t now_ns, int64_t took_ns, int64_t had_ns);

#endif
