/* SPDX-License-Identifier: Apache-2.0 */
/* checksums.json of a run folder: what it holds, which file of it is used, and what is said of changed files. */
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
#include "train/checkpoint/checksums.h"
#include "train/checkpoint/weights.h"
#include "train_fake.h"

static char said[1000];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    (void)level;
    strcat(strcat(said, message), "\n");
}

/* Of a file that is not wholly as the program writes it no entry is used: it may be of another program or version. */
static void checksums_are_used_only_from_a_sound_file(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool sound;
    } files[] = {
        {"{\"schema\": \"seqlstm.checksums/1\", \"files\": {\"a\": \"0123456789abcdef\"}}", true},
        {"{\"schema\": \"seqlstm.checksums/2\", \"files\": {\"a\": \"0123456789abcdef\"}}", false},
        {"{\"schema\": \"seqlstm.checksums/1 \", \"files\": {\"a\": \"0123456789abcdef\"}}", false},
        {"{\"schema\": \"\", \"files\": {\"a\": \"0123456789abcdef\"}}", false},
        {"{\"schema\": 1, \"files\": {\"a\": \"0123456789abcdef\"}}", false},
        {"{\"files\": {\"a\": \"0123456789abcdef\"}}", false},
        {"{\"schema\": \"seqlstm.checksums/1\", \"files\": [\"a\", \"0123456789abcdef\"]}", false},
        {"{\"schema\": \"seqlstm.checksums/1\"}", false},
        {"{\"schema\": \"seqlstm.checksums/1\", \"files\": {\"a\": \"0123456789abcdef\", \"b\": \"0123\"}}", false},
        {"{\"schema\": \"seqlstm.checksums/1\", \"files\": {\"a\": \"0123456789abcdef\", \"b\": 1}}", false},
        {"{\"schema\": \"seqlstm.checksums/1\", \"files\": {\"a\": \"0123456789ABCDEF\"}}", false},
        {"{\"schema\": \"seqlstm.checksums/1\", \"files\": {\"a\": \"0123456789abcdef\", "
         "\"a\": \"0123456789abcdef\"}}",
         false},
        {"[\"seqlstm.checksums/1\"]", false},
        {"", false},
    };
    static const char *const names[] = {"a", NULL};
    const struct sl_log log = {.write = keep, .level = SL_LOG_WARN};
    assert_int_equal(sl_file_write(scratch_path("a"), "other", 5, NULL), SEQLSTM_OK);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        said[0] = 0;
        assert_int_equal(sl_file_write(scratch_path("checksums.json"), files[i].text, strlen(files[i].text), NULL),
                         SEQLSTM_OK);
        sl_checksums_compare(scratch_folder, names, &log);
        if (!strstr(said, "was changed after") != !files[i].sound || !strstr(said, "is damaged") == !files[i].sound)
            fail_msg("%s: it says `%s`", files[i].text, said);
    }
}

/* `expected`: the names, each with the first digit of its sum. */
static void expect_entries(const char *expected)
{
    char found[100] = "", *text = NULL;
    assert_int_equal(sl_file_read(scratch_path("sums/checksums.json"), 1 << 20, &text, NULL, NULL), SEQLSTM_OK);
    const char *at = strchr(text + 1, '{'), *end = strchr(text, '}');
    assert_true(at && end && strstr(end, "\"schema\": \"seqlstm.checksums/1\""));
    while ((at = strchr(at, '"')) != NULL && at < end) {
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%c%c", found[0] ? " " : "", at[1], at[6]);
        assert_memory_equal(at + 2, "\": \"", 4);
        assert_int_equal(strspn(at + 6, (char[]){at[6], 0}), 16);
        at += 23;
    }
    assert_string_equal(found, expected);
    free(text);
}

static void put_file(const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "sums/%s", name);
    assert_int_equal(sl_file_write(scratch_path(path), text, strlen(text), NULL), SEQLSTM_OK);
}

#define SUM_A "aaaaaaaaaaaaaaaa"
#define SUM_B "bbbbbbbbbbbbbbbb"
#define SUM_C "cccccccccccccccc"
#define SUM_D "dddddddddddddddd"

/* Entries of files that are gone leave with the next change. A file that will be written with the sum that it has keeps
 * its entry. */
static void checksums_are_of_files_that_are_there(void **state)
{
    (void)state;
    char folder[128];
    snprintf(folder, sizeof folder, "%s", scratch_path("sums"));
    assert_int_equal(sl_file_make_folders(folder, NULL), SEQLSTM_OK);
    for (const char *name = "abcd"; *name; name++)
        put_file((char[]){*name, 0}, (char[]){*name, 0});
    assert_int_equal(sl_checksums_note(folder, "b", SUM_B, NULL), SEQLSTM_OK);
    assert_int_equal(sl_checksums_note(folder, "a", SUM_A, NULL), SEQLSTM_OK);
    assert_int_equal(sl_checksums_note(folder, "c", SUM_C, NULL), SEQLSTM_OK);
    expect_entries("aa bb cc");
    unlink(scratch_path("sums/b"));
    assert_int_equal(sl_checksums_note(folder, "d", SUM_D, NULL), SEQLSTM_OK);
    expect_entries("aa cc dd");
    assert_int_equal(sl_checksums_note(folder, "c", SUM_B, NULL), SEQLSTM_OK); /* the later sum of one file */
    expect_entries("aa cb dd");
    assert_int_equal(sl_checksums_forget(folder, "c", SUM_B, NULL), SEQLSTM_OK); /* as it is */
    assert_int_equal(sl_checksums_forget(folder, "b", NULL, NULL), SEQLSTM_OK);
    expect_entries("aa cb dd");
    assert_int_equal(sl_checksums_forget(folder, "c", SUM_C, NULL), SEQLSTM_OK); /* as it was before */
    expect_entries("aa dd");
    unlink(scratch_path("sums/d"));
    assert_int_equal(sl_checksums_forget(folder, "a", NULL, NULL), SEQLSTM_OK);
    expect_entries("");
    assert_int_equal(sl_checksums_note_bytes(folder, "d", NULL), SEQLSTM_OK); /* no file, no entry */
    expect_entries("");
}

