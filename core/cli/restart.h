/* SPDX-License-Identifier: Apache-2.0 */
/* What a launcher needs to start the ranks of a run again: the folder of the run, and the command that resumes it. */
#ifndef SL_CLI_RESTART_H
#define SL_CLI_RESTART_H

#include <stdbool.h>

struct cli_context;

enum { CLI_FOLDER_BYTES = 4096 };

/* A pipe through which the next process that is started tells the folder (cli_tell_folder). False: errno says why. */
bool cli_open_folder_pipe(int ends[2]);
/* That process has started: others do not get its end. */
void cli_keep_folder_pipe(int ends[2]);
/* When it has ended: the folder, if it has told one; otherwise `out_folder` stays as it is. Closes the pipe. */
void cli_read_folder(int ends[2], char out_folder[CLI_FOLDER_BYTES]);

/* Of sl_run_observer: tells the launcher, if it wants to know. */
void cli_tell_folder(void *context, const char *folder);

/* The arguments of `seqlstm resume FOLDER` with the flags of this command, NULL-terminated, as one piece of memory;
 * NULL: no memory. */
char **cli_make_resume(const struct cli_context *cli, const char *folder);

#endif
