/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm backends */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/backend.h>

#include "base/value/json_tree.h"
#include "cli/cli.h"
#include "registry/registry.h"

static json_t *write_record(const struct sl_backend_record *record)
{
    json_t *devices = json_array(), *files = json_array(), *options = json_array();
    for (uint32_t d = 0; d < record->device_count; d++)
        devices = sl_json_add(devices, json_pack("{s:s,s:s,s:s}", "name", record->devices[d].name, "class",
                                                 record->devices[d].device_class, "domain", record->devices[d].domain));
    for (uint32_t f = 0; f < record->file_count; f++)
        files = sl_json_add(files, json_pack("{s:o,s:s}", "path", sl_json_text(record->files[f].path), "build_id",
                                             record->files[f].build_id));
    for (uint32_t o = 0; o < record->option_count; o++)
        options = sl_json_add(options, json_pack("{s:s,s:s,s:s?,s:s}", "key", record->options[o].key, "type",
                                                 record->options[o].type, "default", record->options[o].default_value,
                                                 "help", record->options[o].help));
    char abi[32] = "";
    if (record->has_abi)
        snprintf(abi, sizeof abi, "%u.%u", record->abi_major, record->abi_minor_needed);
    return json_pack("{s:s,s:o,s:s,s:s?,s:s,s:o,s:o,s:s?,s:o,s:o,s:o}", "id", record->id, "file",
                     sl_json_text(record->file), "status", sl_backend_status_name(record->status), "version",
                     record->version, "abi", abi, "reason", sl_json_text(record->reason), "dlerror",
                     sl_json_text(record->dlerror), "build", record->build, "devices", devices, "files", files,
                     "options", options);
}

static int print_json(struct cli_context *cli, const struct sl_registry *registry)
{
    json_t *backends = json_array(), *searched = json_array();
    for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++)
        backends = sl_json_add(backends, write_record(sl_registry_get_record(registry, r)));
    for (uint32_t f = 0; f < sl_registry_get_folder_count(registry); f++)
        searched = sl_json_add(searched, sl_json_text(sl_registry_get_folder(registry, f)));
    json_t *root =
        json_pack("{s:s,s:o,s:o}", "schema", "seqlstm.backends/1", "backends", backends, "searched", searched);
    return cli_write_json(cli, root);
}

/* Which CUDA devices there are, and in what order, is up to this variable. */
static void print_visible(const struct sl_backend_record *record)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible && record->status == SL_BACKEND_OK && strncmp(record->devices[0].device_class, "cuda", 4) == 0)
        cli_say(stdout,
                "    CUDA_VISIBLE_DEVICES=%.200s: `device: cuda:0` is the first of these, other devices are hidden\n",
                visible);
}

static void print_record(const struct cli_context *cli, const struct sl_backend_record *record)
{
    cli_say(stdout, "%-14s %-12s", record->id[0] ? record->id : "?", sl_backend_status_name(record->status));
    if (record->status == SL_BACKEND_OK) {
        cli_say(stdout, " %-10s", record->version ? record->version : "");
        for (uint32_t d = 0; d < record->device_count; d++)
            cli_say(stdout, "%s%s (%s)", d ? ", " : " ", record->devices[d].name, record->devices[d].device_class);
    } else if (record->reason) {
        cli_say(stdout, " %s", record->reason);
    }
    cli_say(stdout, "\n");
    print_visible(record);
    if (cli->verbosity < 1)
        return;
    cli_say(stdout, "    file     %s\n", record->file ? record->file : "built in");
    if (record->dlerror)
        cli_say(stdout, "    dlerror  %s\n", record->dlerror);
    if (record->has_abi)
        cli_say(stdout, "    ABI      %u.%u (this program: %u.%u)\n", record->abi_major, record->abi_minor_needed,
                SEQLSTM_ABI_MAJOR, SEQLSTM_ABI_MINOR);
    if (record->build)
        cli_say(stdout, "    build    %s\n", record->build);
    for (uint32_t o = 0; o < record->option_count; o++)
        cli_say(stdout, "    option   %s (%s, default %s): %s\n", record->options[o].key, record->options[o].type,
                record->options[o].default_value ? record->options[o].default_value : "none", record->options[o].help);
    for (uint32_t f = 1; f < record->file_count; f++)
        cli_say(stdout, "    needs    %s%s%s\n", record->files[f].path, record->files[f].build_id[0] ? "  " : "",
                record->files[f].build_id);
}

static int backends(struct cli_context *cli)
{
    int code = cli_prepare(cli, NULL);
    if (code != CLI_OK)
        return code;
    struct sl_registry *registry = NULL;
    code = cli_open_registry(cli, true, &registry);
    if (code != CLI_OK)
        return code;
    if (cli->json) {
        code = print_json(cli, registry);
    } else {
        for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++)
            print_record(cli, sl_registry_get_record(registry, r));
        if (cli->verbosity > 0) {
            cli_say(stdout, "searched\n");
            for (uint32_t f = 0; f < sl_registry_get_folder_count(registry); f++)
                cli_say(stdout, "    %s\n", sl_registry_get_folder(registry, f));
        }
    }
    sl_registry_destroy(registry);
    return code;
}

const struct cli_command cli_command_backends = {
    .name = "backends",
    .summary = "list all backends, and why one is not available",
    .usage = "[flags]",
    .examples = "  seqlstm backends\n"
                "  seqlstm backends -v          folders searched, dlerror, ABI numbers, options, dependencies\n",
    .takes_backend_flags = true,
    .run = backends,
};
