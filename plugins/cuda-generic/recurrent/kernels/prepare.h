/* SPDX-License-Identifier: Apache-2.0 */
/* What a recurrent call does at its beginning, in one launch. */
#ifndef CG_PREPARE_H
#define CG_PREPARE_H

#include "cuda-generic/recurrent/kernels/layer.h"
#include "cuda-generic/rows/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Masks that are drawn once per sequence: of several layers and directions, whose tables follow each other. */
struct cg_mask_tables {
    float *to; /* [count, stride]: [sequences, width] each */
    int64_t count, directions, stride, width;
    uint64_t stream; /* of the first */
    float rate;
    int32_t reserved0;
};

enum { CG_TABLES_H, CG_TABLES_DY, CG_TABLES_COUNT }; /* mask_h and dy_mask of the layers */

struct cg_prepared {
    struct cg_drop drops[2];                       /* masked inputs of the first layer's directions; no rows: none */
    struct cg_mask_tables tables[CG_TABLES_COUNT]; /* count 0: none */
};

/* cg_layer_store, and what the struct says; the axis is that of the layers. */
int cg_layer_prepare(void *stream, const struct cg_layer *layers, int64_t count, const struct cg_live *live,
                     const struct cg_prepared *prepared, struct cg_layer *to);

#ifdef __cplusplus
}
#endif

#endif
