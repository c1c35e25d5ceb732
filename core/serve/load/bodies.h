/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for a load generator, with the lengths, and where the model reads text the texts, of the user's data. */
#ifndef SL_SERVE_LOAD_BODIES_H
#define SL_SERVE_LOAD_BODIES_H

#include <stdint.h>

#include "base/value/buf.h"

struct sl_session;

/* Whole HTTP requests. */
struct sl_load_bodies {
    struct sl_buf *requests; /* [count] */
    int64_t *lengths;        /* [count] steps, of texts those of the source */
    int64_t count;
    int64_t steps; /* of all of them */
};

/* `count` requests of one sequence each, drawn from the test split, or else the training data. Values are random: time
 * does not depend on them. `name`: of the model on the server; `host`: for the header. Errors: those of reading the
 * data; UNSUPPORTED: the decoder's data are no texts; NO_MEMORY. */
seqlstm_status sl_load_bodies_init(struct sl_load_bodies *bodies, struct sl_session *session, const char *name,
                                   const char *host, int64_t count, uint64_t seed, struct seqlstm_error *err);
void sl_load_bodies_deinit(struct sl_load_bodies *bodies);

#endif