/* Without memory no entry of another file is lost, none is left that shall be forgotten, and no file is called damaged.
 */
static void checksums_without_memory(void **state)
{
    (void)state;
    char folder[128];
    const char *const names[] = {"a", "b", NULL};
    const struct sl_log log = {.write = keep, .level = SL_LOG_WARN};
    snprintf(folder, sizeof folder, "%s", scratch_path("sums"));
    assert_int_equal(sl_file_make_folders(folder, NULL), SEQLSTM_OK);
    for (const char *name = "abc"; *name; name++)
        put_file((char[]){*name, 0}, (char[]){*name, 0});
    for (int act = 0; act < 3; act++)
        for (int n = 1;; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            seqlstm_status status = SEQLSTM_OK;
            put_file("checksums.json",
                     "{\"files\": {\"a\": \"" SUM_A "\", \"b\": \"" SUM_B "\"}, \"schema\": \"seqlstm.checksums/1\"}");
            said[0] = 0;
            oom_fail_at(n);
            if (act == 0)
                status = sl_checksums_note(folder, "c", SUM_C, &err);
            else if (act == 1)
                status = sl_checksums_forget(folder, "a", NULL, &err);
            else
                sl_checksums_compare(folder, names, &log);
            const bool failed = oom_disarm();
            assert_true(status == SEQLSTM_OK || (failed && status == SEQLSTM_NO_MEMORY && err.message[0]));
            assert_null(strstr(said, "damaged"));
            if (act < 2)
                expect_entries(status != SEQLSTM_OK ? "aa bb" : act == 0 ? "aa bb cc" : "bb");
            if (!failed)
                break;
        }
}

/* Of several files each has its own sum, and what is said names the one that is meant. */
static void a_changed_file_is_named(void **state)
{
    (void)state;
    static const char *const names[] = {"c", "a", "unknown", "b", NULL};
    const struct sl_log log = {.write = keep, .level = SL_LOG_INFO};
    char folder[128], expected[400];
    snprintf(folder, sizeof folder, "%s", scratch_path("sums"));
    assert_int_equal(sl_file_make_folders(folder, NULL), SEQLSTM_OK);
    for (const char *name = "abc"; *name; name++) {
        put_file((char[]){*name, 0}, (char[]){*name, *name, 0});
        assert_int_equal(sl_checksums_note_bytes(folder, (char[]){*name, 0}, NULL), SEQLSTM_OK);
    }
    put_file("unknown", "x");
    said[0] = 0;
    sl_checksums_compare(folder, names, &log);
    assert_string_equal(said, "");
    put_file("a", "cc"); /* another one's text */
    unlink(scratch_path("sums/b"));
    sl_checksums_compare(folder, names, &log);
    snprintf(expected, sizeof expected,
             "%s/a was changed after the run had written it (checksums.json has another checksum): results may differ\n"
             "note: %s/b was removed after the run had written it\n",
             folder, folder);
    assert_string_equal(said, expected);
}

/* Weights carry their own sum, which is compared with the one that is noted under their name in the run's folder. */
static void changed_weights_are_named(void **state)
{
    (void)state;
    const struct sl_log log = {.write = keep, .level = SL_LOG_INFO};
    struct fake_params params;
    char folder[128], expected[400], *paths[2];
    snprintf(folder, sizeof folder, "%s", scratch_path("sums"));
    assert_int_equal(sl_file_make_folders(folder, NULL), SEQLSTM_OK);
    fake_params_init(&params);
    for (int k = 0; k < 2; k++) {
        paths[k] = strdup(scratch_path(k ? "sums/w1" : "sums/w0"));
        params.values[0] = (float)(5 + k);
        assert_int_equal(sl_weights_save(&params.params, paths[k], NULL, 0, NULL), SEQLSTM_OK);
        assert_int_equal(sl_checksums_note_weights(folder, k ? "w1" : "w0", NULL), SEQLSTM_OK);
    }
    said[0] = 0;
    for (int k = 0; k < 2; k++)
        sl_checksums_compare_weights(folder, paths[k], &log);
    assert_string_equal(said, "");
    assert_int_equal(rename(paths[0], paths[1]), 0);
    sl_checksums_compare_weights(folder, paths[0], &log); /* not there: what reads it tells that */
    assert_string_equal(said, "");
    sl_checksums_compare_weights(folder, paths[1], &log);
    snprintf(expected, sizeof expected,
             "%s was changed after the run had written it (checksums.json has another checksum): results may differ\n",
             paths[1]);
    assert_string_equal(said, expected);
    const struct sl_safetensors_content nothing = {.text_count = 0}; /* without a sum */
    assert_int_equal(sl_safetensors_write(paths[1], &nothing, NULL), SEQLSTM_OK);
    said[0] = 0;
    sl_checksums_compare_weights(folder, paths[1], &log);
    assert_string_equal(said, expected);
    for (int k = 0; k < 2; k++)
        free(paths[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_are_used_only_from_a_sound_file),
        cmocka_unit_test(checksums_are_of_files_that_are_there),
        cmocka_unit_test(checksums_without_memory),
        cmocka_unit_test(a_changed_file_is_named),
        cmocka_unit_test(changed_weights_are_named),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
