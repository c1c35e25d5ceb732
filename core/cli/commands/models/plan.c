/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm plan: for a model file, training and evaluation; for a run, the evaluation that `seqlstm eval` does. */
#include <string.h>

#include "base/system/file.h"
#include "cli/cli.h"
#include "cli/commands/models/plan_ranks.h"
#include "dispatch/explain/explain.h"

static seqlstm_status plan_model(struct cli_context *cli, struct sl_session *session, struct sl_buf *out,
                                 struct seqlstm_error *err)
{
    const struct sl_plan *made = NULL;
    SEQLSTM_TRY(sl_session_make_plan(session, &made, err));
    if (cli->json)
        return sl_session_write_plan_json(session, made, out, err);
    sl_session_write_plan_table(session, made, false, out);
    return SEQLSTM_OK;
}

static seqlstm_status plan_run(struct cli_context *cli, struct sl_session *session, struct sl_buf *out,
                               struct seqlstm_error *err)
{
    const struct sl_plan *made = NULL;
    const enum sl_split split = sl_dataset_choose_split(sl_session_get_model(session));
    SEQLSTM_TRY(sl_session_plan_evaluation(session, split, &made, err));
    if (cli->json)
        return sl_session_write_plan_json(session, made, out, err);
    sl_session_write_plan_table(session, made, false, out);
    return SEQLSTM_OK;
}

/* Whether it is a folder, or the name of a run: no file exists there, and it has no extension. */
static bool is_run_name(const char *operand)
{
    const char *name = strrchr(operand, '/');
    return sl_file_is_folder(operand) || (!sl_file_exists(operand) && !strchr(name ? name : operand, '.'));
}

static int plan(struct cli_context *cli)
{
    const char *operand = cli->values.operands[0];
    const bool is_run = is_run_name(operand);
    struct sl_session *session = NULL;
    if (cli_get(cli, "ranks"))
        return is_run ? cli_usage_error(cli, "`--ranks` needs a model file, and `%s` is a run", operand)
                      : cli_plan_ranks(cli);
    if (cli_get(cli, "link") || cli_get(cli, "html") || cli_has(cli, "grow-batch"))
        return cli_usage_error(cli, "`--link`, `--grow-batch` and `--html` have a use with `--ranks` only");
    int code = is_run ? cli_open_run(cli, operand, &session) : cli_open_model(cli, operand, &session);
    if (code != CLI_OK)
        return code;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf buf = {0};
    seqlstm_status status = is_run ? plan_run(cli, session, &buf, &err) : plan_model(cli, session, &buf, &err);
    if (status != SEQLSTM_OK)
        code = cli_fail(cli, status, &err);
    else if ((code = cli_write_out(cli, &buf)) == CLI_OK && !is_run &&
             (status = sl_session_check_container(session, &err)) != SEQLSTM_OK)
        code = cli_fail(cli, status, &err);
    sl_buf_deinit(&buf);
    sl_session_close(session);
    return code;
}

static const struct cli_flag plan_flags[] = {
    {.name = "ranks",
     .argument = "LIST",
     .help = "predict the time of an update on so many ranks instead, as in 1,2,4,64,1024"},
    {.name = "link",
     .argument = "LINK",
     .help = "with --ranks: rate and latency between hosts, as in 100Gb/s,5us[,nvlink=[8x]300GB/s]"},
    {.name = "grow-batch", .help = "with --ranks: each rank has a batch as large as the model's"},
    {.name = "html", .argument = "FILE", .writes = true, .help = "with --ranks: also write a page with a plot"},
    {0},
};

const struct cli_command cli_command_plan = {
    .name = "plan",
    .summary = "show which backend runs each layer, the reasons, and the memory",
    .usage = "model.yaml|RUN [flags]",
    .examples = "  seqlstm plan model.yaml\n"
                "  seqlstm plan model.yaml --json > plan.json\n"
                "  seqlstm run model.yaml --plan plan.json\n"
                "  seqlstm plan model.yaml --ranks 1,2,4,64 --link 100Gb/s,5us\n"
                "  seqlstm plan runs/ptb-small/001      what eval does, in int8 where quantize said so\n",
    .text = "For a model file, it shows the plan for training and evaluation. For a run, it\n"
            "shows the plan and memory of the evaluation that `seqlstm eval RUN` would do.\n"
            "With --ranks, as many ranks as there are cores, or GPUs if layers run there, time\n"
            "training steps together; what more hosts and the link between them add is\n"
            "computed.\n",
    .flags = plan_flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .use = SL_RUN_USE_PLAN,
    .operands_min = 1,
    .operands_max = 1,
    .run = plan,
};
