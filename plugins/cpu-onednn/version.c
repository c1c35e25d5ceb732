/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of version.h, each for oneDNN 2 and for oneDNN 3. */
#include "cpu-onednn/version.h"

#include <string.h>

#include "cpu-onednn/library.h"

/* The arguments that all cells have in common, in the library's order. */
#define LSTM_ARGUMENTS(m)                                                                                              \
    m[ODN_X], m[ODN_H_IN], m[ODN_C_IN], m[ODN_W_X], m[ODN_W_H], m[ODN_PEEPHOLE], m[ODN_PROJECTION], m[ODN_BIAS],       \
        m[ODN_Y], m[ODN_H_OUT], m[ODN_C_OUT]
#define CELL_ARGUMENTS(m) m[ODN_X], m[ODN_H_IN], m[ODN_W_X], m[ODN_W_H], m[ODN_BIAS], m[ODN_Y], m[ODN_H_OUT]

#if DNNL_VERSION_MAJOR >= 3

bool odn_layout_init(struct odn_layout *layout, int n, const int64_t *dims, dnnl_data_type_t type,
                     const int64_t *strides)
{
    dnnl_dims_t full = {0}, steps = {0};
    memcpy(full, dims, (size_t)n * sizeof *dims);
    if (strides == NULL)
        return odn.memory_desc_create_with_tag(&layout->value, n, full, type, dnnl_format_tag_any) == dnnl_success;
    memcpy(steps, strides, (size_t)n * sizeof *strides);
    return odn.memory_desc_create_with_strides(&layout->value, n, full, type, steps) == dnnl_success;
}

bool odn_layout_copy(struct odn_layout *layout, odn_md from)
{
    return odn.memory_desc_clone(&layout->value, from) == dnnl_success;
}

void odn_layout_deinit(struct odn_layout *layout)
{
    if (layout->value != NULL)
        odn.memory_desc_destroy(layout->value);
    layout->value = NULL;
}

odn_md odn_layout_get(const struct odn_layout *layout)
{
    return layout->value;
}

bool odn_md_open(odn_md md)
{
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    return md != NULL && odn.memory_desc_query(md, dnnl_query_format_kind, &kind) == dnnl_success &&
           kind == dnnl_blocked;
}

bool odn_md_plain(odn_md md, int64_t strides[DNNL_MAX_NDIMS])
{
    int blocks = 0, n = 0;
    dnnl_dims_t *values = NULL;
    if (!odn_md_open(md) || odn.memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks) != dnnl_success ||
        odn.memory_desc_query(md, dnnl_query_ndims_s32, &n) != dnnl_success || blocks != 0 ||
        odn.memory_desc_query(md, dnnl_query_strides, &values) != dnnl_success)
        return false;
    memcpy(strides, *values, (size_t)n * sizeof *strides);
    return true;
}

dnnl_status_t odn_recurrent_describe(dnnl_engine_t e, const struct odn_recurrent_spec *s, dnnl_primitive_desc_t *out_pd)
{
    const odn_md *v = s->values, *g = s->grads;
    const bool back = s->pass == dnnl_backward;
    switch (s->cell) {
    case ODN_LSTM:
        if (back)
            return odn.lstm_backward_primitive_desc_create(out_pd, e, s->pass, s->direction, LSTM_ARGUMENTS(v),
                                                           LSTM_ARGUMENTS(g), 0, s->forward, s->attr);
        return odn.lstm_forward_primitive_desc_create(out_pd, e, s->pass, s->direction, LSTM_ARGUMENTS(v), 0, s->attr);
    case ODN_GRU:
        if (back)
            return odn.gru_backward_primitive_desc_create(out_pd, e, s->pass, s->direction, CELL_ARGUMENTS(v),
                                                          CELL_ARGUMENTS(g), 0, s->forward, s->attr);
        return odn.gru_forward_primitive_desc_create(out_pd, e, s->pass, s->direction, CELL_ARGUMENTS(v), 0, s->attr);
    case ODN_GRU_RESET_AFTER:
        if (back)
            return odn.lbr_gru_backward_primitive_desc_create(out_pd, e, s->pass, s->direction, CELL_ARGUMENTS(v),
                                                              CELL_ARGUMENTS(g), 0, s->forward, s->attr);
        return odn.lbr_gru_forward_primitive_desc_create(out_pd, e, s->pass, s->direction, CELL_ARGUMENTS(v), 0,
                                                         s->attr);
    default:
        if (back)
            return odn.vanilla_rnn_backward_primitive_desc_create(out_pd, e, s->pass, s->activation, s->direction,
                                                                  CELL_ARGUMENTS(v), CELL_ARGUMENTS(g), 0, s->alpha, 0,
                                                                  s->forward, s->attr);
        return odn.vanilla_rnn_forward_primitive_desc_create(out_pd, e, s->pass, s->activation, s->direction,
                                                             CELL_ARGUMENTS(v), 0, s->alpha, 0, s->attr);
    }
}

dnnl_status_t odn_dense_describe(dnnl_engine_t e, const struct odn_dense_spec *s, dnnl_primitive_desc_t *out_pd)
{
    if (s->pass == dnnl_backward_data)
        return odn.inner_product_backward_data_primitive_desc_create(out_pd, e, s->x, s->w, s->y, s->forward, s->attr);
    if (s->pass == dnnl_backward_weights)
        return odn.inner_product_backward_weights_primitive_desc_create(out_pd, e, s->x, s->w, s->b, s->y, s->forward,
                                                                        s->attr);
    return odn.inner_product_forward_primitive_desc_create(out_pd, e, s->pass, s->x, s->w, s->b, s->y, s->attr);
}

