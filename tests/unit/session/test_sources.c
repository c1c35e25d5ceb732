/* SPDX-License-Identifier: Apache-2.0 */
/* Data files that are others than those which a run has read: which of them are told, with their sizes. */
#include "model_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file_writer.h"
#include "ok.h"
#include "scratch.h"
#include "session/record/session_record.h"
#include "session/run_folder/sources.h"

static const char pairs[] = "seqlstm: 1\n"
                            "data:\n"
                            "  type: lines\n"
                            "  train: {source: a.txt, target: b.txt}\n"
                            "  valid: {source: c.txt, target: d.txt}\n"
                            "  test: {source: e.txt, target: b.txt}\n"
                            "  tokenizer: {type: whitespace}\n"
                            "model:\n"
                            "  encoder:\n"
                            "    - {type: embedding, dim: 3}\n"
                            "    - {type: lstm, units: 4}\n"
                            "  decoder:\n"
                            "    - {type: embedding, dim: 3}\n"
                            "    - {type: lstm, units: 4, return_sequences: true}\n"
                            "    - {type: output, activation: softmax}\n"
                            "train: {epochs: 1}\n";

static struct sl_buf logged;

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    const char *name = strrchr(message, '/');
    (void)context;
    sl_buf_printf(&logged, "%s: %s\n", sl_log_level_name(level), name ? name + 1 : message);
}

static const struct sl_log log_all = {.write = write_log, .level = SL_LOG_TRACE};

/* With this time of change. */
static void write_file(const char *name, const char *text, time_t time)
{
    const struct timespec times[] = {{.tv_sec = time}, {.tv_sec = time}};
    ok(sl_file_write(name, text, strlen(text), NULL), NULL);
    assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

static void write_files(void)
{
    static const char *const names[] = {"a.txt", "b.txt", "c.txt", "d.txt", "e.txt"};
    char text[] = "aaaaaaaaa";
    for (size_t k = 0; k < 5; k++)
        write_file(names[k], text + k, 1000 + (time_t)k);
}

/* What is told of each split: of train, of valid, of test. */
static void expect_told(const struct sl_session *session, const char *train, const char *valid, const char *test)
{
    const char *const expected[SL_SPLIT_COUNT] = {
        [SL_SPLIT_TRAIN] = train, [SL_SPLIT_VALID] = valid, [SL_SPLIT_TEST] = test};
    for (int split = 0; split < SL_SPLIT_COUNT; split++) {
        sl_sources_check(session, (enum sl_split)split);
        assert_string_equal(sl_buf_text(&logged), expected[split]);
        sl_buf_deinit(&logged);
    }
}

#define CHANGED(name, then, now)                                                                                       \
    "warning: " name " has changed since this run read it (" then " bytes then, " now                                  \
    " now): results are not comparable\n"

static void each_changed_file_is_told(void **state)
{
    (void)state;
    char folder[] = "run";
    assert_int_equal(chdir(scratch_folder), 0);
    write_files();
    assert_int_equal(mkdir(folder, 0755), 0);
    struct loaded l = load(pairs);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (l.status != SEQLSTM_OK)
        fail_msg("%s", sl_buf_text(&l.text));
    struct sl_session session = {.model = l.model, .folder = folder, .is_run = true, .options = {.log = &log_all}};
    expect_told(&session, "", "", ""); /* nothing is known of them */
    ok(sl_sources_write(&session, &err), &err);
    expect_told(&session, "", "", "");
    write_file("a.txt", "aaaaaaaaa", 5000); /* touched, or copied */
    expect_told(&session, "", "", "");
    write_file("d.txt", "aaaaab", 5000); /* as long as before */
    expect_told(&session, "", CHANGED("d.txt", "6", "6"), "");
    write_file("c.txt", "aa", 5000);
    expect_told(&session, "", CHANGED("c.txt", "7", "2") CHANGED("d.txt", "6", "6"), "");
    write_file("b.txt", "aaaaaaaaaa", 1001); /* of two splits; at the same time as before */
    expect_told(&session, CHANGED("b.txt", "8", "10"), CHANGED("c.txt", "7", "2") CHANGED("d.txt", "6", "6"),
                CHANGED("b.txt", "8", "10"));
    write_files();
    expect_told(&session, "", "", "");
    write_file("e.txt", "aaaab", 1004); /* with the time and the size of before: it is not read */
    expect_told(&session, "", "", "");
    assert_int_equal(unlink("e.txt"), 0); /* told where it is read */
    expect_told(&session, "", "", "");
    write_file("c.txt", "", 1);
    session.is_run = false; /* a new run reads them now */
    expect_told(&session, "", "", "");
    session.is_run = true;
    expect_told(&session, "", CHANGED("c.txt", "7", "0"), "");
    write_file("run/sources.json", "{", 1);
    expect_told(&session, "", "", "");
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_changed_file_is_told)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
