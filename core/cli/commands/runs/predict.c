/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm predict */
#include "base/system/file_writer.h"
#include "cli/output/attention_page.h"
#include "cli/output/prediction_writer.h"

static const struct cli_flag flags[] = {
    CLI_FLAG_INPUT,
    CLI_FLAG_LENGTHS,
    {.name = "format",
     .letter = 'f',
     .argument = "FORMAT",
     .help = "output format: text, csv, jsonl or npy (default: jsonl with --json, else text)"},
    {.name = "probabilities", .help = "add the probability of each class (default format: csv)"},
    {.name = "columns",
     .argument = "LIST",
     .help = "add columns of the input, as in id,date; also `step` and `token` (default format: csv)"},
    {.name = "with-input", .help = "print the input text next to its prediction"},
    {.name = "stream", .help = "answer each line of the input as soon as it arrives"},
    {.name = "attention", .help = "add the attention weights of each text (default format: jsonl)"},
    {.name = "html", .argument = "FILE", .writes = true, .help = "with --attention: write an HTML page of heat maps"},
    {0},
};

struct state {
    struct cli_prediction_writer writer;
    bool attention;
    bool stream;
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

/* The answer is on its way before the next line is awaited. */
static seqlstm_status add_at_once(void *context, const struct sl_prediction *prediction, struct seqlstm_error *err)
{
    SEQLSTM_TRY(add(context, prediction, err));
    return cli_put("", 0, true, err);
}

static int read_flags(struct cli_context *cli, struct state *s)
{
    s->attention = cli_has(cli, "attention");
    s->page_path = cli_get(cli, "html");
    s->stream = cli_has(cli, "stream");
    if (s->stream && (s->attention || cli_has(cli, "lengths")))
        return cli_usage_error(cli, "`--stream` does not go with `--%s`", s->attention ? "attention" : "lengths");
    if (s->page_path && !s->attention)
        return cli_usage_error(cli, "`--html` needs `--attention`");
    if (s->stream && cli_has(cli, "columns"))
        return cli_usage_error(cli, "`--stream` does not go with `--columns`");
    int code = cli_prediction_writer_init(&s->writer, cli, s->attention ? CLI_PREDICTION_JSONL : CLI_PREDICTION_TEXT);
    if (code == CLI_OK && s->attention && s->page_path == NULL && s->writer.format != CLI_PREDICTION_JSONL)
        return cli_usage_error(cli, "`--attention` writes jsonl, or an HTML page with `--html FILE`");
    if (code == CLI_OK && s->stream && s->writer.format == CLI_PREDICTION_NPY)
        return cli_usage_error(cli,
                               "`--stream` writes text, csv or jsonl: an npy file begins with the number of records");
    return code;
}

static seqlstm_status check_columns(const struct cli_prediction_extras *extras, const struct sl_model *model,
                                    struct seqlstm_error *err)
{
    const enum sl_source_type type = model->data.splits[SL_SPLIT_TRAIN].type;
    if (extras->columns.count > 0 && type != SL_SOURCE_CSV && type != SL_SOURCE_TSV)
        SEQLSTM_FAIL(
            err, SEQLSTM_INVALID_CONFIG,
            "`--columns`: the input has no column `%s`, since this model reads `%s`, not a table; use `step` or "
            "`token`",
            extras->columns.items[0], sl_source_type_get_name(type));
    return SEQLSTM_OK;
}

static seqlstm_status work(struct cli_context *cli, struct sl_session *session, void *context,
                           struct seqlstm_error *err)
{
    struct state *s = context;
    const struct sl_data_state *state = sl_session_find_data_state(session);
    struct sl_input_request request = cli_get_input(cli);
    SEQLSTM_TRY(cli_prediction_writer_check(&s->writer, state, err));
    if (state)
        cli_prediction_writer_begin(&s->writer, state);
    if (s->page_path)
        cli_attention_page_begin(&s->page, sl_session_get_model(session)->name);
    SEQLSTM_TRY(check_columns(&s->writer.extras, sl_session_get_model(session), err));
    request.columns = s->writer.extras.columns.count > 0 ? &s->writer.extras.columns : NULL;
    if (s->stream)
        SEQLSTM_TRY(sl_session_predict_lines(session, request.path, add_at_once, s, err));
    else
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
    int code = read_flags(cli, &s);
    if (code == CLI_OK)
        code = cli_with_run(cli, work, &s);
    sl_buf_deinit(&s.page);
    cli_prediction_writer_deinit(&s.writer);
    return code;
}

const struct cli_command cli_command_predict = {
    .name = "predict",
    .summary = "predict with a saved run: one prediction per input, in order",
    .usage = "RUN [--input FILE] [flags]",
    .examples = "  seqlstm predict japanese-vowels --input test.csv --format csv\n"
                "  seqlstm predict sales --input new.csv --columns shop,date\n"
                "  seqlstm predict tagger --input new.conll --columns token --probabilities\n"
                "  echo 'a fine film' | seqlstm predict sst --with-input\n"
                "  echo 'ein hund rennt' | seqlstm predict translation --attention --html attention.html\n",
    .text = "A prediction is a class name with its probability, or values in the units of\n"
            "the data file. For a model with an encoder and a decoder, it is the text that\n"
            "the decoder writes; `--set decode.beam=5` and similar keys change how.\n"
            "`--attention` adds the weights of its attention layers: see docs/attention.md.\n"
            "The input has the format of the training data, without the targets. For\n"
            "`lines` with a label, only the text is read.\n"
            "With `--stream` a line is a text, or the next step of one sequence of numbers;\n"
            "an empty line begins a new sequence. See docs/streams.md.\n",
    .flags = flags,
    .takes_model_flags = true,
    .takes_backend_flags = true,
    .use = SL_RUN_USE_PREDICT,
    .operands_min = 1,
    .operands_max = 1,
    .run = predict,
};
