/* SPDX-License-Identifier: Apache-2.0 */
/* Watched calls that run again, after a fork, and in threads; plugins that close files of the program. */
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "oom.h"
#include "registry/watch/watch.h"

static char reports[2000];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    assert_int_equal(level, SL_LOG_WARN);
    strcat(strcat(reports, message), "\n");
}

static const struct sl_log sink = {.write = keep, .level = SL_LOG_WARN};

static int begin(void **state)
{
    (void)state;
    reports[0] = 0;
    return 0;
}

/* ---- again ------------------------------------------------------------------------------------------------------- */

/* One that changes nothing is not guarded, and not counted: the next one that is not run again is the plugin's first.
 */
static void what_runs_again_is_not_counted(void **state)
{
    (void)state;
    static const char id[] = "lean";
    bool here;
    sl_watch_report_to(id, &sink);
    for (int k = 0; k < 7; k++) {
        struct sl_watched_call call;
        sl_watch_begin_again(&call, id, SL_FUNCTION_FORWARD);
        assert_null(call.guard);
        assert_string_equal(sl_running_find(&here)->plugin, id);
        assert_true(here);
        sl_watch_end_again(&call);
        assert_null(sl_running_find(&here));
    }
    for (int k = 1; k <= 5; k++) {
        struct sl_watched_call call;
        sl_watch_begin(&call, id, SL_FUNCTION_FORWARD);
        assert_int_equal(call.guard != NULL, k == 1 || k == 2 || k == 4);
        sl_watch_end(&call);
    }
    assert_string_equal(reports, "");
}

/* Changes the mode: on the calling thread, or, as the pool says, on one that works for the call. */
static void change_mode(bool member)
{
    if (member)
        atomic_store(&sl_running_get()->mode_changed, true);
    else
        fesetround(FE_UPWARD);
}

/* In any call that runs again, not only in the first; from then on all of its calls are guarded. */
static void modes_are_restored_where_a_call_runs_again(void **state)
{
    (void)state;
    static const char ids[2][8] = {"own", "member"};
    for (int member = 0; member < 2; member++) {
        const char *id = ids[member];
        sl_watch_report_to(id, &sink);
        for (int k = 1; k <= 6; k++) {
            struct sl_watched_call call;
            sl_watch_begin_again(&call, id, SL_FUNCTION_FORWARD);
            assert_int_equal(call.guard != NULL, k > 3);
            assert_false(atomic_load(&call.running.mode_changed));
            if (k >= 3)
                change_mode(member);
            sl_watch_end_again(&call);
            assert_int_equal(fegetround(), FE_TONEAREST);
            assert_null(sl_running_get());
        }
    }
    assert_string_equal(reports, "the backend own misbehaves: its forward changed the floating-point mode; seqlstm "
                                 "undid it\n"
                                 "the backend member misbehaves: its forward changed the floating-point mode of a "
                                 "thread of the pool; seqlstm undid it\n");
}

static int returns;

static void note_return(void)
{
    returns++;
}

