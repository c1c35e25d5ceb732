/* SPDX-License-Identifier: Apache-2.0 */
/* What a template becomes, and that nothing of it stays where its files cannot be written. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "descriptors.h"
#include "ok.h"
#include "oom.h"
#include "scaffold/scaffold.h"
#include "scaffold/templates.h"
#include "scratch.h"

/* Entries of the folder; -1: there is none. */
static int count_entries(const char *folder)
{
    DIR *open = opendir(folder);
    int count = open ? -2 : -1; /* . and .. */
    while (open && readdir(open))
        count++;
    if (open)
        closedir(open);
    return count;
}

static int count_templates(const char *set)
{
    int count = 0;
    for (const struct sl_template *t = sl_templates; t->name; t++)
        count += strncmp(t->name, set, strlen(set)) == 0;
    return count;
}

static seqlstm_status make(bool backend, const char *folder, struct sl_buf *files, struct seqlstm_error *err)
{
    return backend ? sl_scaffold_backend("my-own", folder, files, err) : sl_scaffold_model("tag", folder, files, err);
}

/* Each file is its template, with the name in every place; the list has each once. */
static void test_files_are_their_templates(void **state)
{
    (void)state;
    for (int backend = 0; backend < 2; backend++) {
        const char *set = backend ? "backend/" : "model/tag/", *name = backend ? "my-own" : "tag";
        struct sl_buf files = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char folder[128];
        snprintf(folder, sizeof folder, "%s", scratch_path(name));
        ok(make(backend, folder, &files, &err), &err);
        assert_int_equal(count_entries(folder), count_templates(set));
        for (const struct sl_template *t = sl_templates; t->name; t++) {
            if (strncmp(t->name, set, strlen(set)) != 0)
                continue;
            char path[256], *text;
            snprintf(path, sizeof path, "%s/%s", folder, t->name + strlen(set));
            ok(sl_file_read(path, 1 << 20, &text, NULL, &err), &err);
            const char *from = t->text, *at = text;
            while (*from) {
                const bool mark = strncmp(from, "@NAME@", 6) == 0;
                const size_t bytes = mark ? strlen(name) : 1;
                assert_memory_equal(at, mark ? name : from, bytes);
                at += bytes;
                from += mark ? 6 : 1;
            }
            assert_int_equal(*at, '\0');
            const char *listed = strstr(sl_buf_text(&files), path);
            assert_non_null(listed);
            assert_true(listed[strlen(path)] == '\n' && (listed == sl_buf_text(&files) || listed[-1] == '\n'));
            free(text);
        }
        sl_buf_deinit(&files);
    }
}

