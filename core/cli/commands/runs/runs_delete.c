/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm runs delete */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/value/printable.h"
#include "cli/commands/runs/selection.h"
#include "runs/removal.h"

enum { SHOWN_BYTES = 8192 }; /* of a folder's name, with escapes */

static int refuse_live(struct cli_context *cli, const struct cli_selection *selection)
{
    for (size_t r = 0; r < selection->count; r++) {
        const struct sl_run_facts *run = selection->runs[r];
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (run->state != SL_RUN_LIVE)
            continue;
        seqlstm_error_set(&err, SEQLSTM_IO, __FILE__, __LINE__, "%s is not finished: %s writes into it", run->name,
                          run->holder[0] ? run->holder : "another process");
        return cli_fail(cli, SEQLSTM_IO, &err);
    }
    return CLI_OK;
}

/* Asks on the terminal. Anything but yes is no. */
static bool ask(size_t count, double megabytes)
{
    char answer[16] = "";
    fprintf(stderr, "delete %zu run%s (%.1f MB)? [y/N] ", count, count == 1 ? "" : "s", megabytes);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    answer[strcspn(answer, "\n")] = '\0';
    return strcmp(answer, "y") == 0 || strcmp(answer, "yes") == 0;
}

static int remove_runs(struct cli_context *cli, const struct cli_selection *selection)
{
    for (size_t r = 0; r < selection->count; r++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char shown[SHOWN_BYTES];
        seqlstm_status status = sl_run_remove(selection->runs[r], &err);
        if (status != SEQLSTM_OK)
            return cli_fail(cli, status, &err);
        sl_printable_copy(shown, sizeof shown, selection->runs[r]->folder, strlen(selection->runs[r]->folder), "");
        cli_note(cli, "deleted %s", shown);
    }
    return CLI_OK;
}

static int remove_if_wanted(struct cli_context *cli, const struct cli_selection *selection)
{
    double bytes = 0;
    char shown[SHOWN_BYTES];
    if (selection->count == 0) {
        cli_note(cli, "no run is there that fits");
        return CLI_OK;
    }
    if (!cli_has(cli, "yes") && !isatty(STDIN_FILENO))
        return cli_usage_error(cli, "there is no terminal to ask on\n  = help: --yes deletes without a question");
    int code = refuse_live(cli, selection);
    for (size_t r = 0; r < selection->count && code == CLI_OK; r++) {
        bytes += (double)sl_run_count_bytes(selection->runs[r]);
        if (cli_has(cli, "yes"))
            continue;
        sl_printable_copy(shown, sizeof shown, selection->runs[r]->folder, strlen(selection->runs[r]->folder), "");
        cli_say(stderr, "  %s\n", shown);
    }
    if (code == CLI_OK && !cli_has(cli, "yes") && !ask(selection->count, bytes / 1e6)) {
        cli_note(cli, "nothing was deleted");
        return CLI_OK;
    }
    return code == CLI_OK ? remove_runs(cli, selection) : code;
}

static int runs_delete(struct cli_context *cli)
{
    struct cli_selection selection;
    if (cli->values.operand_count == 0 && !cli_get(cli, "where"))
        return cli_usage_error(cli, "which runs?\n  = help: name them, or say --where");
    int code = cli_selection_find(cli, &selection);
    if (code == CLI_OK)
        code = remove_if_wanted(cli, &selection);
    cli_selection_release(&selection);
    return code;
}

static const struct cli_flag flags[] = {
    CLI_FLAGS_SELECTION,
    {.name = "yes", .letter = 'y', .help = "do not ask"},
    {0},
};

const struct cli_command cli_command_runs_delete = {
    .name = "runs delete",
    .has_no_json = true,
    .summary = "delete run folders; asks first, and never deletes a live run",
    .usage = "RUN... [flags]",
    .examples = "  seqlstm runs delete quickstart/001\n"
                "  seqlstm runs delete --where 'valid.loss>2' --yes\n",
    .text = CLI_SELECTION_TEXT,
    .flags = flags,
    .operands_max = 64,
    .run = runs_delete,
};
