/* SPDX-License-Identifier: Apache-2.0 */
/* Which function of which plugin runs; which calls are guarded; what is reported; texts of plugins. */
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "oom.h"
#include "registry/host.h"
#include "registry/watch/outlet.h"
#include "registry/watch/plugin_text.h"
#include "registry/watch/watch.h"

static char reports[4000];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    assert_int_equal(level, SL_LOG_WARN);
    strcat(reports, message);
    strcat(reports, "\n");
}

static const struct sl_log sink = {.write = keep, .level = SL_LOG_WARN};

static int count_reports(void)
{
    int lines = 0;
    for (const char *p = reports; *p; p++)
        lines += *p == '\n';
    return lines;
}

static void the_running_function_is_known(void **state)
{
    (void)state;
    static const char id[] = "one", other[] = "two";
    bool here;
    _Atomic uint32_t mirror = 0;
    struct sl_watched_call outer, inner;
    assert_null(sl_running_find(&here));
    sl_running_mirror(&mirror);
    sl_watch_begin(&outer, id, SL_FUNCTION_OPEN);
    sl_watch_begin(&inner, other, SL_FUNCTION_FORWARD);
    assert_string_equal(sl_running_find(&here)->plugin, "two");
    assert_true(here);
    assert_int_equal(mirror, SL_FUNCTION_FORWARD);
    sl_watch_end(&inner);
    assert_string_equal(sl_running_find(&here)->plugin, "one");
    assert_string_equal(sl_plugin_function_name(sl_running_find(&here)->function), "open");
    sl_watch_end(&outer);
    assert_null(sl_running_find(&here));
    assert_int_equal(mirror, SL_FUNCTION_NONE);
    sl_running_mirror(NULL);
    assert_string_equal(sl_plugin_function_name(SL_FUNCTION_COUNT), "?");
}

/* Changes the folder in call `from` and later ones; returns how many of the `calls` calls were guarded, and undid it.
 */
static int count_guarded(const char *id, int from, int calls)
{
    int guarded = 0;
    for (int k = 1; k <= calls; k++) {
        struct sl_watched_call call;
        char folder[100];
        sl_watch_begin(&call, id, SL_FUNCTION_OP_BIND);
        assert_int_equal(chdir(k >= from ? "/" : "."), 0);
        sl_watch_end(&call);
        assert_non_null(getcwd(folder, sizeof folder));
        guarded += k >= from && strcmp(folder, "/tmp") == 0;
        assert_int_equal(chdir("/tmp"), 0);
    }
    return guarded;
}

static void calls_are_guarded_rarely_until_one_is_caught(void **state)
{
    (void)state;
    static const char at_once[] = "once", late[] = "late", silent[] = "silent", all[] = "all";
    reports[0] = 0;
    assert_int_equal(chdir("/tmp"), 0);
    sl_watch_report_to(at_once, &sink);
    assert_int_equal(count_guarded(at_once, 1, 9), 9);
    assert_int_equal(count_reports(), 1);
    assert_non_null(
        strstr(reports, "the backend once misbehaves: its op_bind changed the current folder; seqlstm undid"));
    sl_watch_report_to(late, &sink);
    assert_int_equal(count_guarded(late, 5, 20), 13); /* caught in call 8 */
    assert_int_equal(count_reports(), 2);
    assert_int_equal(count_guarded(silent, 3, 4), 1); /* it has a count, and a log, of its own */
    assert_int_equal(count_reports(), 2);
    sl_watch_report_to(all, &sink);
    sl_watch_guard_all(true);
    assert_int_equal(count_guarded(all, 3, 7), 5);
    sl_watch_guard_all(false);
    assert_int_equal(count_reports(), 7);
}

static void modes_are_restored_in_every_call(void **state)
{
    (void)state;
    static const char id[] = "modes";
    reports[0] = 0;
    sl_watch_report_to(id, &sink);
    for (int k = 0; k < 9; k++) {
        struct sl_watched_call call;
        sl_watch_begin(&call, id, SL_FUNCTION_BACKWARD);
        fesetround(FE_UPWARD);
        sl_watch_end(&call);
        assert_int_equal(fegetround(), FE_TONEAREST);
    }
    assert_int_equal(count_reports(), 1);
    assert_non_null(strstr(reports, "its backward changed the floating-point mode"));
}

static void output_is_kept_back_and_reported(void **state)
{
    (void)state;
    static const char id[] = "loud";
    reports[0] = 0;
    sl_watch_report_to(id, &sink);
    sl_watch_capture_output(true);
    for (int k = 0; k < 5; k++) {
        struct sl_watched_call call;
        sl_watch_begin(&call, id, SL_FUNCTION_FORWARD);
        assert_true(call.captures);
        printf("# \033[31mseen\n");
        sl_watch_end(&call);
    }
    sl_watch_capture_output(false);
    assert_int_equal(count_reports(), 1);
    assert_non_null(strstr(reports, "its forward wrote 12 bytes to stdout or stderr"));
    assert_non_null(strstr(reports, "# \\x1b[31mseen"));
}

