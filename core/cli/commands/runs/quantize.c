/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm quantize */
#include <stdlib.h>

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

static void write_json(struct sl_buf *buf, const struct sl_session *session, const struct sl_quantize_result *r)
{
    char numbers[6][SL_TEXT_NUMBER_BYTES];
    sl_buf_append_text(buf, "{\"schema\": \"seqlstm.quantize/1\", \"split\": \"valid\", ");
    write_metrics_json(buf, "before", &r->before);
    write_metrics_json(buf, "after", &r->after);
    sl_buf_append_text(buf, "\"layers\": [");
    for (int32_t l = 0; l < r->count; l++) {
        const struct sl_quantized_report *layer = &r->layers[l];
        const double values[] = {layer->low,           layer->high,      (double)layer->scale,
                                 (double)layer->shift, layer->before_ns, layer->after_ns};
        for (int i = 0; i < 6; i++)
            sl_text_print_float64(numbers[i], values[i]);
        sl_buf_printf(buf,
                      "%s{\"name\": \"%s\", \"accepted\": %s, \"low\": %s, \"high\": %s, \"scale\": %s, "
                      "\"shift\": %s, \"before_ns\": %s, \"after_ns\": %s, \"backend\": \"%s\", \"variant\": \"%s\"}",
                      l ? ", " : "", layer->name, layer->accepted ? "true" : "false", numbers[0], numbers[1],
                      numbers[2], numbers[3], numbers[4], numbers[5], layer->backend, layer->variant);
    }
    sl_buf_append_text(buf, "], \"file\": ");
    sl_buf_printf(buf, "\"%s/quantization.json\"}\n", sl_session_get_folder(session));
}

static void write_table(struct sl_buf *buf, const struct sl_quantize_result *r)
{
    char cells[5][SL_TEXT_NUMBER_BYTES];
    sl_buf_printf(buf, "%-16s %-22s %-16s %-22s %s\n", "layer", "range", "step", "runs on", "time");
    for (int32_t l = 0; l < r->count; l++) {
        const struct sl_quantized_report *layer = &r->layers[l];
        char range[48], on[64], time[64];
        sl_text_snprintf(range, sizeof range, "%.4g .. %.4g", layer->low, layer->high);
        sl_text_snprintf(cells[0], sizeof cells[0], "%.3g", 1 / (double)layer->scale);
        sl_text_snprintf(on, sizeof on, "%s:%s%s", layer->backend, layer->variant, layer->accepted ? " int8" : "");
        sl_text_snprintf(time, sizeof time, "%.3g ms -> %.3g ms, %.2fx", layer->before_ns * 1e-6,
                         layer->after_ns * 1e-6, layer->before_ns / layer->after_ns);
        sl_buf_printf(buf, "%-16s %-22s %-16s %-22s %s\n", layer->name, range, cells[0], on, time);
        if (!layer->accepted)
            sl_buf_printf(buf, "    unchanged: %s\n", layer->reason);
    }
    sl_buf_printf(buf, "\n%-16s %-12s %-12s %s\n", "validation", "before", "after", "change");
    for (int32_t m = 0; m < r->before.count; m++) {
        const double before = r->before.items[m].value, after = r->after.items[m].value;
        sl_text_snprintf(cells[0], sizeof cells[0], "%.6g", before);
        sl_text_snprintf(cells[1], sizeof cells[1], "%.6g", after);
        sl_text_snprintf(cells[2], sizeof cells[2], "%+.2f %%",
                         before > 0 || before < 0 ? 100 * (after / before - 1) : 0);
        sl_buf_printf(buf, "%-16s %-12s %-12s %s\n", r->before.items[m].name, cells[0], cells[1], cells[2]);
    }
}

/* int8 is for speed, but small layers may become slower. */
static void warn_of_loss(const struct cli_context *cli, const struct sl_session *session,
                         const struct sl_quantize_result *r)
{
    double before_ns = 0, after_ns = 0;
    for (int32_t l = 0; l < r->count; l++) {
        before_ns += r->layers[l].accepted ? r->layers[l].before_ns : 0;
        after_ns += r->layers[l].accepted ? r->layers[l].after_ns : 0;
    }
    if (after_ns > 1.05 * before_ns)
        sl_log_printf(&cli->log, SL_LOG_WARN,
                      "int8 took %.2f times as long as before; delete %s/quantization.json to go back",
                      after_ns / before_ns, sl_session_get_folder(session));
}

static int quantize(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    struct sl_quantize_result result = {0};
    cli->options.writes = true;
    int code = cli_open_run(cli, cli->values.operands[0], &session);
    if (code == CLI_OK) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_status status = sl_session_quantize(session, &result, &err);
        if (status != SEQLSTM_OK) {
            code = cli_fail(cli, status, &err);
        } else {
            struct sl_buf buf = {0};
            if (cli->json)
                write_json(&buf, session, &result);
            else
                write_table(&buf, &result);
            if (!cli_write_out(cli, &buf))
                code = CLI_FAILURE;
            sl_buf_deinit(&buf);
            cli_note(cli, "wrote %s/quantization.json; eval, predict, embed and generate now use it",
                     sl_session_get_folder(session));
            warn_of_loss(cli, session, &result);
        }
    }
    free(result.layers);
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_quantize = {
    .name = "quantize",
    .summary = "convert the recurrent layers of a run to int8, for inference",
    .usage = "RUN [flags]",
    .examples = "  seqlstm quantize runs/ptb-medium/001\n"
                "  seqlstm eval runs/ptb-medium/001\n",
    .text = "Measures value ranges on the validation data, shows the metrics before and\n"
            "after, and writes RUN/quantization.json. From then on eval, predict, embed and\n"
            "generate use this file. Delete it to return to float32.\n",
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = quantize,
};
