/* SPDX-License-Identifier: Apache-2.0 */
/* A test of command lines alone: what all of them do, as a report, is held against a file, and all run once more
 * without memory. */
#ifndef SL_TESTS_REPORT_H
#define SL_TESTS_REPORT_H

#include "golden.h"
#include "scratch.h"

#include "cli/commands.h"

#include "command_line.h"

struct report {
    void (*run_all)(void);
    const char *file; /* of tests/fixtures */
    void *answer;     /* what the layers below answer: zeros before the second time */
    size_t answer_bytes;
    void (*prepare)(void); /* in the scratch folder, once; NULL: nothing */
};

static inline void is_as_the_file_has_it(void **state)
{
    const struct report *report = *state;
    cli_set_commands(cli_commands);
    if (report->prepare)
        report->prepare();
    report->run_all();
    golden_expect(report->file, "$ ", sl_buf_text(&out));
    sl_buf_deinit(&out);
    sl_buf_deinit(&noted);
}

/* Each line without one of its allocations, for all of them. */
static inline void is_whole_without_memory(void **state)
{
    const struct report *report = *state;
    memset(report->answer, 0, report->answer_bytes);
    loses_memory = true;
    report->run_all();
    sl_buf_deinit(&out);
    sl_buf_deinit(&noted);
}

/* The main function of the test. */
static inline int report_main(struct report report)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(is_as_the_file_has_it, &report),
                                       cmocka_unit_test_prestate(is_whole_without_memory, &report)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}

#endif
