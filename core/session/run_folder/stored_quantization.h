/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers of a run are in int8: quantization.json. */
#ifndef SL_SESSION_RUN_FOLDER_STORED_QUANTIZATION_H
#define SL_SESSION_RUN_FOLDER_STORED_QUANTIZATION_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "train/metrics/metric.h"

struct sl_session;

/* What int8 did to a layer. */
struct sl_quantized_report {
    const char *name; /* of the layer's operation; borrowed */
    double low, high; /* range of its inputs and outputs over the validation data */
    float scale, shift;
    bool accepted;                 /* false: it stays as it was */
    const char *backend, *variant; /* that ran it in the second evaluation */
    double before_ns, after_ns;    /* time of its calls in both evaluations */
    const char *reason;            /* why it was not accepted; "" */
};

struct sl_quantize_result {
    struct sl_metric_values before, after; /* of the validation data */
    struct sl_quantized_report *layers;    /* freed with free() */
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
