/* SPDX-License-Identifier: Apache-2.0 */
/* The file of measured costs: what was saved is found, damage is survived and repaired, writers at once lose nothing,
 * full disks and no memory do no harm. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/hash.h"
#include "descriptors.h"
#include "dispatch/cost/cost_cache.h"
#include "oom.h"
#include "temporary.h"

static char folder[256], path[300];
static int opened; /* descriptors before a test */

static int make_folder(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(temporary_template(folder, "costs")));
    snprintf(path, sizeof path, "%s/costs", folder);
    opened = descriptors_count();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char lock[300];
    snprintf(lock, sizeof lock, "%s/costs.lock", folder);
    unlink(path);
    unlink(lock);
    chmod(folder, 0700);
    assert_int_equal(descriptors_count(), opened);
    return rmdir(folder);
}

static struct sl_cost_record make_record(uint64_t number)
{
    struct sl_cost_record record = {.key = {{number * UINT64_C(0x9E3779B97F4A7C15), ~number}},
                                    .forward_ns = (double)number + 0.5,
                                    .backward_ns = 2.0 * (double)number,
                                    .bound = number % 5 == 4,
                                    .refused = number % 5 == 0};
    snprintf(record.label, sizeof record.label, "backend:variant of %d", (int)number);
    return record;
}

static struct sl_cost_cache *open_cache(void)
{
    struct sl_cost_cache *cache = NULL;
    assert_int_equal(sl_cost_cache_open(folder, &cache, NULL), SEQLSTM_OK);
    return cache;
}

static bool holds(const struct sl_cost_cache *cache, uint64_t number)
{
    struct sl_cost_record expected = make_record(number);
    const struct sl_cost_record *found = sl_cost_cache_find(cache, &expected.key);
    return found && found->forward_ns == expected.forward_ns && found->backward_ns == expected.backward_ns &&
           found->bound == expected.bound && found->refused == expected.refused &&
           (!found->refused || strcmp(found->label, expected.label) == 0);
}

static void add(struct sl_cost_cache *cache, uint64_t number)
{
    struct sl_cost_record record = make_record(number);
    assert_int_equal(sl_cost_cache_add(cache, &record, NULL), SEQLSTM_OK);
}

static void save(uint64_t first, uint64_t count)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_cost_cache *cache = open_cache();
    for (uint64_t n = first; n < first + count; n++)
        add(cache, n);
    if (sl_cost_cache_save(cache, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    sl_cost_cache_close(cache);
}

static char *read_file(size_t *out_bytes)
{
    static char *text;
    assert_int_equal(sl_file_read(path, 1 << 30, &text, out_bytes, NULL), SEQLSTM_OK);
    return text;
}

static void what_was_saved_is_found(void **state)
{
    (void)state;
    save(1, 100);
    struct sl_cost_cache *cache = open_cache();
    for (uint64_t n = 1; n <= 100; n++)
        assert_true(holds(cache, n));
    assert_false(holds(cache, 101));
    struct sl_cost_record again = make_record(7);
    again.forward_ns = 1;
    assert_int_equal(sl_cost_cache_add(cache, &again, NULL), SEQLSTM_OK);
    assert_true(sl_cost_cache_find(cache, &again.key)->forward_ns == 1); /* the last one counts */
    size_t once = 0, twice = 0;
    assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
    free(read_file(&once));
    assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
    free(read_file(&twice));
    assert_int_equal(once, twice); /* what is in the file is not written again */
    sl_cost_cache_close(cache);
    cache = open_cache();
    assert_true(sl_cost_cache_find(cache, &again.key)->forward_ns == 1);
    sl_cost_cache_close(cache);
}

/* Many a byte in turn is another one; then the file ends at many a place: all other lines are still there, and the next
 * save leaves a file without damage. */
static void damage_is_survived(void **state)
{
    (void)state;
    enum { LINES = 3 };
    save(1, LINES);
    size_t bytes, line;
    char *text = read_file(&bytes);
    line = (size_t)(strchr(text, '\n') + 1 - text);
    for (size_t i = 0; i < 2 * bytes; i += i % 89 < 86 ? 7 : 1) { /* lines are about 90 bytes long */
        size_t kept = i < bytes ? bytes : i - bytes;
        char *bad = malloc(bytes + 1);
        memcpy(bad, text, bytes);
        if (i < bytes)
            bad[i] = (char)(bad[i] == '7' ? '8' : '7');
        assert_int_equal(sl_file_write(path, bad, kept, NULL), SEQLSTM_OK);
        free(bad);
        struct sl_cost_cache *cache = open_cache();
        int found = 0;
        for (uint64_t n = 1; n <= LINES; n++)
            found += holds(cache, n);
        size_t whole = i < bytes ? (text[i] == '\n' ? LINES - 2 : LINES - 1) : kept / line;
        if (i == bytes - 1)
            whole = LINES - 1; /* the last line lost its end */
        assert_true((size_t)found >= whole);
        add(cache, 50);
        assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
        sl_cost_cache_close(cache);
        cache = open_cache();
        assert_true(holds(cache, 50));
        size_t now;
        char *repaired = read_file(&now);
        size_t lines = 0;
        for (size_t k = 0; k < now; k++)
            lines += repaired[k] == '\n';
        assert_int_equal(lines, found + 1); /* nothing but good lines */
        free(repaired);
        sl_cost_cache_close(cache);
    }
    free(text);
}

static ino_t get_file(void)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_ino;
}

