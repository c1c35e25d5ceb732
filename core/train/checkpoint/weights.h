/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in files: a safetensors file under canonical names ("lstm_1.l0.forward.w_x"), float32, matrices
 * as [rows, columns], vectors with one dimension. final.safetensors of a run is such a file. */
#ifndef SL_TRAIN_CHECKPOINT_WEIGHTS_H
#define SL_TRAIN_CHECKPOINT_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "exec/params/params.h"
#include "interop/safetensors.h"

/* Writes the values with a checksum and the given texts (NULL, 0: none), besides "format": "seqlstm.weights",
 * "version": "1". Atomic. */
seqlstm_status sl_weights_save(const struct sl_params *params, const char *path,
                               const struct sl_safetensors_text *texts, int32_t text_count, struct seqlstm_error *err);

enum {
    SL_WEIGHTS_ALLOW_MISSING = 1, /* parameters without an entry keep their values (init_from) */
    SL_WEIGHTS_ALLOW_EXTRA = 2    /* entries without a parameter are skipped */
};

struct sl_weights_report {
    int32_t loaded, missing, extra;
};

/* Reads weights from a weights file or a checkpoint (the averaged ones if averaging is active; its other tensors are
 * never extra), and touches params. Verifies the checksum if there is one. Changes nothing on failure. Errors: as
 * sl_safetensors_open; INVALID_CONFIG when a shape differs, or for what the flags do not allow: the message names the
 * parameter and both shapes, `err->where` the parameter. `out_report` may be NULL. */
seqlstm_status sl_weights_load(struct sl_params *params, const char *path, unsigned flags,
                               struct sl_weights_report *out_report, struct seqlstm_error *err);

#endif
