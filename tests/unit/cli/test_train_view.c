/* SPDX-License-Identifier: Apache-2.0 */
/* What a training shows on stderr as it goes on, on a clock of the test: live lines at every width, lines of epochs and
 * validations, the table and the last line. */
#include <math.h>

#include "captured.h"
#include "cli/cli.h"
#include "golden.h"
#include "oom.h"

/* The linker puts this in the place of sl_clock_ns. */
int64_t __wrap_sl_clock_ns(void);
static int64_t now_ns;

int64_t __wrap_sl_clock_ns(void)
{
    return now_ns;
}

static const int64_t ms = 1000000;

static struct cli_context make_context(enum cli_progress progress, int verbosity)
{
    static struct sl_interrupt interrupt;
    return (struct cli_context){.progress = progress, .verbosity = verbosity, .interrupt = &interrupt};
}

static struct sl_metric_values make_values(double loss, const char *name, double value)
{
    struct sl_metric_values values = {.count = name ? 2 : 1, .items = {{"loss", loss, NULL}, {name, value, NULL}}};
    return values;
}

/* In the middle of epoch 3 of 4. */
static struct sl_train_report make_report(void)
{
    return (struct sl_train_report){.progress = {.epochs = 2.5, .updates = 50, .tokens = 9000, .seconds = 100},
                                    .epoch = 2,
                                    .batch = 10,
                                    .epoch_batches = 20,
                                    .epochs = 4,
                                    .learning_rate = 0.012345,
                                    .loss = 0.123456789,
                                    .rows_per_second = 1234.5};
}

/* ---- on_step ------------------------------------------------------------------------------------------------ */

static void add_step(struct sl_buf *out, const char *title, enum cli_progress progress, int64_t after_ns,
                     const struct sl_train_report *report)
{
    struct cli_context cli = make_context(progress, 0);
    now_ns = 1000;
    struct cli_train_view *view = cli_train_view_create(&cli);
    const struct sl_run_observer observer = cli_train_view_observer(view);
    sl_buf_printf(out, "== %s\n", title);
    capture_begin();
    now_ns += after_ns;
    observer.train.on_step(view, report);
    capture_end(out);
    cli_clear_line();
    sl_buf_append_char(out, '\n');
    cli_train_view_destroy(view);
}

static void add_steps(struct sl_buf *out)
{
    struct sl_train_report report = make_report();
    add_step(out, "a bar", CLI_PROGRESS_BAR, 100 * ms, &report);
    add_step(out, "a bar too early", CLI_PROGRESS_BAR, 100 * ms - 1, &report);
    add_step(out, "a line", CLI_PROGRESS_LINES, 10000 * ms, &report);
    add_step(out, "a line too early", CLI_PROGRESS_LINES, 10000 * ms - 1, &report);
    add_step(out, "nothing", CLI_PROGRESS_NONE, 20000 * ms, &report);
    report.skipped = 3;
    report.updates = 60; /* five sixths of the updates are more than five eighths of the epochs */
    add_step(out, "skipped, by updates", CLI_PROGRESS_LINES, 10000 * ms, &report);
    report.updates = 200;
    add_step(out, "by epochs", CLI_PROGRESS_LINES, 10000 * ms, &report);
    report.epochs = 0;
    add_step(out, "updates alone", CLI_PROGRESS_LINES, 10000 * ms, &report);
    report.updates = 0;
    add_step(out, "no end", CLI_PROGRESS_LINES, 10000 * ms, &report);
    report.updates = 40;
    add_step(out, "beyond the end", CLI_PROGRESS_LINES, 10000 * ms, &report);
    static const double rates[] = {0.4, 9999.4, 10000, 9999400, 1e7, 123456789};
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
        report.rows_per_second = rates[k];
        add_step(out, "a rate", CLI_PROGRESS_LINES, 10000 * ms, &report);
    }
    report.rows_per_second = 0;
    add_step(out, "a rate of tokens and seconds", CLI_PROGRESS_LINES, 10000 * ms, &report);
    report.progress.seconds = 0;
    add_step(out, "a rate of tokens and this clock", CLI_PROGRESS_LINES, 18000 * ms, &report);
    report.progress.tokens = 0;
    add_step(out, "no rate", CLI_PROGRESS_LINES, 10000 * ms, &report);
}

/* After a line of the bar, the next one is a tenth of a second later; of lines, ten seconds. */
static void test_steps_in_between_are_not_shown(void **state)
{
    static const struct {
        enum cli_progress progress;
        int64_t every_ns, shown; /* of 31 steps; the first is at once */
    } rows[] = {
        {CLI_PROGRESS_BAR, 100000000, 30}, {CLI_PROGRESS_BAR, 40000000, 10}, {CLI_PROGRESS_LINES, 4000000000, 10}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct cli_context cli = make_context(rows[k].progress, 0);
        const struct sl_train_report report = make_report();
        struct sl_buf out = {0};
        int64_t shown = 0;
        now_ns = 1000;
        struct cli_train_view *view = cli_train_view_create(&cli);
        const struct sl_run_observer observer = cli_train_view_observer(view);
        capture_begin();
        for (int step = 0; step <= 30; step++, now_ns += rows[k].every_ns)
            observer.train.on_step(view, &report);
        capture_end(&out);
        cli_clear_line();
        cli_train_view_destroy(view);
        for (const char *at = sl_buf_text(&out); (at = strstr(at, "epoch 3/4")) != NULL; at++)
            shown++;
        assert_int_equal(shown, rows[k].shown);
        sl_buf_deinit(&out);
    }
}