/* A damaged file is written anew once; later saves of the same run add to it. */
static void damage_is_repaired_once(void **state)
{
    (void)state;
    assert_int_equal(sl_file_write(path, "rubbish\n", 8, NULL), SEQLSTM_OK);
    const ino_t damaged = get_file();
    struct sl_cost_cache *cache = open_cache();
    add(cache, 1);
    assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
    const ino_t repaired = get_file();
    assert_true(repaired != damaged);
    for (uint64_t n = 2; n < 5; n++) {
        add(cache, n);
        assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
        assert_true(get_file() == repaired);
    }
    sl_cost_cache_close(cache);
    cache = open_cache();
    for (uint64_t n = 1; n < 5; n++)
        assert_true(holds(cache, n));
    sl_cost_cache_close(cache);
    unlink(path);
}

/* The file is this line, which ends with its right sum. */
static void write_sealed(char line[200], size_t length)
{
    length +=
        (size_t)snprintf(line + length, 200 - length, " %016llx\n", (unsigned long long)sl_crc64(0, line, length));
    assert_int_equal(sl_file_write(path, line, length, NULL), SEQLSTM_OK);
}

static size_t begin_line(char line[200], uint64_t number, const char *times)
{
    const struct sl_cost_record record = make_record(number);
    return (size_t)snprintf(line, 200, "%016llx%016llx %s a_label", (unsigned long long)record.key.words[0],
                            (unsigned long long)record.key.words[1], times);
}

/* A line whose sum is right, but of a number that is no time; and what another writer left without an end. */
static void lines_of_others(void **state)
{
    (void)state;
    static const char *const times[] = {"2.5 4.0", "-2.5 4.0", "2.5 -4.0", "2.5 .nan", ".inf 4.0", "2.5", "!2.5 4.0"};
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        const struct sl_cost_record record = make_record(2);
        char line[200];
        write_sealed(line, begin_line(line, 2, times[k]));
        struct sl_cost_cache *cache = open_cache();
        const struct sl_cost_record *found = sl_cost_cache_find(cache, &record.key);
        assert_int_equal(found != NULL, k == 0 || k == 6);
        if (found)
            assert_int_equal(found->refused, k == 6);
        sl_cost_cache_close(cache);
    }
    unlink(path);
    save(1, 2);
    struct sl_cost_cache *cache = open_cache();
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    assert_true(fputs("no end", file) >= 0);
    fclose(file);
    add(cache, 3);
    assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
    sl_cost_cache_close(cache);
    cache = open_cache();
    assert_true(holds(cache, 1) && holds(cache, 2) && holds(cache, 3));
    sl_cost_cache_close(cache);
}

/* Is there nothing good in the file? A save removes what is not, and only that. */
static void expect_kept(bool kept)
{
    size_t bytes;
    struct sl_cost_cache *cache = open_cache();
    assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
    sl_cost_cache_close(cache);
    free(read_file(&bytes));
    assert_int_equal(bytes > 0, kept);
}

/* At each end of both numbers of a key, though the sum is right. */
static void a_key_has_no_other_digits(void **state)
{
    (void)state;
    static const char others[] = {'\0', ' ', 'g', 'A', '/', ':', '`', '-', '\x80'};
    static const int places[] = {0, 15, 16, 31};
    char line[200];
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (size_t k = 0; k < sizeof others; k++) {
            const size_t length = begin_line(line, 2, "2.5 4.0");
            line[places[p]] = others[k];
            write_sealed(line, length);
            expect_kept(false);
        }
    write_sealed(line, begin_line(line, 2, "2.5 4.0"));
    expect_kept(true);
}

