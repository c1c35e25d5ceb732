/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm inspect: shows the contents of a run, a checkpoint or a weights file. Loads no plugin. */
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/json_write.h"
#include "base/value/path.h"
#include "base/value/printable.h"
#include "cli/cli.h"
#include "interop/safetensors.h"

static void write_shape(struct sl_buf *buf, const struct sl_safetensors_entry *entry)
{
    sl_buf_append_char(buf, '[');
    for (int32_t d = 0; d < entry->rank; d++)
        sl_buf_printf(buf, "%s%lld", d ? ", " : "", (long long)entry->shape[d]);
    sl_buf_append_char(buf, ']');
}

static void write_entries(struct cli_context *cli, const struct sl_safetensors *file, struct sl_buf *buf)
{
    int64_t elems = 0;
    int32_t count = sl_safetensors_get_count(file);
    for (int32_t e = 0; e < count; e++) {
        const struct sl_safetensors_entry *entry = sl_safetensors_get_entry(file, e);
        elems += sl_safetensors_count_elems(entry);
        if (cli->json) {
            sl_buf_append_text(buf, e ? ", {\"name\": " : "{\"name\": ");
            sl_json_append_string(buf, entry->name);
            sl_buf_printf(buf, ", \"dtype\": \"%s\", \"shape\": ", sl_safetensors_dtype_get_name(entry->dtype));
        } else {
            char name[256];
            sl_printable_copy(name, sizeof name, entry->name, strlen(entry->name), "");
            sl_buf_printf(buf, "  %-40s %-5s ", name, sl_safetensors_dtype_get_name(entry->dtype));
        }
        write_shape(buf, entry);
        sl_buf_append_text(buf, cli->json ? "}" : "\n");
    }
    if (!cli->json)
        sl_buf_printf(buf, "%d tensor%s, %lld number%s\n", count, count == 1 ? "" : "s", (long long)elems,
                      elems == 1 ? "" : "s");
}

static int inspect_file(struct cli_context *cli, const char *path)
{
    struct sl_safetensors *file = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_safetensors_open(path, &file, &err);
    if (status != SEQLSTM_OK)
        return cli_fail(cli, status, &err);
    struct sl_buf buf = {0};
    const char *format = sl_safetensors_find_text(file, "format");
    bool has_checksum = sl_safetensors_find_text(file, "checksum") != NULL;
    status = has_checksum ? sl_safetensors_verify(file, &err) : SEQLSTM_OK;
    const char *word = !has_checksum ? "none" : status == SEQLSTM_OK ? "fine" : "wrong";
    if (cli->json) {
        sl_buf_append_text(&buf, "{\"schema\": \"seqlstm.inspect/1\", \"format\": ");
        sl_json_append_string(&buf, format ? format : "safetensors");
        sl_buf_printf(&buf, ", \"checksum\": \"%s\", \"tensors\": [", word);
    } else
        sl_buf_printf(&buf, "%s: %s, checksum %s\n", path, format ? format : "safetensors", word);
    write_entries(cli, file, &buf);
    if (cli->json)
        sl_buf_append_text(&buf, "]}\n");
    int code = cli_write_out(cli, &buf);
    if (status != SEQLSTM_OK)
        code = cli_fail(cli, status, &err);
    sl_buf_deinit(&buf);
    sl_safetensors_close(file);
    return code;
}

static int note_unfinished(struct cli_context *cli, const char *folder)
{
    char *checkpoints = sl_path_join(folder, "checkpoints");
    if (checkpoints == NULL)
        return cli_fail_memory(cli, "the paths of the run");
    if (sl_file_is_folder(checkpoints))
        cli_note(cli, "the run is not finished: it has no final.safetensors; its checkpoints are in %s", checkpoints);
    else
        cli_note(cli, "the run is not finished: it has neither final.safetensors nor a checkpoint");
    free(checkpoints);
    return CLI_OK;
}

static const struct cli_flag flags[] = {CLI_FLAG_TRUST, {0}};

/* Shows the final weights of a run, or a note if it is not finished. */
static int inspect_run(struct cli_context *cli, const char *run)
{
    struct sl_session *session = NULL;
    int code = cli_open_run(cli, run, &session);
    if (code == CLI_OK) {
        const char *folder = sl_session_get_folder(session);
        const struct sl_model *model = sl_session_get_model(session);
        char *path = sl_path_join(folder, "final.safetensors");
        if (!cli->json)
            cli_say(stdout, "%s: model `%s`, %zu layer%s\n", folder, model->name, model->layer_count,
                    model->layer_count == 1 ? "" : "s");
        code = path == NULL           ? cli_fail_memory(cli, "the paths of the run")
               : sl_file_exists(path) ? inspect_file(cli, path)
                                      : note_unfinished(cli, folder);
        free(path);
    }
    sl_session_close(session);
    return code;
}

static int inspect(struct cli_context *cli)
{
    const char *what = cli->values.operands[0];
    return sl_file_exists(what) && !sl_file_is_folder(what) ? inspect_file(cli, what) : inspect_run(cli, what);
}

const struct cli_command cli_command_inspect = {
    .name = "inspect",
    .summary = "show the contents of a run, a checkpoint or a weights file",
    .usage = "RUN | FILE.safetensors [flags]",
    .examples = "  seqlstm inspect ptb-small\n"
                "  seqlstm inspect runs/ptb-small/001/checkpoints/update-000000002324.safetensors\n",
    .flags = flags,
    .use = SL_RUN_USE_EXPORT,
    .operands_min = 1,
    .operands_max = 1,
    .run = inspect,
};
