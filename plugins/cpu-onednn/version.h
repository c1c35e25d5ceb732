/* SPDX-License-Identifier: Apache-2.0 */
/* The differences between oneDNN 2 (operation descriptors, memory descriptors by value) and oneDNN 3 (neither).
 * version.c hides them; the rest of the plugin is the same source for both. The header found at build time decides
 * which one is used; library.c opens the library of the same major version. */
#ifndef ODN_VERSION_H
#define ODN_VERSION_H

#include <stdbool.h>
#include <stdint.h>

#include <dnnl.h>

/* A borrowed memory descriptor; NULL: none. */
#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t odn_md;
#else
typedef const dnnl_memory_desc_t *odn_md;
#endif

/* A memory descriptor of our own. Zeroed: none. */
struct odn_layout {
    dnnl_memory_desc_t value;
#if DNNL_VERSION_MAJOR < 3
    bool made;
#endif
};

/* NULL strides: the library chooses (format `any`). Returns false if the library refuses or memory runs out. */
bool odn_layout_init(struct odn_layout *layout, int n, const int64_t *dims, dnnl_data_type_t type,
                     const int64_t *strides);
bool odn_layout_copy(struct odn_layout *layout, odn_md from);
void odn_layout_deinit(struct odn_layout *layout);
odn_md odn_layout_get(const struct odn_layout *layout);

/* Is element (i, j, ...) at the sum of index times stride? If so, writes the strides. */
bool odn_md_plain(odn_md md, int64_t strides[DNNL_MAX_NDIMS]);
/* Is the layout fully described (blocked, perhaps with inner blocks), rather than packed for one shape of a product? */
bool odn_md_open(odn_md md);

/* ---- recurrent --------------------------------------------------------------------------------- */

enum odn_cell { ODN_LSTM, ODN_GRU, ODN_GRU_RESET_AFTER, ODN_RNN };

enum {
    ODN_X,
    ODN_H_IN,
    ODN_C_IN,
    ODN_W_X,
    ODN_W_H,
    ODN_PEEPHOLE,
    ODN_PROJECTION,
    ODN_BIAS,
    ODN_Y,
    ODN_H_OUT,
    ODN_C_OUT,
    ODN_RECURRENT_COUNT
};

struct odn_recurrent_spec {
    enum odn_cell cell;
    dnnl_prop_kind_t pass; /* forward_inference, forward_training, backward */
    dnnl_rnn_direction_t direction;
    dnnl_alg_kind_t activation; /* RNN */
    float alpha;                /* RNN */
    odn_md values[ODN_RECURRENT_COUNT];
    odn_md grads[ODN_RECURRENT_COUNT]; /* backward */
    const_dnnl_primitive_attr_t attr;
    const_dnnl_primitive_desc_t forward; /* backward: that of the forward pass */
};
dnnl_status_t odn_recurrent_describe(dnnl_engine_t engine, const struct odn_recurrent_spec *spec,
                                     dnnl_primitive_desc_t *out_pd);

/* ---- dense and layer norm ------------------------------------------------------------------------ */

/* `pass`: forward_inference, forward_training, backward_data (b NULL) or backward_weights. */
struct odn_dense_spec {
    dnnl_prop_kind_t pass;
    odn_md x, w, b, y;
    const_dnnl_primitive_attr_t attr;
    const_dnnl_primitive_desc_t forward;
};
dnnl_status_t odn_dense_describe(dnnl_engine_t engine, const struct odn_dense_spec *spec,
                                 dnnl_primitive_desc_t *out_pd);

/* `pass`: forward_inference, forward_training or backward. Scale and shift are separate tensors. */
struct odn_norm_spec {
    dnnl_prop_kind_t pass;
    odn_md x, statistics;
    float epsilon;
    bool scale, shift;
    const_dnnl_primitive_attr_t attr;
    const_dnnl_primitive_desc_t forward;
};
dnnl_status_t odn_norm_describe(dnnl_engine_t engine, const struct odn_norm_spec *spec, dnnl_primitive_desc_t *out_pd);

/* ---- the functions that only one version has (library.h) ---------------------------------------------- */

#if DNNL_VERSION_MAJOR >= 3
#define ODN_VERSION_FUNCTIONS(X)                                                                                       \
    X(memory_desc_create_with_strides)                                                                                 \
    X(memory_desc_create_with_tag)                                                                                     \
    X(memory_desc_destroy)                                                                                             \
    X(memory_desc_clone)                                                                                               \
    X(memory_desc_query)                                                                                               \
    X(lstm_forward_primitive_desc_create)                                                                              \
    X(lstm_backward_primitive_desc_create)                                                                             \
    X(gru_forward_primitive_desc_create)                                                                               \
    X(gru_backward_primitive_desc_create)                                                                              \
    X(lbr_gru_forward_primitive_desc_create)                                                                           \
    X(lbr_gru_backward_primitive_desc_create)                                                                          \
    X(vanilla_rnn_forward_primitive_desc_create)                                                                       \
    X(vanilla_rnn_backward_primitive_desc_create)                                                                      \
    X(inner_product_forward_primitive_desc_create)                                                                     \
    X(inner_product_backward_data_primitive_desc_create)                                                               \
    X(inner_product_backward_weights_primitive_desc_create)                                                            \
    X(layer_normalization_forward_primitive_desc_create)                                                               \
    X(layer_normalization_backward_primitive_desc_create)
#else
#define ODN_VERSION_FUNCTIONS(X)                                                                                       \
    X(memory_desc_init_by_strides)                                                                                     \
    X(memory_desc_init_by_tag)                                                                                         \
    X(primitive_desc_create)                                                                                           \
    X(lstm_forward_desc_init_v3)                                                                                       \
    X(lstm_backward_desc_init_v3)                                                                                      \
    X(gru_forward_desc_init)                                                                                           \
    X(gru_backward_desc_init)                                                                                          \
    X(lbr_gru_forward_desc_init)                                                                                       \
    X(lbr_gru_backward_desc_init)                                                                                      \
    X(vanilla_rnn_forward_desc_init)                                                                                   \
    X(vanilla_rnn_backward_desc_init)                                                                                  \
    X(inner_product_forward_desc_init)                                                                                 \
    X(inner_product_backward_data_desc_init)                                                                           \
    X(inner_product_backward_weights_desc_init)                                                                        \
    X(layer_normalization_forward_desc_init)                                                                           \
    X(layer_normalization_backward_desc_init)
#endif

#endif
