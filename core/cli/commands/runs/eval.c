/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm eval */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file_error.h"
#include "base/value/json_write.h"
#include "base/value/text.h"
#include "cli/cli.h"

static const struct cli_flag flags[] = {
    {.name = "split",
     .argument = "SPLIT",
     .words = "train valid test",
     .help = "evaluate on train, valid or test (default: test, else valid, else train)"},
    {.name = "input",
     .letter = 'i',
     .argument = "FILE",
     .key = "data.test.file",
     .help = "evaluate on this file, in the format of the training data with its targets"},
    {0},
};

static int find_split(const struct cli_context *cli, const struct sl_model *model, enum sl_split *out)
{
    const char *said = cli_get(cli, "split");
    if (said && cli_get(cli, "input"))
        return cli_usage_error(cli, "`--input` names the data, so `--split` has no use");
    if (said == NULL) {
        *out = cli_get(cli, "input") ? SL_SPLIT_TEST : sl_dataset_choose_split(model);
        return CLI_OK;
    }
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        if (strcmp(said, sl_split_get_name((enum sl_split)split)) == 0) {
            *out = (enum sl_split)split;
            return CLI_OK;
        }
    return cli_usage_error(cli, "`--split %s`: expected train, valid or test", said);
}

/* The beginning of the JSON; `input` NULL: the data are a split of the model. */
static void print_head(const char *input, const char *split, struct sl_buf *out)
{
    sl_buf_append_text(out, "{\"schema\": \"seqlstm.eval/1\", \"split\": ");
    sl_json_append_string(out, input ? NULL : split);
    if (input) {
        sl_buf_append_text(out, ", \"input\": ");
        sl_json_append_string(out, input);
    }
    sl_buf_append_text(out, ", \"metrics\": {");
}

static int print(struct cli_context *cli, const char *split, const struct sl_metric_values *values)
{
    struct sl_buf buf = {0};
    const char *input = cli_get(cli, "input");
    char number[SL_TEXT_NUMBER_BYTES];
    if (cli->json)
        print_head(input, split, &buf);
    else
        sl_buf_printf(&buf, "%-15s %s\n", input ? "input" : "split", input ? input : split);
    for (int32_t m = 0; m < values->count; m++) {
        bool finite = values->items[m].value - values->items[m].value == 0;
        sl_text_print_float64(number, values->items[m].value);
        if (cli->json) {
            sl_buf_printf(&buf, "%s\"%s\": %s", m ? ", " : "", values->items[m].name, finite ? number : "null");
        } else {
            sl_text_snprintf(number, sizeof number, "%.6g", values->items[m].value);
            sl_buf_printf(&buf, "%-15s %s\n", values->items[m].name, number);
        }
    }
    const char *signatures = "}, \"signatures\": {";
    for (int32_t m = 0; cli->json && m < values->count; m++) {
        if (values->items[m].signature == NULL)
            continue;
        sl_buf_printf(&buf, "%s\"%s\": \"%s\"", signatures, values->items[m].name, values->items[m].signature);
        signatures = ", ";
    }
    if (cli->json)
        sl_buf_append_text(&buf, "}}\n");
    int code = cli_write_out(cli, &buf);
    sl_buf_deinit(&buf);
    return code;
}

/* A measurement that is no number is not a success. */
static int judge(struct cli_context *cli, enum sl_split split, const struct sl_metric_values *values)
{
    const struct sl_metric_value *unsound = sl_metric_values_find_unsound(values);
    if (unsound == NULL)
        return CLI_OK;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char data[320];
    const char *input = cli_get(cli, "input");
    sl_text_snprintf(data, sizeof data, input ? "%s" : "the %s split", input ? input : sl_split_get_name(split));
    seqlstm_error_set(&err, SEQLSTM_NUMERIC, __FILE__, __LINE__, "the %s of %s is %s", unsound->name, data,
                      isnan(unsound->value) ? "not a number" : "infinite");
    return cli_fail(cli, SEQLSTM_NUMERIC, &err);
}

/* Names the file as `predict` does; an error of the model file would name its key. */
static int check_input(struct cli_context *cli)
{
    const char *input = cli_get(cli, "input");
    if (input == NULL || access(input, R_OK) == 0)
        return CLI_OK;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_file_fail(&err, errno, "cannot open", input);
    return cli_fail(cli, SEQLSTM_CORRUPT_DATA, &err);
}

static int eval(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    enum sl_split split = SL_SPLIT_TEST;
    const enum sl_log_level level = cli->log.level;
    /* the keys that --input changes say nothing that it does not */
    if (cli_get(cli, "input") && !cli_has(cli, "set") && level < SL_LOG_DEBUG)
        cli->log.level = SL_LOG_WARN;
    int code = check_input(cli);
    if (code == CLI_OK)
        code = cli_open_run(cli, cli->values.operands[0], &session);
    cli->log.level = level;
    if (code == CLI_OK)
        code = find_split(cli, sl_session_get_model(session), &split);
    if (code == CLI_OK) {
        struct sl_evaluation evaluation;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_status status = sl_session_evaluate(session, split, &evaluation, &err);
        if (status != SEQLSTM_OK)
            code = cli_fail(cli, status, &err);
        else
            code = print(cli, sl_split_get_name(split), &evaluation.values);
        if (code == CLI_OK)
            code = judge(cli, split, &evaluation.values);
    }
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_eval = {
    .name = "eval",
    .summary = "compute the metrics of a saved run",
    .usage = "RUN [--split test | --input FILE] [flags]",
    .examples = "  seqlstm eval runs/ptb-small/001\n"
                "  seqlstm eval ptb-small --split valid --json\n"
                "  seqlstm eval sales --input newer.csv\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .use = SL_RUN_USE_EVALUATE,
    .operands_min = 1,
    .operands_max = 1,
    .run = eval,
};
