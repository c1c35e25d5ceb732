/* SPDX-License-Identifier: Apache-2.0 */
/* By which file of a run its weights are told from earlier ones: final.safetensors, else the newest checkpoint. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "scratch.h"
#include "session/record/session_record.h"
#include "session/weights/trained.h"

enum { FINAL, OLD, MIDDLE, NEWEST, FILES };

/* In this order a folder lists them on no file system for sure: the numbers decide. */
static const char *const names[FILES] = {"final.safetensors", "checkpoints/update-000000000009.safetensors",
                                         "checkpoints/update-000000000010.safetensors",
                                         "checkpoints/update-000000000200.safetensors"};
static char folder[256];

static const char *find_path(int file)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, names[file]);
    return path;
}

/* Replaces the file, as a training does: with a file of another name that is renamed. */
static void write_file(int file, int bytes)
{
    char made[400];
    snprintf(made, sizeof made, "%s/made", folder);
    FILE *out = fopen(made, "wb");
    assert_non_null(out);
    for (int k = 0; k < bytes; k++)
        fputc('x', out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(rename(made, find_path(file)), 0);
}

static uint64_t sign(void)
{
    const struct sl_session session = {.folder = folder};
    const uint64_t first = sl_session_sign_weights(&session);
    assert_true(sl_session_sign_weights(&session) == first); /* of the same files the same */
    return first;
}

static void make_folder(const char *name)
{
    char path[300];
    snprintf(folder, sizeof folder, "%s", scratch_path(name));
    snprintf(path, sizeof path, "%s/checkpoints", folder);
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_true(sign() == 0);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_true(sign() == 0);
}

/* Files come one after the other, and each of them is the one that counts. */
static void test_the_newest_counts(void **state)
{
    static const int order[] = {OLD, NEWEST, FINAL};
    uint64_t seen[8];
    int count = 0;
    (void)state;
    make_folder("growing");
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        write_file(order[k], 5);
        seen[count++] = sign();
        write_file(order[k], 7); /* newer weights under the same name */
        seen[count++] = sign();
    }
    for (int a = 0; a < count; a++) {
        assert_true(seen[a] != 0);
        for (int b = 0; b < a; b++)
            assert_true(seen[a] != seen[b]);
    }
}

/* Nothing changes where another file comes, changes or goes. */
static void test_older_ones_do_not(void **state)
{
    (void)state;
    make_folder("others");
    write_file(MIDDLE, 5);
    const uint64_t alone = sign();
    write_file(OLD, 5);
    assert_true(sign() == alone);
    write_file(OLD, 9);
    assert_true(sign() == alone);
    write_file(NEWEST, 5);
    const uint64_t newest = sign();
    assert_true(newest != alone);
    assert_int_equal(unlink(find_path(OLD)), 0); /* as the oldest ones are removed in training */
    write_file(MIDDLE, 9);
    assert_true(sign() == newest);
    write_file(FINAL, 5);
    const uint64_t end = sign();
    assert_true(end != newest && end != alone);
    for (int file = MIDDLE; file <= NEWEST; file++)
        assert_int_equal(unlink(find_path(file)), 0);
    assert_true(sign() == end);
}

/* Other weights count as others, though they have the size and the time of those before. */
static void test_the_same_size_and_time_are_not_the_same_file(void **state)
{
    static const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    uint64_t seen[2];
    (void)state;
    make_folder("replaced");
    for (int file = FINAL; file <= OLD; file++) {
        for (int k = 0; k < 2; k++) {
            write_file(file, 5);
            assert_int_equal(utimensat(AT_FDCWD, find_path(file), times, 0), 0);
            seen[k] = sign();
        }
        assert_true(seen[0] != seen[1]);
        assert_int_equal(unlink(find_path(file)), 0);
    }
}

/* A part of a file that is still written, and what is no checkpoint, are not looked at. */
static void test_other_names_do_not(void **state)
{
    static const char *const others[] = {"checkpoints/update-000000000300.safetensors.tmp", "checkpoints/notes.txt",
                                         "other.safetensors"};
    (void)state;
    make_folder("strangers");
    for (int before = 0; before < 2; before++) {
        const uint64_t first = sign();
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            char path[400];
            snprintf(path, sizeof path, "%s/%s", folder, others[k]);
            FILE *out = fopen(path, "wb");
            assert_non_null(out);
            assert_int_equal(fclose(out), 0);
            assert_true(sign() == first);
            assert_int_equal(unlink(path), 0);
        }
        write_file(OLD, 5);
    }
    const struct sl_session none = {.folder = NULL};
    assert_true(sl_session_sign_weights(&none) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_newest_counts),
        cmocka_unit_test(test_older_ones_do_not),
        cmocka_unit_test(test_the_same_size_and_time_are_not_the_same_file),
        cmocka_unit_test(test_other_names_do_not),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
