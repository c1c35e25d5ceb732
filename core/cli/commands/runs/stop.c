/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm stop: asks the process that trains a run to save and stop. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/file_lock.h"
#include "base/value/path.h"
#include "cli/cli.h"
#include "session/run_folder/run_name.h"

enum { PAUSE_NS = 50000000 };

/* Waits until no process holds the lock. */
static void wait_for_end(const char *lock)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    char holder[SL_FILE_LOCK_HOLDER_BYTES];
    while (sl_file_lock_find_holder(lock, holder))
        nanosleep(&pause, NULL);
}

static int signal_holder(struct cli_context *cli, const char *folder, const char *lock)
{
    char holder[SL_FILE_LOCK_HOLDER_BYTES];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const bool held = sl_file_lock_find_holder(lock, holder);
    const long process = sl_file_lock_find_process(lock);
    if (!held) {
        cli_note(cli, "%s is not being trained", folder);
        return CLI_OK;
    }
    if (process == 0)
        seqlstm_error_set(&err, SEQLSTM_IO, __FILE__, __LINE__, "%s is held by %s, which is no process of this machine",
                          folder, holder);
    else if (kill((pid_t)process, cli_has(cli, "save") ? SIGUSR1 : SIGTERM) != 0)
        seqlstm_error_set(&err, SEQLSTM_IO, __FILE__, __LINE__, "cannot signal process %ld, which trains %s: %s",
                          process, folder, strerror(errno));
    if (err.message[0])
        return cli_fail(cli, SEQLSTM_IO, &err);
    if (cli_has(cli, "save")) {
        cli_note(cli, "process %ld saves a checkpoint and goes on", process);
        return CLI_OK;
    }
    wait_for_end(lock);
    cli_note(cli, "stopped; `seqlstm resume %s` continues", folder);
    return CLI_OK;
}

static int stop(struct cli_context *cli)
{
    char *folder = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_run_folder_find_newest(cli->values.operands[0], &folder, &err);
    if (status != SEQLSTM_OK)
        return cli_fail(cli, status, &err);
    char *lock = sl_path_join(folder, "lock");
    const int code = lock ? signal_holder(cli, folder, lock) : cli_fail_memory(cli, "the path of the lock");
    free(lock);
    free(folder);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "save", .help = "only save a checkpoint, and let the run go on"},
    {0},
};

const struct cli_command cli_command_stop = {
    .name = "stop",
    .has_no_json = true,
    .summary = "make a run in another terminal save and stop",
    .usage = "RUN [flags]",
    .examples = "  seqlstm stop quickstart\n"
                "  seqlstm stop quickstart --save\n",
    .text = "Sends SIGTERM to the process that holds the lock of the run, as Ctrl-C does\n"
            "SIGINT, and waits until it has saved a checkpoint and ended.\n",
    .flags = flags,
    .operands_min = 1,
    .operands_max = 1,
    .run = stop,
};
