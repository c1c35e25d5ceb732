/* SPDX-License-Identifier: Apache-2.0 */
/* base/system/log.h: which lines reach the sink. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/log.h"
#include "oom.h"

static int written;
static enum sl_log_level last_level;
static char last[64];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    assert_ptr_equal(context, &written);
    written++;
    last_level = level;
    strncpy(last, message, sizeof last - 1);
}

/* A status counts as information, and is told as a status. */
static void each_level_shows_those_above_it(void **state)
{
    (void)state;
    static const enum sl_log_level order[] = {SL_LOG_ERROR, SL_LOG_WARN, SL_LOG_INFO, SL_LOG_DEBUG, SL_LOG_TRACE};
    for (int limit = 0; limit < 5; limit++) {
        const struct sl_log log = {.write = keep, .context = &written, .level = order[limit]};
        for (int level = 0; level < 6; level++) {
            const enum sl_log_level said = level < 5 ? order[level] : SL_LOG_STATUS;
            const bool shown = level < 5 ? level <= limit : limit >= 2;
            written = 0;
            assert_int_equal(sl_log_is_on(&log, said), shown);
            sl_log_printf(&log, said, "level %d of %d", level, limit);
            assert_int_equal(written, shown);
            assert_true(!shown || last_level == said);
        }
    }
    assert_string_equal(last, "level 5 of 4");
    assert_false(sl_log_is_on(NULL, SL_LOG_ERROR));
    assert_false(sl_log_is_on(&(struct sl_log){.level = SL_LOG_TRACE}, SL_LOG_ERROR));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_level_shows_those_above_it),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
