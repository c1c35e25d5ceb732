/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions and embeddings on stdout: one record per input, in input order, as text, csv or jsonl, or all of them as
 * one npy array. Shared by predict and embed. */
#ifndef SL_CLI_OUTPUT_PREDICTION_WRITER_H
#define SL_CLI_OUTPUT_PREDICTION_WRITER_H

#include "cli/cli.h"
#include "cli/output/prediction_extras.h"

enum cli_prediction_format { CLI_PREDICTION_TEXT, CLI_PREDICTION_CSV, CLI_PREDICTION_JSONL, CLI_PREDICTION_NPY };

/* Ready for use if all but `format` and `with_input` is zero. */
struct cli_prediction_writer {
    enum cli_prediction_format format;
    bool with_input;
    struct cli_prediction_extras extras;
    bool has_begun;
    struct sl_buf header;   /* csv: not written yet */
    struct sl_buf buf;      /* one record; npy: the values of all records so far */
    int64_t written;        /* records so far ... */
    int64_t unsound;        /* ... and those of them with a value that is not finite */
    int64_t records;        /* npy */
    int64_t rows, features; /* npy: of each record */
};

/* Reads --format, --with-input, --columns and --probabilities; CLI_USAGE if a value is wrong. */
int cli_prediction_writer_init(struct cli_prediction_writer *writer, struct cli_context *cli,
                               enum cli_prediction_format default_format);
void cli_prediction_writer_deinit(struct cli_prediction_writer *writer);

/* INVALID_CONFIG if `--with-input` is given for a model that reads numbers. `state` may be NULL. */
seqlstm_status cli_prediction_writer_check(const struct cli_prediction_writer *writer,
                                           const struct sl_data_state *state, struct seqlstm_error *err);

/* Writes the header of a csv file of predictions. Without this call, the first record writes: record,value_1,… */
void cli_prediction_writer_begin(struct cli_prediction_writer *writer, const struct sl_data_state *state);

/* Writes one prediction. This is an sl_prediction_fn whose context is the writer. */
seqlstm_status cli_prediction_writer_add(void *writer, const struct sl_prediction *prediction,
                                         struct seqlstm_error *err);

/* Writes what is left (npy: everything) and flushes stdout. NUMERIC, after all that, if a value was not finite. */
seqlstm_status cli_prediction_writer_end(struct cli_prediction_writer *writer, struct seqlstm_error *err);

#endif
