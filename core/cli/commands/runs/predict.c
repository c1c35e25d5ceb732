/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm predict */
#include "base/system/file.h"
#include "cli/output/attention_page.h"
#include "cli/output/prediction_writer.h"

static const struct cli_flag flags[] = {
    {.name = "input", .letter = 'i', .argument = "FILE", .help = "what to predict; - is standard input (default -)"},
    {.name = "lengths",
     .argument = "FILE",
     .help = "of npy: real steps of each sequence, a .npy of [N] integers (default: all)"},
    {.name = "format",
     .letter = 'f',
     .argument = "FORMAT",
     .help = "text, csv, jsonl or npy (default: jsonl with --json, else text)"},
    {.name = "with-input", .help = "repeat the text beside its prediction"},
    {.name = "attention", .help = "say with each text what its tokens looked at (default format: jsonl)"},
    {.name = "html", .argument = "FILE", .help = "with --attention: write a page of heat maps"},
    {0},
};

struct state {
    struct cli_prediction_writer writer;
    bool attention;
    const char *page_path; /* NULL: none */
    struct sl_buf page;
};

static seqlstm_status add(void *context, const struct sl_prediction *prediction, struct seqlstm_error *err)
{
    struct state *s = context;
    if (s->page_path)
        cli_attention_page_add(&s->page, prediction);
    return cli_prediction_writer_add(&s->writer, prediction, err);
}

static int read_flags(struct cli_context *cli, struct state *s)
{
    s->attention = cli_has(cli, "attention");
    s->page_path = cli_get(cli, "html");
    if (s->page_path && !s->attention)
        return cli_usage_error(cli, "`--html` shows what `--attention` asks for; say both");
    int code = cli_prediction_writer_init(&s->writer, cli, s->attention ? CLI_PREDICTION_JSONL : CLI_PREDICTION_TEXT);
    if (code == CLI_OK && s->attention && s->page_path == NULL && s->writer.format != CLI_PREDICTION_JSONL)
        return cli_usage_error(cli, "`--attention` is written as jsonl, or with `--html FILE` as a page");
    return code;
}

static seqlstm_status write(struct cli_context *cli, struct state *s, struct sl_session *session,
                            struct seqlstm_error *err)
{
    const struct sl_data_state *state = sl_session_find_data_state(session);
    const char *path = cli_get(cli, "input");
    struct sl_input_request request = {.path = path ? path : "-", .lengths = cli_get(cli, "lengths")};
    SEQLSTM_TRY(cli_prediction_writer_check(&s->writer, state, err));
    if (state)
        cli_prediction_writer_begin(&s->writer, state);
    if (s->page_path)
        cli_attention_page_begin(&s->page, sl_session_get_model(session)->name);
    SEQLSTM_TRY(sl_session_predict(session, &request, s->attention, add, s, err));
    SEQLSTM_TRY(cli_prediction_writer_end(&s->writer, err));
    if (s->page_path == NULL)
        return SEQLSTM_OK;
    cli_attention_page_end(&s->page);
    if (s->page.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the page");
    return sl_file_write(s->page_path, s->page.data, s->page.length_bytes, err);
}

static int predict(struct cli_context *cli)
{
    struct state s = {.page_path = NULL};
    struct sl_session *session = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int code = read_flags(cli, &s);
    if (code != CLI_OK)
        return code;
    code = cli_open_run(cli, cli->values.operands[0], &session);
    if (code == CLI_OK) {
        seqlstm_status status = write(cli, &s, session, &err);
        if (status != SEQLSTM_OK)
            code = cli_fail(cli, status, &err);
    }
    sl_buf_deinit(&s.page);
    cli_prediction_writer_deinit(&s.writer);
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_predict = {
    .name = "predict",
    .summary = "predictions of a saved run, one per input, in input order",
    .usage = "RUN [--input FILE] [flags]",
    .examples = "  seqlstm predict japanese-vowels --input test.csv --format csv\n"
                "  echo 'a fine film' | seqlstm predict sst --with-input\n"
                "  echo 'ein hund rennt' | seqlstm predict translation --attention --html attention.html\n",
    .text = "Class name and probability, or values in the units of the file; of an encoder and a decoder the text\n"
            "that they write (`--set decode.beam=5` and the like change how), and with\n"
            "`--attention` the weights of its attention layers: docs/attention.md. Reads the format of the training\n"
            "data, without the targets: of `lines` with a label the text alone.\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = predict,
};
