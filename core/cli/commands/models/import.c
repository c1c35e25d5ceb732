/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm import: creates a run from weights that were trained elsewhere. Loads no plugin. */
#include <string.h>

#include "base/value/json_write.h"
#include "cli/cli.h"

enum { RENAMES_MAX = 64, RENAME_BYTES = 256 };

static const struct cli_flag flags[] = {
    {.name = "into", .argument = "model.yaml", .help = "model file that describes the network (required)"},
    {.name = "from",
     .argument = "FORMAT",
     .help = "format of FILE: auto, pytorch-names, keras-names, safetensors or onnx (default auto)"},
    {.name = "rename",
     .argument = "THEIRS=OURS",
     .repeats = true,
     .help = "the layer OURS is named THEIRS in the file; repeatable"},
    {.name = "out",
     .argument = "DIR",
     .env = "SEQLSTM_OUT",
     .help = "folder of the run; must be empty if it exists (default: runs/NAME/NNN)"},
    {0},
};

struct renames {
    struct sl_rename items[RENAMES_MAX];
    char theirs[RENAMES_MAX][RENAME_BYTES];
    size_t count;
};

static int collect_renames(struct cli_context *cli, struct renames *out)
{
    for (int i = 0; i < cli->values.count; i++) {
        if (strcmp(cli->values.items[i].flag->name, "rename") != 0)
            continue;
        const char *value = cli->values.items[i].value, *equals = strrchr(value, '=');
        size_t bytes = equals ? (size_t)(equals - value) : 0;
        if (bytes == 0 || bytes >= RENAME_BYTES || equals[1] == '\0')
            return cli_usage_error(cli, "`--rename %s`: expected THEIRS=OURS, as in encoder.rnn=lstm_1", value);
        if (out->count == RENAMES_MAX)
            return cli_usage_error(cli, "too many renames");
        memcpy(out->theirs[out->count], value, bytes);
        out->theirs[out->count][bytes] = '\0';
        out->items[out->count] = (struct sl_rename){out->theirs[out->count], equals + 1};
        out->count++;
    }
    return CLI_OK;
}

static int find_format(struct cli_context *cli, enum sl_weights_format *out)
{
    static const struct {
        const char *name;
        enum sl_weights_format format;
    } formats[] = {{"auto", SL_WEIGHTS_AUTO},
                   {"safetensors", SL_WEIGHTS_CANONICAL},
                   {"pytorch-names", SL_WEIGHTS_PYTORCH},
                   {"keras-names", SL_WEIGHTS_KERAS},
                   {"onnx", SL_WEIGHTS_ONNX}};
    const char *said = cli_get(cli, "from");
    *out = SL_WEIGHTS_AUTO;
    if (said == NULL)
        return CLI_OK;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        if (strcmp(said, formats[f].name) == 0) {
            *out = formats[f].format;
            return CLI_OK;
        }
    return cli_usage_error(cli, "`--from %s`: expected auto, pytorch-names, keras-names, safetensors or onnx", said);
}

static int print_folder(struct cli_context *cli, const struct sl_session *session)
{
    struct sl_buf line = {0};
    if (cli->json) {
        sl_buf_append_text(&line, "{\"schema\": \"seqlstm.import/1\", \"run\": ");
        sl_json_append_string(&line, sl_session_get_folder(session));
        sl_buf_append_text(&line, "}\n");
    } else {
        sl_buf_printf(&line, "%s\n", sl_session_get_folder(session));
    }
    int code = cli_write_out(cli, &line);
    sl_buf_deinit(&line);
    return code;
}

static int import(struct cli_context *cli)
{
    struct renames renames = {.count = 0};
    struct sl_import_request request = {.path = cli->values.operands[0], .renames = renames.items};
    struct sl_session *session = NULL;
    const char *model = cli_get(cli, "into");
    if (model == NULL)
        return cli_usage_error(cli, "`--into model.yaml` is missing: the model file that describes the network");
    int code = find_format(cli, &request.format);
    if (code == CLI_OK)
        code = collect_renames(cli, &renames);
    request.rename_count = renames.count;
    if (code == CLI_OK)
        code = cli_open_model(cli, model, &session);
    if (code == CLI_OK) {
        struct sl_buf notes = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_status status = sl_session_import(session, &request, &notes, &err);
        cli_note_lines(cli, sl_buf_text(&notes));
        code = status == SEQLSTM_OK ? print_folder(cli, session) : cli_fail(cli, status, &err);
        sl_buf_deinit(&notes);
    }
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_import = {
    .name = "import",
    .summary = "create a run from weights that were trained elsewhere",
    .usage = "FILE --into model.yaml [flags]",
    .examples = "  seqlstm import theirs.safetensors --into model.yaml\n"
                "  seqlstm import torch.safetensors --into model.yaml --rename encoder.rnn=lstm_1\n"
                "  seqlstm import theirs.onnx --into model.yaml\n",
    .text = "Reads the training data (for vocabulary and scaling), loads the weights into\n"
            "the model, creates a run folder and prints its name. eval, predict, generate\n"
            "and export work on that run. The file must contain every parameter with the\n"
            "right shape. To continue training, set `train: {init_from: RUN}`.\n",
    .flags = flags,
    .takes_model_flags = true,
    .operands_min = 1,
    .operands_max = 1,
    .run = import,
};
