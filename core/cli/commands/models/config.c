/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm config, seqlstm schema */
#include "cli/cli.h"
#include "model/schema/schema.h"

static const struct cli_flag config_flags[] = {
    {.name = "minimal", .help = "print only what was set, without the defaults"},
    {.name = "origin", .help = "print where each value comes from: file:line, flag or default"},
    {0},
};

static int finish(struct cli_context *cli, struct sl_buf *buf, seqlstm_status status, struct seqlstm_error *err)
{
    int code = status != SEQLSTM_OK ? cli_fail(cli, status, err) : cli_write_out(cli, buf);
    sl_buf_deinit(buf);
    return code;
}

static int config(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    int code = cli_open_model(cli, cli->values.operands[0], &session);
    if (code == CLI_OK) {
        unsigned flags =
            (cli_has(cli, "minimal") ? SL_CONFIG_MINIMAL : 0) | (cli_has(cli, "origin") ? SL_CONFIG_ORIGIN : 0);
        struct sl_buf buf = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_status status = sl_model_write_config(sl_session_get_model(session), flags, &buf, &err);
        code = finish(cli, &buf, status, &err);
    }
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_config = {
    .name = "config",
    .has_no_json = true,
    .summary = "print the effective configuration with defaults and overrides",
    .usage = "model.yaml [--minimal] [--origin] [flags]",
    .examples = "  seqlstm config model.yaml --set seed=7 --origin\n",
    .text = "The output is YAML which describes the same model.\n",
    .flags = config_flags,
    .takes_model_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = config,
};

static int schema(struct cli_context *cli)
{
    struct sl_buf buf = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_schema_write_json(&buf, &err);
    return finish(cli, &buf, status, &err);
}

const struct cli_command cli_command_schema = {
    .name = "schema",
    .summary = "print a JSON Schema of the model file, for editors",
    .usage = "",
    .examples = "  seqlstm schema > seqlstm.schema.json\n",
    .run = schema,
};