/* ---- epochs and validations --------------------------------------------------------------------------------- */

static void add_run(struct sl_buf *out, const char *title, enum cli_progress progress, int verbosity)
{
    struct cli_context cli = make_context(progress, verbosity);
    now_ns = 0;
    struct cli_train_view *view = cli_train_view_create(&cli);
    const struct sl_train_observer train = cli_train_view_observer(view).train;
    struct sl_train_report report = make_report();
    static const double valid[] = {0.5, 0.75, 0.25, 0.25};
    sl_buf_printf(out, "== %s\n", title);
    capture_begin();
    for (int e = 0; e < 4; e++) {
        struct sl_metric_values values = make_values(1.0 / (e + 1), "accuracy", 0.1234567 * e);
        report.values = NULL;
        report.epoch = e;
        report.batch = 1;
        report.progress.epochs = e + 0.05;
        report.progress.updates = e * 20 + 1;
        report.progress.seconds = 10 * e + 1;
        now_ns += 100 * ms;
        train.on_step(view, &report);
        report.batch = 20;
        report.progress.epochs = e + 1;
        report.progress.updates = e * 20 + 20;
        report.progress.seconds = 10 * e + 8;
        report.values = &values;
        train.on_epoch(view, &report);
        values = make_values(valid[e], "mae", 7);
        report.improved = e % 2 == 0;
        train.on_validation(view, &report);
        report.path = "r/checkpoints/x.safetensors";
        train.on_checkpoint(view, &report);
    }
    report.values = NULL;
    now_ns += 10000 * ms;
    train.on_step(view, &report);
    capture_end(out);
    cli_clear_line();
    sl_buf_append_char(out, '\n');
    cli_train_view_destroy(view);
}

/* The lowest loss may be 0, also the first one; a loss that is not lower leaves its epoch. */
static void test_best_of_zero(void **state)
{
    struct cli_context cli = make_context(CLI_PROGRESS_LINES, 0);
    struct sl_train_report report = make_report();
    struct sl_buf out = {0};
    static const double losses[] = {0, 0.5, 0};
    (void)state;
    now_ns = 1000;
    struct cli_train_view *view = cli_train_view_create(&cli);
    const struct sl_train_observer train = cli_train_view_observer(view).train;
    capture_begin();
    for (int v = 0; v < 3; v++) {
        const struct sl_metric_values values = make_values(losses[v], NULL, 0);
        report.progress.epochs = v + 1;
        report.values = &values;
        train.on_validation(view, &report);
        now_ns += 10000 * ms;
        train.on_step(view, &report);
    }
    capture_end(&out);
    cli_train_view_destroy(view);
    const char *at = sl_buf_text(&out);
    for (int v = 0; v < 3; v++) {
        at = strstr(at, v == 1 ? "  valid 0.5  best 0 (epoch 1)" : "  valid 0  best 0 (epoch 1)");
        assert_non_null(at++);
    }
    sl_buf_deinit(&out);
}

/* Of a thousand epochs, two in a millisecond, twenty have a line, then two in a second; and the last one. A validation
 * has one where its epoch has. */
static void test_many_epochs(void **state)
{
    struct cli_context cli = make_context(CLI_PROGRESS_LINES, 0);
    struct sl_buf out = {0};
    struct sl_metric_values values = make_values(1, NULL, 0);
    int lines = 0;
    (void)state;
    now_ns = 0;
    struct cli_train_view *view = cli_train_view_create(&cli);
    const struct sl_train_observer train = cli_train_view_observer(view).train;
    capture_begin();
    for (int e = 1; e <= 1000; e++) {
        const struct sl_train_report report = {.progress = {.epochs = e, .updates = 2 * e, .seconds = e},
                                               .epoch = e - 1,
                                               .epochs = 1000,
                                               .values = &values};
        now_ns += 10 * ms;
        train.on_epoch(view, &report);
        train.on_validation(view, &report);
    }
    capture_end(&out);
    cli_train_view_destroy(view);
    int expected = 20, last = 20;
    for (int e = 21; e <= 1000; e++)
        if (e == 1000 || e - last >= 50)
            expected++, last = e;
    for (const char *at = sl_buf_text(&out); (at = strstr(at, "  valid  loss 1\n")) != NULL; at++)
        lines++;
    assert_int_equal(lines, expected);
    lines = 0;
    for (const char *at = sl_buf_text(&out); (at = strstr(at, "  train  loss 1  lr 0  after ")) != NULL; at++)
        lines++;
    assert_int_equal(lines, expected);
    assert_non_null(strstr(sl_buf_text(&out), "epoch 1000/1000  train"));
    sl_buf_deinit(&out);
}

