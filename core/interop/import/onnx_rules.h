/* SPDX-License-Identifier: Apache-2.0 */
/* How lifting describes the outputs of a node: one rule for each kind of operator. */
#ifndef SL_INTEROP_ONNX_RULES_H
#define SL_INTEROP_ONNX_RULES_H

#include "interop/import/onnx_term.h"

/* A node and its inputs (NULL: absent) and outputs. */
struct sl_onnx_job {
    struct sl_onnx_lift *lift;
    const struct sl_onnx_node *node;
    const struct sl_onnx_value *const *inputs;
    const struct sl_onnx_constant *const *constants; /* of inputs that are constants */
    int32_t input_count;
    struct sl_onnx_value *outputs;
};

/* Each describes output 0 (or all outputs). False: it cannot; `reason` may be set. */
bool sl_onnx_lift_layout(const struct sl_onnx_job *job, const char **reason);
bool sl_onnx_lift_math(const struct sl_onnx_job *job, const char **reason);
bool sl_onnx_lift_recurrent(const struct sl_onnx_job *job, const char **reason);
bool sl_onnx_lift_pool(const struct sl_onnx_job *job, const char **reason);

#endif