/* Each kind of change of a function is told once, also where it comes with one that has been told. */
static void further_changes_are_told(void **state)
{
    (void)state;
    static const char id[] = "worse";
    static const int done[] = {1, 1, 3, 3, 2};
    const mode_t mask = umask(0);
    umask(mask);
    reports[0] = 0;
    assert_int_equal(chdir("/tmp"), 0);
    sl_watch_report_to(id, &sink);
    for (size_t k = 0; k < sizeof done / sizeof *done; k++) {
        struct sl_watched_call call;
        sl_watch_begin(&call, id, SL_FUNCTION_OP_SIZES);
        if (done[k] & 1)
            assert_int_equal(chdir("/"), 0);
        if (done[k] & 2)
            umask(mask ^ 011);
        sl_watch_end(&call);
    }
    char expected[600];
    snprintf(expected, sizeof expected,
             "the backend worse misbehaves: its op_sizes changed the current folder; seqlstm undid it\n"
             "the backend worse misbehaves: its op_sizes changed the current folder, changed the mask of file "
             "permissions (umask %03o to %03o); seqlstm undid it\n",
             (unsigned)mask, (unsigned)mask ^ 011);
    assert_string_equal(reports, expected);
}

/* The second time nothing is left of the first; what is written cannot be undone. */
static void output_is_told_in_full(void **state)
{
    (void)state;
    static const char id[] = "louder";
    static const char *const written[] = {"# a line which is longer\n", "x"};
    reports[0] = 0;
    sl_watch_report_to(id, &sink);
    sl_watch_capture_output(true);
    sl_watch_guard_all(true);
    for (int k = 0; k < 2; k++) {
        struct sl_watched_call call;
        sl_watch_begin(&call, id, k ? SL_FUNCTION_BACKWARD : SL_FUNCTION_FORWARD);
        fputs(written[k], stdout);
        sl_watch_end(&call);
    }
    sl_watch_guard_all(false);
    sl_watch_capture_output(false);
    assert_string_equal(reports,
                        "the backend louder misbehaves: its forward wrote 25 bytes to stdout or stderr, and may use "
                        "the host's log only: # a line which is longer\n"
                        "the backend louder misbehaves: its backward wrote 1 byte to stdout or stderr, and may use the "
                        "host's log only: x\n");
}

static uint64_t get_stdout(void)
{
    struct stat status;
    assert_int_equal(fstat(STDOUT_FILENO, &status), 0);
    return (uint64_t)status.st_ino;
}

static pthread_barrier_t meeting;

static void *run_code(void *unused)
{
    struct sl_watched_code code;
    pthread_barrier_wait(&meeting); /* 1 */
    sl_watch_begin_code(&code);
    pthread_barrier_wait(&meeting); /* 2 */
    pthread_barrier_wait(&meeting); /* 3 */
    sl_watch_end_code(&code, "other", SL_FUNCTION_OPEN);
    pthread_barrier_wait(&meeting); /* 4 */
    return unused;
}

/* A plugin is opened by one thread while another one calls it; which of the two begins first, and ends first. */
static void threads_do_not_see_the_captures_of_others(void **state)
{
    (void)state;
    static const char id[] = "shared";
    const uint64_t before = get_stdout();
    reports[0] = 0;
    sl_watch_report_to(id, &sink);
    sl_watch_capture_output(true);
    sl_watch_guard_all(true);
    for (int turn = 0; turn < 4; turn++) {
        const bool call_first = turn & 1, ends_first = turn & 2;
        struct sl_watched_call call;
        pthread_t thread;
        pthread_barrier_init(&meeting, NULL, 2);
        assert_int_equal(pthread_create(&thread, NULL, run_code, NULL), 0);
        if (call_first)
            sl_watch_begin(&call, id, SL_FUNCTION_FORWARD);
        pthread_barrier_wait(&meeting);
        pthread_barrier_wait(&meeting);
        if (!call_first)
            sl_watch_begin(&call, id, SL_FUNCTION_FORWARD);
        if (ends_first)
            sl_watch_end(&call);
        pthread_barrier_wait(&meeting);
        pthread_barrier_wait(&meeting);
        if (!ends_first)
            sl_watch_end(&call);
        pthread_join(thread, NULL);
        pthread_barrier_destroy(&meeting);
        assert_int_equal(get_stdout(), before);
    }
    sl_watch_guard_all(false);
    sl_watch_capture_output(false);
    assert_string_equal(reports, "");
}

