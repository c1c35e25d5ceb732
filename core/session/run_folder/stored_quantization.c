/* SPDX-License-Identifier: Apache-2.0 */
/* quantization.json: which layers of a run are in int8, with which scale and shift; and which are in a wider type.
 *
 *   {"schema": "seqlstm.quantization/1", "dtype": "int8", "weights": "<hash>",
 *    "layers": [{"name", "low", "high", "scale", "shift"} or {"name", "dtype": "bfloat16"}], "split": "valid",
 * "before": {metrics}, "after": {metrics}, "test": {"before": {metrics}, "after": {metrics}}}
 */
#include "session/run_folder/stored_quantization.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/system/file.h"
#include "base/value/buf.h"
#include "base/value/hash.h"
#include "base/value/json_tree.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "session/record/session_record.h"
#include "session/run_folder/run_folder.h"

enum { QUANTIZATION_LIMIT = 16 << 20 };

static const char file_name[] = "quantization.json";

const struct sl_quantization *sl_session_find_quantization(const struct sl_session *session)
{
    return session->quantization.layers.count ? &session->quantization.layers : NULL;
}

uint64_t sl_session_hash_weights(const struct sl_session *session)
{
    const struct sl_params *params = session->params;
    uint64_t hash = 0;
    for (int32_t v = 0; v < params->view_count; v++)
        hash = sl_hash_bytes(params->values + params->views[v].offset_elems,
                             (size_t)params->views[v].elems * sizeof *params->values, hash);
    return hash;
}

seqlstm_status sl_stored_quantization_check(const struct sl_session *session, struct seqlstm_error *err)
{
    if (session->quantization.layers.count == 0 || session->quantization.weights == sl_session_hash_weights(session))
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                 "%s/%s was made for other weights than the run has now; run `seqlstm quantize` again, or remove it",
                 session->folder, file_name);
}

/* The layers of which only the type is stored. */
static bool find_wider_type(const char *name, uint32_t *out_dtype)
{
    static const uint32_t types[] = {SEQLSTM_DTYPE_BFLOAT16, SEQLSTM_DTYPE_TF32};
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(sl_dtype_name(types[i]), name) == 0) {
            *out_dtype = types[i];
            return true;
        }
    return false;
}

/* The name is borrowed from `item`. */
static seqlstm_status read_layer(const char *path, size_t i, const json_t *item, struct sl_quantized_layer *out,
                                 struct seqlstm_error *err)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    const json_t *dtype = json_object_get(item, "dtype");
    const double scale = json_number_value(json_object_get(item, "scale"));
    const double shift = json_number_value(json_object_get(item, "shift"));
    const double low = fmin(json_number_value(json_object_get(item, "low")), 0);
    const double high = fmax(json_number_value(json_object_get(item, "high")), 0);
    *out = (struct sl_quantized_layer){.node = name, .dtype = SEQLSTM_DTYPE_INT8};
    if (name != NULL && dtype != NULL) {
        if (!find_wider_type(json_string_value(dtype), &out->dtype))
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the dtype of `%s` is none of \"bfloat16\" and \"tf32\"", path,
                         name);
        return SEQLSTM_OK;
    }
    if (name == NULL || !(scale > 1e-30 && scale < 1e30) || !(shift >= 0 && shift <= 255))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: layer %zu needs a name, a scale above 0 and a shift from 0 to 255",
                     path, i);
    if (high > low && !(fabs(scale * (high - low) / 255 - 1) <= 0.01 && fabs(shift + low * scale) <= 1))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: scale and shift of `%s` are not those of its range; run `seqlstm quantize` again", path,
                     name);
    out->scale = (float)scale;
    out->shift = (float)shift;
    return SEQLSTM_OK;
}