/* So it is with validations within an epoch, also within the last one. */
static void test_many_validations(void **state)
{
    struct cli_context cli = make_context(CLI_PROGRESS_LINES, 0);
    struct sl_buf out = {0};
    struct sl_metric_values values = make_values(1, NULL, 0);
    int lines = 0;
    (void)state;
    now_ns = 0;
    struct cli_train_view *view = cli_train_view_create(&cli);
    const struct sl_train_observer train = cli_train_view_observer(view).train;
    capture_begin();
    for (int v = 1; v <= 1000; v++) {
        values.items[0].value = v;
        const struct sl_train_report report = {
            .progress = {.epochs = v / 1000.0, .updates = v}, .epochs = 1, .values = &values};
        now_ns += 10 * ms;
        train.on_validation(view, &report);
    }
    capture_end(&out);
    cli_train_view_destroy(view);
    for (const char *at = sl_buf_text(&out); (at = strstr(at, "  valid  loss ")) != NULL; at++)
        lines++;
    assert_int_equal(lines, 20 + 980 / 50 + 1);
    assert_non_null(strstr(sl_buf_text(&out), "  valid  loss 1000\n"));
    sl_buf_deinit(&out);
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

static void add_end(struct sl_buf *out, const char *title, int verbosity, const struct sl_run_result *result)
{
    struct cli_context cli = make_context(CLI_PROGRESS_LINES, verbosity);
    struct cli_train_view *view = cli_train_view_create(&cli);
    sl_buf_printf(out, "== %s\n", title);
    capture_begin();
    const int code = cli_train_view_finish(view, result);
    capture_end(out);
    sl_buf_printf(out, "exit %d\n", code);
    cli_train_view_destroy(view);
}

static void add_ends(struct sl_buf *out)
{
    struct sl_run_result r = {.folder = "runs/m/001", .seconds = 61.25};
    r.train.train = make_values(0.5, "accuracy", 0.75);
    r.train.progress.updates = 12;
    r.train.wait_share = 0.01234;
    add_end(out, "one split", 0, &r);
    r.train.progress.updates = 1;
    r.train.end = SL_END_UPDATES;
    add_end(out, "one update", 0, &r);
    r.train.has_valid = r.has_test = true;
    r.train.valid = make_values(1234.56789, "a_long_metric_name", -1e-9);
    r.test = make_values((double)NAN, "accuracy", 1);
    r.test.items[r.test.count++] = (struct sl_metric_value){"f1", 0.375, NULL};
    r.train.end = SL_END_EARLY_STOPPING;
    r.train.restored = r.measured_again = true;
    r.train.best_update = 8;
    r.train.best_epochs = 1.3333333;
    add_end(out, "three splits, restored", 0, &r);
    r.train.best_update = 0;
    add_end(out, "restored from an unknown update", 0, &r);
    r.measured_again = false;
    add_end(out, "restored and not measured again", 0, &r);
    r.train.restored = false;
    r.measured_again = true;
    add_end(out, "averages", 0, &r);
    r.measured_again = false;
    r.train.end = SL_END_TIME;
    add_end(out, "time", 0, &r);
    r.train.end = SL_END_INTERRUPTED;
    r.train.signal = 15;
    add_end(out, "interrupted", 0, &r);
    r.train.end = SL_END_DIVERGED;
    strcpy(r.train.reason, "the loss is nan");
    add_end(out, "diverged", 0, &r);
    add_end(out, "diverged quietly", -1, &r);
    r.train.end = SL_END_EPOCHS;
    add_end(out, "quiet", -1, &r);
    r.train = (struct sl_train_result){.end = SL_END_EPOCHS};
    add_end(out, "nothing was trained", 0, &r);
}

static void test_what_is_shown(void **state)
{
    struct sl_buf out = {0};
    (void)state;
    add_steps(&out);
    add_run(&out, "lines", CLI_PROGRESS_LINES, 0);
    add_run(&out, "lines, verbose", CLI_PROGRESS_LINES, 1);
    add_run(&out, "quiet", CLI_PROGRESS_LINES, -1);
    add_run(&out, "no progress", CLI_PROGRESS_NONE, 0);
    add_run(&out, "a bar", CLI_PROGRESS_BAR, 0);
    add_ends(&out);
    for (size_t k = 0; k < out.length_bytes; k++) /* the lines of the terminal */
        if (out.data[k] == '\r')
            out.data[k] = '^';
        else if (out.data[k] == '\033')
            out.data[k] = '~';
    golden_expect("reports/train_view.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_shown),
        cmocka_unit_test(test_many_epochs),
        cmocka_unit_test(test_best_of_zero),
        cmocka_unit_test(test_many_validations),
        cmocka_unit_test(test_steps_in_between_are_not_shown),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
