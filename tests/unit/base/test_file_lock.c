/* SPDX-License-Identifier: Apache-2.0 */
/* Locks: which process holds one, waiting for it, file systems without locks, and calls that fail. No test leaves a
 * file or a descriptor behind. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/system/file_lock.h"
#include "base/system/file_writer.h"
#include "descriptors.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"

int __real_fcntl64(int file, int command, void *argument);
int __wrap_fcntl64(int file, int command, void *argument);

static int lock_errno, lock_failures; /* so many of the next calls for a lock fail with this */

int __wrap_fcntl64(int file, int command, void *argument)
{
    if ((command == F_OFD_SETLK || command == F_OFD_GETLK) && lock_failures > 0) {
        lock_failures--;
        errno = lock_errno;
        return -1;
    }
    return __real_fcntl64(file, command, argument);
}

static int opened;

static int begin(void **state)
{
    (void)state;
    opened = descriptors_count();
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(descriptors_count(), opened);
    assert_false(sl_file_exists("lock"));
    return 0;
}

static void a_lock_has_one_holder(void **state)
{
    (void)state;
    struct sl_file_lock *lock = NULL, *other = NULL;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    char expected[64];
    assert_int_equal(sl_file_lock_take("lock", &lock, &why), SEQLSTM_OK);
    assert_true(sl_file_lock_is_held(lock) && sl_file_lock_is_there(lock));
    assert_int_equal(sl_file_lock_take("lock", &other, &why), SEQLSTM_IO); /* of the description, not of the process */
    assert_int_equal(why.native_code, EAGAIN);
    snprintf(expected, sizeof expected, "lock is held by process %ld on ", (long)getpid());
    assert_memory_equal(why.message, expected, strlen(expected));
    assert_non_null(strstr(why.message, " UTC"));
    assert_int_equal(rename("lock", "moved"), 0);
    assert_false(sl_file_lock_is_there(lock) || sl_file_lock_is_closed(lock));
    assert_int_equal(sl_file_lock_take("lock", &other, &why), SEQLSTM_OK); /* another file */
    assert_false(sl_file_lock_is_there(lock));
    sl_file_lock_release(lock);
    assert_true(sl_file_exists("lock") && sl_file_lock_is_there(other)); /* it was not removed in place of its own */
    sl_file_lock_release(other);
    assert_false(sl_file_exists("lock"));
    assert_int_equal(unlink("moved"), 0);
    sl_file_lock_release(NULL);
    assert_int_equal(symlink("elsewhere", "lock"), 0);
    assert_int_equal(sl_file_lock_take("lock", &lock, &why), SEQLSTM_IO); /* no link is followed */
    assert_false(sl_file_exists("elsewhere"));
    assert_int_equal(unlink("lock"), 0);
    assert_int_equal(sl_file_lock_take("none/lock", &lock, &why), SEQLSTM_NOT_FOUND);
}

/* What a holder that was killed has left there, however long, is replaced. */
static void the_text_of_an_earlier_holder_goes(void **state)
{
    (void)state;
    static const char left[] = "process 7 on a-computer-with-a-very-long-name-that-is-hard-to-type since 2020-01-01 "
                               "00:00:00 UTC, and more than fits\nand a second line\n";
    struct sl_file_lock *lock = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *text = NULL, expected[64];
    size_t bytes = 0;
    ok(sl_file_write("lock", left, strlen(left), &err), &err);
    ok(sl_file_lock_take("lock", &lock, &err), &err);
    ok(sl_file_read("lock", 1000, &text, &bytes, &err), &err);
    snprintf(expected, sizeof expected, "process %ld on ", (long)getpid());
    assert_memory_equal(text, expected, strlen(expected));
    assert_true(bytes > 5 && memcmp(text + bytes - 5, " UTC\n", 5) == 0);
    assert_ptr_equal(memchr(text, '\n', bytes), text + bytes - 1);
    free(text);
    sl_file_lock_release(lock);
}

/* A process that was killed is a zombie, and then gone, while something of it still holds its lock: here a child, for
 * 0.3 s. */
static void an_ending_holder_is_waited_for(void **state)
{
    (void)state;
    for (int gone = 0; gone < 2; gone++) {
        struct seqlstm_error why = SEQLSTM_ERROR_INIT;
        struct sl_file_lock *lock = NULL;
        const pid_t holder = fork();
        assert_true(holder >= 0);
        if (holder == 0) {
            if (sl_file_lock_take("lock", &lock, NULL) != SEQLSTM_OK)
                _exit(1);
            if (fork() == 0)
                usleep(300000);
            _exit(0);
        }
        siginfo_t end;
        assert_int_equal(waitid(P_PID, (id_t)holder, &end, WEXITED | WNOWAIT), 0);
        assert_int_equal(end.si_status, 0);
        if (gone)
            assert_int_equal(waitpid(holder, NULL, 0), holder);
        ok(sl_file_lock_take("lock", &lock, &why), &why);
        sl_file_lock_release(lock);
        if (!gone)
            assert_int_equal(waitpid(holder, NULL, 0), holder);
    }
}

