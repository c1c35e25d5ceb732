/* SPDX-License-Identifier: Apache-2.0 */
/* How one parameter is stored in another framework's tensors. */
#ifndef SL_INTEROP_NAMES_TENSOR_H
#define SL_INTEROP_NAMES_TENSOR_H

#include "interop/names.h"

enum { SL_NAME_BYTES = 512, SL_NAME_BLOCKS = 6, SL_NAME_TENSORS = 2 };

enum sl_name_role {
    SL_NAME_W_X,
    SL_NAME_W_H,
    SL_NAME_BIAS, /* of a recurrent layer */
    SL_NAME_PROJECTION,
    SL_NAME_W, /* of a dense layer or an embedding */
    SL_NAME_DENSE_BIAS,
    SL_NAME_NORM_GAIN, /* of a layer_norm layer */
    SL_NAME_NORM_BIAS,
    SL_NAME_OTHER /* peepholes, norms inside a cell: no framework has a name for them */
};

/* A parameter of the graph and the parts of its name. */
struct sl_name_param {
    const struct sl_param *param;
    const struct sl_layer *layer;
    const char *prefix; /* what the other framework calls the layer */
    const char *suffix; /* of the canonical name, behind the layer's */
    enum sl_name_role role;
    int64_t l; /* sub-layer */
    bool is_backward;
};

/* A tensor of the other framework. It is a column of blocks, each of which is one block of rows of the parameter.
 * Export writes the blocks marked `home` and zeros in the others; import adds all of them up. */
struct sl_name_tensor {
    char name[SL_NAME_BYTES];
    int32_t rank;
    int64_t shape[2];
    bool is_transposed; /* stored as [columns, rows] */
    int32_t block_count;
    struct {
        int32_t of; /* block of the parameter */
        bool is_home;
    } blocks[SL_NAME_BLOCKS];
};

/* A tensor that is the whole parameter in one block. */
void sl_name_tensor_set_whole(struct sl_name_tensor *tensor, const struct sl_name_param *param, bool is_transposed);

/* `count` blocks of `height` rows in the order of `of`, all at home. */
void sl_name_tensor_set_blocks(struct sl_name_tensor *tensor, const struct sl_name_param *param, const int32_t *of,
                               int32_t count, bool is_transposed);

#endif
