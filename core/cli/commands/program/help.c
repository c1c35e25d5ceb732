/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm help, explain, version */
#include <string.h>

#include <jansson.h>

#include <seqlstm/backend.h>

#include "base/value/text.h"
#include "cli/cli.h"
#include "base/config.h"
#include "model/explain.h"

/* The help of a command; NULL: the list of commands. */
static int show(struct cli_context *cli, const struct cli_command *command)
{
    struct sl_buf page = {0};
    if (!cli_has(cli, "man")) {
        if (command)
            cli_print_help(command, stdout);
        else
            cli_print_overview(stdout);
        return CLI_OK;
    }
    cli_write_man(command, &page);
    const int code = page.failed ? cli_fail_memory(cli, "the page") : cli_write_out(cli, &page);
    sl_buf_deinit(&page);
    return code;
}

static int help(struct cli_context *cli)
{
    if (cli->values.operand_count == 0)
        return show(cli, NULL);
    char name[64];
    snprintf(name, sizeof name, "%.30s", cli->values.operands[0]);
    if (cli->values.operand_count == 2)
        snprintf(name, sizeof name, "%.30s %.30s", cli->values.operands[0], cli->values.operands[1]);
    const struct cli_command *command = cli_find_command(name);
    if (command == NULL)
        return cli_refuse_command(name);
    return show(cli, command);
}

static const struct cli_flag help_flags[] = {
    {.name = "man", .help = "print the help as a manual page, for man -l"},
    {0},
};

const struct cli_command cli_command_help = {
    .name = "help",
    .has_no_json = true,
    .summary = "show help for a command",
    .usage = "[COMMAND] [flags]",
    .examples = "  seqlstm help run\n  seqlstm help --man run | man -l -\n",
    .flags = help_flags,
    .operands_max = 2,
    .run = help,
};

static int explain(struct cli_context *cli)
{
    if (cli->values.operand_count == 0) {
        size_t count;
        const struct sl_explanation *all = sl_explain_get_all(&count);
        for (size_t i = 0; i < count; i++)
            printf("%s  %s\n", all[i].code, all[i].title);
        return CLI_OK;
    }
    const struct sl_explanation *found = sl_explain_find(cli->values.operands[0]);
    if (found == NULL)
        return cli_usage_error(cli, "no such code: `%s`\n  = help: `seqlstm explain` lists them",
                               cli->values.operands[0]);
    printf("%s: %s\n\n%s", found->code, found->title, found->text);
    return CLI_OK;
}

const struct cli_command cli_command_explain = {
    .name = "explain",
    .has_no_json = true,
    .summary = "explain what an error code means and how to fix the error",
    .usage = "[CODE]",
    .examples = "  seqlstm explain E0203\n",
    .operands_max = 1,
    .run = explain,
};

static int version(struct cli_context *cli)
{
    if (cli->json)
        printf("{\"schema\": \"seqlstm.version/1\", \"version\": \"%s\", \"abi_major\": %u, \"abi_minor\": %u, "
               "\"compiler\": \"%s\"}\n",
               SL_VERSION, SEQLSTM_ABI_MAJOR, SEQLSTM_ABI_MINOR, SL_COMPILER);
    else
        printf("seqlstm %s (backend ABI %u.%u, %s)\n", SL_VERSION, SEQLSTM_ABI_MAJOR, SEQLSTM_ABI_MINOR, SL_COMPILER);
    return CLI_OK;
}

const struct cli_command cli_command_version = {
    .name = "version",
    .summary = "print the version of the program and of its backend ABI",
    .usage = "",
    .run = version,
};