/* What another program has written into the file is shown as plain text, and is no process of this host. */
static void a_holder_elsewhere_is_no_process_here(void **state)
{
    (void)state;
    struct sl_file_lock *lock = NULL;
    char holder[SL_FILE_LOCK_HOLDER_BYTES];
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_file_lock_take("lock", &lock, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_lock_find_process("lock"), getpid());
    FILE *file = fopen("lock", "w");
    fprintf(file, "process %ld on el\x1bse\x7fwhere since\tnow\nand more", (long)getpid());
    fclose(file);
    assert_true(sl_file_lock_find_holder("lock", holder));
    const char *on = strstr(holder, " on ");
    assert_non_null(on);
    assert_string_equal(on, " on el?se?where since?now");
    assert_int_equal(sl_file_lock_find_process("lock"), 0);
    assert_int_equal(sl_file_lock_take("lock", &(struct sl_file_lock *){NULL}, &why), SEQLSTM_IO);
    assert_int_equal(why.native_code, EAGAIN);
    sl_file_lock_release(lock);
    assert_false(sl_file_lock_find_holder("lock", holder));
    assert_int_equal(sl_file_lock_find_process("lock"), 0);
}

/* Who asks may send the process a signal: a number of less than 1 would mean a group, or all processes. */
static void numbers_of_no_process_name_none(void **state)
{
    static const char *const numbers[] = {"0", "-1", "-77", "2147483648", "4294967295", "99999999999999999999"};
    (void)state;
    struct sl_file_lock *lock = NULL;
    char host[65] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_int_equal(sl_file_lock_take("lock", &lock, NULL), SEQLSTM_OK);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        FILE *file = fopen("lock", "w");
        fprintf(file, "process %s on %s since now\n", numbers[k], host);
        fclose(file);
        assert_int_equal(sl_file_lock_find_process("lock"), 0);
    }
    sl_file_lock_release(lock);
}

/* One that is stopped, and has every signal pending that can be blocked, lives on: it is named at once. */
static void a_living_holder_is_not_waited_for(void **state)
{
    (void)state;
    struct sl_file_lock *lock = NULL;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    char expected[64];
    const pid_t holder = fork();
    assert_true(holder >= 0);
    if (holder == 0) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        if (sl_file_lock_take("lock", &lock, NULL) != SEQLSTM_OK)
            _exit(1);
        for (int s = 1; s < 32; s++)
            if (s != SIGKILL && s != SIGSTOP && s != SIGCONT && s != SIGTSTP && s != SIGTTIN && s != SIGTTOU)
                kill(getpid(), s);
        raise(SIGSTOP);
        _exit(0);
    }
    int end_status;
    assert_int_equal(waitpid(holder, &end_status, WUNTRACED), holder);
    assert_true(WIFSTOPPED(end_status));
    const int64_t start = sl_clock_ns();
    assert_int_equal(sl_file_lock_take("lock", &lock, &why), SEQLSTM_IO);
    assert_true(sl_clock_ns() - start < INT64_C(2000000000));
    snprintf(expected, sizeof expected, "lock is held by process %ld on ", (long)holder);
    assert_memory_equal(why.message, expected, strlen(expected));
    assert_int_equal(sl_file_lock_find_process("lock"), holder);
    assert_int_equal(kill(holder, SIGKILL), 0);
    ok(sl_file_lock_take("lock", &lock, &why), &why);
    sl_file_lock_release(lock);
    assert_int_equal(waitpid(holder, NULL, 0), holder);
}

