/* SPDX-License-Identifier: Apache-2.0 */
/* Where batch, time and features lie in the dimensions of a value of an ONNX graph. */
#ifndef SL_INTEROP_ONNX_DIMS_H
#define SL_INTEROP_ONNX_DIMS_H

#include "interop/import/onnx_constant.h"

enum { SL_ONNX_ATOMS_MAX = 6 };

/* A part of a dimension. Parts of size 1 are left out. */
struct sl_onnx_atom {
    enum { SL_ONNX_ATOM_BATCH, SL_ONNX_ATOM_TIME, SL_ONNX_ATOM_FEATURE } kind;
    int64_t size;
};

struct sl_onnx_dims {
    int32_t rank;
    struct {
        int32_t count;
        struct sl_onnx_atom atoms[SL_ONNX_ATOMS_MAX];
    } at[SL_ONNX_RANK_MAX];
};

int64_t sl_onnx_dims_get_size(const struct sl_onnx_dims *dims, int32_t d);
bool sl_onnx_dims_are_equal(const struct sl_onnx_dims *a, const struct sl_onnx_dims *b);
/* Is dimension d exactly that part (or of size 1, where the part has size 1)? */
bool sl_onnx_dims_is(const struct sl_onnx_dims *dims, int32_t d, int kind, int64_t size);
/* Is it made of features alone (or of size 1)? */
bool sl_onnx_dims_is_features(const struct sl_onnx_dims *dims, int32_t d);
void sl_onnx_dims_remove(struct sl_onnx_dims *dims, int32_t d);
void sl_onnx_dims_set(struct sl_onnx_dims *dims, int32_t d, int kind, int64_t size);
/* Number of features before, in and after dimension d. */
void sl_onnx_dims_split(const struct sl_onnx_dims *dims, int32_t d, int64_t *outer, int64_t *here, int64_t *inner);
void sl_onnx_dims_get_shape(const struct sl_onnx_dims *dims, int64_t *shape);

#endif
