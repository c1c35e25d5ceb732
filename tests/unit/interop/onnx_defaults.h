/* SPDX-License-Identifier: Apache-2.0 */
/* What ONNX says of attributes that a node does not have: the lines of a file (support/onnx_text.h) with all of them.
 */
#ifndef SL_TESTS_UNIT_INTEROP_ONNX_DEFAULTS_H
#define SL_TESTS_UNIT_INTEROP_ONNX_DEFAULTS_H

#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"

static const struct onnx_default {
    const char *op, *attribute;
} onnx_defaults[] = {
    {"LSTM", "direction=s:forward"},
    {"LSTM", "layout=i:0"},
    {"LSTM", "input_forget=i:0"},
    {"LSTM", "activations=ss:Sigmoid,Tanh,Tanh"},
    {"GRU", "direction=s:forward"},
    {"GRU", "layout=i:0"},
    {"GRU", "linear_before_reset=i:0"},
    {"GRU", "activations=ss:Sigmoid,Tanh"},
    {"RNN", "direction=s:forward"},
    {"RNN", "layout=i:0"},
    {"RNN", "activations=ss:Tanh"},
    {"LeakyRelu", "alpha=f:0.01"},
    {"ThresholdedRelu", "alpha=f:1"},
    {"Elu", "alpha=f:1"},
    {"HardSigmoid", "alpha=f:0.2"},
    {"HardSigmoid", "beta=f:0.5"},
    {"Softmax", "axis=i:-1"},
    {"LogSoftmax", "axis=i:-1"},
    {"Gemm", "alpha=f:1"},
    {"Gemm", "beta=f:1"},
    {"Gemm", "transA=i:0"},
    {"Gemm", "transB=i:0"},
    {"LayerNormalization", "axis=i:-1"},
    {"LayerNormalization", "epsilon=f:1e-5"},
    {"LayerNormalization", "stash_type=i:1"},
    {"Gather", "axis=i:0"},
    {"GatherElements", "axis=i:0"},
    {"Split", "axis=i:0"},
    {"Flatten", "axis=i:1"},
    {"Shape", "start=i:0"},
    {"Reshape", "allowzero=i:0"},
    {"ReduceSum", "keepdims=i:1"},
    {"ReduceSum", "noop_with_empty_axes=i:0"},
    {"ReduceMean", "keepdims=i:1"},
    {"ReduceMax", "keepdims=i:1"},
    {"ReduceProd", "keepdims=i:1"},
};

static inline void onnx_append_defaults(struct sl_buf *out, const char *line, size_t bytes, bool is_old)
{
    const bool both = memmem(line, bytes, "bidirectional", strlen("bidirectional")) != NULL;
    for (size_t k = 0; k < sizeof onnx_defaults / sizeof *onnx_defaults; k++) {
        const char *op = onnx_defaults[k].op, *attribute = onnx_defaults[k].attribute;
        const size_t key_bytes = strcspn(attribute, "=") + 1;
        char key[40];
        snprintf(key, sizeof key, " %.*s", (int)key_bytes, attribute);
        if (bytes <= strlen(op) || strncmp(line, op, strlen(op)) != 0 || line[strlen(op)] != ' ' ||
            memmem(line, bytes, key, strlen(key)) != NULL)
            continue;
        sl_buf_printf(out, " %s", is_old && strcmp(attribute, "axis=i:-1") == 0 ? "axis=i:1" : attribute);
        if (both && strncmp(attribute, "activations", strlen("activations")) == 0) /* those of each direction */
            sl_buf_printf(out, ",%s", strchr(attribute, ':') + 1);
    }
}

/* `lines` again, with what its nodes leave out. */
static inline void onnx_spell_defaults(struct sl_buf *out, const char *lines)
{
    const char *version = strstr(lines, "opset ");
    const bool is_old = version && atoi(version + strlen("opset ")) < 13;
    for (const char *line = lines; *line;) {
        const size_t bytes = strcspn(line, "\n");
        sl_buf_append(out, line, bytes);
        onnx_append_defaults(out, line, bytes, is_old);
        sl_buf_append_char(out, '\n');
        line += bytes + (line[bytes] != '\0');
    }
}

#endif
