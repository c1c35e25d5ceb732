/* SPDX-License-Identifier: Apache-2.0 */
/* A load generator for HTTP.
 *
 * Open loop: requests arrive at random times (Poisson), whether earlier ones are answered or not, as those of many
 * independent users do. Latency counts from the time at which a request was to be sent. Closed loop: each connection
 * sends its next request when it has the answer to the last one, which shows the highest throughput. Batches are small
 * at its begin, so what is answered in the first quarter of its time counts only if nothing is answered later. */
#ifndef SL_SERVE_LOAD_LOAD_H
#define SL_SERVE_LOAD_LOAD_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "serve/load/bodies.h"

struct sl_interrupt;
struct sl_history;

struct sl_load_request {
    const char *address; /* a number such as 127.0.0.1 */
    uint16_t port;
    const struct sl_load_bodies *bodies; /* sent one after the other */
    double rate;                         /* requests per second; 0: closed loop */
    int32_t connections;                 /* of the closed loop; at most so many of the open loop */
    double seconds;
    uint64_t seed;                        /* of the times of arrival */
    const struct sl_interrupt *interrupt; /* NULL: none */
    struct sl_history *history;           /* of the answers with status 200; NULL: none */
    int32_t number;                       /* of this load in it */
};

struct sl_load_result {
    double wanted;                          /* requests per second that were to arrive; 0: closed loop */
    double reached;                         /* answers with status 200 per second */
    int64_t answered, failed;               /* by their status */
    int64_t lost;                           /* requests whose connection ended without an answer */
    double mean, p50, p90, p99, p999, most; /* seconds, of the answers with status 200 */
    double own_cpu, other_cpu; /* seconds of processors for each answer: of the generator, and of all else in its
                                  process, which is a server in it */
};

/* Sorts the latencies (seconds) of the answers that came in so many seconds, and fills what follows from them. [any] */
void sl_load_summarize(double *latencies, int64_t count, double seconds, struct sl_load_result *out);

/* CANCELLED: the interrupt asked for it; IO: the server cannot be reached; NO_MEMORY. */
seqlstm_status sl_load_run(const struct sl_load_request *request, struct sl_load_result *out,
                           struct seqlstm_error *err);

#endif
