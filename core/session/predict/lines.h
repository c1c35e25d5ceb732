/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for lines that arrive one at a time. */
#ifndef SL_SESSION_PREDICT_LINES_H
#define SL_SESSION_PREDICT_LINES_H

#include "predict/prediction.h"

struct sl_session;

/* Reads `path` ("-": standard input) line by line, and passes each prediction on before the next line is awaited.
 *
 * Of a model that reads texts, a line is a text (of CoNLL, the words of a sentence with blanks between them). Of one
 * that reads sequences of numbers, a line is the next step of a stream: the inputs of the training data in their order,
 * separated as there, or in the order of a first line with their names; an empty line begins a new stream. Errors:
 * CORRUPT_DATA: a line that is none of that, with its number; UNSUPPORTED: the model cannot run as a stream; CANCELLED;
 * as predict. */
seqlstm_status sl_session_predict_lines(struct sl_session *session, const char *path, sl_prediction_fn *write,
                                        void *context, struct seqlstm_error *err);

#endif