dnnl_status_t odn_norm_describe(dnnl_engine_t e, const struct odn_norm_spec *s, dnnl_primitive_desc_t *out_pd)
{
    const unsigned flags = (s->scale ? dnnl_use_scale : 0) | (s->shift ? dnnl_use_shift : 0);
    if (s->pass == dnnl_backward)
        return odn.layer_normalization_backward_primitive_desc_create(
            out_pd, e, s->pass, s->x, s->x, s->x, s->statistics, s->epsilon, flags, s->forward, s->attr);
    return odn.layer_normalization_forward_primitive_desc_create(out_pd, e, s->pass, s->x, s->x, s->statistics,
                                                                 s->epsilon, flags, s->attr);
}

#else

bool odn_layout_init(struct odn_layout *layout, int n, const int64_t *dims, dnnl_data_type_t type,
                     const int64_t *strides)
{
    dnnl_dims_t full = {0}, steps = {0};
    memcpy(full, dims, (size_t)n * sizeof *dims);
    if (strides != NULL)
        memcpy(steps, strides, (size_t)n * sizeof *strides);
    dnnl_status_t status = strides != NULL
                               ? odn.memory_desc_init_by_strides(&layout->value, n, full, type, steps)
                               : odn.memory_desc_init_by_tag(&layout->value, n, full, type, dnnl_format_tag_any);
    layout->made = status == dnnl_success;
    return layout->made;
}

bool odn_layout_copy(struct odn_layout *layout, odn_md from)
{
    layout->value = *from;
    layout->made = true;
    return true;
}

void odn_layout_deinit(struct odn_layout *layout)
{
    layout->made = false;
}

odn_md odn_layout_get(const struct odn_layout *layout)
{
    return layout->made ? &layout->value : NULL;
}

bool odn_md_open(odn_md md)
{
    return md != NULL && md->format_kind == dnnl_blocked;
}

bool odn_md_plain(odn_md md, int64_t strides[DNNL_MAX_NDIMS])
{
    if (!odn_md_open(md) || md->format_desc.blocking.inner_nblks != 0)
        return false;
    memcpy(strides, md->format_desc.blocking.strides, (size_t)md->ndims * sizeof *strides);
    return true;
}

dnnl_status_t odn_recurrent_describe(dnnl_engine_t engine, const struct odn_recurrent_spec *s,
                                     dnnl_primitive_desc_t *out_pd)
{
    dnnl_rnn_desc_t d;
    dnnl_status_t status;
    const odn_md *v = s->values, *g = s->grads;
    const bool back = s->pass == dnnl_backward;
    switch (s->cell) {
    case ODN_LSTM:
        status =
            back ? odn.lstm_backward_desc_init_v3(&d, s->pass, s->direction, LSTM_ARGUMENTS(v), LSTM_ARGUMENTS(g), 0)
                 : odn.lstm_forward_desc_init_v3(&d, s->pass, s->direction, LSTM_ARGUMENTS(v), 0);
        break;
    case ODN_GRU:
        status = back ? odn.gru_backward_desc_init(&d, s->pass, s->direction, CELL_ARGUMENTS(v), CELL_ARGUMENTS(g), 0)
                      : odn.gru_forward_desc_init(&d, s->pass, s->direction, CELL_ARGUMENTS(v), 0);
        break;
    case ODN_GRU_RESET_AFTER:
        status =
            back ? odn.lbr_gru_backward_desc_init(&d, s->pass, s->direction, CELL_ARGUMENTS(v), CELL_ARGUMENTS(g), 0)
                 : odn.lbr_gru_forward_desc_init(&d, s->pass, s->direction, CELL_ARGUMENTS(v), 0);
        break;
    default:
        status = back ? odn.vanilla_rnn_backward_desc_init(&d, s->pass, s->activation, s->direction, CELL_ARGUMENTS(v),
                                                           CELL_ARGUMENTS(g), 0, s->alpha, 0)
                      : odn.vanilla_rnn_forward_desc_init(&d, s->pass, s->activation, s->direction, CELL_ARGUMENTS(v),
                                                          0, s->alpha, 0);
    }
    if (status != dnnl_success)
        return status;
    return odn.primitive_desc_create(out_pd, &d, s->attr, engine, s->forward);
}

dnnl_status_t odn_dense_describe(dnnl_engine_t engine, const struct odn_dense_spec *s, dnnl_primitive_desc_t *out_pd)
{
    dnnl_inner_product_desc_t d;
    dnnl_status_t status;
    if (s->pass == dnnl_backward_data)
        status = odn.inner_product_backward_data_desc_init(&d, s->x, s->w, s->y);
    else if (s->pass == dnnl_backward_weights)
        status = odn.inner_product_backward_weights_desc_init(&d, s->x, s->w, s->b, s->y);
    else
        status = odn.inner_product_forward_desc_init(&d, s->pass, s->x, s->w, s->b, s->y);
    if (status != dnnl_success)
        return status;
    return odn.primitive_desc_create(out_pd, &d, s->attr, engine, s->forward);
}

dnnl_status_t odn_norm_describe(dnnl_engine_t engine, const struct odn_norm_spec *s, dnnl_primitive_desc_t *out_pd)
{
    dnnl_layer_normalization_desc_t d;
    const unsigned flags = (s->scale ? (unsigned)dnnl_use_scale : 0u) | (s->shift ? (unsigned)dnnl_use_shift : 0u);
    dnnl_status_t status =
        s->pass == dnnl_backward
            ? odn.layer_normalization_backward_desc_init(&d, s->pass, s->x, s->x, s->statistics, s->epsilon, flags)
            : odn.layer_normalization_forward_desc_init(&d, s->pass, s->x, s->statistics, s->epsilon, flags);
    if (status != dnnl_success)
        return status;
    return odn.primitive_desc_create(out_pd, &d, s->attr, engine, s->forward);
}

#endif