/* A lock that is not held says so; whose file it is, the text tells while that process lives. */
static void without_locks_the_text_counts(void **state)
{
    (void)state;
    static const int reasons[] = {ENOLCK, EOPNOTSUPP, ENOSYS, EINVAL};
    for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++) {
        struct seqlstm_error why = SEQLSTM_ERROR_INIT;
        struct sl_file_lock *lock = NULL;
        char holder[SL_FILE_LOCK_HOLDER_BYTES];
        lock_errno = reasons[k];
        lock_failures = 1;
        ok(sl_file_lock_take("lock", &lock, &why), &why);
        assert_false(sl_file_lock_is_held(lock));
        assert_true(sl_file_lock_is_there(lock));
        assert_int_equal(sl_file_lock_find_process("lock"), 0); /* there are locks: it is free */
        lock_failures = 1;
        assert_true(sl_file_lock_find_holder("lock", holder));
        lock_failures = 1;
        assert_int_equal(sl_file_lock_find_process("lock"), getpid());
        const pid_t other = fork();
        assert_true(other >= 0);
        if (other == 0) {
            struct sl_file_lock *its = NULL;
            lock_failures = 1;
            _exit(sl_file_lock_take("lock", &its, NULL) == SEQLSTM_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(other, &status, 0), other);
        assert_int_equal(status, 0);
        lock_failures = 1;
        assert_false(sl_file_lock_find_holder("lock", holder)); /* it is no more */
        sl_file_lock_release(lock);
        assert_false(sl_file_exists("lock"));
    }
}

/* What the system says of a lock: a signal is no answer, some say EACCES in place of EAGAIN, and the rest is an error.
 */
static void answers_of_the_system(void **state)
{
    (void)state;
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_file_lock *lock = NULL, *other = NULL;
    lock_errno = EINTR;
    lock_failures = 3;
    ok(sl_file_lock_take("lock", &lock, &why), &why);
    assert_true(sl_file_lock_is_held(lock));
    for (int denied = 0; denied < 2; denied++) {
        lock_errno = denied ? EACCES : EAGAIN;
        lock_failures = 1;
        assert_int_equal(sl_file_lock_take("lock", &other, &why), SEQLSTM_IO);
        assert_int_equal(why.native_code, EAGAIN);
        assert_non_null(strstr(why.message, "lock is held by process "));
    }
    lock_errno = EIO;
    lock_failures = 1;
    assert_int_equal(sl_file_lock_take("lock", &other, &why), SEQLSTM_IO);
    assert_int_equal(why.native_code, EIO);
    assert_memory_equal(why.message, "cannot lock `lock`", strlen("cannot lock"));
    assert_null(other);
    assert_true(sl_file_lock_is_held(lock) && sl_file_lock_is_there(lock));
    sl_file_lock_release(lock);
}

static void a_lock_without_memory(void **state)
{
    (void)state;
    int n = 1;
    for (bool failed = true; failed; n++) {
        struct seqlstm_error why = SEQLSTM_ERROR_INIT;
        struct sl_file_lock *lock = NULL;
        oom_fail_at(n);
        const seqlstm_status status = sl_file_lock_take("lock", &lock, &why);
        failed = oom_disarm();
        assert_true(status == SEQLSTM_OK || (failed && status == SEQLSTM_NO_MEMORY && !lock));
        assert_true(lock || !sl_file_exists("lock"));
        sl_file_lock_release(lock);
    }
    assert_true(n > 3);
}

static int enter(void **state)
{
    return scratch_make(state) == 0 ? chdir(scratch_folder) : -1;
}

static int leave(void **state)
{
    return chdir("/") == 0 ? scratch_remove(state) : -1;
}

/* As by a plugin that closes all descriptors. The number may be another file's by then, which stays open. */
static void a_lock_that_others_have_closed(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        struct sl_file_lock *lock = NULL;
        struct seqlstm_error why = SEQLSTM_ERROR_INIT;
        const int fd = dup(STDIN_FILENO);
        close(fd); /* the next one to be opened */
        ok(sl_file_lock_take("lock", &lock, &why), &why);
        assert_false(sl_file_lock_is_closed(lock));
        assert_int_equal(close(fd), 0);
        if (again)
            assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), fd);
        assert_true(sl_file_lock_is_closed(lock));
        assert_false(sl_file_lock_is_there(lock));
        sl_file_lock_release(lock);
        assert_int_equal(close(fd), again ? 0 : -1);
        assert_int_equal(unlink("lock"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lock_has_one_holder, begin, end),
        cmocka_unit_test_setup_teardown(the_text_of_an_earlier_holder_goes, begin, end),
        cmocka_unit_test_setup_teardown(an_ending_holder_is_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(a_holder_elsewhere_is_no_process_here, begin, end),
        cmocka_unit_test_setup_teardown(numbers_of_no_process_name_none, begin, end),
        cmocka_unit_test_setup_teardown(a_living_holder_is_not_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(without_locks_the_text_counts, begin, end),
        cmocka_unit_test_setup_teardown(answers_of_the_system, begin, end),
        cmocka_unit_test_setup_teardown(a_lock_without_memory, begin, end),
        cmocka_unit_test_setup_teardown(a_lock_that_others_have_closed, begin, end),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