/* A zero byte in place of the digit 0 behind an odd one: read as sixteen, it would carry to the same number. */
static void a_sum_has_no_other_digits(void **state)
{
    (void)state;
    int tried = 0;
    for (uint64_t n = 1; n < 20; n++) {
        char line[200];
        size_t bytes;
        write_sealed(line, begin_line(line, n, "2.5 4.0"));
        char *text = read_file(&bytes);
        for (size_t k = bytes - 16; k < bytes - 1; k++)
            if (text[k] == '0' && strchr("13579bdf", text[k - 1])) {
                text[k] = '\0';
                assert_int_equal(sl_file_write(path, text, bytes, NULL), SEQLSTM_OK);
                expect_kept(false);
                text[k] = '0';
                tried++;
            }
        free(text);
    }
    assert_true(tried > 3);
}

/* At either end, with a whole line's end; and with a sum that is right, so that only the label can be shorter. */
static void lines_are_not_cut_short(void **state)
{
    (void)state;
    char line[200];
    size_t bytes, whole = strlen("0123456789abcdef0123456789abcdef 2.5 4.0 ");
    for (size_t length = 0; length < begin_line(line, 2, "2.5 4.0"); length += length < 30 ? 3 : 1) {
        write_sealed(line, length);
        expect_kept(length >= whole);
    }
    write_sealed(line, begin_line(line, 2, "2.5 4.0"));
    char *text = read_file(&bytes);
    for (size_t cut = 0; cut < bytes; cut += 3) {
        assert_int_equal(sl_file_write(path, text + cut, bytes - cut, NULL), SEQLSTM_OK);
        expect_kept(cut == 0);
        memcpy(line, text, cut);
        line[cut] = '\n';
        assert_int_equal(sl_file_write(path, line, cut + 1, NULL), SEQLSTM_OK);
        expect_kept(cut == bytes - 1);
    }
    free(text);
}

static void rubbish_is_no_error(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",          "\n\n\n",          "rubbish",
        "rubbish\n", "{\"json\": 1}\n", "00000000000000000000000000000000 1 1 x 0000000000000000\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(sl_file_write(path, texts[i], strlen(texts[i]), NULL), SEQLSTM_OK);
        save(3, 1);
        struct sl_cost_cache *cache = open_cache();
        assert_true(holds(cache, 3));
        sl_cost_cache_close(cache);
    }
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0); /* a folder in place of the file */
    struct sl_cost_cache *cache = open_cache();
    add(cache, 1);
    assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_IO);
    assert_true(holds(cache, 1));
    sl_cost_cache_close(cache);
    assert_int_equal(rmdir(path), 0);
}