static seqlstm_status read_layers(const char *path, const json_t *root, struct sl_stored_quantization *out,
                                  struct seqlstm_error *err)
{
    const json_t *list = json_object_get(root, "layers");
    const char *dtype = json_string_value(json_object_get(root, "dtype"));
    const char *weights = json_string_value(json_object_get(root, "weights"));
    char *end = NULL;
    if (!json_is_array(list) || dtype == NULL || strcmp(dtype, "int8") != 0 || weights == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: expected \"dtype\": \"int8\", \"weights\" and \"layers\"", path);
    out->weights = strtoull(weights, &end, 16);
    struct sl_quantized_layer *layers =
        SL_ARENA_ARRAY(&out->arena, struct sl_quantized_layer, json_array_size(list) + 1);
    if (layers == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        SEQLSTM_TRY(read_layer(path, i, json_array_get(list, i), &layers[i], err));
        layers[i].node = sl_arena_strdup(&out->arena, layers[i].node);
        if (layers[i].node == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", path);
    }
    out->layers = (struct sl_quantization){.layers = layers, .count = (int32_t)json_array_size(list)};
    return SEQLSTM_OK;
}

seqlstm_status sl_stored_quantization_read(struct sl_session *session, struct seqlstm_error *err)
{
    char *path = sl_path_join(session->folder, file_name), *text = NULL;
    size_t bytes;
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    seqlstm_status status = SEQLSTM_OK;
    if (sl_file_exists(path)) {
        json_t *root = NULL;
        json_error_t why;
        status = sl_file_read(path, QUANTIZATION_LIMIT, &text, &bytes, err);
        if (status == SEQLSTM_OK) {
            bool no_memory;
            root = sl_json_load(text, bytes, JSON_REJECT_DUPLICATES, &why, &no_memory);
            status = root ? read_layers(path, root, &session->quantization, err)
                     : no_memory
                         ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", path)
                         : seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__, "%s:%d:%d: %s", path,
                                             why.line, why.column, why.text);
        }
        json_decref(root);
    }
    free(text);
    free(path);
    return status;
}

static void write_metrics(struct sl_buf *buf, const char *lead, const char *name, const struct sl_metric_values *values)
{
    char number[SL_TEXT_NUMBER_BYTES];
    sl_buf_printf(buf, "%s\"%s\": {", lead, name);
    for (int32_t m = 0; m < values->count; m++) {
        const double value = values->items[m].value;
        sl_text_print_float64(number, value);
        sl_buf_printf(buf, "%s\"%s\": %s", m ? ", " : "", values->items[m].name, value - value == 0 ? number : "null");
    }
    sl_buf_append_char(buf, '}');
}

seqlstm_status sl_stored_quantization_write(struct sl_session *session, const struct sl_quantize_result *result,
                                            struct seqlstm_error *err)
{
    struct sl_buf buf = {0};
    char low[SL_TEXT_NUMBER_BYTES], high[SL_TEXT_NUMBER_BYTES];
    char scale[SL_TEXT_NUMBER_BYTES], shift[SL_TEXT_NUMBER_BYTES];
    sl_buf_printf(&buf,
                  "{\n  \"schema\": \"seqlstm.quantization/1\",\n  \"dtype\": \"int8\",\n"
                  "  \"weights\": \"%llx\",\n  \"layers\": [",
                  (unsigned long long)session->quantization.weights);
    const char *comma = "";
    for (int32_t l = 0; l < result->count; l++) {
        const struct sl_quantized_report *layer = &result->layers[l];
        if (!layer->accepted)
            continue;
        if (layer->dtype != SEQLSTM_DTYPE_INT8) {
            sl_buf_printf(&buf, "%s\n    {\"name\": \"%s\", \"dtype\": \"%s\"}", comma, layer->name,
                          sl_dtype_name(layer->dtype));
            comma = ",";
            continue;
        }
        sl_text_print_float32(low, (float)layer->low);
        sl_text_print_float32(high, (float)layer->high);
        sl_text_print_float32(scale, layer->scale);
        sl_text_print_float32(shift, layer->shift);
        sl_buf_printf(&buf, "%s\n    {\"name\": \"%s\", \"low\": %s, \"high\": %s, \"scale\": %s, \"shift\": %s}",
                      comma, layer->name, low, high, scale, shift);
        comma = ",";
    }
    sl_buf_append_text(&buf, "\n  ]");
    const struct sl_quantized_split *main = &result->splits[result->main], *test = &result->splits[SL_SPLIT_TEST];
    sl_buf_printf(&buf, ",\n  \"split\": \"%s\"", sl_split_get_name(result->main));
    write_metrics(&buf, ",\n  ", "before", &main->before);
    write_metrics(&buf, ",\n  ", "after", &main->after);
    if (test->is_measured) {
        sl_buf_append_text(&buf, ",\n  \"test\": {");
        write_metrics(&buf, "\n    ", "before", &test->before);
        write_metrics(&buf, ",\n    ", "after", &test->after);
        sl_buf_append_text(&buf, "\n  }");
    }
    sl_buf_append_text(&buf, "\n}\n");
    seqlstm_status status =
        buf.failed ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", file_name)
                   : sl_run_folder_write(session->folder, file_name, buf.data, buf.length_bytes, err);
    sl_buf_deinit(&buf);
    return status;
}
