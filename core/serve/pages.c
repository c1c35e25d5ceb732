/* SPDX-License-Identifier: Apache-2.0 */
/* See pages.h. */
#include "serve/pages.h"

#include "base/config.h"
#include "base/value/html.h"
#include "base/value/json_write.h"

void sl_pages_write_server(struct sl_buf *out)
{
    sl_buf_append_text(out, "{\"name\":\"seqlstm\",\"version\":\"" SL_VERSION
                            "\",\"extensions\":[\"binary_tensor_data\",\"sequence\"]}\n");
}

static void append_tensor(struct sl_buf *out, const char *name, const char *type, int64_t features)
{
    sl_buf_printf(out, "{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[-1", name, type);
    if (features > 0)
        sl_buf_printf(out, ",%lld", (long long)features);
    sl_buf_append_text(out, "]}");
}

void sl_pages_write_model(const struct sl_served_model *model, struct sl_buf *out)
{
    sl_buf_append_text(out, "{\"name\":");
    sl_json_append_string(out, model->name);
    sl_buf_append_text(out, ",\"versions\":[\"1\"],\"platform\":\"seqlstm\",\"inputs\":[");
    if (model->decodes) {
        sl_buf_append_text(out, "{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[-1]}],\"outputs\":["
                                "{\"name\":\"score\",\"datatype\":\"FP32\",\"shape\":[-1]},"
                                "{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[-1]}]}\n");
        return;
    }
    append_tensor(out, "x", model->reads_ids ? "INT32" : "FP32", model->reads_ids ? 0 : model->input_features);
    if (model->reads_steps) {
        sl_buf_append_char(out, ',');
        append_tensor(out, "lengths", "INT32", 0);
    }
    if (model->reads_text) {
        sl_buf_append_char(out, ',');
        append_tensor(out, "text", "BYTES", 0);
    }
    sl_buf_append_text(out, "],\"outputs\":[");
    append_tensor(out, "y", "FP32", model->output_features);
    if (model->classes) {
        sl_buf_append_char(out, ',');
        append_tensor(out, "label", "BYTES", 0);
    }
    sl_buf_append_text(out, "]}\n");
}

void sl_pages_write_entry(const struct sl_served_model *model, struct sl_buf *out)
{
    sl_buf_append_text(out, "{\"id\":");
    sl_json_append_string(out, model->name);
    sl_buf_append_text(out, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"seqlstm\"}");
}

void sl_pages_write_list(const struct sl_served_model *const *models, int count, struct sl_buf *out)
{
    sl_buf_append_text(out, "{\"object\":\"list\",\"data\":[");
    for (int m = 0; m < count; m++) {
        if (m > 0)
            sl_buf_append_char(out, ',');
        sl_pages_write_entry(models[m], out);
    }
    sl_buf_append_text(out, "]}\n");
}

static void append_row(struct sl_buf *out, const char *what, double value, const char *format)
{
    sl_buf_printf(out, "<tr><td>%s</td><td>", what);
    sl_html_append_number(out, format, value);
    sl_buf_append_text(out, "</td></tr>\n");
}

static void append_counters(struct sl_buf *out, struct sl_counters *counters, const struct sl_counter_gauges *gauges,
                            double seconds)
{
    pthread_mutex_lock(&counters->lock);
    const struct sl_counters now = *counters;
    pthread_mutex_unlock(&counters->lock);
    const double batches = now.batches > 0 ? (double)now.batches : 1;
    sl_buf_append_text(out, "<h2>Since it began</h2>\n<table>\n");
    append_row(out, "seconds", seconds, "%.0f");
    append_row(out, "requests answered", (double)now.answered[2], "%.0f");
    append_row(out, "requests refused", (double)(now.answered[4] + now.answered[5]), "%.0f");
    append_row(out, "requests that wait", (double)gauges->waiting, "%.0f");
    append_row(out, "streams that are open", (double)gauges->streams, "%.0f");
    append_row(out, "sequences computed", (double)now.sequences, "%.0f");
    append_row(out, "steps computed", (double)now.rows, "%.0f");
    append_row(out, "sequences in a mean batch", now.width.sum / batches, "%.2f");
    append_row(out, "milliseconds of a mean batch", 1e3 * now.computed_s.sum / batches, "%.3f");
    sl_buf_append_text(out, "</table>\n<p>All of it for Prometheus: <a href=\"/metrics\">/metrics</a></p>\n");
}

static void append_shapes(struct sl_buf *out, const struct sl_served_model *model)
{
    if (model->decodes) {
        sl_buf_printf(out, "</td><td>text</td><td>text</td><td>%lld</td></tr>\n", (long long)model->steps);
        return;
    }
    if (model->reads_ids)
        sl_buf_printf(out, "</td><td>ids below %lld", (long long)model->input_classes);
    else
        sl_buf_printf(out, "</td><td>%lld value%s", (long long)model->input_features,
                      model->input_features == 1 ? "" : "s");
    sl_buf_printf(out, "%s</td><td>%lld value%s for each %s</td><td>%lld</td></tr>\n",
                  model->reads_text ? ", or text" : "", (long long)model->output_features,
                  model->output_features == 1 ? "" : "s",
                  model->gives_steps   ? "step"
                  : model->reads_steps ? "sequence"
                                       : "row",
                  (long long)model->steps);
}

void sl_pages_write_status(const struct sl_served_model *const *models, int count, struct sl_counters *counters,
                           const struct sl_counter_gauges *gauges, double seconds, struct sl_buf *out)
{
    sl_html_begin_page(out, "td:first-child{padding-right:2rem}\n", "seqlstm serve");
    sl_buf_append_text(out, "<h1>seqlstm serve</h1>\n<h2>Models</h2>\n<div class=\"scroll\"><table><tr><th>name</th>"
                            "<th>input</th><th>output</th><th>most steps</th></tr>\n");
    for (int m = 0; m < count; m++) {
        const struct sl_served_model *model = models[m];
        sl_buf_append_text(out, "<tr><td>");
        sl_html_append_text(out, model->name);
        append_shapes(out, model);
    }
    sl_buf_append_text(out, "</table></div>\n");
    append_counters(out, counters, gauges, seconds);
    sl_html_end_page(out);
}
