/* SPDX-License-Identifier: Apache-2.0 */
/* Whole model files: every one under tests/fixtures/models/bad against the diagnostics beside it, every
 * one under good, and every shipped config, through load, print and load again. With SEQLSTM_UPDATE set
 * the expected diagnostics are written instead of compared. */
#include "oom.h"
#include "model_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "model/explain.h"

enum { MAX_BYTES = 1 << 20 };

static char *path_of(const char *folder, const char *name)
{
    const char *source = getenv("SEQLSTM_SOURCE");
    char *path = NULL;
    assert_non_null(source);
    assert_true(asprintf(&path, "%s/%s/%s", source, folder, name) > 0);
    return path;
}

typedef void check_fn(const char *folder, const char *name, const char *text, size_t bytes);

static int is_yaml(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static void for_each_file(const char *folder, size_t at_least, check_fn *check)
{
    struct dirent **entries;
    char *path = path_of(folder, "");
    assert_int_equal(chdir(path), 0); /* relative paths in them */
    int count = scandir(path, &entries, is_yaml, alphasort);
    assert_true(count >= (int)at_least);
    for (int i = 0; i < count; i++) {
        char *file = path_of(folder, entries[i]->d_name), *text;
        size_t bytes;
        assert_int_equal(sl_file_read(file, MAX_BYTES, &text, &bytes, NULL), SEQLSTM_OK);
        check(folder, entries[i]->d_name, text, bytes);
        free(text);
        free(file);
        free(entries[i]);
    }
    free(entries);
    free(path);
}

/* Machine-local paths have no place in what is expected. */
static void hide_folder(struct sl_buf *text, const char *folder)
{
    char *path = path_of(folder, "");
    const char *at;
    while ((at = strstr(sl_buf_text(text), path)) != NULL)
        memmove(text->data + (at - text->data), at + strlen(path), strlen(at + strlen(path)) + 1);
    text->length_bytes = strlen(sl_buf_text(text));
    free(path);
}

static void check_bad(const char *folder, const char *name, const char *text, size_t bytes)
{
    struct loaded l = load_text(name, text, bytes, NULL);
    char *expected_path = path_of(folder, name), *expected;
    strcpy(expected_path + strlen(expected_path) - 5, ".txt");
    hide_folder(&l.text, folder);
    assert_int_not_equal(l.status, SEQLSTM_OK);
    assert_true(sl_diagnostics_count(l.diagnostics, SL_SEVERITY_ERROR) > 0);
    if (getenv("SEQLSTM_UPDATE") != NULL)
        sl_file_write(expected_path, l.text.data, l.text.length_bytes, NULL);
    assert_int_equal(sl_file_read(expected_path, MAX_BYTES, &expected, NULL, NULL), SEQLSTM_OK);
    if (strcmp(expected, sl_buf_text(&l.text)) != 0)
        fail_msg("%s: expected\n%s\nbut got\n%s", name, expected, sl_buf_text(&l.text));
    free(expected);
    free(expected_path);
    unload(&l);
}

static void test_bad_files(void **state)
{
    (void)state;
    for_each_file("tests/fixtures/models/bad", 45, check_bad);
}

/* The printed configuration of a model, which the caller frees. */
static char *print(const struct sl_model *model, unsigned flags)
{
    struct sl_buf out;
    sl_buf_init(&out);
    assert_int_equal(sl_model_write_config(model, flags, &out, NULL), SEQLSTM_OK);
    return sl_buf_take(&out, NULL);
}

static void check_good(const char *folder, const char *name, const char *text, size_t bytes)
{
    (void)folder;
    struct loaded first = load_text(name, text, bytes, NULL);
    if (first.status != SEQLSTM_OK || first.text.length_bytes > 0)
        fail_msg("%s: %s", name, sl_buf_text(&first.text));
    static const unsigned flags[] = {0, SL_CONFIG_ORIGIN, SL_CONFIG_MINIMAL};
    char *whole = print(first.model, 0);
    for (size_t i = 0; i < 3; i++) {
        char *printed = print(first.model, flags[i]);
        struct loaded again = load_text(name, printed, strlen(printed), NULL);
        if (again.status != SEQLSTM_OK)
            fail_msg("%s: %s\nprinted as\n%s", name, sl_buf_text(&again.text), printed);
        /* The minimal one adds its defaults in another order, so its second printing is compared. */
        char *second = print(again.model, flags[i] == SL_CONFIG_MINIMAL ? SL_CONFIG_MINIMAL : 0);
        assert_string_equal(second, flags[i] == SL_CONFIG_MINIMAL ? printed : whole);
        assert_int_equal(again.model->layer_count, first.model->layer_count);
        assert_memory_equal(&again.model->train.schedule.warmup, &first.model->train.schedule.warmup,
                            sizeof(struct sl_period));
        assert_int_equal(again.model->data.batching.bptt, first.model->data.batching.bptt);
        free(printed);
        free(second);
        unload(&again);
    }
    free(whole);
    unload(&first);
}

static void test_good_files(void **state)
{
    (void)state;
    for_each_file("tests/fixtures/models/good", 5, check_good);
}

static void test_shipped_configs(void **state)
{
    (void)state;
    for_each_file("configs", 8, check_good);
}

static char seen_codes[4096];

static void collect_codes(const char *folder, const char *name, const char *text, size_t bytes)
{
    (void)text, (void)bytes;
    char *path = path_of(folder, name), *expected;
    strcpy(path + strlen(path) - 5, ".txt");
    assert_int_equal(sl_file_read(path, MAX_BYTES, &expected, NULL, NULL), SEQLSTM_OK);
    for (const char *p = expected; (p = strstr(p, "error[")) != NULL; p += 6) {
        char code[6] = "";
        memcpy(code, p + 6, 5);
        assert_non_null(sl_explain_find(code));
        if (strstr(seen_codes, code) == NULL)
            strcat(strcat(seen_codes, code), " ");
    }
    free(expected);
    free(path);
}

/* Each code has an explanation, and each explained error an example. */
static void test_codes_are_explained(void **state)
{
    (void)state;
    size_t count;
    const struct sl_explanation *all = sl_explain_get_all(&count);
    for_each_file("tests/fixtures/models/bad", 45, collect_codes);
    for (size_t i = 0; i < count; i++) {
        assert_true(i == 0 || strcmp(all[i - 1].code, all[i].code) < 0);
        /* E0009 and E0010 come from flags and from several files: test_model_overlay.c. E05.. come from data and
         * backends, E06.. from commands, E07.. from run folders: tests/cli. */
        bool elsewhere = strcmp(all[i].code, "E0009") == 0 || strcmp(all[i].code, "E0010") == 0 ||
                         strncmp(all[i].code, "E05", 3) == 0 || strncmp(all[i].code, "E06", 3) == 0 ||
                         strncmp(all[i].code, "E07", 3) == 0;
        if (all[i].code[0] == 'E' && !elsewhere && strstr(seen_codes, all[i].code) == NULL)
            fail_msg("no file under bad shows %s", all[i].code);
        for (const char *line = all[i].text; *line != 0;) {
            size_t length = strcspn(line, "\n");
            assert_true(length <= 84);
            line += length + (line[length] == '\n');
        }
    }
    for (seqlstm_status status = SEQLSTM_OK; status <= SEQLSTM_INTERNAL + 1; status++)
        assert_non_null(sl_explain_find(sl_explain_get_code(status)));
    assert_string_equal(sl_explain_get_code(SEQLSTM_IO), "E0608");
    assert_non_null(sl_explain_find("e0203"));
    assert_null(sl_explain_find("E9999"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_good_files),
        cmocka_unit_test(test_shipped_configs),
        cmocka_unit_test(test_codes_are_explained),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