static void writers_at_once_lose_nothing(void **state)
{
    (void)state;
    enum { WRITERS = 8, EACH = 25 };
    save(1, 1);
    size_t bytes;
    char *text = read_file(&bytes);
    text[40] ^= 1; /* one of them rewrites the file, the others append */
    assert_int_equal(sl_file_write(path, text, bytes, NULL), SEQLSTM_OK);
    free(text);
    for (uint64_t w = 0; w < WRITERS; w++)
        if (fork() == 0) {
            bool fine = true;
            for (uint64_t k = 0; k < EACH; k++) {
                struct sl_cost_cache *cache = NULL;
                struct sl_cost_record record = make_record(100 * (w + 1) + k);
                fine = fine && sl_cost_cache_open(folder, &cache, NULL) == SEQLSTM_OK &&
                       sl_cost_cache_add(cache, &record, NULL) == SEQLSTM_OK &&
                       sl_cost_cache_save(cache, NULL) == SEQLSTM_OK;
                sl_cost_cache_close(cache);
            }
            _exit(fine ? 0 : 1);
        }
    int status;
    for (int w = 0; w < WRITERS; w++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    struct sl_cost_cache *cache = open_cache();
    for (uint64_t w = 0; w < WRITERS; w++)
        for (uint64_t k = 0; k < EACH; k++)
            assert_true(holds(cache, 100 * (w + 1) + k));
    sl_cost_cache_close(cache);
}

static void failing_writes_and_memory(void **state)
{
    (void)state;
    save(1, 2);
    for (int n = 1; n < 100; n++) { /* a full disk in the middle of a line */
        struct sl_cost_cache *cache = open_cache();
        add(cache, 10);
        io_fail_at(n, ENOSPC, 5);
        seqlstm_status status = sl_cost_cache_save(cache, NULL);
        bool failed = io_disarm();
        sl_cost_cache_close(cache);
        cache = open_cache();
        assert_true(holds(cache, 1) && holds(cache, 2));
        assert_true(holds(cache, 10) || status == SEQLSTM_IO);
        sl_cost_cache_close(cache);
        if (!failed)
            break;
    }
    for (int n = 1; n < 1000; n++) {
        struct sl_cost_cache *cache = NULL;
        struct sl_cost_record record = make_record(20);
        oom_fail_at(n);
        seqlstm_status status = sl_cost_cache_open(folder, &cache, NULL);
        if (status == SEQLSTM_OK)
            status = sl_cost_cache_add(cache, &record, NULL);
        if (status == SEQLSTM_OK)
            status = sl_cost_cache_save(cache, NULL);
        bool failed = oom_disarm();
        sl_cost_cache_close(cache);
        assert_true(status == SEQLSTM_OK || status == SEQLSTM_NO_MEMORY || status == SEQLSTM_IO);
        if (!failed)
            break;
    }
}

/* What a refusal, a bound and a time look like, as other runs and versions read them. */
static void lines_are_as_before(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "3c6ef372fe94f82afffffffffffffffd 2.5 4.0 backend:variant_of_2 ",
        "78dde6e5fd29f054fffffffffffffffb >4.5 8.0 backend:variant_of_4 ",
        "1715609f7c746c69fffffffffffffffa !5.5 10.0 backend:variant of 5 ",
    };
    save(2, 1);
    save(4, 2);
    size_t bytes;
    char *text = read_file(&bytes), *rest = text, *line;
    for (int n = 0; n < 3; n++) {
        line = strsep(&rest, "\n");
        assert_non_null(line);
        assert_int_equal(strlen(line), strlen(expected[n]) + 16);
        if (strncmp(line, expected[n], strlen(expected[n])) != 0)
            fail_msg("%s, not %s", line, expected[n]);
    }
    assert_string_equal(rest, "");
    free(text);
}

/* A file of more than 4 MiB keeps the newer half of its records, each key once, and what is saved now. */
static void large_files_lose_what_is_old(void **state)
{
    (void)state;
    enum { RECORDS = 17000, AGAIN = 10, ALL = RECORDS + AGAIN + 1, FIRST = ALL / 2 };
    struct sl_cost_cache *cache = open_cache();
    for (uint64_t n = 1; n <= RECORDS + AGAIN; n++) {
        struct sl_cost_record record = make_record(n <= RECORDS ? n : n - AGAIN); /* the last ten keys twice */
        memset(record.label, 'x', 200);
        assert_int_equal(sl_cost_cache_add(cache, &record, NULL), SEQLSTM_OK);
    }
    assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
    sl_cost_cache_close(cache);
    size_t bytes, lines = 0;
    free(read_file(&bytes));
    assert_true(bytes > 4 << 20);
    cache = open_cache();
    struct sl_cost_record newest = make_record(RECORDS - 5);
    newest.forward_ns = 77;
    assert_int_equal(sl_cost_cache_add(cache, &newest, NULL), SEQLSTM_OK);
    assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
    sl_cost_cache_close(cache);
    char *text = read_file(&bytes);
    for (size_t k = 0; k < bytes; k++)
        lines += text[k] == '\n';
    free(text);
    assert_int_equal(lines, RECORDS - FIRST);
    cache = open_cache();
    const struct sl_cost_record gone = make_record(FIRST), kept = make_record(FIRST + 1);
    assert_null(sl_cost_cache_find(cache, &gone.key));
    assert_non_null(sl_cost_cache_find(cache, &kept.key));
    assert_true(sl_cost_cache_find(cache, &newest.key)->forward_ns == 77);
    sl_cost_cache_close(cache);
}

