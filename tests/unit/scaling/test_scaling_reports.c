/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `plan --ranks`, from numbers that the test makes up, as a whole: table, JSON, page. */
#include "golden.h"
#include "oom.h"

#include "session/scaling/scaling.h"

static void add_report(struct sl_buf *out, const char *title, const struct sl_scaling_report *report)
{
    sl_buf_printf(out, "== %s\n", title);
    sl_scaling_write_table(report, out);
    sl_scaling_write_json(report, out);
    sl_buf_append_char(out, '\n');
    sl_scaling_write_page(report, out);
}

static void reports_are_as_before(void **state)
{
    (void)state;
    struct sl_buf out = {0};
    struct sl_scaling_report report = {
        .count = 4, .local = 3, .measuring = 3, .measured = {2.5e9, 3e-6}, .grows = true};
    report.rows[0] = (struct sl_scaling_row){1, 1, 8, 1, 1, 100, 2.5e9, 2.4e9, 0, 0, 123456789, 0};
    report.rows[1] = (struct sl_scaling_row){6, 2, 4, 1, 1, 600, 3.125e9, 2.25e9, 0, 0.5e9, 23456789, 0};
    report.rows[2] = (struct sl_scaling_row){48, 16, 2, 3, 7, 4800, 12.5e6, 8e6, 2.5e6, 1.25e6, 9876543, 0};
    report.rows[3] = (struct sl_scaling_row){96, 32, 1, 1, 1, 9600, 750e3, 600e3, 0, 75e3, 1e6, 5};
    add_report(&out, "batches grow, an exchange was measured", &report);
    report.grows = false;
    report.inner = (struct sl_scaling_link){64e9, 250e-9};
    report.link = (struct sl_scaling_link){12.5e9, 15e-6};
    report.rows[3].idle = 0;
    report.rows[2].rows = 100;
    add_report(&out, "links as given, slower than the first row", &report);
    report = (struct sl_scaling_report){.count = 3, .local = 8, .measuring = 8, .link = {1e9, 1e-6}};
    report.rows[0] = (struct sl_scaling_row){4, 1, 2, 1, 1, 400, 1e6, 9e5, 0, 5e4, 5e6, 0};
    report.rows[1] = (struct sl_scaling_row){8, 1, 1, 1, 1, 160, 1e6, 8e5, 0, 2e5, 4e6, 0};
    report.rows[2] = (struct sl_scaling_row){32, 4, 1, 1, 1, 800000, 2.5e9, 2e9, 0, 5e8, 3e6, 1};
    add_report(&out, "more ranks are slower, one of them is idle", &report);
    report = (struct sl_scaling_report){.count = 1, .local = 4, .measuring = 1, .devices = 1};
    report.rows[0] = (struct sl_scaling_row){2, 2, 1, 2, 4, 0, 0, 0, 0, 0, 0, 0};
    add_report(&out, "one row without a time", &report);
    report = (struct sl_scaling_report){.count = 3, .local = 4, .measuring = 3, .measured = {1e9, 1e-6}};
    report.rows[0] = (struct sl_scaling_row){1, 1, 1, 1, 1, 8, 4e6, 4e6, 0, 0, 1e6, 0};
    report.rows[1] = (struct sl_scaling_row){12, 3, 1, 1, 1, 8, 2e6, 1e6, 1e5, 2e5, 1e6, 4};
    report.rows[2] = (struct sl_scaling_row){16, 4, 1, 1, 1, 8, 3e6, 1e6, 1e5, 2e5, 1e6, 8};
    add_report(&out, "a rank fewer has measured, and two rows have idle ones", &report);
    assert_false(out.failed);
    golden_expect("reports/scaling.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_as_before),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
