/* SPDX-License-Identifier: Apache-2.0 */
/* What a record of a prediction has on request: the probabilities of all classes, and columns of the input. */
#ifndef SL_CLI_OUTPUT_PREDICTION_EXTRAS_H
#define SL_CLI_OUTPUT_PREDICTION_EXTRAS_H

#include "cli/cli.h"

/* Zeroed: nothing is asked for. */
struct cli_prediction_extras {
    bool probabilities;
    char *list;            /* what --columns said, cut into names */
    const char *names[64]; /* in its order */
    int32_t count;
    const char *passed[64]; /* those of them that are columns of the file; the others are `step` and `token` */
    struct sl_string_list columns;
};

/* Reads --columns and --probabilities; CLI_USAGE if a value is wrong. */
int cli_extras_init(struct cli_prediction_extras *extras, struct cli_context *cli);
void cli_extras_deinit(struct cli_prediction_extras *extras);
/* INVALID_CONFIG: the model has no classes, or the input no columns. `state` may be NULL. */
seqlstm_status cli_extras_check(const struct cli_prediction_extras *extras, const struct sl_data_state *state,
                                struct seqlstm_error *err);

/* The end of a csv header, and of row `row` of the prediction. */
void cli_extras_write_header(const struct cli_prediction_extras *extras, const struct sl_vocabulary *classes,
                             struct sl_buf *out);
void cli_extras_write_csv(const struct cli_prediction_extras *extras, const struct sl_prediction *prediction,
                          int64_t row, struct sl_buf *out);
/* , "probabilities": {"neg": 0.3, …}: of one row. */
void cli_extras_write_json_probabilities(const struct cli_prediction_extras *extras,
                                         const struct sl_prediction *prediction, const float *row, struct sl_buf *out);
/* , "columns": [{"id": "7"}, …]: of each row. */
void cli_extras_write_json_columns(const struct cli_prediction_extras *extras, const struct sl_prediction *prediction,
                                   struct sl_buf *out);

#endif
