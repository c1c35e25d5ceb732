/* SPDX-License-Identifier: Apache-2.0 */
/* int8: x and h as unsigned 8-bit integers, weights as signed ones with a scale for each row (ops.h specifies them).
 *
 * The library needs the scales when a primitive is created, before the weights are known. So a binding starts
 * without primitives. weights_pack writes the scales in front of the weights, with a hash of them as their version.
 * If a forward finds another version than the binding has, it takes the primitives of that version from the
 * operation's cache or creates them. */
#include <math.h>
#include <string.h>

#include "cpu-onednn/recurrent/recurrent.h"

/* ---- packing ---- */

static float largest(const float *row, int64_t count, float so_far)
{
    for (int64_t i = 0; i < count; i++)
        so_far = fabsf(row[i]) > so_far ? fabsf(row[i]) : so_far;
    return so_far;
}

static void find_scales(const struct odn_recurrent *r, const float *w_x, const float *w_h, float *out_scales)
{
    const int64_t h = r->hidden, input = r->kind[0].input;
    for (int64_t g = 0; g < r->gates; g++)
        for (int64_t o = 0; o < h; o++) {
            const int64_t row = r->gate_map[g] * h + o;
            const float most = largest(w_h + row * r->output, r->output, largest(w_x + row * input, input, 0.0f));
            out_scales[g * h + o] = most > 0.0f && most < INFINITY ? 127.0f / most : 1.0f;
        }
}

static uint64_t hash(const void *bytes, uint64_t count)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (uint64_t i = 0; i < count; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    return h != 0 ? h : 1;
}

/* Inputs first, with the gates in the library's order. */
static void transpose(const struct odn_recurrent *r, int64_t input, const float *from, float *out)
{
    const int64_t h = r->hidden, rows = r->gates * h;
    for (int64_t row = 0; row < rows; row++) {
        const float *source = from + (r->gate_map[row / h] * h + row % h) * input;
        for (int64_t i = 0; i < input; i++)
            out[i * rows + row] = source[i];
    }
}

static dnnl_status_t reorder(const struct odn_recurrent *r, int w, const_dnnl_primitive_attr_t attr, float *from,
                             void *to)
{
    const struct odn_kind *kind = &r->kind[0];
    const dnnl_engine_t engine = r->op->instance->engine;
    odn_md md = odn_layout_get(&kind->weights[ODN_FORWARD][w]);
    struct odn_layout ours = {0};
    dnnl_primitive_desc_t pd = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
    dnnl_status_t status = odn_plain_layout(&ours, kind, w, dnnl_f32, false) ? dnnl_success : dnnl_out_of_memory;
    if (status == dnnl_success)
        status = odn.reorder_primitive_desc_create(&pd, odn_layout_get(&ours), engine, md, engine, attr);
    if (status == dnnl_success)
        status = odn.primitive_create(&primitive, pd);
    if (status == dnnl_success)
        status = odn.memory_create(&arguments[0].memory, odn_layout_get(&ours), engine, from);
    if (status == dnnl_success)
        status = odn.memory_create(&arguments[1].memory, md, engine, to);
    if (status == dnnl_success)
        status = odn.primitive_execute(primitive, r->op->instance->stream, 2, arguments);
    for (int i = 0; i < 2; i++)
        if (arguments[i].memory != NULL)
            odn.memory_destroy(arguments[i].memory);
    if (primitive != NULL)
        odn.primitive_destroy(primitive);
    if (pd != NULL)
        odn.primitive_desc_destroy(pd);
    odn_layout_deinit(&ours);
    return status;
}

dnnl_status_t odn_quantized_pack(const struct odn_recurrent *r, void *const *slots, int32_t d, void *packed)
{
    static const int params[] = {SEQLSTM_PARAM_W_X, SEQLSTM_PARAM_W_H};
    const struct odn_kind *kind = &r->kind[0];
    const int64_t rows = r->gates * r->hidden;
    uint64_t *version = odn_at(packed, kind->scales);
    float *scales = odn_at(version, sizeof *version);
    find_scales(r, odn_param(r, slots, 0, d, SEQLSTM_PARAM_W_X), odn_param(r, slots, 0, d, SEQLSTM_PARAM_W_H), scales);
    *version = hash(scales, (uint64_t)rows * sizeof *scales);
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = odn_quantized_attr(r, scales, dnnl_scratchpad_mode_library, &attr);
    for (int w = ODN_WEIGHT_X; w <= ODN_WEIGHT_H && status == dnnl_success; w++) {
        float *ordered = odn_at(packed, kind->permuted[w]);
        transpose(r, kind->dims[w][2], odn_param(r, slots, 0, d, params[w]), ordered);
        status = reorder(r, w, attr, ordered, odn_at(packed, kind->packed[ODN_FORWARD][w]));
    }
    if (attr != NULL)
        odn.primitive_attr_destroy(attr);
    return status;
}

/* ---- primitives ---- */

seqlstm_status odn_quantized_refresh(struct odn_recurrent_binding *b, const void *packed, struct seqlstm_error *err)
{
    const struct odn_recurrent *r = b->r;
    for (int32_t d = 0; d < r->directions; d++) {
        const uint64_t *version = odn_at(packed, odn_packed_of(r, 0, d) + r->kind[0].scales);
        const float *scales = odn_at(version, sizeof *version);
        const int32_t way = odn_way_of(r, d);
        for (int32_t m = 0; m < b->slices_count; m++)
            for (int32_t i = 0; i < b->slices[m].shape_count; i++) {
                struct odn_shape *shape = &b->slices[m].shapes[i];
                if (shape->calls[0][way]->entry->version != *version)
                    SEQLSTM_TRY(odn_shape_bind(b, shape, 0, way, *version, scales, err));
            }
    }
    return SEQLSTM_OK;
}
