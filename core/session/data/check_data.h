/* SPDX-License-Identifier: Apache-2.0 */
/* What `check` does with the data: everything that `run` would refuse before it trains, and nothing that takes long. */
#ifndef SL_SESSION_DATA_CHECK_DATA_H
#define SL_SESSION_DATA_CHECK_DATA_H

#include <seqlstm/status.h>

struct sl_data_state;
struct sl_layer;
struct sl_model;
struct sl_session;
struct sl_vocabulary;

/* Reads every split that the model has, and holds the model against the training split: widths, class weights, metrics,
 * batches. Each fault becomes a finding. Errors: the first that occurs. */
seqlstm_status sl_session_check_data(struct sl_session *session, struct seqlstm_error *err);

/* The metrics that the model asks for must be possible with the data. Errors: INVALID_CONFIG, with a finding. */
seqlstm_status sl_session_check_metrics(struct sl_session *session, const struct sl_data_state *state,
                                        struct seqlstm_error *err);

/* The words of which an embedding has vectors, by their ids: those of its side. NULL: the data have no words. */
const struct sl_vocabulary *sl_session_find_words(const struct sl_model *model, const struct sl_data_state *state,
                                                  const struct sl_layer *layer);

#endif
