/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a pool that cannot be started. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/pool.h"
#include "oom.h"

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);

static int refused_thread; /* 0: none */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
    return refused_thread > 0 && --refused_thread == 0 ? EAGAIN
                                                       : __real_pthread_create(thread, attributes, run, context);
}

static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* The one that fails is counted; those before it end, and signals reach the caller as before. */
static void a_thread_that_cannot_be_started_is_told(void **state)
{
    (void)state;
    sigset_t before, after;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    const int threads = count_threads();
    for (int n = 1; n <= 4; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_pool *pool = NULL;
        char expected[160];
        refused_thread = n;
        const seqlstm_status status = sl_pool_create(4, &pool, &err);
        refused_thread = 0;
        pthread_sigmask(SIG_SETMASK, NULL, &after);
        for (int signal = 1; signal < 32; signal++)
            assert_int_equal(sigismember(&after, signal), sigismember(&before, signal));
        assert_int_equal(status, n < 4 ? SEQLSTM_IO : SEQLSTM_OK);
        assert_int_equal(pool != NULL, n == 4);
        snprintf(expected, sizeof expected,
                 "cannot start thread %d of 3: %s (a limit of the user or the container; `--threads` starts fewer)", n,
                 strerror(EAGAIN));
        assert_string_equal(err.message, n < 4 ? expected : "");
        sl_pool_destroy(pool);
        for (int looks = 0; looks < 5000 && count_threads() != threads; looks++)
            usleep(1000); /* a thread that was joined is listed for a moment */
        assert_int_equal(count_threads(), threads);
    }
}

/* Of 1024 members; with one more, none is tried. */
static void the_largest_pool_is_one_of_its_sizes(void **state)
{
    (void)state;
    for (int32_t members = SL_POOL_MEMBERS_MOST; members <= SL_POOL_MEMBERS_MOST + 1; members++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_pool *pool = NULL;
        refused_thread = 2;
        const seqlstm_status status = sl_pool_create(members, &pool, &err);
        const bool tried = refused_thread == 0;
        refused_thread = 0;
        assert_null(pool);
        assert_int_equal(tried, members == 1024);
        assert_int_equal(status, tried ? SEQLSTM_IO : SEQLSTM_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, tried ? "thread 2 of 1023: " : "has 1 to 1024 members, not 1025"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_pool_is_one_of_its_sizes),
        cmocka_unit_test(a_thread_that_cannot_be_started_is_told),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
