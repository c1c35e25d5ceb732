/* SPDX-License-Identifier: Apache-2.0 */
/* Buffer, HTML, checked arithmetic, log: what is appended is there, failure sticks, nothing overflows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "base/value/checked.h"
#include "base/value/html.h"
#include "base/system/log.h"
#include "oom.h"

static void appends_in_order(void **state)
{
    (void)state;
    struct sl_buf buf;
    sl_buf_init(&buf);
    assert_string_equal(sl_buf_text(&buf), "");
    sl_buf_append_text(&buf, "ab");
    sl_buf_append_char(&buf, 'c');
    sl_buf_append(&buf, "\0d", 2);
    sl_buf_fill(&buf, '-', 3);
    sl_buf_printf(&buf, "%d", 42);
    assert_int_equal(buf.length_bytes, 10);
    assert_memory_equal(sl_buf_text(&buf), "abc\0d---42", 11);
    sl_buf_truncate(&buf, 100);
    assert_int_equal(buf.length_bytes, 10);
    sl_buf_truncate(&buf, 2);
    assert_string_equal(sl_buf_text(&buf), "ab");
    size_t bytes;
    char *taken = sl_buf_take(&buf, &bytes);
    assert_string_equal(taken, "ab");
    assert_int_equal(bytes, 2);
    assert_null(buf.data);
    free(taken);
    sl_buf_deinit(&buf);
}

static void grows_over_many_sizes(void **state)
{
    (void)state;
    struct sl_buf buf = {0};
    for (int i = 0; i < 20000; i++)
        sl_buf_printf(&buf, "%d,", i % 10);
    assert_int_equal(buf.length_bytes, 40000);
    for (size_t i = 0; i < 40000; i += 2)
        assert_int_equal(buf.data[i], '0' + (int)(i / 2 % 10));
    sl_buf_deinit(&buf);
}

static void an_empty_buffer_is_taken_as_an_empty_string(void **state)
{
    (void)state;
    struct sl_buf buf = {0};
    char *taken = sl_buf_take(&buf, NULL);
    assert_string_equal(taken, "");
    free(taken);
}

static void failure_sticks(void **state)
{
    (void)state;
    struct sl_buf buf = {0};
    sl_buf_append_text(&buf, "start");
    assert_int_equal(sl_buf_text_bytes(&buf), 5);
    oom_fail_at(1);
    sl_buf_fill(&buf, 'x', 1000);
    assert_true(oom_disarm());
    assert_true(buf.failed);
    sl_buf_append_text(&buf, "more");
    sl_buf_printf(&buf, "%d", 1);
    assert_null(sl_buf_grow(&buf, 1));
    assert_string_equal(sl_buf_text(&buf), "");
    assert_int_equal(sl_buf_text_bytes(&buf), 0);
    assert_null(sl_buf_take(&buf, NULL));
    assert_false(buf.failed);
    assert_null(sl_buf_grow(&buf, SIZE_MAX));
    assert_true(buf.failed);
    sl_buf_deinit(&buf);
}

static void checked_arithmetic_says_no(void **state)
{
    (void)state;
    size_t size = 5;
    assert_true(sl_checked_mul_size(SIZE_MAX / 2, 2, &size));
    assert_int_equal(size, SIZE_MAX - 1);
    assert_false(sl_checked_mul_size(SIZE_MAX / 2 + 1, 2, &size));
    assert_false(sl_checked_add_size(SIZE_MAX, 1, &size));
    assert_int_equal(size, SIZE_MAX - 1); /* untouched */
    assert_true(sl_checked_round_up_size(65, 64, &size));
    assert_int_equal(size, 128);
    assert_true(sl_checked_round_up_size(128, 64, &size));
    assert_int_equal(size, 128);
    assert_false(sl_checked_round_up_size(SIZE_MAX - 1, 64, &size));
    int64_t i64 = 5;
    assert_false(sl_checked_mul_i64(INT64_MIN, -1, &i64));
    assert_false(sl_checked_add_i64(INT64_MAX, 1, &i64));
    assert_int_equal(i64, 5);
    assert_true(sl_checked_mul_i64(-3, 7, &i64));
    assert_int_equal(i64, -21);
    assert_false(sl_checked_i64_to_size(-1, &size));
    assert_true(sl_checked_i64_to_size(9, &size));
    assert_int_equal(size, 9);
}

