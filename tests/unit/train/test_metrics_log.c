/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.jsonl: its rows, and which of them stay where a run goes on. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/system/log.h"
#include "oom.h"
#include "scratch.h"
#include "train/metrics_log.h"

static seqlstm_status try_append(struct sl_metrics_log *log, int64_t update, const char *span, double loss,
                                 struct seqlstm_error *err)
{
    struct sl_metric_values values = {.count = 2,
                                      .items = {{.name = "loss", .value = loss}, {.name = "mae", .value = 0.5}}};
    struct sl_metrics_row row = {.update = update,
                                 .epoch = 0.5,
                                 .seconds = (double)update + 0.0000004,
                                 .split = "train",
                                 .teacher_forcing = NAN,
                                 .span = span,
                                 .learning_rate = 1e-3,
                                 .gradient_norm = NAN,
                                 .rows_per_second = NAN,
                                 .values = &values};
    return sl_metrics_log_append(log, &row, err);
}

static void append(struct sl_metrics_log *log, int64_t update, const char *span, double loss)
{
    assert_int_equal(try_append(log, update, span, loss, NULL), SEQLSTM_OK);
}

static char *read_all(const char *path)
{
    static char *text; /* gcc 12 takes a local one for a dangling pointer where this is inlined */
    assert_int_equal(sl_file_read(path, 1 << 20, &text, NULL, NULL), SEQLSTM_OK);
    return text;
}

static void rows_behind_the_checkpoint_go(void **state)
{
    (void)state;
    struct sl_metrics_log *log = NULL;
    double seconds = -1;
    const char *path = scratch_path("metrics.jsonl");
    assert_int_equal(sl_metrics_log_open(path, 0, 0, NULL, &log, &seconds, NULL), SEQLSTM_OK);
    assert_true(seconds == 0);
    append(log, 10, "report", 1.5);
    append(log, 10, "validation", NAN);
    append(log, 20, "report", INFINITY);
    sl_metrics_log_close(log);
    char *text = read_all(path);
    assert_string_equal(text, "{\"update\":10,\"epoch\":0.5,\"seconds\":10,\"split\":\"train\",\"span\":\"report\","
                              "\"learning_rate\":0.001,\"metrics\":{\"loss\":1.5,\"mae\":0.5}}\n"
                              "{\"update\":10,\"epoch\":0.5,\"seconds\":10,\"split\":\"train\",\"span\":\"validation\","
                              "\"learning_rate\":0.001,\"metrics\":{\"loss\":null,\"mae\":0.5}}\n"
                              "{\"update\":20,\"epoch\":0.5,\"seconds\":20,\"split\":\"train\",\"span\":\"report\","
                              "\"learning_rate\":0.001,\"metrics\":{\"loss\":null,\"mae\":0.5}}\n");
    size_t second = (size_t)(strchr(text, '\n') - text) + 1;
    /* a line cut by a crash */
    FILE *file = fopen(path, "a");
    fputs("{\"update\":5,\"epo", file);
    fclose(file);
    assert_int_equal(sl_metrics_log_open(path, 20, 10, NULL, &log, &seconds, NULL), SEQLSTM_OK);
    assert_true(seconds == 20);
    sl_metrics_log_close(log);
    char *now = read_all(path);
    assert_string_equal(now, text);
    free(now);
    /* the checkpoint of update 10 was written before its validation */
    assert_int_equal(sl_metrics_log_open(path, 10, 0, NULL, &log, &seconds, NULL), SEQLSTM_OK);
    append(log, 11, "report", 1);
    sl_metrics_log_close(log);
    now = read_all(path);
    assert_memory_equal(now, text, second);
    assert_memory_equal(now + second, "{\"update\":11,", 13);
    free(now);
    free(text);
    assert_int_equal(sl_metrics_log_open(scratch_path("no/such/folder"), 0, 0, NULL, &log, NULL, NULL), SEQLSTM_IO);
}

