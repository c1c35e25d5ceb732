/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a training in pieces on this rank alone, and cuts it into stages by that. */
#ifndef SL_SESSION_MEASURE_PIECE_TIMES_H
#define SL_SESSION_MEASURE_PIECE_TIMES_H

#include <seqlstm/status.h>

struct sl_pipeline;
struct sl_session;

/* Runs the training plan on the first batch of the data, all stages one after the other, with the pieces of `pipeline`;
 * if those are to be chosen, with several numbers of them, of which the fastest stays. Then cuts the stages so that the
 * slowest is as fast as possible. The session has parameters, which do not change, apart from gradients. */
seqlstm_status sl_session_tune_pipeline(struct sl_session *session, struct sl_pipeline *pipeline,
                                        struct seqlstm_error *err);

#endif
