/* SPDX-License-Identifier: Apache-2.0 */
/* What a run holds: its metrics, plan, configuration and weights. Part of the C library (seqlstm.h, which includes this
 * header). Sessions and threads are as described there: one thread at a time for each session.
 */
#ifndef SEQLSTM_RUN_H
#define SEQLSTM_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "export.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct seqlstm_session;

/* One named number. */
struct seqlstm_metric {
    const char *name; /* "loss", "perplexity" */
    double value;
};

/* Receives a text, or the next part of it, without a NUL. Any status but OK ends the call with that status. */
typedef seqlstm_status (*seqlstm_text_fn)(void *context, const char *text, size_t bytes);

/* ---- metrics -------------------------------------------------------------------------------------------------- */

/* The metrics of one moment of the training. Valid during the call that passes it on. */
struct seqlstm_metric_row {
    uint32_t struct_size;
    int32_t metric_count;
    int64_t update;       /* after so many updates of the parameters */
    double epoch;         /* and so many passes over the training data */
    double seconds;       /* of training so far */
    const char *split;    /* "train", "valid" or "test" */
    const char *interval; /* what they were averaged over: "report" (since the last one), "epoch" or "validation" */
    const struct seqlstm_metric *metrics; /* NaN: it was not a finite number */
};

/* Any status but OK ends the call with that status. */
typedef seqlstm_status (*seqlstm_metric_row_fn)(void *context, const struct seqlstm_metric_row *row);

/* Passes on all metrics that the training of the run has written, in order; none before the training. */
SEQLSTM_API seqlstm_status seqlstm_read_metrics(struct seqlstm_session *session, seqlstm_metric_row_fn write,
                                                void *context, struct seqlstm_error *err);

/* ---- plan and configuration ----------------------------------------------------------------------------------- */

/* Writes as JSON which backend computes which layer, and why: what the run has stored, or what is planned for a model
 * that is not trained yet (this reads the training data). In one part. */
SEQLSTM_API seqlstm_status seqlstm_write_plan(struct seqlstm_session *session, seqlstm_text_fn write, void *context,
                                              struct seqlstm_error *err);

/* Writes the complete model file as YAML, with all defaults. In one part. */
SEQLSTM_API seqlstm_status seqlstm_write_config(struct seqlstm_session *session, seqlstm_text_fn write, void *context,
                                                struct seqlstm_error *err);

/* ---- weights -------------------------------------------------------------------------------------------------- */

/* A parameter, float32 [rows, columns] in row-major order; vectors have one column. */
struct seqlstm_weight {
    uint32_t struct_size;
    uint32_t is_trainable;
    const char *name;  /* "lstm_1.l0.forward.w_x" */
    const char *layer; /* "lstm_1" */
    int64_t rows;
    int64_t columns;
    const float *values; /* what predictions compute with: read only */
};

/* Loads the weights of a trained session and sets *out_count to the number of its parameters. NOT_FOUND: it has none
 * yet. */
SEQLSTM_API seqlstm_status seqlstm_load_weights(struct seqlstm_session *session, int64_t *out_count,
                                                struct seqlstm_error *err);

/* Fills the members of *out_weight that its struct_size covers, after seqlstm_load_weights. Owned by the session;
 * `values` change when it trains. INVALID_ARGUMENT: `index` is not below the count. */
SEQLSTM_API seqlstm_status seqlstm_get_weight(struct seqlstm_session *session, int64_t index,
                                              struct seqlstm_weight *out_weight, struct seqlstm_error *err);

/* Formats of weights: "safetensors", with the names of seqlstm; "pytorch-names" and "keras-names", with those of these
 * programs; "onnx", the whole model; import only: "auto", by what the file contains.
 *
 * Writes the weights of a run. An encoder with its decoder becomes two ONNX files. What the format cannot name is
 * logged. INVALID_ARGUMENT: no such format. UNSUPPORTED: ONNX lacks an option of the model. */
SEQLSTM_API seqlstm_status seqlstm_export(struct seqlstm_session *session, const char *format, const char *path,
                                          struct seqlstm_error *err);

/* Makes a run folder with the weights of a file, for a session of seqlstm_open_model or seqlstm_open_text. Reads the
 * training data for their vocabulary, scaling and widths. The session is then as after training. INVALID_CONFIG: the
 * weights do not fit the model, and nothing was made. */
SEQLSTM_API seqlstm_status seqlstm_import(struct seqlstm_session *session, const char *format, const char *path,
                                          struct seqlstm_error *err);

#ifdef __cplusplus
}
#endif

#endif
