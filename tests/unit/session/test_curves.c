/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run that is not over, from logs that the test writes: which rows make which curve, where the best
 * update is, when there are epochs below. */
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "golden.h"

#include "base/value/buf.h"
#include "base/system/file_lock.h"
#include "runs/metric_rows.h"
#include "scratch.h"
#include "session/report/curves.h"
#include "session/report/growing.h"

static struct sl_buf out;

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void row(struct sl_buf *log, const char *split, const char *span, int update, const char *more)
{
    sl_buf_printf(log, "{\"split\": \"%s\", \"span\": \"%s\", \"update\": %d, \"epoch\": %g, \"seconds\": %g, %s}\n",
                  split, span, update, update / 8.0, update * 0.5, more);
}

/* Reports of training fall from 9 in steps of 0.5; epochs say 90 less and less; validation is best in the middle. */
static void write_log(struct sl_buf *log, int reports)
{
    char more[200];
    for (int k = 1; k <= reports; k++) {
        snprintf(more, sizeof more,
                 "\"learning_rate\": %g, \"gradient_norm\": %g, \"metrics\": {\"loss\": %g, \"mae\": %s}", 0.25 / k,
                 k == 3 ? 7.0 : 1.0 + k, 9 - 0.5 * k, k == 2 ? "\"NaN\"" : "0.5");
        row(log, "train", "report", 2 * k, more);
    }
    for (int e = 1; e <= 3; e++) {
        snprintf(more, sizeof more, "\"learning_rate\": %g, \"teacher_forcing\": %g, \"metrics\": {\"loss\": %g}",
                 0.5 / e, 1 - 0.25 * e, 90.0 - e);
        row(log, "train", "epoch", 8 * e, more);
        snprintf(more, sizeof more, "\"metrics\": {\"loss\": %g, \"f1\": 0.%d}", e == 2 ? 3.5 : 4.0 + e, e);
        row(log, "valid", "epoch", 8 * e, more);
    }
}

static void show(const char *title, int reports, int64_t best)
{
    struct sl_buf log = {0};
    write_log(&log, reports);
    assert_true(mkdir("r <1>", 0777) == 0 || access("r <1>", F_OK) == 0);
    put("r <1>/metrics.jsonl", sl_buf_text(&log));
    struct json_t *rows = sl_metric_rows_read("r <1>");
    assert_non_null(rows);
    sl_buf_printf(&out, "== %s\n", title);
    sl_report_write_curves(&out, rows, best);
    json_decref(rows);
    sl_buf_deinit(&log);
}

/* The page without its styles. */
static void show_page(const char *title)
{
    struct sl_buf page = {0};
    sl_report_write_growing("r <1>", &page);
    const char *text = sl_buf_text(&page), *head = strstr(text, "<h1>");
    sl_buf_printf(&out, "== %s\n%s\n", title, head ? head : text);
    assert_false(page.failed);
    sl_buf_deinit(&page);
}

static void test_curves(void **state)
{
    (void)state;
    assert_int_equal(chdir(scratch_folder), 0);
    show("epochs: nine reports are too few", 9, 0);
    show("ten reports", 10, 0);
    show("a best update that is known", 10, 24);
    show("one epoch of validation is no line", 0, 0);
    put("r <1>/metrics.jsonl", "");
    show_page("a folder with no configuration");
    put("r <1>/config.yaml", "seed: 1\n");
    show_page("nothing is logged");
    show("before the page", 10, 0);
    show_page("a run that stopped");
    put("r <1>/report.html", "the report");
    show_page("a run with a report");
    struct sl_file_lock *lock = NULL;
    assert_int_equal(sl_file_lock_take("r <1>/lock", &lock, NULL), SEQLSTM_OK);
    show_page("a run that goes on, with the report of before");
    sl_file_lock_release(lock);
    put("r <1>/metrics.jsonl", "");
    assert_int_equal(unlink("r <1>/report.html"), 0);
    put("r <1>/summary.json", "{\"status\": \"finished\", \"updates\": 0, \"epochs\": 0, \"seconds\": 0.5}");
    show_page("a run without an update");
    golden_expect("reports/curves.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_curves)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
