/* SPDX-License-Identifier: Apache-2.0 */
/* Turns flags into the options of a session. */
#include <stdlib.h>
#include <string.h>

#include "base/system/absolute_path.h"
#include "base/system/file.h"
#include "cli/cli.h"
#include "session/run_folder/run_name.h"

static int add_override(struct cli_context *cli, size_t *count, const char *origin, const char *key, const char *value)
{
    if (*count == sizeof cli->overrides / sizeof *cli->overrides)
        return cli_usage_error(cli, "too many overrides");
    const char *assignment = value;
    if (key) {
        /* "seed=7", then "--seed" (the name of a variable stays as it is) */
        size_t key_bytes = strlen(key) + strlen(value) + 2, bytes = key_bytes + strlen(origin) + 3;
        char *text = malloc(bytes);
        if (text == NULL)
            return cli_fail_memory(cli, "the flags");
        snprintf(text, key_bytes, "%s=%s", key, value);
        snprintf(text + key_bytes, bytes - key_bytes, "%s%s", strncmp(origin, "SEQLSTM_", 8) == 0 ? "" : "--", origin);
        cli->override_texts[*count] = text;
        assignment = text;
        origin = text + key_bytes;
    }
    cli->overrides[(*count)++] = (struct sl_override){.origin = origin, .assignment = assignment};
    return CLI_OK;
}

/* `saved`: the model is that of a saved run, which environment variables do not change. */
static int collect(struct cli_context *cli, bool saved)
{
    size_t overrides = 0, overlays = 0;
    uint32_t folders = 0;
    for (int i = 0; i < cli->values.count; i++) {
        const struct cli_flag *flag = cli->values.items[i].flag;
        const char *value = cli->values.items[i].value;
        int code = CLI_OK;
        if (strcmp(flag->name, "config") == 0) {
            if (overlays == 64)
                return cli_usage_error(cli, "too many `--config` files");
            cli->overlays[overlays++] = value;
        } else if (strcmp(flag->name, "backend-path") == 0) {
            if (folders == 64)
                return cli_usage_error(cli, "too many `--backend-path` folders");
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            seqlstm_status status = sl_path_absolute(value, &cli->folders[folders], &err);
            if (status != SEQLSTM_OK)
                return cli_fail(cli, status, &err);
            if (!sl_file_is_folder(cli->folders[folders++]))
                return cli_usage_error(cli, "`--backend-path %s`: no such folder", value);
        } else if (strcmp(flag->name, "set") == 0) {
            if (strchr(value, '=') == NULL)
                return cli_usage_error(cli, "`--set %s`: expected KEY=VALUE, as in train.epochs=5", value);
            code = add_override(cli, &overrides, "--set", NULL, value);
        } else if (flag->key && cli_get(cli, flag->name) == value && !(saved && cli->values.items[i].from_env)) {
            code =
                add_override(cli, &overrides, cli->values.items[i].from_env ? flag->env : flag->name, flag->key, value);
        }
        if (code != CLI_OK)
            return code;
    }
    cli->model_request.overlays = cli->overlays;
    cli->model_request.overlay_count = overlays;
    cli->model_request.overrides = cli->overrides;
    cli->model_request.override_count = overrides;
    cli->options.backend_folders = (const char *const *)cli->folders;
    cli->options.backend_folder_count = folders;
    return CLI_OK;
}

/* Whether a flag was given, or its variable. Variables do not change a saved run. */
static bool is_said(const struct cli_context *cli, const char *flag, bool saved)
{
    for (int i = 0; i < cli->values.count; i++)
        if (strcmp(cli->values.items[i].flag->name, flag) == 0 && !(saved && cli->values.items[i].from_env))
            return true;
    return false;
}

/* Whether this command's flag of that name takes one number, not a list. */
static bool takes_one(const struct cli_context *cli, const char *flag)
{
    for (int i = 0; i < cli->values.count; i++)
        if (strcmp(cli->values.items[i].flag->name, flag) == 0 && strcmp(cli->values.items[i].flag->argument, "N") != 0)
            return false;
    return true;
}

int cli_prepare(struct cli_context *cli, const char *path)
{
    int code = collect(cli, path == NULL);
    if (code != CLI_OK)
        return code;
    if (path && sl_run_folder_is_run(path))
        return cli_usage_error(
            cli, "`%s` is a run, and `seqlstm %s` takes a model file\n  = help: %s", path, cli->command->name,
            "`seqlstm resume` continues a run, `seqlstm eval` measures it, and its config.yaml is its model");
    cli->model_request.path = path;
    cli->options.model = &cli->model_request;
    cli->options.forced_backend = cli_get(cli, "backend");
    cli->options.plan_path = cli_get(cli, "plan");
    cli->options.out_dir = cli_get(cli, "out");
    cli->options.trust = cli_has(cli, "trust");
    cli->options.log = &cli->log;
    cli->options.interrupt = cli->interrupt;
    const char *threads = takes_one(cli, "threads") ? cli_get(cli, "threads") : NULL;
    int64_t count = 0;
    if (threads && strcmp(threads, "auto") != 0 && !cli_get_int(cli, "threads", 1, SL_POOL_MEMBERS_MOST, &count))
        return CLI_USAGE;
    cli->options.threads = (int32_t)count;
    cli->options.threads_given = is_said(cli, "threads", path == NULL);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (cli->diagnostics == NULL && sl_diagnostics_create(&cli->diagnostics, &err) != SEQLSTM_OK)
        return cli_fail(cli, SEQLSTM_NO_MEMORY, &err);
    return CLI_OK;
}

void cli_release(struct cli_context *cli)
{
    for (size_t i = 0; i < sizeof cli->override_texts / sizeof *cli->override_texts; i++)
        free(cli->override_texts[i]);
    for (size_t f = 0; f < sizeof cli->folders / sizeof *cli->folders; f++)
        free(cli->folders[f]);
    sl_diagnostics_destroy(cli->diagnostics);
}
