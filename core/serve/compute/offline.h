/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the requests of a load are computed without a server, to compare one with it. */
#ifndef SL_SERVE_COMPUTE_OFFLINE_H
#define SL_SERVE_COMPUTE_OFFLINE_H

#include <seqlstm/status.h>

struct sl_interrupt;
struct sl_load_bodies;
struct sl_session;

/* Computes the requests on one thread for about so many seconds, in full batches of sequences of similar length.
 * Reading requests and writing answers does not count. `*out_rate`: requests per second. Errors of predictors;
 * NO_MEMORY; CANCELLED. */
seqlstm_status sl_offline_measure(struct sl_session *session, const struct sl_load_bodies *bodies, double seconds,
                                  const struct sl_interrupt *interrupt, double *out_rate, struct seqlstm_error *err);

#endif
