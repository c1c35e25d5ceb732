/* SPDX-License-Identifier: Apache-2.0 */
/* See curve.h. */
#include "serve/load/curve.h"

#include "base/value/json_write.h"

static const double parts[] = {0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95};

static int32_t count_points(int32_t count)
{
    return count > 0 ? count : (int32_t)(sizeof parts / sizeof *parts);
}

int32_t sl_curve_count_loads(int32_t count)
{
    return 2 + count_points(count);
}

seqlstm_status sl_curve_measure(struct sl_curve *curve, const struct sl_load_request *request, const double *rates,
                                int32_t count, struct seqlstm_error *err)
{
    struct sl_load_request one = *request;
    one.rate = 0;
    one.connections = 1;
    SEQLSTM_TRY(sl_load_run(&one, &curve->alone, err));
    one.connections = request->connections;
    one.number = 1;
    SEQLSTM_TRY(sl_load_run(&one, &curve->closed, err));
    for (int32_t k = 0; k < count_points(count); k++) {
        one.rate = count > 0 ? rates[k] : parts[k] * curve->closed.reached;
        if (!(one.rate > 0))
            SEQLSTM_FAIL(err, SEQLSTM_IO, "the server has answered no request with status 200, but %lld with others",
                         (long long)curve->closed.failed);
        one.number = 2 + k;
        one.seed = request->seed + (uint64_t)k; /* points of the same load are independent */
        SEQLSTM_TRY(sl_load_run(&one, &curve->points[curve->count++], err));
    }
    return SEQLSTM_OK;
}

static void append_row(const struct sl_load_result *r, const char *wanted, struct sl_buf *out)
{
    sl_buf_printf(out, "%12s  %12.0f  %9.3f  %9.3f  %9.3f  %9.3f  %9.3f  %7lld\n", wanted, r->reached, 1e3 * r->mean,
                  1e3 * r->p50, 1e3 * r->p90, 1e3 * r->p99, 1e3 * r->p999, (long long)(r->failed + r->lost));
}

void sl_curve_print_table(const struct sl_curve *curve, struct sl_buf *out)
{
    sl_buf_printf(out, "%s on %s: requests of one sequence, %.1f steps on average; milliseconds\n", curve->name,
                  curve->server, (double)curve->steps / (double)curve->requests);
    sl_buf_printf(out, "%12s  %12s  %9s  %9s  %9s  %9s  %9s  %7s\n", "load (1/s)", "answers (1/s)", "mean", "p50",
                  "p90", "p99", "p99.9", "refused");
    if (curve->offline > 0)
        sl_buf_printf(out, "%12s  %12.0f\n", "no server", curve->offline);
    append_row(&curve->alone, "one by one", out);
    append_row(&curve->closed, "closed loop", out);
    for (int32_t k = 0; k < curve->count; k++) {
        struct sl_buf wanted = {0};
        sl_buf_printf(&wanted, "%.0f", curve->points[k].wanted);
        append_row(&curve->points[k], sl_buf_text(&wanted), out);
        out->failed = out->failed || wanted.failed;
        sl_buf_deinit(&wanted);
    }
    if (curve->offline > 0)
        sl_buf_printf(
            out,
            "Each answer of the closed loop took %.1f microseconds of processor time in the server and %.1f in "
            "the generator.\n",
            1e6 * curve->closed.other_cpu, 1e6 * curve->closed.own_cpu);
}

static void append_json(const struct sl_load_result *r, struct sl_buf *out)
{
    const struct {
        const char *key;
        double value;
    } all[] = {{"load", r->wanted}, {"answers", r->reached}, {"mean_s", r->mean}, {"p50_s", r->p50},
               {"p90_s", r->p90},   {"p99_s", r->p99},       {"p999_s", r->p999}, {"most_s", r->most}};
    sl_buf_append_char(out, '{');
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        sl_buf_printf(out, "\"%s\":", all[k].key);
        sl_json_append_number(out, all[k].value);
        sl_buf_append_char(out, ',');
    }
    sl_buf_printf(out, "\"answered\":%lld,\"refused\":%lld,\"lost\":%lld}", (long long)r->answered,
                  (long long)r->failed, (long long)r->lost);
}

void sl_curve_print_json(const struct sl_curve *curve, struct sl_buf *out)
{
    sl_buf_append_text(out, "{\"name\":");
    sl_json_append_string(out, curve->name);
    sl_buf_append_text(out, ",\"server\":");
    sl_json_append_string(out, curve->server);
    sl_buf_printf(out, ",\"steps\":%.9g,", (double)curve->steps / (double)curve->requests);
    if (curve->offline > 0)
        sl_buf_printf(out, "\"offline\":%.9g,", curve->offline);
    if (curve->offline > 0)
        sl_buf_printf(out, "\"server_cpu_s\":%.9g,\"generator_cpu_s\":%.9g,", curve->closed.other_cpu,
                      curve->closed.own_cpu);
    sl_buf_append_text(out, "\"alone\":");
    append_json(&curve->alone, out);
    sl_buf_append_text(out, ",\"closed\":");
    append_json(&curve->closed, out);
    sl_buf_append_text(out, ",\"points\":[");
    for (int32_t k = 0; k < curve->count; k++) {
        if (k > 0)
            sl_buf_append_char(out, ',');
        append_json(&curve->points[k], out);
    }
    sl_buf_append_text(out, "]}\n");
}
