/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers of a run are in int8, or in another precision than the model's: quantization.json. */
#ifndef SL_SESSION_RUN_FOLDER_STORED_QUANTIZATION_H
#define SL_SESSION_RUN_FOLDER_STORED_QUANTIZATION_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "train/metrics/metric.h"

struct sl_session;

/* What quantization did to a layer. */
struct sl_quantized_report {
    const char *name;  /* of the layer's operation; borrowed */
    uint32_t dtype;    /* SEQLSTM_DTYPE_…: int8, bfloat16 or tf32 */
    const char *cause; /* why it is not in int8; "" */
    double low, high;  /* int8: the range in which its inputs and outputs are represented */
    float scale, shift;
    bool accepted;                 /* false: it stays as it was */
    const char *backend, *variant; /* that ran it in the second evaluation */
    double before_ns, after_ns;    /* time of its calls in evaluations of the main split */
    const char *reason;            /* why it was not accepted; "" */
};

struct sl_clipped {
    int64_t clipped, values; /* of the inputs and outputs of all layers in int8 */
};

struct sl_quantized_split {
    bool is_measured;
    struct sl_metric_values before, after; /* `after` is empty if int8 was not measured on the split */
    double loss;                           /* by how much the judged metric is worse, as a share; below 0: better */
    struct sl_clipped clipped;
};

struct sl_quantize_result {
    enum sl_split main; /* by which the ranges were chosen */
    struct sl_quantized_split splits[SL_SPLIT_COUNT];
    const char *metric; /* that is judged */
    bool is_higher_better;
    bool is_too_bad;                    /* it is worse than the bound on a split */
    bool is_written;                    /* quantization.json is */
    struct sl_quantized_report *layers; /* freed with free() */
    int32_t count;
};

/* Reads quantization.json of the run folder, if there is one. CORRUPT_DATA, NO_MEMORY. */
seqlstm_status sl_stored_quantization_read(struct sl_session *session, struct seqlstm_error *err);
seqlstm_status sl_stored_quantization_write(struct sl_session *session, const struct sl_quantize_result *result,
                                            struct seqlstm_error *err);
/* INVALID_CONFIG when int8 was calibrated for other weights than those that the session has loaded. */
seqlstm_status sl_stored_quantization_check(const struct sl_session *session, struct seqlstm_error *err);
/* A hash of the weights that the session has loaded. */
uint64_t sl_session_hash_weights(const struct sl_session *session);
/* NULL when the run has none. */
const struct sl_quantization *sl_session_find_quantization(const struct sl_session *session);

#endif