static void the_users_folder(void **state)
{
    (void)state;
    struct sl_cost_cache *cache = NULL;
    setenv("HOME", "/home/user", 1);
    setenv("XDG_CACHE_HOME", "/elsewhere", 1);
    setenv("SEQLSTM_CACHE", "/mine", 1);
    static const char *const steps[][2] = {
        {"SEQLSTM_CACHE", "/mine"}, {"XDG_CACHE_HOME", "/elsewhere/seqlstm"}, {"HOME", "/home/user/.cache/seqlstm"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sl_cost_cache_open(NULL, &cache, NULL), SEQLSTM_OK);
        assert_string_equal(sl_cost_cache_find_folder(cache), steps[i][1]);
        sl_cost_cache_close(cache);
        unsetenv(steps[i][0]);
    }
    setenv("HOME", "/home/user", 1);
    setenv("XDG_CACHE_HOME", "elsewhere", 1); /* a relative one does not count */
    assert_int_equal(sl_cost_cache_open(NULL, &cache, NULL), SEQLSTM_OK);
    assert_string_equal(sl_cost_cache_find_folder(cache), "/home/user/.cache/seqlstm");
    sl_cost_cache_close(cache);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    for (int empty = 0; empty < 2; empty++) { /* nowhere: costs live as long as the cache */
        if (empty)
            setenv("SEQLSTM_CACHE", "", 1);
        assert_int_equal(sl_cost_cache_open(NULL, &cache, NULL), SEQLSTM_OK);
        assert_null(sl_cost_cache_find_folder(cache));
        add(cache, 1);
        assert_int_equal(sl_cost_cache_save(cache, NULL), SEQLSTM_OK);
        assert_true(holds(cache, 1));
        sl_cost_cache_close(cache);
    }
}

static int waits = -1; /* which take no time; below 0: they do */

int __real_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
    if (waits < 0)
        return __real_nanosleep(time, rest);
    waits++;
    return 0;
}

/* Another run that holds the lock is waited for, but not for ever; nothing is left open, and nothing is lost. */
static void a_locked_file_is_not_waited_for_long(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char name[300], expected[400];
    save(1, 3);
    struct sl_cost_cache *cache = open_cache();
    add(cache, 4);
    snprintf(name, sizeof name, "%s/costs.lock", folder);
    const int held = open(name, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(held, LOCK_EX), 0);
    const int before = descriptors_count();
    waits = 0;
    assert_int_equal(sl_cost_cache_save(cache, &err), SEQLSTM_UNAVAILABLE);
    snprintf(expected, sizeof expected, "%s is locked by another run", folder);
    assert_string_equal(err.message, expected);
    assert_true(waits > 10 && waits < 1000);
    waits = -1;
    assert_int_equal(descriptors_count(), before);
    close(held);
    assert_int_equal(sl_cost_cache_save(cache, &err), SEQLSTM_OK);
    sl_cost_cache_close(cache);
    cache = open_cache();
    for (uint64_t n = 1; n <= 4; n++)
        assert_true(holds(cache, n));
    sl_cost_cache_close(cache);
}

/* The folder is made when there is something to keep; where that fails, it is named. */
static void a_folder_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_cost_cache *cache = NULL;
    char below[320], expected[400];
    assert_int_equal(sl_file_write(path, "", 0, NULL), SEQLSTM_OK);
    snprintf(below, sizeof below, "%s/below", path);
    assert_int_equal(sl_cost_cache_open(below, &cache, &err), SEQLSTM_OK);
    assert_int_equal(sl_cost_cache_save(cache, &err), SEQLSTM_OK); /* nothing */
    add(cache, 1);
    snprintf(expected, sizeof expected, "cannot make the folder `%s`: Not a directory", path);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(sl_cost_cache_save(cache, &err), SEQLSTM_NOT_FOUND);
        assert_string_equal(err.message, expected);
        assert_true(holds(cache, 1));
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sl_cost_cache_save(cache, &err), SEQLSTM_OK); /* now there is room for it */
    sl_cost_cache_close(cache);
    assert_int_equal(sl_cost_cache_open(below, &cache, &err), SEQLSTM_OK);
    assert_true(holds(cache, 1));
    sl_cost_cache_close(cache);
    for (int k = 0; k < 2; k++) {
        snprintf(expected, sizeof expected, "%s/costs%s", below, k ? ".lock" : "");
        assert_int_equal(unlink(expected), 0);
    }
    assert_true(rmdir(below) == 0 && rmdir(path) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_saved_is_found, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damage_is_survived, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damage_is_repaired_once, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(lines_of_others, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_key_has_no_other_digits, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_sum_has_no_other_digits, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(lines_are_not_cut_short, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(rubbish_is_no_error, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(writers_at_once_lose_nothing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(failing_writes_and_memory, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(lines_are_as_before, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(large_files_lose_what_is_old, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_locked_file_is_not_waited_for_long, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_made_is_named, make_folder, remove_folder),
        cmocka_unit_test(the_users_folder),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