/* However the function was called. In a copy of the program nothing else would end it. */
static void each_return_is_told(void **state)
{
    (void)state;
    static const char id[] = "copy";
    struct sl_running outer, inner;
    struct sl_watched_call call;
    sl_running_on_return(note_return);
    sl_running_begin(&outer, id, SL_FUNCTION_OPEN);
    sl_running_begin_here(&inner, id, SL_FUNCTION_FORWARD);
    assert_int_equal(returns, 0);
    sl_running_end_here(&inner);
    assert_int_equal(returns, 1);
    sl_running_end(&outer);
    assert_int_equal(returns, 2);
    sl_watch_begin(&call, id, SL_FUNCTION_FORWARD);
    sl_watch_end(&call);
    assert_int_equal(returns, 3);
    sl_watch_begin_again(&call, id, SL_FUNCTION_FORWARD);
    sl_watch_end_again(&call);
    assert_int_equal(returns, 4);
    sl_running_on_return(NULL);
    sl_watch_begin(&call, id, SL_FUNCTION_FORWARD);
    sl_watch_end(&call);
    assert_int_equal(returns, 4);
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

static void *guard_first_call(void *id)
{
    struct sl_watched_call call;
    struct sl_watched_code code;
    sl_watch_begin(&call, id, SL_FUNCTION_OPEN);
    const bool guarded = call.guard != NULL;
    sl_watch_end(&call);
    sl_watch_begin_code(&code);
    const bool guards = code.guards;
    sl_watch_end_code(&code, id, SL_FUNCTION_OPEN);
    return guarded && guards ? id : NULL;
}

static void expect_other_thread_guards(char *id)
{
    pthread_t thread;
    void *guarded;
    assert_int_equal(pthread_create(&thread, NULL, guard_first_call, id), 0);
    pthread_join(thread, &guarded);
    assert_ptr_equal(guarded, id);
}

/* The program goes on as before, whether a plugin forks in a guarded call or something else does. */
static void other_threads_guard_after_a_fork(void **state)
{
    (void)state;
    static char ids[4][8] = {"a", "b", "c", "d"}, forks[] = "forks";
    expect_other_thread_guards(ids[0]);
    for (int inside = 0; inside < 2; inside++) {
        struct sl_watched_call call;
        if (inside)
            sl_watch_begin(&call, forks, SL_FUNCTION_OPEN);
        const pid_t child = fork();
        if (child == 0)
            _exit(0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        if (inside)
            sl_watch_end(&call);
        expect_other_thread_guards(ids[1 + inside]);
    }
    struct sl_watched_code code; /* begun and ended, it leaves nothing, either */
    sl_watch_begin_code(&code);
    sl_watch_end_code(&code, forks, SL_FUNCTION_OPEN);
    expect_other_thread_guards(ids[3]);
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static char damage[300];

static void note_damage(const char *message)
{
    snprintf(damage, sizeof damage, "%s", message);
}

/* The descriptor of the guard for the current folder, or for stdin, stdout or stderr. */
static int pick(const struct sl_process_guard *guard, int k)
{
    return k == 0 ? guard->folder.duplicate : guard->standard[k - 1].duplicate;
}

/* Whichever of them a function or the code of a plugin closes; the guard closes the others. */
static void closed_files_are_damage(void **state)
{
    (void)state;
    static const char ids[SL_GUARD_FILES + 1][8] = {"p", "q", "r", "s"};
    char expected[200];
    sl_watch_on_damage(note_damage);
    const int before = descriptors_count();
    for (int k = 0; k <= SL_GUARD_FILES; k++) {
        struct sl_watched_call call;
        struct sl_watched_code code;
        damage[0] = reports[0] = 0;
        sl_watch_report_to(ids[k], &sink);
        sl_watch_begin(&call, ids[k], SL_FUNCTION_OPEN);
        close(pick(call.guard, k));
        sl_watch_end(&call);
        snprintf(expected, sizeof expected,
                 "the backend %s misbehaves: its open closed files of the program (which could not be restored)\n",
                 ids[k]);
        assert_string_equal(reports, expected);
        snprintf(expected, sizeof expected, "the backend %s is faulty: its open closed files of the program", ids[k]);
        assert_string_equal(damage, expected);
        assert_int_equal(descriptors_count(), before);
        damage[0] = 0;
        sl_watch_begin_code(&code);
        close(pick(&code.guard, k));
        assert_int_equal(sl_watch_end_code(&code, ids[k], SL_FUNCTION_QUERY),
                         SL_CHANGED_DESCRIPTOR | SL_CHANGED_FOR_GOOD);
        snprintf(expected, sizeof expected, "the backend %s is faulty: its query closed files of the program", ids[k]);
        assert_string_equal(damage, expected);
        assert_string_equal(code.change, "closed files of the program (which could not be restored)");
        assert_int_equal(descriptors_count(), before);
    }
    sl_watch_on_damage(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_runs_again_is_not_counted, begin),
        cmocka_unit_test_setup(modes_are_restored_where_a_call_runs_again, begin),
        cmocka_unit_test_setup(each_return_is_told, begin),
        cmocka_unit_test_setup(other_threads_guard_after_a_fork, begin),
        cmocka_unit_test_setup(closed_files_are_damage, begin),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
