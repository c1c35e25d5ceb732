/* SPDX-License-Identifier: Apache-2.0 */
/* A processor for each worker, and one for all other threads of the server. Else these often run on the processor of a
 * worker, and all requests of its batch wait. */
#ifndef SL_SERVE_COMPUTE_PINNING_H
#define SL_SERVE_COMPUTE_PINNING_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct sl_pinning {
    cpu_set_t all; /* processors that the process may use */
    bool used;
};

/* Where `count` workers and the others need all processors that the calling thread may use, that thread, and those that
 * it will start, keep to the first one from now on. Otherwise there are processors to spare, or too few, and nothing
 * happens; nor where the system refuses it. */
void sl_pinning_begin(struct sl_pinning *pinning, int32_t count);
/* The processor of worker k, alone in its set. Only where the pinning is used. */
void sl_pinning_get(const struct sl_pinning *pinning, int32_t k, cpu_set_t *out);
/* Gives all processors back to the calling thread. A zeroed struct is fine. */
void sl_pinning_end(struct sl_pinning *pinning);

#endif
