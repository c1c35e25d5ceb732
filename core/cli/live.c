/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run while it grows: --watch-port of run, resume and watch. */
#include "cli/cli.h"
#include "serve/live/live_page.h"

int cli_begin_live(struct cli_context *cli)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t port = -1;
    if (!cli_get_int(cli, "watch-port", 0, 65535, &port))
        return CLI_USAGE;
    if (port < 0)
        return CLI_OK;
    const seqlstm_status status = sl_live_page_open((uint16_t)port, &cli->live, &err);
    if (status != SEQLSTM_OK)
        return cli_fail(cli, status, &err);
    cli_say(stderr, "watch it at %s\n", sl_live_page_get_address(cli->live));
    return CLI_OK;
}

void cli_show_live(struct cli_context *cli, const char *folder)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (cli->live && sl_live_page_show(cli->live, folder, &err) != SEQLSTM_OK)
        cli_fail(cli, SEQLSTM_NO_MEMORY, &err);
}

void cli_end_live(struct cli_context *cli)
{
    sl_live_page_close(cli->live);
    cli->live = NULL;
}
