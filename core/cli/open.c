/* SPDX-License-Identifier: Apache-2.0 */
/* Opens what a command works on: a model or a run, with a message if the name is neither, or all backends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "model/explain.h"
#include "registry/registry.h"
#include "session/run_folder/run_list.h"
#include "session/run_folder/run_name.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

/* Prefers the collected errors in the model file: they say more than `err`. */
static int fail_open(struct cli_context *cli, seqlstm_status status, const struct seqlstm_error *err)
{
    size_t errors = sl_diagnostics_count(cli->diagnostics, SL_SEVERITY_ERROR);
    if (errors == 0)
        return cli_show_diagnostics(cli), cli_fail(cli, status, err);
    cli_show_diagnostics(cli);
    fprintf(stderr, "%zu error%s; nothing was started.\n", errors, errors == 1 ? "" : "s");
    return err->native_code == EAGAIN ? CLI_FAILURE : CLI_USAGE; /* EAGAIN: another process holds the run */
}

int cli_open_model(struct cli_context *cli, const char *path, struct sl_session **out_session)
{
    int code = cli_prepare(cli, path);
    if (code != CLI_OK)
        return code;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_session_open_model(&cli->options, cli->diagnostics, out_session, &err);
    if (status != SEQLSTM_OK)
        return fail_open(cli, status, &err);
    cli_show_diagnostics(cli);
    return CLI_OK;
}

/* "the runs in runs/ are letters, tiny and 3 more", after `separator`; nothing if there are none. */
static void list_runs(const char *wanted, const char *separator, struct sl_buf *out)
{
    enum { SHOWN = 8 };
    char *names[SL_RUN_LIST_MOST];
    const size_t count = sl_run_folder_list("runs", names), shown = count < SHOWN ? count : SHOWN;
    const char *near = sl_text_closest(wanted, (const char *const *)names, count);
    if (near)
        sl_buf_printf(out, "did you mean `%s`? ", near);
    if (count > 0)
        sl_buf_printf(out, count == 1 ? "%sthe run in runs/ is " : "%sthe runs in runs/ are ", separator);
    for (size_t i = 0; i < shown; i++)
        sl_buf_printf(out, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", names[i]);
    if (count > shown)
        sl_buf_printf(out, " and %zu more", count - shown);
    for (size_t i = 0; i < count; i++)
        free(names[i]);
}

static bool has_ending(const char *path, const char *ending)
{
    const size_t length = strlen(path), bytes = strlen(ending);
    return length > bytes && strcmp(path + length - bytes, ending) == 0;
}

/* The operand is no run: says what it is, and which runs there are. */
static int refuse_run(const struct cli_context *cli, const char *said, const struct seqlstm_error *err)
{
    struct sl_buf help = {0}, text = {0};
    const bool is_model = has_ending(said, ".yaml") || has_ending(said, ".yml");
    const char *name = sl_path_name(said);
    char *folder = sl_path_folder(said);
    if (is_model && strcmp(name, "config.yaml") != 0 && sl_file_exists(said)) {
        sl_buf_printf(&text, "`%s` is a model file, and `seqlstm %s` takes a run", said, cli->command->name);
        sl_buf_printf(&help, "`seqlstm run %s` trains it", said);
        list_runs("", "; ", &help);
    } else if (folder && sl_file_exists(said) && sl_run_folder_is_run(folder)) {
        sl_buf_printf(&text, "`%s` is a file of a run", said);
        sl_buf_printf(&help, "give its folder: `seqlstm %s %s`", cli->command->name, folder);
    } else {
        sl_buf_append_text(&text, err->message);
        list_runs(said, "", &help);
        if (help.length_bytes == 0)
            sl_buf_append_text(&help, "there are no runs in runs/; `seqlstm run model.yaml` makes one");
    }
    sl_buf_printf(&text, "\n  = help: %s", sl_buf_text(&help));
    cli_print_error(cli, sl_explain_get_code(SEQLSTM_NOT_FOUND), NULL, sl_buf_text(&text));
    sl_buf_deinit(&help);
    sl_buf_deinit(&text);
    free(folder);
    return cli_get_exit(SEQLSTM_NOT_FOUND);
}

/* Whether the operand is what is missing, and not a file of the run. */
static bool is_no_run(const char *run)
{
    char *folder = NULL;
    const bool missing = sl_run_folder_find(run, NULL, &folder, NULL) == SEQLSTM_NOT_FOUND;
    free(folder);
    return missing;
}

int cli_open_run(struct cli_context *cli, const char *run, struct sl_session **out_session)
{
    int code = cli_prepare(cli, NULL);
    if (code != CLI_OK)
        return code;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    cli->options.use = cli->command->use;
    seqlstm_status status = sl_session_open_run(run, &cli->options, cli->diagnostics, out_session, &err);
    if (status == SEQLSTM_NOT_FOUND && is_no_run(run))
        return refuse_run(cli, run, &err);
    if (status != SEQLSTM_OK)
        return fail_open(cli, status, &err);
    sl_diagnostics_forget(cli->diagnostics); /* these warnings were printed when the run began */
    return CLI_OK;
}

int cli_with_run(struct cli_context *cli, cli_run_work_fn *work, void *state)
{
    struct sl_session *session = NULL;
    int code = cli_open_run(cli, cli->values.operands[0], &session);
    if (code == CLI_OK) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_status status = work(cli, session, state, &err);
        if (status != SEQLSTM_OK)
            code = cli_fail(cli, status, &err);
    }
    sl_session_close(session);
    return code;
}

struct sl_input_request cli_get_input(const struct cli_context *cli)
{
    const char *path = cli_get(cli, "input");
    return (struct sl_input_request){.path = path ? path : "-", .lengths = cli_get(cli, "lengths")};
}

int cli_open_registry(struct cli_context *cli, bool all_builtins, struct sl_registry **out_registry)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    struct sl_registry_request request = {.all_backends = true,
                                          .all_builtins = all_builtins,
                                          .trust = cli->options.trust,
                                          .builtins = builtins,
                                          .builtin_count = 1,
                                          .folders = cli->options.backend_folders,
                                          .folder_count = cli->options.backend_folder_count,
                                          .log = &cli->log};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_registry_create(&request, out_registry, &err);
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(cli, status, &err);
}
