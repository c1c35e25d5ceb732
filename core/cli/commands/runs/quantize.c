/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm quantize */
#include <math.h>
#include <stdlib.h>

#include "base/operation/op_signature.h"
#include "base/value/text.h"
#include "cli/cli.h"

static void write_metrics_json(struct sl_buf *buf, const char *name, const struct sl_metric_values *values)
{
    char number[SL_TEXT_NUMBER_BYTES];
    sl_buf_printf(buf, "\"%s\": {", name);
    for (int32_t m = 0; m < values->count; m++) {
        const double value = values->items[m].value;
        sl_text_print_float64(number, value);
        sl_buf_printf(buf, "%s\"%s\": %s", m ? ", " : "", values->items[m].name, value - value == 0 ? number : "null");
    }
    sl_buf_append_text(buf, "}, ");
}

static const char *const TITLES[SL_SPLIT_COUNT] = {
    [SL_SPLIT_TRAIN] = "training", [SL_SPLIT_VALID] = "validation", [SL_SPLIT_TEST] = "test"};

/* Splits of which both sides are known. */
static bool is_compared(const struct sl_quantize_result *r, int split)
{
    return r->splits[split].after.count > 0;
}

static void write_splits_json(struct sl_buf *buf, const struct sl_quantize_result *r)
{
    char worse[SL_TEXT_NUMBER_BYTES];
    const char *comma = "";
    sl_buf_append_text(buf, "\"splits\": {");
    for (int split = 0; split < SL_SPLIT_COUNT; split++) {
        const struct sl_quantized_split *of = &r->splits[split];
        if (!is_compared(r, split))
            continue;
        sl_buf_printf(buf, "%s\"%s\": {", comma, sl_split_get_name((enum sl_split)split));
        write_metrics_json(buf, "before", &of->before);
        write_metrics_json(buf, "after", &of->after);
        sl_text_print_float64(worse, of->loss);
        sl_buf_printf(buf, "\"worse\": %s, \"clipped\": %lld, \"values\": %lld}", isfinite(of->loss) ? worse : "null",
                      (long long)of->clipped.clipped, (long long)of->clipped.values);
        comma = ", ";
    }
    sl_buf_append_text(buf, "}, ");
}

static void write_json(struct sl_buf *buf, const struct sl_session *session, const struct sl_quantize_result *r)
{
    char numbers[6][SL_TEXT_NUMBER_BYTES];
    sl_buf_printf(buf, "{\"schema\": \"seqlstm.quantize/1\", \"split\": \"%s\", ", sl_split_get_name(r->main));
    write_metrics_json(buf, "before", &r->splits[r->main].before);
    write_metrics_json(buf, "after", &r->splits[r->main].after);
    sl_buf_printf(buf, "\"metric\": \"%s\", ", r->metric);
    write_splits_json(buf, r);
    sl_buf_append_text(buf, "\"layers\": [");
    for (int32_t l = 0; l < r->count; l++) {
        const struct sl_quantized_report *layer = &r->layers[l];
        const double values[] = {layer->low,           layer->high,      (double)layer->scale,
                                 (double)layer->shift, layer->before_ns, layer->after_ns};
        for (int i = 0; i < 6; i++)
            sl_text_print_float64(numbers[i], values[i]);
        char precision[16] = "null";
        if (layer->accepted)
            sl_text_snprintf(precision, sizeof precision, "\"%s\"", sl_dtype_name(layer->dtype));
        for (int i = 0; i < 4 && layer->dtype != SEQLSTM_DTYPE_INT8; i++)
            sl_text_snprintf(numbers[i], sizeof numbers[i], "null");
        sl_buf_printf(
            buf,
            "%s{\"name\": \"%s\", \"accepted\": %s, \"precision\": %s, \"low\": %s, \"high\": %s, \"scale\": %s, "
            "\"shift\": %s, \"before_ns\": %s, \"after_ns\": %s, \"backend\": \"%s\", \"variant\": \"%s\"}",
            l ? ", " : "", layer->name, layer->accepted ? "true" : "false", precision, numbers[0], numbers[1],
            numbers[2], numbers[3], numbers[4], numbers[5], layer->backend, layer->variant);
    }
    sl_buf_append_text(buf, "], \"file\": ");
    if (r->is_written)
        sl_buf_printf(buf, "\"%s/quantization.json\"}\n", sl_session_get_folder(session));
    else
        sl_buf_append_text(buf, "null}\n");
}

