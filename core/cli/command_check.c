/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm check */
#include "cli/cli.h"

static int check(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    int code = cli_prepare(cli, cli->values.operands[0]);
    if (code != CLI_OK)
        return code;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_session_open_model(&cli->options, cli->diagnostics, &session, &err);
    size_t errors = sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_ERROR);
    if (cli->json) {
        struct sl_buf buf = {0};
        sl_buf_printf(&buf, "{\"schema\": \"seqlstm.check/1\", \"ok\": %s, \"diagnostics\": ",
                      status == SEQLSTM_OK ? "true" : "false");
        if (sl_diagnostics_write_json(cli->diagnostics, &buf, &err) == SEQLSTM_OK)
            sl_buf_append_text(&buf, "}\n");
        cli_write_out(cli, &buf);
        sl_buf_deinit(&buf);
    } else {
        cli_show_diagnostics(cli);
        if (status == SEQLSTM_OK)
            cli_note(cli, "%s: fine", cli->values.operands[0]);
        else if (errors == 0)
            cli_fail(cli, status, &err);
        else
            fprintf(stderr, "%zu error%s\n", errors, errors == 1 ? "" : "s");
    }
    sl_session_close(session);
    return status == SEQLSTM_OK ? CLI_OK : errors ? CLI_USAGE : cli_get_exit(status);
}

const struct cli_command cli_command_check = {
    .name = "check",
    .summary = "find all errors of a model file; nothing is started",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm check model.yaml\n"
                "  seqlstm check model.yaml --json\n",
    .text = "Loads no plugin and reads no data. `seqlstm plan` goes further.\n",
    .takes_model_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = check,
};
