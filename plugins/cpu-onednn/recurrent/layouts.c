/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the layouts of weights and of their gradients, for all rectangles of a batch. */
#include "cpu-onednn/recurrent/recurrent.h"

static const int weight_arguments[ODN_WEIGHTS] = {DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER,
                                                  DNNL_ARG_WEIGHTS_PROJECTION};
static const int grad_arguments[ODN_WEIGHTS] = {DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER,
                                                DNNL_ARG_DIFF_WEIGHTS_PROJECTION};

/* Chooses the layouts of all rectangles: the library's choice for a large one. Where that choice depends on the shape
 * of one product, or does not work for the smallest rectangle, a plain layout. */
static dnnl_status_t choose_layouts(struct odn_recurrent *r, int32_t k, bool plain)
{
    struct odn_kind *kind = &r->kind[k];
    const int32_t way = odn_way_of(r, 0);
    const int64_t n = (r->desc->head.max_sequences + r->slices_max - 1) / r->slices_max;
    const int64_t steps = r->desc->head.max_steps;
    dnnl_primitive_desc_t pd[ODN_PASSES] = {NULL, NULL};
    dnnl_status_t status = dnnl_success;
    for (int32_t p = 0; p < odn_passes(r) && status == dnnl_success; p++) {
        status = odn_primitive_describe(r, k, way, n, steps, p, false, pd[ODN_FORWARD], r->attr, &pd[p]);
        for (int w = 0; w < ODN_WEIGHTS && status == dnnl_success; w++) {
            if (!odn_has_weight(r, w))
                continue;
            odn_layout_deinit(&kind->weights[p][w]);
            odn_md md = odn.primitive_desc_query_md(pd[p], dnnl_query_exec_arg_md, weight_arguments[w]);
            const bool ok = !plain && odn_md_open(md)
                                ? odn_layout_copy(&kind->weights[p][w], md)
                                : odn_plain_layout(&kind->weights[p][w], kind, w, r->weight_type, p == ODN_BACKWARD);
            status = ok ? dnnl_success : dnnl_out_of_memory;
            if (p != ODN_BACKWARD || status != dnnl_success)
                continue;
            odn_layout_deinit(&kind->grads[w]);
            md = odn.primitive_desc_query_md(pd[p], dnnl_query_exec_arg_md, grad_arguments[w]);
            const bool made = odn_md_plain(md, kind->grad_strides[w])
                                  ? odn_layout_copy(&kind->grads[w], md)
                                  : odn_plain_layout(&kind->grads[w], kind, w, dnnl_f32, false);
            if (!made)
                status = dnnl_out_of_memory;
            odn_md_plain(odn_layout_get(&kind->grads[w]), kind->grad_strides[w]);
        }
    }
    for (int p = 0; p < ODN_PASSES; p++)
        if (pd[p] != NULL)
            odn.primitive_desc_destroy(pd[p]);
    return status;
}

/* Do the layouts work for this rectangle? */
static dnnl_status_t try_layouts(const struct odn_recurrent *r, int32_t k, int64_t n, int64_t steps)
{
    dnnl_primitive_desc_t forward = NULL, backward = NULL;
    const int32_t way = odn_way_of(r, 0);
    dnnl_status_t status = odn_primitive_describe(r, k, way, n, steps, ODN_FORWARD, true, NULL, r->attr, &forward);
    if (status == dnnl_success && r->training)
        status = odn_primitive_describe(r, k, way, n, steps, ODN_BACKWARD, true, forward, r->attr, &backward);
    if (forward != NULL)
        odn.primitive_desc_destroy(forward);
    if (backward != NULL)
        odn.primitive_desc_destroy(backward);
    return status;
}

seqlstm_status odn_layouts_make(struct odn_recurrent *r, int32_t k, struct seqlstm_error *err)
{
    dnnl_status_t status = dnnl_success, own = dnnl_success; /* own: of the library's choice */
    for (int plain = 0; plain < 2; plain++) {
        own = status;
        status = choose_layouts(r, k, plain);
        if (status == dnnl_success)
            status = try_layouts(r, k, 1, 1);
        if (status == dnnl_success)
            status = try_layouts(r, k, r->desc->head.max_sequences, r->desc->head.max_steps);
        if (status == dnnl_success || status == dnnl_out_of_memory)
            break;
    }
    if (status == dnnl_success || status == dnnl_out_of_memory)
        return odn_check(status, "a recurrent primitive", err);
    SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "oneDNN %s refuses this recurrent layer with status %d",
                 odn_library_version(), (int)own);
}
