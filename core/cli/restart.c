/* SPDX-License-Identifier: Apache-2.0 */
/* See restart.h. */
#include "cli/restart.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/value/text.h"
#include "cli/cli.h"

static const char variable[] = "SEQLSTM_FOLDER_FD";

/* ---- the folder ------------------------------------------------------------------------------------------------- */

bool cli_open_folder_pipe(int ends[2])
{
    char number[24];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0)
        return false;
    sl_text_snprintf(number, sizeof number, "%d", ends[1]);
    return fcntl(ends[1], F_SETFD, 0) == 0 && setenv(variable, number, 1) == 0;
}

void cli_keep_folder_pipe(int ends[2])
{
    unsetenv(variable);
    if (ends[1] >= 0)
        close(ends[1]);
    ends[1] = -1;
}

void cli_read_folder(int ends[2], char out_folder[CLI_FOLDER_BYTES])
{
    char text[CLI_FOLDER_BYTES];
    const ssize_t bytes = ends[0] >= 0 ? read(ends[0], text, sizeof text) : 0;
    if (bytes > 0 && text[bytes - 1] == '\0')
        memcpy(out_folder, text, (size_t)bytes);
    if (ends[0] >= 0)
        close(ends[0]);
    ends[0] = -1;
}

void cli_tell_folder(void *context, const char *folder)
{
    const char *number = getenv(variable);
    int64_t descriptor;
    (void)context;
    if (!number || !sl_text_parse_int64(number, strlen(number), &descriptor) || strlen(folder) >= CLI_FOLDER_BYTES)
        return;
    /* what does not reach the launcher is found out by it in another way */
    const ssize_t written = write((int)descriptor, folder, strlen(folder) + 1);
    (void)written;
    close((int)descriptor);
    unsetenv(variable);
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

/* Is the flag for a new run, or for the launcher alone? */
static bool is_left_out(const struct cli_value *value)
{
    return value->from_env || strcmp(value->flag->name, "out") == 0 || strcmp(value->flag->name, "restarts") == 0;
}

/* Its length with `to` NULL; else writes it. */
static size_t write_flag(const struct cli_value *value, char *to, size_t bytes)
{
    const int length =
        snprintf(to, bytes, "--%s%s%s", value->flag->name, value->value ? "=" : "", value->value ? value->value : "");
    return (size_t)length + 1;
}

char **cli_make_resume(const struct cli_context *cli, const char *folder)
{
    const struct cli_values *values = &cli->values;
    const char *const first[] = {"seqlstm", "resume", folder};
    size_t bytes = ((size_t)values->count + 4) * sizeof(char *);
    for (size_t k = 0; k < 3; k++)
        bytes += strlen(first[k]) + 1;
    for (int k = 0; k < values->count; k++)
        bytes += write_flag(&values->items[k], NULL, 0);
    char **arguments = malloc(bytes);
    if (!arguments)
        return NULL;
    char *text = (char *)(arguments + values->count + 4), *const end = (char *)arguments + bytes;
    size_t count = 0;
    for (size_t k = 0; k < 3; k++) {
        arguments[count++] = memcpy(text, first[k], strlen(first[k]) + 1);
        text += strlen(first[k]) + 1;
    }
    for (int k = 0; k < values->count; k++) {
        if (is_left_out(&values->items[k]))
            continue;
        arguments[count++] = text;
        text += write_flag(&values->items[k], text, (size_t)(end - text));
    }
    arguments[count] = NULL;
    return arguments;
}