static void write_split(struct sl_buf *buf, const char *title, const struct sl_quantized_split *split)
{
    char cells[3][SL_TEXT_NUMBER_BYTES];
    sl_buf_printf(buf, "\n%-16s %-12s %-12s %s\n", title, "before", "after", "change");
    for (int32_t m = 0; m < split->before.count; m++) {
        const double before = split->before.items[m].value, after = split->after.items[m].value;
        sl_text_snprintf(cells[0], sizeof cells[0], "%.6g", before);
        sl_text_snprintf(cells[1], sizeof cells[1], "%.6g", after);
        if (before > 0 || before < 0)
            sl_text_snprintf(cells[2], sizeof cells[2], "%+.2f %%", sl_text_unsign_nan(100 * (after / before - 1)));
        else /* there is no share of nothing */
            sl_text_snprintf(cells[2], sizeof cells[2], after == before ? "+0.00 %%" : "-");
        sl_buf_printf(buf, "%-16s %-12s %-12s %s\n", split->before.items[m].name, cells[0], cells[1], cells[2]);
    }
    if (split->clipped.clipped > 0)
        sl_buf_printf(buf, "    clipped: %lld of %lld values were outside the ranges\n",
                      (long long)split->clipped.clipped, (long long)split->clipped.values);
}

static void write_table(struct sl_buf *buf, const struct sl_quantize_result *r)
{
    char step[SL_TEXT_NUMBER_BYTES];
    sl_buf_printf(buf, "%-16s %-22s %-16s %-22s %s\n", "layer", "range", "step", "runs on", "time");
    for (int32_t l = 0; l < r->count; l++) {
        const struct sl_quantized_report *layer = &r->layers[l];
        char range[48], on[64], time[64];
        sl_text_snprintf(range, sizeof range, "-");
        sl_text_snprintf(step, sizeof step, "-");
        if (layer->dtype == SEQLSTM_DTYPE_INT8) {
            sl_text_snprintf(range, sizeof range, "%.4g .. %.4g", layer->low, layer->high);
            sl_text_snprintf(step, sizeof step, "%.3g", 1 / (double)layer->scale);
        }
        sl_text_snprintf(on, sizeof on, "%s:%s %s", layer->backend, layer->variant,
                         layer->accepted ? sl_dtype_name(layer->dtype) : "");
        sl_text_snprintf(time, sizeof time, "%.3g ms -> %.3g ms, %.2fx", layer->before_ns * 1e-6,
                         layer->after_ns * 1e-6, layer->before_ns / layer->after_ns);
        sl_buf_printf(buf, "%-16s %-22s %-16s %-22s %s\n", layer->name, range, step, on, time);
        if (!layer->accepted)
            sl_buf_printf(buf, "    unchanged: %s\n", layer->reason);
        else if (layer->cause[0] != '\0')
            sl_buf_printf(buf, "    %s: %s\n", sl_dtype_name(layer->dtype), layer->cause);
    }
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        if (is_compared(r, split))
            write_split(buf, TITLES[split], &r->splits[split]);
}

/* Lower precision is for speed, but small layers may become slower. */
static void warn_of_loss(const struct cli_context *cli, const struct sl_session *session,
                         const struct sl_quantize_result *r)
{
    double before_ns = 0, after_ns = 0;
    for (int32_t l = 0; l < r->count; l++) {
        before_ns += r->layers[l].accepted ? r->layers[l].before_ns : 0;
        after_ns += r->layers[l].accepted ? r->layers[l].after_ns : 0;
    }
    if (after_ns > 1.05 * before_ns)
        sl_log_printf(
            &cli->log, SL_LOG_WARN,
            "the layers took %.2f times as long as before on this machine; delete %s/quantization.json to go back",
            after_ns / before_ns, sl_session_get_folder(session));
}