static char said[600];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    assert_int_equal(level, SL_LOG_WARN);
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", message);
}

#define ROW(update, seconds) "{\"update\":" #update ",\"seconds\":" #seconds ",\"span\":\"report\"}\n"

/* A line that is no row is told by its number, and goes with all that follow it. The end of a file that a crash has cut
 * and rows behind the checkpoint go without a word. */
static void what_is_no_row_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool told;
    } cases[] = {
        {"garbage\n", true},
        {"\n", true},
        {"[1]\n", true},
        {"{\"seconds\":1}\n", true},
        {"{\"update\":-1,\"seconds\":1}\n", true},
        {"{\"update\":3.5,\"seconds\":1}\n", true},
        {"{\"update\":\"3\",\"seconds\":1}\n", true},
        {"{\"update\":3,\"update\":3,\"seconds\":1}\n", true},
        {ROW(11, 20), false},
        {"{\"update\":3,\"sec", false},
    };
    static const char kept[] = ROW(1, 7.5) ROW(2, 5);
    const struct sl_log messages = {.write = keep, .level = SL_LOG_WARN};
    char path[256], text[400], expected[400];
    snprintf(path, sizeof path, "%s", scratch_path("foreign.jsonl"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_metrics_log *log = NULL;
        double seconds = -1;
        const char *more = strchr(cases[i].line, '\n') ? ROW(3, 9) : "";
        snprintf(text, sizeof text, "%s%s%s", kept, cases[i].line, more);
        assert_int_equal(sl_file_write(path, text, strlen(text), NULL), SEQLSTM_OK);
        said[0] = 0;
        assert_int_equal(sl_metrics_log_open(path, 10, 10, &messages, &log, &seconds, NULL), SEQLSTM_OK);
        sl_metrics_log_close(log);
        snprintf(expected, sizeof expected, "%s:3: this is no row of metrics: it is removed, and what follows it\n",
                 path);
        assert_string_equal(said, cases[i].told ? expected : "");
        assert_true(seconds == 7.5); /* of the row that took longest, not of the last one */
        char *now = read_all(path);
        assert_string_equal(now, kept);
        free(now);
    }
}

/* The other name of a file keeps what it had. */
static void a_log_with_another_name_is_copied(void **state)
{
    (void)state;
    static const char before[] = ROW(1, 1) ROW(2, 2);
    struct sl_metrics_log *log = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s", scratch_path("linked.jsonl"));
    assert_int_equal(sl_file_write(path, before, strlen(before), NULL), SEQLSTM_OK);
    assert_int_equal(link(path, scratch_path("other.jsonl")), 0);
    assert_int_equal(sl_metrics_log_open(path, 1, 1, NULL, &log, NULL, NULL), SEQLSTM_OK);
    sl_metrics_log_close(log);
    char *now = read_all(path), *other = read_all(scratch_path("other.jsonl"));
    assert_string_equal(now, ROW(1, 1));
    assert_string_equal(other, before);
    free(now);
    free(other);
}

/* A write that a signal interrupts is made again. One that fails says why, with the path and the system's number, and
 * what it left of its row goes where the run goes on. */
