/* SPDX-License-Identifier: Apache-2.0 */
/* What writes texts: an encoder, a decoder that runs step by step, and the search. */
#ifndef SL_SESSION_PREPARE_DECODING_H
#define SL_SESSION_PREPARE_DECODING_H

#include <seqlstm/status.h>

#include "decode/never.h"
#include "session/record/stages.h"

struct sl_batcher;
struct sl_session;

/* Is the model one that writes texts? */
bool sl_session_decodes(const struct sl_session *session);

/* The tokens of the targets' vocabulary that no target is: padding; the beginning, where it is only read; and the mark
 * of an unknown token, where every token of the training data is known. */
struct sl_never sl_session_find_never(const struct sl_session *session);

/* Makes graphs and plans for the sources of the batches; earlier plans are freed. `attention`: it will keep attention
 * weights. `exact`: as in sl_pair_request. Errors: those of plans. */
seqlstm_status sl_decoding_plan(struct sl_session *session, const struct sl_batcher *batches, bool attention,
                                bool exact, struct sl_decoding *decoding, struct seqlstm_error *err);
/* Makes executors and decoder of what is planned. */
seqlstm_status sl_decoding_open(struct sl_session *session, struct sl_decoding *decoding, struct seqlstm_error *err);
/* Frees them; the plans stay. Both may be called when nothing is opened or planned. */
void sl_decoding_close(struct sl_decoding *decoding);
void sl_decoding_deinit(struct sl_decoding *decoding);

/* Logs the throughput so far. */
void sl_session_note_decoding(const struct sl_session *session, const struct sl_decoder *decoder);

#endif