/* The split on which the judged metric loses most. */
static int find_worst(const struct sl_quantize_result *r)
{
    int worst = r->main;
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        if (is_compared(r, split) && !(r->splits[split].loss <= r->splits[worst].loss))
            worst = split;
    return worst;
}

static int refuse(struct cli_context *cli, const struct sl_quantize_result *r, const char *bound)
{
    const int worst = find_worst(r);
    char message[256], loss[32];
    sl_text_snprintf(loss, sizeof loss, "%.2g %%", 100 * r->splits[worst].loss);
    snprintf(
        message, sizeof message,
        "quantized, the run has a %s that is %s worse on the %s data, more than %s allows: quantization.json is not "
        "written",
        r->metric, isfinite(r->splits[worst].loss) ? loss : "infinitely", TITLES[worst], bound);
    const struct sl_diagnostic finding = {
        .code = "E0508",
        .message = message,
        .help = "the run stays in float32; `--max-regress SHARE` allows more, `--force` writes it all the same"};
    sl_diagnostics_add(cli->diagnostics, &finding);
    cli_show_diagnostics(cli);
    return CLI_FAILURE;
}

static int report(struct cli_context *cli, const struct sl_session *session, const struct sl_quantize_result *result)
{
    struct sl_buf buf = {0};
    if (cli->json)
        write_json(&buf, session, result);
    else
        write_table(&buf, result);
    const int code = cli_write_out(cli, &buf);
    sl_buf_deinit(&buf);
    if (code != CLI_OK)
        return code;
    const char *bound = cli_get(cli, "max-regress");
    if (!result->is_written)
        return refuse(cli, result, bound ? bound : "1%");
    cli_note(cli, "wrote %s/quantization.json; eval, predict, embed and generate now use it",
             sl_session_get_folder(session));
    if (result->is_too_bad)
        sl_log_printf(&cli->log, SL_LOG_WARN, "%s is worse than --max-regress allows; written because of --force",
                      result->metric);
    warn_of_loss(cli, session, result);
    return CLI_OK;
}

static int quantize(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    cli->options.writes = true;
    struct sl_quantize_result result = {.metric = ""};
    struct sl_quantize_request request = {.bound = 0.01, .force = cli_has(cli, "force")};
    if (!cli_get_share(cli, "max-regress", &request.bound))
        return CLI_USAGE;
    int code = cli_open_run(cli, cli->values.operands[0], &session);
    if (code == CLI_OK) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_status status = sl_session_quantize(session, &request, &result, &err);
        code = status == SEQLSTM_OK ? report(cli, session, &result) : cli_fail(cli, status, &err);
    }
    free(result.layers);
    sl_session_close(session);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "max-regress",
     .argument = "SHARE",
     .help = "by how much the first metric of validation may become worse, such as 5% (default 1%)"},
    {.name = "force", .help = "write quantization.json even if the metric becomes worse than that"},
    {0},
};

const struct cli_command cli_command_quantize = {
    .name = "quantize",
    .summary = "convert the recurrent layers of a run to int8, for inference",
    .usage = "RUN [flags]",
    .examples = "  seqlstm quantize runs/ptb-medium/001\n"
                "  seqlstm eval runs/ptb-medium/001\n",
    .text = "Measures value ranges on the data for training and validation, shows the\n"
            "metrics before and after on validation and test data, and writes\n"
            "RUN/quantization.json. From then on eval, predict, embed and generate use this\n"
            "file, and warn of values outside the ranges. Delete it to return to float32.\n"
            "A layer for which int8 is too inexact gets bfloat16, tf32 or what it has now.\n"
            "Nothing is written, and the exit status is 1, if the run is too inexact even so.\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .use = SL_RUN_USE_QUANTIZE,
    .operands_min = 1,
    .operands_max = 1,
    .run = quantize,
};
