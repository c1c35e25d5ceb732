/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm new backend, seqlstm new model */
#include <stdlib.h>
#include <string.h>

#include "base/system/file_writer.h"
#include "base/value/path.h"
#include "cli/cli.h"
#include "model/schema/schema.h"
#include "scaffold/scaffold.h"

typedef seqlstm_status scaffold_fn(const char *name, const char *folder, struct sl_buf *out_files,
                                   struct seqlstm_error *err);

/* Writes the schema that the first line of model.yaml names, for editors. */
static seqlstm_status write_schema(const char *folder, struct sl_buf *files, struct seqlstm_error *err)
{
    struct sl_buf schema = {0};
    char *path = sl_path_join(folder, "model.schema.json");
    seqlstm_status status = sl_schema_write_json(&schema, err);
    if (status == SEQLSTM_OK && (path == NULL || schema.failed))
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the schema");
    if (status == SEQLSTM_OK)
        status = sl_file_write(path, schema.data, schema.length_bytes, err);
    if (status == SEQLSTM_OK)
        sl_buf_printf(files, "%s\n", path);
    sl_buf_deinit(&schema);
    free(path);
    return status;
}

/* Prints the names of the files to stdout, and the next command to stderr. */
static int make(struct cli_context *cli, scaffold_fn *scaffold, const char *next)
{
    const char *name = cli->values.operands[0], *folder = cli_get(cli, "dir");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf files = {0};
    if (!folder)
        folder = name;
    seqlstm_status rc = scaffold(name, folder, &files, &err);
    if (rc == SEQLSTM_OK)
        rc = write_schema(folder, &files, &err);
    int code = rc == SEQLSTM_INVALID_CONFIG ? cli_usage_error(cli, "%s", err.message)
               : rc != SEQLSTM_OK           ? cli_fail(cli, rc, &err)
                                            : cli_write_out(cli, &files);
    if (code == CLI_OK)
        cli_note(cli, "next: cd %s && %s", folder, next);
    sl_buf_deinit(&files);
    return code;
}

static int new_backend(struct cli_context *cli)
{
    return make(cli, sl_scaffold_backend, "meson setup build && meson test -C build");
}

static int new_model(struct cli_context *cli)
{
    return make(cli, sl_scaffold_model, "seqlstm run model.yaml");
}

static const struct cli_flag backend_flags[] = {
    {.name = "dir", .argument = "DIR", .help = "folder to create; must be empty if it exists (default: NAME)"},
    {0},
};

static const struct cli_flag model_flags[] = {
    {.name = "dir", .argument = "DIR", .help = "folder to create; must be empty if it exists (default: KIND)"},
    {0},
};

const struct cli_command cli_command_new_backend = {
    .name = "new backend",
    .has_no_json = true,
    .summary = "create a project for a new backend",
    .usage = "NAME [flags]",
    .examples = "  seqlstm new backend mine\n"
                "  seqlstm new backend mine --dir ~/src/seqlstm-mine\n",
    .text = "Writes a meson project which needs only the installed headers. The backend\n"
            "runs LSTM layers: it uses the time loop that comes with the headers, and a\n"
            "matrix product of its own for you to make faster. Its test is `seqlstm\n"
            "conformance`. See docs/writing-a-backend.md.\n",
    .flags = backend_flags,
    .operands_min = 1,
    .operands_max = 1,
    .run = new_backend,
};

const struct cli_command cli_command_new_model = {
    .name = "new model",
    .has_no_json = true,
    .summary = "create a commented model file with sample data to start from",
    .usage = "KIND [flags]",
    .examples = "  seqlstm new model classify\n"
                "  seqlstm new model language_model --dir novel\n",
    .text = "The kinds are language_model, classify, tag, regress, forecast, seq2seq and\n"
            "autoencoder. Each runs as it is; replace the data with your own. An editor\n"
            "with a YAML server completes and checks model.yaml by model.schema.json.\n",
    .flags = model_flags,
    .operands_min = 1,
    .operands_max = 1,
    .run = new_model,
};
