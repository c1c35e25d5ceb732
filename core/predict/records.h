/* SPDX-License-Identifier: Apache-2.0 */
/* From the packed rows of a batch back to records in input order. */
#ifndef SL_PREDICT_RECORDS_H
#define SL_PREDICT_RECORDS_H

#include "predict/prediction.h"

struct sl_batch;
struct sl_dataset;
struct sl_field;
struct sl_predictor;

/* Where predictions go. */
struct sl_outlet {
    const struct sl_dataset *data; /* NULL: no texts of the input */
    sl_prediction_fn *write;
    void *context;
};

/* The sequence of the batch that record first_record + n is, for each n: [sequences], to be freed. INTERNAL when one is
 * missing. */
seqlstm_status sl_records_find_order(const struct sl_batch *batch, int64_t first_record, int64_t **out_sequences,
                                     struct seqlstm_error *err);

/* Passes on the output of the batch, in the order of its records, which are first_record, … . */
seqlstm_status sl_records_hand_out(const struct sl_predictor *predictor, const struct sl_outlet *outlet,
                                   const struct sl_batch *batch, const struct sl_field *output, int64_t first_record,
                                   struct seqlstm_error *err);

#endif
