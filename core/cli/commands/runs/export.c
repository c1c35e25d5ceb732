/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm export: writes the weights or the model of a run for other programs. Loads no plugin. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/json_write.h"
#include "cli/cli.h"

static const struct cli_flag flags[] = {
    {.name = "to",
     .argument = "FORMAT",
     .help = "format: safetensors, pytorch-names, keras-names or onnx (default: by the file extension)"},
    {.name = "file",
     .letter = 'f',
     .argument = "FILE",
     .writes = true,
     .help = "output file (default: NAME.safetensors or NAME.onnx)"},
    {.name = "force", .help = "replace the file if it exists"},
    CLI_FLAG_TRUST,
    {0},
};

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static int find_format(struct cli_context *cli, enum sl_weights_format *out)
{
    static const struct {
        const char *name;
        enum sl_weights_format format;
    } formats[] = {{"safetensors", SL_WEIGHTS_CANONICAL},
                   {"pytorch-names", SL_WEIGHTS_PYTORCH},
                   {"keras-names", SL_WEIGHTS_KERAS},
                   {"onnx", SL_WEIGHTS_ONNX}};
    const char *said = cli_get(cli, "to"), *file = cli_get(cli, "file");
    if (said == NULL && file && !ends_with(file, ".onnx") && !ends_with(file, ".safetensors"))
        return cli_usage_error(cli, "`%s` ends in neither .safetensors nor .onnx: choose the format with `--to`", file);
    if (said == NULL)
        said = file && ends_with(file, ".onnx") ? "onnx" : "safetensors";
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        if (strcmp(said, formats[f].name) == 0) {
            *out = formats[f].format;
            return CLI_OK;
        }
    return cli_usage_error(cli, "`--to %s`: expected safetensors, pytorch-names, keras-names or onnx", said);
}

static void print_files(struct cli_context *cli, const struct sl_buf *paths, int32_t count, struct sl_buf *out)
{
    if (!cli->json) {
        for (int32_t k = 0; k < count; k++)
            sl_buf_printf(out, "%s\n", paths[k].data);
        return;
    }
    sl_buf_append_text(out, count > 1 ? "{\"schema\": \"seqlstm.export/1\", \"files\": ["
                                      : "{\"schema\": \"seqlstm.export/1\", \"file\": ");
    for (int32_t k = 0; k < count; k++) {
        sl_buf_append_text(out, k ? ", " : "");
        sl_json_append_string(out, paths[k].data);
    }
    sl_buf_append_text(out, count > 1 ? "]}\n" : "}\n");
}

static int write_files(struct cli_context *cli, struct sl_session *session, enum sl_weights_format format,
                       const char *path, const struct sl_buf *paths, int32_t count)
{
    for (int32_t k = 0; k < count; k++)
        if (sl_file_exists(paths[k].data) && !cli_has(cli, "force"))
            return cli_usage_error(cli, "`%s` exists: use `--force` to replace it, or `--file` to write another file",
                                   paths[k].data);
    struct sl_buf notes = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_session_export(session, format, path, &notes, &err);
    int code = CLI_OK;
    if (status != SEQLSTM_OK) {
        code = cli_fail(cli, status, &err);
    } else {
        cli_note_lines(cli, sl_buf_text(&notes));
        struct sl_buf line = {0};
        print_files(cli, paths, count, &line);
        code = cli_write_out(cli, &line);
        sl_buf_deinit(&line);
    }
    sl_buf_deinit(&notes);
    return code;
}

static int write_file(struct cli_context *cli, struct sl_session *session, enum sl_weights_format format,
                      const char *path)
{
    struct sl_buf paths[2] = {{0}};
    int32_t count = sl_session_name_exports(session, format, path, paths);
    int code = paths[0].failed || paths[1].failed ? cli_fail_memory(cli, "the names of files")
                                                  : write_files(cli, session, format, path, paths, count);
    sl_buf_deinit(&paths[0]);
    sl_buf_deinit(&paths[1]);
    return code;
}

static int export_run(struct cli_context *cli)
{
    enum sl_weights_format format = SL_WEIGHTS_CANONICAL;
    struct sl_session *session = NULL;
    int code = find_format(cli, &format);
    if (code == CLI_OK)
        code = cli_open_run(cli, cli->values.operands[0], &session);
    if (code == CLI_OK) {
        struct sl_buf name = {0};
        const char *file = cli_get(cli, "file");
        sl_buf_printf(&name, "%s.%s", sl_session_get_model(session)->name,
                      format == SL_WEIGHTS_ONNX ? "onnx" : "safetensors");
        code = name.failed ? cli_fail_memory(cli, "the names of files")
                           : write_file(cli, session, format, file ? file : sl_buf_text(&name));
        sl_buf_deinit(&name);
    }
    sl_session_close(session);
    return code;
}

const struct cli_command cli_command_export = {
    .name = "export",
    .summary = "export the weights or the model of a run for other programs",
    .usage = "RUN [--to FORMAT] [--file FILE] [flags]",
    .examples = "  seqlstm export ptb-small --to pytorch-names --file ptb.safetensors\n"
                "  seqlstm export runs/airline/001 --file airline.onnx\n",
    .text = "onnx writes the whole model (opset 17; batch size and number of steps are\n"
            "free). A model with an encoder and a decoder becomes two files,\n"
            "NAME.encoder.onnx and NAME.decoder.onnx. The other formats write the weights\n"
            "to a safetensors file: pytorch-names are the names in a state_dict,\n"
            "keras-names the paths in Keras 3. The command prints the name of each file.\n",
    .flags = flags,
    .takes_model_flags = true,
    .use = SL_RUN_USE_EXPORT,
    .operands_min = 1,
    .operands_max = 1,
    .run = export_run,
};
