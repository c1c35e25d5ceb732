/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a step as JSON. */
#include "base/operation/cost_json.h"

#include <jansson.h>
#include <math.h>

#include "base/value/json_tree.h"

static json_t *write_points(const struct sl_step_cost_point *points, int32_t count)
{
    json_t *list = json_array();
    for (int32_t p = 0; p < count; p++)
        list = sl_json_add(list,
                           json_pack("{s:I,s:f}", "width", (json_int_t)points[p].width, "step_ns", points[p].step_ns));
    return list;
}

json_t *sl_step_cost_to_json(const struct sl_step_cost *cost)
{
    json_t *object = json_pack("{s:o,s:f,s:f}", "points", write_points(cost->points, cost->count), "batch_ns",
                               cost->batch_ns, "shape_ns", cost->shape_ns);
    if (cost->source_count > 0)
        object = sl_json_put(object, "source_points", write_points(cost->source_points, cost->source_count));
    return object;
}

static seqlstm_status read_points(const char *path, const json_t *points, struct sl_step_cost_point *out,
                                  int32_t *out_count, struct seqlstm_error *err)
{
    *out_count = 0;
    for (size_t p = 0; p < json_array_size(points); p++) {
        const json_t *point = json_array_get(points, p);
        json_int_t width = json_integer_value(json_object_get(point, "width"));
        double ns = json_number_value(json_object_get(point, "step_ns"));
        if (p >= SL_STEP_COST_MOST || width < 1 || (p > 0 && width <= out[p - 1].width) || !(ns > 0))
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: point %zu of \"step_cost\" is out of order", path, p);
        out[(*out_count)++] = (struct sl_step_cost_point){width, ns};
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_step_cost_from_json(const char *path, const json_t *json, struct sl_step_cost *out,
                                      struct seqlstm_error *err)
{
    SEQLSTM_TRY(read_points(path, json_object_get(json, "points"), out->points, &out->count, err));
    SEQLSTM_TRY(read_points(path, json_object_get(json, "source_points"), out->source_points, &out->source_count, err));
    out->batch_ns = fmax(json_number_value(json_object_get(json, "batch_ns")), 0);
    out->shape_ns = fmax(json_number_value(json_object_get(json, "shape_ns")), 0);
    return SEQLSTM_OK;
}
