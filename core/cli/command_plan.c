/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm plan */
#include "cli/cli.h"
#include "dispatch/explain.h"

static int plan(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    int code = cli_open_model(cli, cli->values.operands[0], &session);
    if (code != CLI_OK)
        return code;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_plan *made = NULL;
    struct sl_buf buf = {0};
    seqlstm_status status = sl_session_make_plan(session, &made, &err);
    if (status == SEQLSTM_OK && cli->json)
        status = sl_session_write_plan_json(session, made, &buf, &err);
    else if (status == SEQLSTM_OK)
        sl_plan_write_table(made, sl_session_find_plan(session, SL_PHASE_EVALUATE), false, &buf);
    if (status != SEQLSTM_OK)
        code = cli_fail(cli, status, &err);
    else if (!cli_write_out(cli, &buf))
        code = CLI_FAILURE;
    sl_buf_deinit(&buf);
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_plan = {
    .name = "plan",
    .summary = "which backend runs which layer, why not another, and the memory",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm plan model.yaml\n"
                "  seqlstm plan model.yaml --json > plan.json\n"
                "  seqlstm run model.yaml --plan plan.json\n",
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = plan,
};