static void writes_that_do_not_end_at_once(void **state)
{
    (void)state;
    static const struct {
        int number, bytes;
    } rows[] = {{EINTR, -1}, {ENOSPC, -1}, {ENOSPC, 1}, {EIO, 60}};
    char path[128], expected[200];
    snprintf(path, sizeof path, "%s", scratch_path("cut.jsonl"));
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_metrics_log *log = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const bool fails = rows[k].number != EINTR;
        unlink(path);
        assert_int_equal(sl_metrics_log_open(path, 0, 0, NULL, &log, NULL, &err), SEQLSTM_OK);
        append(log, 1, "report", 1);
        io_fail_at(1, rows[k].number, rows[k].bytes);
        const seqlstm_status status = try_append(log, 2, "report", 2, &err);
        assert_true(io_disarm());
        assert_int_equal(status, fails ? SEQLSTM_IO : SEQLSTM_OK);
        if (fails) {
            snprintf(expected, sizeof expected, "cannot write `%s`: %s", path, strerror(rows[k].number));
            assert_string_equal(err.message, expected);
            assert_int_equal(err.native_code, rows[k].number);
        }
        sl_metrics_log_close(log);
        assert_int_equal(sl_metrics_log_open(path, 9, 9, NULL, &log, NULL, &err), SEQLSTM_OK);
        sl_metrics_log_close(log);
        char *text = read_all(path);
        const char *second = strchr(text, '\n') + 1;
        assert_int_equal(strncmp(second, "{\"update\":2,", 12) == 0, !fails);
        assert_true(fails ? *second == '\0' : text[strlen(text) - 1] == '\n');
        free(text);
    }
}

/* A run that cannot go on for want of memory loses no row, and no word is said about its file. */
static void rows_stay_without_memory(void **state)
{
    (void)state;
    static const char before[] = ROW(1, 1) ROW(2, 2) ROW(3, 3);
    const struct sl_log messages = {.write = keep, .level = SL_LOG_WARN};
    char path[128];
    snprintf(path, sizeof path, "%s", scratch_path("stays.jsonl"));
    assert_int_equal(sl_file_write(path, before, strlen(before), NULL), SEQLSTM_OK);
    said[0] = '\0';
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct sl_metrics_log *log = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        const seqlstm_status status = sl_metrics_log_open(path, 3, 3, &messages, &log, NULL, &err);
        failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        if (!failed)
            sl_metrics_log_close(log);
        char *now = read_all(path);
        assert_string_equal(now, before);
        assert_string_equal(said, "");
        free(now);
    }
}

/* A disk that loses rows is told of; what cannot be synced, as a pipe, needs none. Times are in microseconds. */
static void syncs_that_fail_are_told(void **state)
{
    (void)state;
    struct sl_metrics_log *log = NULL;
    struct sl_metric_values values = {.count = 0};
    const struct sl_metrics_row row = {.update = 1,
                                       .epoch = 1,
                                       .seconds = 2.0001234567,
                                       .split = "train",
                                       .span = "epoch",
                                       .learning_rate = NAN,
                                       .teacher_forcing = NAN,
                                       .gradient_norm = NAN,
                                       .rows_per_second = NAN,
                                       .values = &values};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[256];
    snprintf(path, sizeof path, "%s", scratch_path("synced.jsonl"));
    assert_int_equal(sl_metrics_log_open(path, 0, 0, NULL, &log, NULL, NULL), SEQLSTM_OK);
    assert_int_equal(sl_metrics_log_append(log, &row, NULL), SEQLSTM_OK);
    assert_int_equal(sl_metrics_log_sync(log, NULL), SEQLSTM_OK);
    io_fail_at(1, EINVAL, -1);
    assert_int_equal(sl_metrics_log_sync(log, NULL), SEQLSTM_OK);
    io_fail_at(1, EIO, -1);
    assert_int_equal(sl_metrics_log_sync(log, &err), SEQLSTM_IO);
    assert_true(io_disarm() && err.native_code == EIO && strstr(err.message, path));
    sl_metrics_log_close(log);
    char *text = read_all(path);
    assert_string_equal(text, "{\"update\":1,\"epoch\":1,\"seconds\":2.000123,\"split\":\"train\",\"span\":\"epoch\","
                              "\"metrics\":{}}\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_behind_the_checkpoint_go),     cmocka_unit_test(what_is_no_row_is_told),
        cmocka_unit_test(a_log_with_another_name_is_copied), cmocka_unit_test(writes_that_do_not_end_at_once),
        cmocka_unit_test(rows_stay_without_memory),          cmocka_unit_test(syncs_that_fail_are_told),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
