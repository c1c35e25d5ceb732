/* SPDX-License-Identifier: Apache-2.0 */
/* Weights to and from other programs (docs/import-export.md). */
#ifndef SL_SESSION_WEIGHTS_EXCHANGE_H
#define SL_SESSION_WEIGHTS_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "interop/names.h"

struct sl_buf;
struct sl_session;

enum sl_weights_format {
    SL_WEIGHTS_AUTO,      /* import: guessed from the names in the file */
    SL_WEIGHTS_CANONICAL, /* safetensors with our names */
    SL_WEIGHTS_PYTORCH,   /* safetensors with PyTorch's */
    SL_WEIGHTS_KERAS,     /* safetensors with Keras's */
    SL_WEIGHTS_ONNX       /* the whole model; import reads only its weights */
};

/* The files that an export to `path` writes: 1, or 2 for an encoder and a decoder as ONNX: NAME.encoder.onnx and
 * NAME.decoder.onnx for NAME.onnx. Zeroed bufs are the caller's. */
int32_t sl_session_name_exports(const struct sl_session *session, enum sl_weights_format format, const char *path,
                                struct sl_buf out_paths[2]);

/* Makes the parameters of a trained session, if there are none yet, and loads the weights into them. Needs no backend.
 * Errors: as sl_session_require_trained and sl_session_load_weights. */
seqlstm_status sl_session_read_weights(struct sl_session *session, struct seqlstm_error *err);

/* Writes the weights of the run, or of its newest checkpoint, to `path`, atomically. Adds a line to `notes` for each
 * thing that the format cannot name. Needs no backend. Errors: as sl_names_export and sl_onnx_write. */
seqlstm_status sl_session_export(struct sl_session *session, enum sl_weights_format format, const char *path,
                                 struct sl_buf *notes, struct seqlstm_error *err);

struct sl_import_request {
    const char *path; /* a safetensors or ONNX file */
    enum sl_weights_format format;
    const struct sl_rename *renames;
    size_t rename_count;
};

/* Reads the training data (vocabulary, scaling, widths), fills the model with the file's weights and makes a run folder
 * of it, on which evaluate, predict, generate and export work. Nothing is made when the weights do not fit. Errors: as
 * sl_names_import and sl_onnx_read. */
seqlstm_status sl_session_import(struct sl_session *session, const struct sl_import_request *request,
                                 struct sl_buf *notes, struct seqlstm_error *err);

#endif
