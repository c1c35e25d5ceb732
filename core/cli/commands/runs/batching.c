/* SPDX-License-Identifier: Apache-2.0 */
/* See batching.h. */
#include "cli/commands/runs/batching.h"

#include <string.h>

int cli_read_batching(struct cli_context *cli, enum sl_serve_batching *out_batching)
{
    const char *way = cli_get(cli, "batching");
    *out_batching = way && strcmp(way, "padded") == 0 ? SL_BATCHING_PADDED : SL_BATCHING_STEPS;
    if (way && *out_batching == SL_BATCHING_STEPS && strcmp(way, "steps") != 0)
        return cli_usage_error(cli, "`--batching %s`: expected steps or padded", way);
    return CLI_OK;
}
