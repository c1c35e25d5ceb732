/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm check */
#include "base/value/json_write.h"
#include "cli/cli.h"

static const struct cli_flag flags[] = {
    {.name = "no-data", .help = "check the model file only; do not read the data"},
    {0},
};

static int write_json(struct cli_context *cli, seqlstm_status status, const struct seqlstm_error *failure)
{
    struct sl_buf buf = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_buf_printf(&buf,
                  "{\"schema\": \"seqlstm.check/1\", \"ok\": %s, \"error\": ", status == SEQLSTM_OK ? "true" : "false");
    sl_json_append_string(&buf, status == SEQLSTM_OK ? NULL : failure->message);
    sl_buf_append_text(&buf, ", \"diagnostics\": ");
    const seqlstm_status written = sl_diagnostics_write_json(cli->diagnostics, &buf, &err);
    sl_buf_append_text(&buf, "}\n");
    int code = written == SEQLSTM_OK ? cli_write_out(cli, &buf) : cli_fail(cli, written, &err);
    sl_buf_deinit(&buf);
    return code;
}

/* The model is that of all these files. */
static void note_success(const struct cli_context *cli)
{
    struct sl_buf files = {0};
    sl_buf_append_text(&files, cli->values.operands[0]);
    for (size_t o = 0; o < cli->model_request.overlay_count; o++)
        sl_buf_printf(&files, "%s%s", o ? ", " : " with ", cli->model_request.overlays[o]);
    cli_note(cli, "%s: no errors", files.failed ? cli->values.operands[0] : sl_buf_text(&files));
    sl_buf_deinit(&files);
}

static int check(struct cli_context *cli)
{
    struct sl_session *session = NULL;
    int code = cli_prepare(cli, cli->values.operands[0]);
    if (code != CLI_OK)
        return code;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_session_open_model(&cli->options, cli->diagnostics, &session, &err);
    if (status == SEQLSTM_OK && !cli_has(cli, "no-data")) {
        struct seqlstm_error second = SEQLSTM_ERROR_INIT;
        seqlstm_status parts = sl_session_find_missing_parts(session, &second);
        status = sl_session_find_missing_files(session) > 0
                     ? seqlstm_error_set(&err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__, "data files are missing")
                     : sl_session_check_data(session, &err);
        if (status == SEQLSTM_OK && parts != SEQLSTM_OK) {
            status = parts;
            err = second;
        }
    }
    size_t errors = sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_ERROR);
    if (cli->json) {
        code = write_json(cli, status, &err);
    } else {
        cli_show_diagnostics(cli);
        if (status == SEQLSTM_OK)
            note_success(cli);
        else if (errors == 0)
            cli_fail(cli, status, &err);
        else
            fprintf(stderr, "%zu error%s\n", errors, errors == 1 ? "" : "s");
    }
    sl_session_close(session);
    if (status == SEQLSTM_OK)
        return code;
    return status == SEQLSTM_NOT_FOUND || status == SEQLSTM_IO ? CLI_USAGE : cli_get_exit(status);
}

const struct cli_command cli_command_check = {
    .name = "check",
    .summary = "find all errors in a model file and its data; start nothing",
    .usage = "model.yaml [flags]",
    .examples = "  seqlstm check model.yaml\n"
                "  seqlstm check model.yaml --no-data --json\n",
    .text = "Reads the data of every split and the other files named in the model file, and\n"
            "finds all that `run` would refuse before it trains: widths, class weights,\n"
            "metrics and batches that do not fit. It loads no plugin; `seqlstm plan` does.\n",
    .flags = flags,
    .takes_model_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = check,
};
