/* SPDX-License-Identifier: Apache-2.0 */
/* A side of a comparison in this process. */
#ifndef SL_COMPARE_SIDE_LOCAL_SIDE_H
#define SL_COMPARE_SIDE_LOCAL_SIDE_H

#include "base/system/pool.h"
#include "compare/sample/backend_spec.h"
#include "compare/side/side.h"
#include "compare/sample/sample.h"
#include "session/session.h"

struct sl_local_side_request {
    struct sl_session *session; /* its data have been read; all of these outlive the side */
    const struct sl_backend_spec *own;
    const struct sl_backend_spec *other; /* also loaded if it is another backend */
    const struct sl_graph *graph;
    const struct sl_sample *sample;
    struct sl_pool *pool;
    bool alone; /* `other` is not loaded, because their libraries conflict */
    const struct sl_interrupt *interrupt;
};

/* Loads `own` and all backends of the model. Errors: UNAVAILABLE when `own` does not load. */
seqlstm_status sl_local_side_open(const struct sl_local_side_request *request, struct sl_compare_side **out_side,
                                  struct seqlstm_error *err);

#endif
