/* SPDX-License-Identifier: Apache-2.0 */
/* What would make a training faster: other numbers of threads, sizes of the batch, precisions and backends, each tried
 * out on the first batches of the data.
 *
 * A trial is a session of its own with one change. It and the profiled training take turns, up to five each, which
 * absorbs what else the machine does. Speeds are real steps per second. */
#ifndef SL_COMPARE_ADVICE_H
#define SL_COMPARE_ADVICE_H

#include "session/session.h"
#include "timeline/timeline.h"

struct sl_advice_request {
    struct sl_session *session;               /* has prepared its training, and taken a turn */
    const struct sl_session_options *options; /* with which it was opened */
    double update_ns;                         /* of its updates */
    double seconds;                           /* after which no trial begins any more */
    /* Called before each trial; may be NULL. */
    void (*on_trial)(void *context, const char *change);
    void *context;
};

/* A trial that fails, as where no backend has the precision, is left out. Errors: those of the session's own turns;
 * NO_MEMORY; CANCELLED. */
seqlstm_status sl_advice_find(const struct sl_advice_request *request, struct sl_timeline_advices *out_advices,
                              struct seqlstm_error *err);

#endif
