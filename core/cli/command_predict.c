/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm predict */
#include "cli/prediction_writer.h"

static const struct cli_flag flags[] = {
    {"input", 'i', "FILE", NULL, "what to predict; - is standard input (default -)", false, NULL},
    {"format", 'f', "FORMAT", NULL, "text, csv, jsonl or npy (default: jsonl with --json, else text)", false, NULL},
    {"with-input", 0, NULL, NULL, "repeat the input beside its prediction", false, NULL},
    {0},
};

static int predict(struct cli_context *cli)
{
    struct cli_prediction_writer writer;
    struct sl_session *session = NULL;
    int code = cli_prediction_writer_init(&writer, cli, CLI_PREDICTION_TEXT);
    if (code != CLI_OK)
        return code;
    code = cli_open_run(cli, cli->values.operands[0], &session);
    if (code == CLI_OK) {
        const struct sl_data_state *state = sl_session_find_data_state(session);
        const char *path = cli_get(cli, "input");
        struct sl_input_request request = {.path = path ? path : "-"};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (state)
            cli_prediction_writer_begin(&writer, state);
        seqlstm_status status = sl_session_predict(session, &request, cli_prediction_writer_add, &writer, &err);
        if (status == SEQLSTM_OK)
            status = cli_prediction_writer_end(&writer, &err);
        if (status != SEQLSTM_OK)
            code = cli_fail(cli, status, &err);
    }
    cli_prediction_writer_deinit(&writer);
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_predict = {
    .name = "predict",
    .summary = "predictions of a saved run, one per input, in input order",
    .usage = "RUN [--input FILE] [flags]",
    .examples = "  seqlstm predict japanese-vowels --input test.csv --format csv\n"
                "  echo 'a fine film' | seqlstm predict sst --with-input\n",
    .text = "Class name and probability, or values in the units of the file; of an encoder and a decoder the text\n"
            "that they write (`--set decode.beam=5` and the like change how). Reads the format of the training data.\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = predict,
};