/* A name may have as many characters as the refusal of a longer one says. */
static void test_the_longest_name_is_told(void **state)
{
    (void)state;
    struct sl_buf files = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char id[200], folder[128];
    snprintf(folder, sizeof folder, "%s", scratch_path("long"));
    memset(id, 'a', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    assert_int_equal(sl_scaffold_backend(id, folder, &files, &err), SEQLSTM_INVALID_CONFIG);
    const char *told = strstr(err.message, "at most ");
    assert_non_null(told);
    const long most = strtol(told + strlen("at most "), NULL, 10);
    assert_in_range(most, 2, sizeof id - 2);
    id[most + 1] = '\0';
    assert_int_equal(sl_scaffold_backend(id, folder, &files, &err), SEQLSTM_INVALID_CONFIG);
    assert_int_equal(count_entries(folder), -1);
    id[most] = '\0';
    ok(sl_scaffold_backend(id, folder, &files, &err), &err);
    sl_buf_deinit(&files);
}

/* A kind that is not known: the one that may be meant, if one is near, and all there are. */
static void test_what_kind_may_be_meant(void **state)
{
    static const char *const rows[][2] = {
        {"clasify", " (did you mean `classify`?)"},         {"tags", " (did you mean `tag`?)"},
        {"forcast", " (did you mean `forecast`?)"},         {"language-model", " (did you mean `language_model`?)"},
        {"regres", " (did you mean `regress`?)"},           {"seq2sec", " (did you mean `seq2seq`?)"},
        {"auto-encoder", " (did you mean `autoencoder`?)"}, {"something-else", ""}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_buf files = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char expected[256];
        assert_int_equal(sl_scaffold_model(rows[k][0], scratch_path("none"), &files, &err), SEQLSTM_INVALID_CONFIG);
        snprintf(expected, sizeof expected,
                 "no such kind of model: `%s`%s; there are language_model, classify, tag, regress, forecast, seq2seq, "
                 "autoencoder",
                 rows[k][0], rows[k][1]);
        assert_string_equal(err.message, expected);
        assert_int_equal(count_entries(scratch_path("none")), -1);
        sl_buf_deinit(&files);
    }
}

/* The n-th write fails, in a new folder and in an empty one: nothing is left that was not there. */
static void test_a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    for (int backend = 0; backend < 2; backend++)
        for (int there = 0; there < 2; there++)
            for (int n = 1;; n++) {
                struct sl_buf files = {0};
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                char name[32], folder[128];
                snprintf(name, sizeof name, "full-%d-%d-%d", backend, there, n);
                snprintf(folder, sizeof folder, "%s", scratch_path(name));
                if (there)
                    assert_int_equal(mkdir(folder, 0777), 0);
                io_fail_at(n, ENOSPC, 3);
                const seqlstm_status status = make(backend, folder, &files, &err);
                const bool failed = io_disarm();
                sl_buf_deinit(&files);
                if (!failed) {
                    ok(status, &err);
                    assert_true(n > count_templates(backend ? "backend/" : "model/tag/"));
                    break;
                }
                assert_int_equal(status, SEQLSTM_IO);
                assert_int_equal(count_entries(folder), there ? 0 : -1);
            }
}

/* A folder with a file in it is refused, and stays as it was; so does a file. */
static void test_what_is_there_stays(void **state)
{
    struct sl_buf files = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char folder[128], file[160];
    (void)state;
    snprintf(folder, sizeof folder, "%s", scratch_path("full"));
    snprintf(file, sizeof file, "%s/README.md", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    FILE *own = fopen(file, "w");
    assert_non_null(own);
    assert_int_equal(fclose(own), 0);
    const int descriptors = descriptors_count();
    for (int backend = 0; backend < 2; backend++) {
        assert_int_equal(make(backend, folder, &files, &err), SEQLSTM_INVALID_CONFIG);
        assert_non_null(strstr(err.message, "exists and is not empty; nothing was written (--dir names another one)"));
        assert_int_equal(make(backend, file, &files, &err), SEQLSTM_INVALID_CONFIG);
        assert_non_null(strstr(err.message, "exists and is not a folder that can be read"));
    }
    assert_int_equal(sl_scaffold_backend("reference", scratch_path("other"), &files, &err), SEQLSTM_INVALID_CONFIG);
    assert_int_equal(count_entries(scratch_path("other")), -1);
    assert_int_equal(count_entries(folder), 1);
    assert_int_equal(access(file, R_OK), 0);
    assert_int_equal(files.length_bytes, 0);
    assert_int_equal(descriptors_count(), descriptors);
}

static void test_without_memory(void **state)
{
    const int descriptors = descriptors_count();
    (void)state;
    for (int n = 1;; n++) {
        struct sl_buf files = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char name[32], folder[128];
        snprintf(name, sizeof name, "poor-%d", n);
        snprintf(folder, sizeof folder, "%s", scratch_path(name));
        oom_fail_at(n);
        const seqlstm_status status = make(true, folder, &files, &err);
        const bool failed = oom_disarm();
        sl_buf_deinit(&files);
        if (!failed) {
            ok(status, &err);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_int_equal(descriptors_count(), descriptors);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_their_templates), cmocka_unit_test(test_the_longest_name_is_told),
        cmocka_unit_test(test_what_kind_may_be_meant),    cmocka_unit_test(test_a_full_disk_leaves_nothing),
        cmocka_unit_test(test_what_is_there_stays),       cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
