/* SPDX-License-Identifier: Apache-2.0 */
/* What ONNX calls the parts of a cell: the order of its gates and the names of its activations, for writing and
 * reading. */
#ifndef SL_INTEROP_ONNX_CELL_H
#define SL_INTEROP_ONNX_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

/* Block k of ONNX's W and R is block weight[k] of ours. B is [Wb, Rb]: on the way out its block k holds ours
 * bias_home[k], or zeros where that is -1; on the way in, where both halves may be filled, block k is added to ours
 * bias[k]. Peepholes: i o f here, i f o with us. */
struct sl_onnx_cell {
    const char *op;
    int32_t gates;
    int32_t weight[4];
    int32_t bias_home[8];
    int32_t bias[8];
    int32_t first_place; /* ONNX's f (g, h) are our SEQLSTM_PLACE_… from this one to the last */
    int32_t last_place;
};

const struct sl_onnx_cell *sl_onnx_cell_get(const struct seqlstm_recurrent_desc *desc);

extern const int32_t sl_onnx_peephole_order[3];

struct sl_onnx_activation {
    const char *name; /* NULL: no operator takes it */
    bool has_alpha;
    bool has_beta;
    float alpha; /* ONNX's defaults */
    float beta;
};

/* By SEQLSTM_ACT_…; our "none" is Affine with 1 and 0. */
const struct sl_onnx_activation *sl_onnx_activation_get(uint32_t kind);

/* The activation of that name with ONNX's defaults; false: unknown. Case does not count, as in onnxruntime. */
bool sl_onnx_activation_find(const char *name, struct seqlstm_activation *out_activation);

#endif