struct guarding {
    pthread_barrier_t begun, forked;
    char wrote[sizeof((struct sl_watched_code *)0)->wrote];
};

static void *guard_meanwhile(void *context)
{
    struct guarding *g = context;
    struct sl_watched_code code;
    sl_watch_begin_code(&code);
    pthread_barrier_wait(&g->begun);
    pthread_barrier_wait(&g->forked);
    sl_watch_end_code(&code, "slow", SL_FUNCTION_OPEN);
    memcpy(g->wrote, code.wrote, sizeof g->wrote);
    return NULL;
}

/* 0: the calling child of a fork guards, and what it prints is kept only then. */
static int guard_in_child(mode_t mask, uint64_t shown)
{
    struct sl_watched_code code;
    if (get_stdout() != shown)
        return 1;
    sl_watch_begin_code(&code);
    umask(mask ^ 011);
    printf("# a child\n");
    const uint32_t changes = sl_watch_end_code(&code, "one", SL_FUNCTION_OPEN);
    const bool same = umask(0) == mask;
    if (!code.guards || !code.captures)
        return 2;
    if (changes == 0 || !same)
        return 3;
    return strstr(code.wrote, "wrote 10 bytes") && get_stdout() == shown ? 0 : 4;
}

/* What the child of a fork loads is guarded, although another thread of its parent guarded meanwhile; and what that one
 * keeps back is none of its output. */
static void a_child_guards_by_itself(void **state)
{
    (void)state;
    struct guarding g;
    pthread_t other;
    const uint64_t shown = get_stdout();
    fflush(stdout);
    sl_watch_capture_output(true);
    pthread_barrier_init(&g.begun, NULL, 2);
    pthread_barrier_init(&g.forked, NULL, 2);
    assert_int_equal(pthread_create(&other, NULL, guard_meanwhile, &g), 0);
    pthread_barrier_wait(&g.begun);
    const mode_t mask = umask(0);
    umask(mask);
    const pid_t child = fork();
    if (child == 0)
        _exit(guard_in_child(mask, shown));
    assert_true(child > 0);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    pthread_barrier_wait(&g.forked);
    pthread_join(other, NULL);
    sl_watch_capture_output(false);
    assert_string_equal(g.wrote, "");
    assert_int_equal(get_stdout(), shown);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void output_of_a_crash_has_no_control_characters(void **state)
{
    (void)state;
    char got[40] = "";
    int ends[2];
    struct sl_watched_call call;
    assert_int_equal(pipe(ends), 0);
    sl_watch_capture_output(true);
    sl_watch_begin(&call, "crashing", SL_FUNCTION_FORWARD);
    printf("# \033[31mlast\tw\xC3\xB6rds\177\n");
    fflush(stdout);
    sl_watch_spill(ends[1]);
    sl_watch_end(&call);
    sl_watch_capture_output(false);
    assert_true(read(ends[0], got, sizeof got - 1) > 0);
    assert_string_equal(got, "# ?[31mlast?w\xC3\xB6rds?\n");
    close(ends[0]);
    close(ends[1]);
}

static char said[200];

static void print_and_keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context, (void)level;
    fprintf(stderr, "# %s\n", message);
    strcat(strcat(said, message), "\n");
}

/* What the host writes for a plugin, in the middle of a call, is the host's and not the plugin's output. */
static void what_the_host_logs_is_no_output_of_the_plugin(void **state)
{
    (void)state;
    static const char id[] = "talks";
    const struct sl_log log = {.write = print_and_keep, .level = SL_LOG_TRACE};
    struct sl_watched_call call;
    struct sl_host host;
    reports[0] = said[0] = '\0';
    sl_host_init(&host, id, &log, NULL);
    sl_watch_report_to(id, &sink);
    sl_watch_capture_output(true);
    sl_watch_begin(&call, id, SL_FUNCTION_FORWARD);
    assert_true(call.captures);
    host.services.log(host.services.context, SEQLSTM_LOG_INFO, "a\tline");
    host.services.trace_begin(host.services.context, "work\033");
    host.services.trace_end(host.services.context);
    sl_watch_end(&call);
    sl_watch_capture_output(false);
    sl_watch_report_to(id, NULL);
    assert_string_equal(reports, "");
    assert_string_equal(said, "talks: a\\tline\ntalks: begin work\\x1b\ntalks: end\n");
}