struct seen {
    int calls;
    enum sl_log_level level;
    char message[2000];
};

static void remember(void *context, enum sl_log_level level, const char *message)
{
    struct seen *seen = context;
    seen->calls++;
    seen->level = level;
    strncpy(seen->message, message, sizeof seen->message - 1);
}

static void log_filters_formats_and_cuts(void **state)
{
    (void)state;
    struct seen seen = {0};
    struct sl_log log = {.write = remember, .context = &seen, .level = SL_LOG_INFO};
    sl_log_printf(&log, SL_LOG_DEBUG, "hidden");
    assert_int_equal(seen.calls, 0);
    sl_log_printf(&log, SL_LOG_WARN, "%s %d", "shown", 3);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.level, SL_LOG_WARN);
    assert_string_equal(seen.message, "shown 3");
    sl_log_printf(&log, SL_LOG_INFO, "%3000d", 1);
    assert_int_equal(strlen(seen.message), 1023);
    sl_log_printf(NULL, SL_LOG_ERROR, "no sink");
    log.write = NULL;
    sl_log_printf(&log, SL_LOG_ERROR, "no sink");
    assert_int_equal(seen.calls, 2);
    assert_string_equal(sl_log_level_name(SL_LOG_WARN), "warning");
}

static void text_is_escaped(void **state)
{
    (void)state;
    struct sl_buf out = {0};
    sl_html_append_text(&out, "a<b> & \"c\"\n\tü\x01\x1b");
    assert_string_equal(sl_buf_text(&out), "a&lt;b&gt; &amp; &quot;c&quot;\n\tü");
    sl_buf_truncate(&out, 0);
    sl_html_append_bytes(&out, "<<\0>rest", 4);
    assert_string_equal(sl_buf_text(&out), "&lt;&lt;&gt;");
    sl_buf_deinit(&out);
}

static void pages_begin_and_end(void **state)
{
    (void)state;
    struct sl_buf out = {0};
    sl_html_begin_page(&out, ".own{fill:none}\n", "%s of %d", "<model>", 3);
    const char *page = sl_buf_text(&out);
    assert_int_equal(strncmp(page, "<!doctype html>\n", 16), 0);
    assert_non_null(strstr(page, "<title>&lt;model&gt; of 3</title>\n<style>\n:root{"));
    assert_non_null(strstr(page, "prefers-color-scheme:dark"));
    assert_non_null(strstr(page, ".own{fill:none}\n</style>\n</head><body>\n"));
    sl_html_end_page(&out);
    const char *end = "<body>\n</body></html>\n";
    assert_string_equal(sl_buf_text(&out) + out.length_bytes - strlen(end), end);
    sl_buf_deinit(&out);
}

static void a_page_without_memory_fails(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        struct sl_buf out = {0};
        oom_fail_at(n);
        sl_html_begin_page(&out, "", "%s", "model");
        bool hit = oom_disarm();
        assert_int_equal(out.failed, hit);
        sl_buf_deinit(&out);
        if (!hit)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_in_order),
        cmocka_unit_test(grows_over_many_sizes),
        cmocka_unit_test(an_empty_buffer_is_taken_as_an_empty_string),
        cmocka_unit_test(failure_sticks),
        cmocka_unit_test(checked_arithmetic_says_no),
        cmocka_unit_test(log_filters_formats_and_cuts),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(pages_begin_and_end),
        cmocka_unit_test(a_page_without_memory_fails),
    };
    return cmocka_run_group_tests_name("buf", tests, oom_group_begin, oom_group_end);
}
