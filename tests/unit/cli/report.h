/* SPDX-License-Identifier: Apache-2.0 */
/* What all command lines of a test do, as a report: held against a file, and once more without memory. */
#ifndef SL_TESTS_REPORT_H
#define SL_TESTS_REPORT_H

#include "golden.h"

#include "cli/commands.h"
#include "command_line.h"

/* Runs all lines, and compares the report with a file of tests/fixtures. */
static inline void expect_report(void (*run_all)(void), const char *file)
{
    cli_set_commands(cli_commands);
    run_all();
    golden_expect(file, "$ ", sl_buf_text(&out));
    sl_buf_deinit(&out);
    sl_buf_deinit(&noted);
}

/* Runs each line without one of its allocations, for all of them. */
static inline void expect_no_memory(void (*run_all)(void))
{
    loses_memory = true;
    run_all();
    sl_buf_deinit(&out);
    sl_buf_deinit(&noted);
}

#endif
