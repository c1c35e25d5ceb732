/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder and a decoder that runs step by step: planned, and opened. */
#ifndef SL_SESSION_PREPARE_PAIR_H
#define SL_SESSION_PREPARE_PAIR_H

#include <seqlstm/status.h>

#include "session/record/stages.h"
#include "session/record/stored.h"

struct sl_batcher;
struct sl_session;

/* Choices for a plan whose operations are not measured. In training (`bound`) those that the stored plan has for the
 * pair, `own`. Otherwise these and those of training, stored or just made, are followed where the backends accept: so a
 * new run, the same run resumed, and its evaluation all decode alike. The items are to be freed. NO_MEMORY. */
seqlstm_status sl_session_list_choices(const struct sl_session *session, const struct sl_choices *own, bool bound,
                                       struct sl_choices *out, struct seqlstm_error *err);

struct sl_pair_request {
    const struct sl_batcher *batches; /* whose sources the encoder reads; NULL: batches of the next */
    const struct sl_envelope *envelope;
    int64_t places; /* hypotheses for each source: the decoder runs one step of all of them */
    const struct sl_choices *choices;
    bool attention; /* the decoder keeps attention weights */
    bool exact;     /* the plan's memory is computed on batches like the given ones, which takes longer */
};
seqlstm_status sl_stage_pair_plan(struct sl_session *session, const struct sl_pair_request *request,
                                  struct sl_stage_pair *pair, struct seqlstm_error *err);
seqlstm_status sl_stage_pair_open(struct sl_session *session, struct sl_stage_pair *pair, struct seqlstm_error *err);
/* Frees the executors; the plans stay. */
void sl_stage_pair_close(struct sl_stage_pair *pair);
void sl_stage_pair_deinit(struct sl_stage_pair *pair);

#endif
