/* SPDX-License-Identifier: Apache-2.0 */
/* What a recurrent call does at its beginning, in one launch. */
#ifndef CG_PREPARE_H
#define CG_PREPARE_H

#include "cuda-generic/recurrent/kernels/layer.h"
#include "cuda-generic/rows/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* cg_layer_store, and the masked input of the first layer; the axis is that of the layers. */
int cg_layer_prepare(void *stream, const struct cg_layer *layers, int64_t count, const struct cg_live *live,
                     const struct cg_drop *drop, struct cg_layer *to);

#ifdef __cplusplus
}
#endif

#endif