/* What a plugin prints in a line of so many characters, and in the next one, as it comes to stderr, in one line. */
static void pass_on(size_t length, char *sent, char *got, size_t capacity)
{
    static const char name[] = "loud: ";
    char came[8000];
    struct sl_outlet outlet;
    FILE *file = tmpfile();
    const int kept = dup(STDERR_FILENO);
    for (size_t k = 0; k < length; k++)
        sent[k] = (char)('a' + k % 26);
    strcpy(sent + length, "next");
    assert_non_null(file);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    sl_outlet_init(&outlet, NULL, true);
    sl_outlet_begin(&outlet);
    printf("%.*s\nnext\n", (int)length, sent);
    sl_outlet_pass_on(&outlet, "loud");
    sl_outlet_end(&outlet, came, sizeof came);
    sl_outlet_deinit(&outlet);
    dup2(kept, STDERR_FILENO);
    close(kept);
    const ssize_t bytes = pread(fileno(file), came, sizeof came - 1, 0);
    fclose(file);
    assert_true(bytes > 0 && came[bytes - 1] == '\n');
    came[bytes] = got[0] = 0;
    for (char *next, *line = came; *line; line = next) {
        next = strchr(line, '\n') + 1;
        next[-1] = 0;
        assert_int_equal(strncmp(line, name, strlen(name)), 0);
        assert_true(strlen(got) + strlen(line) < capacity);
        strcat(got, line + strlen(name));
    }
}

/* As it is seen on a terminal; and not before the outermost call ends, which has all of it. */
static void what_is_passed_on_has_no_control_characters(void **state)
{
    (void)state;
    for (int nested = 0; nested < 2; nested++) {
        char came[100], rest[200];
        struct sl_outlet outlet;
        FILE *file = tmpfile();
        const int kept = dup(STDERR_FILENO);
        assert_non_null(file);
        assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
        sl_outlet_init(&outlet, NULL, true);
        sl_outlet_begin(&outlet);
        if (nested)
            sl_outlet_begin(&outlet);
        printf("\033[31mred\ttext\n");
        sl_outlet_pass_on(&outlet, "loud");
        if (nested)
            assert_false(sl_outlet_end(&outlet, rest, sizeof rest));
        assert_true(sl_outlet_end(&outlet, rest, sizeof rest));
        sl_outlet_deinit(&outlet);
        dup2(kept, STDERR_FILENO);
        close(kept);
        const ssize_t bytes = pread(fileno(file), came, sizeof came - 1, 0);
        fclose(file);
        came[bytes > 0 ? bytes : 0] = 0;
        assert_string_equal(came, nested ? "" : "loud: \\x1b[31mred\\ttext\n");
        assert_string_equal(rest, "wrote 14 bytes to stdout or stderr, and may use the host's log only: "
                                  "\\x1b[31mred\\ttext");
    }
}

/* Nothing is lost of lines that are as long as the buffer, or longer. */
static void lines_of_any_length_are_passed_on(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 1022, 1023, 1024, 1025, 2045, 2046, 2047, 3000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char sent[4000], got[4000];
        pass_on(lengths[i], sent, got, sizeof got);
        assert_string_equal(got, sent);
    }
}

static void texts_are_cleaned(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"plain", "plain"}, {"\033[31m", "\\x1b[31m"}, {"a\nb\177", "a\\nb\\x7f"}, {"\xC3\xA4", "\xC3\xA4"}, {"", ""}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[40];
        snprintf(text, sizeof text, "%s", texts[i][0]);
        assert_int_equal(sl_plugin_text_is_clean(text), strcmp(texts[i][0], texts[i][1]) == 0);
        sl_plugin_text_clean(text, sizeof text);
        assert_string_equal(text, texts[i][1]);
    }
    char endless[4] = {'a', 'b', 'c', 'd'};
    sl_plugin_text_clean(endless, sizeof endless);
    assert_string_equal(endless, "abc");
    sl_plugin_error_clean(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_running_function_is_known),
        cmocka_unit_test(calls_are_guarded_rarely_until_one_is_caught),
        cmocka_unit_test(modes_are_restored_in_every_call),
        cmocka_unit_test(output_is_kept_back_and_reported),
        cmocka_unit_test(further_changes_are_told),
        cmocka_unit_test(output_is_told_in_full),
        cmocka_unit_test(threads_do_not_see_the_captures_of_others),
        cmocka_unit_test(a_child_guards_by_itself),
        cmocka_unit_test(output_of_a_crash_has_no_control_characters),
        cmocka_unit_test(what_the_host_logs_is_no_output_of_the_plugin),
        cmocka_unit_test(lines_of_any_length_are_passed_on),
        cmocka_unit_test(what_is_passed_on_has_no_control_characters),
        cmocka_unit_test(texts_are_cleaned),
    };
    const int before = descriptors_count() + 1; /* the file in which output is kept, once and for all */
    sl_watch_capture_output(true);
    sl_watch_capture_output(false);
    const int kept = descriptors_count(), failed = cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
    if (kept != before || descriptors_count() != before)
        print_error("%d file descriptors were left open\n", descriptors_count() - before);
    return failed + (kept != before) + (descriptors_count() != before);
}
