/* SPDX-License-Identifier: Apache-2.0 */
/* What a prediction is. */
#ifndef SL_PREDICT_PREDICTION_H
#define SL_PREDICT_PREDICTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

struct sl_dataset;
struct sl_vocabulary;

/* The attention weights of a text. Borrowed with it. */
struct sl_prediction_attention {
    const char *const *source; /* [source_count] tokens that the encoder read, as its vocabulary has them */
    int64_t source_count;
    const char *const *target; /* [target_count] tokens that were written, with the end token if it was */
    int64_t target_count;
    const char *const *layers; /* [layer_count] names of the attention layers */
    int32_t layer_count;
    const float *weights; /* [layer_count, target_count, source_count]; a row sums to 1 */
};

/* What a decoder wrote. Not NUL-terminated. */
struct sl_prediction_text {
    const char *text;
    size_t bytes;
    double score;                             /* decode/beam.h */
    struct sl_prediction_attention attention; /* layer_count 0: not asked for */
};

/* One prediction, in input order. Borrowed for the call. */
struct sl_prediction {
    int64_t record;
    const char *input; /* the line as it is in the file; NULL where there is none */
    size_t input_bytes;
    const struct sl_dataset *data; /* whose record it is; NULL: of none */
    bool on_steps;                 /* a row for each step */
    int64_t rows;                  /* steps, or 1 */
    int64_t features;
    const float *values; /* [rows, features]: probabilities, or values in the units of the file */
    const bool *none;    /* [rows] nothing is predicted, the values are NaN: a row of the input is missing */
    const struct sl_vocabulary *classes;    /* NULL: values */
    const struct sl_prediction_text *texts; /* of a decoder, best first, in place of values; NULL: none */
    int32_t text_count;
};

typedef seqlstm_status sl_prediction_fn(void *context, const struct sl_prediction *prediction,
                                        struct seqlstm_error *err);

#endif
