/* SPDX-License-Identifier: Apache-2.0 */
/* See infer_write.h. */
#include "serve/body/infer_write.h"

#include <math.h>
#include <string.h>

#include "base/value/json_write.h"
#include "base/value/text.h"

/* In JSON a number is as short as float32 allows; what is no number is null. */
static void append_float(struct sl_buf *out, float value)
{
    char text[SL_TEXT_NUMBER_BYTES];
    if (!isfinite(value)) {
        sl_buf_append_text(out, "null");
        return;
    }
    sl_buf_append(out, text, sl_text_print_float32(text, value));
}

/* The text of a row: a class, or what the model has written. */
static const char *find_label(const struct sl_job *job, int64_t row, size_t *out_bytes)
{
    const int64_t count = job->model->output_features;
    if (job->written) {
        *out_bytes = job->written[row].bytes;
        return job->written[row].text ? job->written[row].text : "";
    }
    const float *p = job->y + row * count;
    int32_t best = 0;
    for (int32_t c = 1; c < count; c++)
        if (p[c] > p[best])
            best = c;
    return sl_vocabulary_get_text(job->model->classes, best, out_bytes);
}

static void append_y(const struct sl_job *job, struct sl_buf *out, struct sl_buf *binary)
{
    const int64_t features = job->model->output_features, elems = job->out_rows * features;
    sl_buf_printf(out, "{\"name\":\"%s\",\"datatype\":\"FP32\",\"shape\":[%lld", sl_served_model_get_output(job->model),
                  (long long)job->out_rows);
    if (!job->model->decodes)
        sl_buf_printf(out, ",%lld", (long long)features);
    sl_buf_append_text(out, "],");
    if (job->binary_y) {
        sl_buf_append(binary, job->y, (size_t)elems * sizeof *job->y);
        sl_buf_printf(out, "\"parameters\":{\"binary_data_size\":%lld}}", (long long)elems * 4);
        return;
    }
    sl_buf_append_text(out, "\"data\":[");
    for (int64_t i = 0; i < elems; i++) {
        if (i > 0)
            sl_buf_append_char(out, ',');
        append_float(out, job->y[i]);
    }
    sl_buf_append_text(out, "]}");
}

static void append_labels(const struct sl_job *job, struct sl_buf *out, struct sl_buf *binary)
{
    const size_t before = binary->length_bytes;
    sl_buf_printf(out, "{\"name\":\"%s\",\"datatype\":\"BYTES\",\"shape\":[%lld],%s",
                  sl_served_model_get_labels(job->model), (long long)job->out_rows,
                  job->binary_labels ? "" : "\"data\":[");
    for (int64_t row = 0; row < job->out_rows; row++) {
        size_t bytes = 0;
        const char *label = find_label(job, row, &bytes);
        const uint32_t size = (uint32_t)bytes;
        if (job->binary_labels) {
            sl_buf_append(binary, &size, sizeof size);
            sl_buf_append(binary, label, bytes);
            continue;
        }
        if (row > 0)
            sl_buf_append_char(out, ',');
        sl_json_append_text(out, label, bytes);
    }
    if (job->binary_labels)
        sl_buf_printf(out, "\"parameters\":{\"binary_data_size\":%zu}}", binary->length_bytes - before);
    else
        sl_buf_append_text(out, "]}");
}

void sl_infer_write(const struct sl_job *job, struct sl_buf *out, int64_t *out_json_bytes)
{
    struct sl_buf binary = {0};
    sl_buf_append_text(out, "{\"model_name\":");
    sl_json_append_string(out, job->model->name);
    sl_buf_append_text(out, ",\"model_version\":\"1\",");
    if (job->id) {
        sl_buf_append_text(out, "\"id\":");
        sl_json_append_string(out, job->id);
        sl_buf_append_char(out, ',');
    }
    sl_buf_append_text(out, "\"outputs\":[");
    if (job->wants_y)
        append_y(job, out, &binary);
    if (job->wants_y && job->wants_labels)
        sl_buf_append_char(out, ',');
    if (job->wants_labels)
        append_labels(job, out, &binary);
    sl_buf_append_text(out, "]}");
    *out_json_bytes = binary.length_bytes > 0 || job->binary_y ? (int64_t)out->length_bytes : -1;
    if (binary.length_bytes > 0)
        sl_buf_append(out, binary.data, binary.length_bytes);
    out->failed = out->failed || binary.failed;
    sl_buf_deinit(&binary);
}
