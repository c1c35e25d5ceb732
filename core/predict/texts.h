/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that a decoder writes, in input order. */
#ifndef SL_PREDICT_TEXTS_H
#define SL_PREDICT_TEXTS_H

#include "predict/records.h"

struct sl_decoder;

/* Decodes the batch, and passes on its texts in the order of its records, which are first_record, … . */
seqlstm_status sl_texts_hand_out(const struct sl_predictor *predictor, struct sl_decoder *decoder,
                                 const struct sl_outlet *outlet, const struct sl_batch *batch, int64_t first_record,
                                 struct seqlstm_error *err);

#endif
