/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a backend as a line of JSON, there and back: every part that the report needs is its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory/arena.h"
#include "conformance/record_line.h"
#include "oom.h"

static void test_there_and_back(void **state)
{
    static const struct seqlstm_device_info devices[] = {
        {.name = "a \"name\"", .device_class = "cpu", .domain = "host"},
        {.name = "b", .device_class = "cuda:9.0", .domain = "cuda:1"}};
    static const struct sl_backend_file files[] = {{.path = "/a/one.so", .soname = "one.so.1", .build_id = "00ff"},
                                                   {.path = "/b/two.so", .soname = "", .build_id = ""}};
    const struct sl_backend_record record = {.id = "spoken",
                                             .file = "/a/one.so",
                                             .version = "1.2",
                                             .vendor = "v\xc3\xa9ndor\n",
                                             .license = "MIT",
                                             .build = "gcc",
                                             .abi_major = 3,
                                             .abi_minor_needed = 14,
                                             .device_count = 2,
                                             .devices = devices,
                                             .file_count = 2,
                                             .files = files};
    struct sl_backend_record got;
    struct sl_arena arena;
    (void)state;
    sl_arena_init(&arena);
    char *line = sl_record_line_print(&record, SEQLSTM_OK, "");
    assert_non_null(line);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    assert_int_equal(sl_record_line_parse(line, &arena, &got, NULL), SEQLSTM_OK);
    const char *const wanted[] = {record.id, record.file, record.version, record.vendor, record.license, record.build};
    const char *const found[] = {got.id, got.file, got.version, got.vendor, got.license, got.build};
    for (int k = 0; k < 6; k++)
        assert_string_equal(found[k], wanted[k]);
    assert_true(got.has_abi && got.abi_major == 3 && got.abi_minor_needed == 14);
    assert_true(got.entry == -1 && got.wrong_setting == -1 && got.device_count == 2 && got.file_count == 2);
    for (int d = 0; d < 2; d++) {
        assert_string_equal(got.devices[d].name, devices[d].name);
        assert_string_equal(got.devices[d].device_class, devices[d].device_class);
        assert_string_equal(got.devices[d].domain, devices[d].domain);
        assert_string_equal(got.files[d].path, files[d].path);
        assert_string_equal(got.files[d].build_id, files[d].build_id);
    }
    free(line);
    sl_arena_deinit(&arena);
}

static void test_failures(void **state)
{
    struct sl_backend_record got;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena;
    (void)state;
    sl_arena_init(&arena);
    char *line = sl_record_line_print(NULL, SEQLSTM_UNAVAILABLE, "no \"device\"");
    assert_int_equal(sl_record_line_parse(line, &arena, &got, &err), SEQLSTM_UNAVAILABLE);
    assert_string_equal(err.message, "no \"device\"");
    free(line);
    assert_int_equal(sl_record_line_parse("hello\n", &arena, &got, &err), SEQLSTM_INTERNAL);
    assert_int_equal(sl_record_line_parse("[1]\n", &arena, &got, &err), SEQLSTM_INTERNAL);
    sl_arena_deinit(&arena);
}

/* Wherever the line ends too soon, and whichever text of it is missing, no record is made of it. */
static void test_parts_of_a_line(void **state)
{
    static const struct seqlstm_device_info device = {.name = "n", .device_class = "c", .domain = "d"};
    static const struct sl_backend_file file = {.path = "p", .build_id = "b"};
    static const char *const keys[] = {"id",   "file",  "version", "vendor", "license", "build",
                                       "name", "class", "domain",  "path",   "build_id"};
    const struct sl_backend_record record = {
        .id = "i", .device_count = 1, .devices = &device, .file_count = 1, .files = &file};
    struct sl_backend_record got;
    struct sl_arena arena;
    (void)state;
    sl_arena_init(&arena);
    char *line = sl_record_line_print(&record, SEQLSTM_OK, "");
    const size_t length = strlen(line);
    assert_int_equal(sl_record_line_parse(line, &arena, &got, NULL), SEQLSTM_OK);
    for (size_t end = 0; end < length - 1; end++) {
        char *part = strndup(line, end);
        if (sl_record_line_parse(part, &arena, &got, NULL) != SEQLSTM_INTERNAL)
            fail_msg("'%s' was taken", part);
        free(part);
    }
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        char quoted[20], *part = strdup(line);
        snprintf(quoted, sizeof quoted, "\"%s\":", keys[k]);
        char *at = strstr(part, quoted);
        assert_non_null(at);
        at[1] = '?'; /* another key */
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        char wanted[100];
        snprintf(wanted, sizeof wanted, "the worker's record of the backend has no text `%s`", keys[k]);
        assert_int_equal(sl_record_line_parse(part, &arena, &got, &err), SEQLSTM_INTERNAL);
        assert_string_equal(err.message, wanted);
        free(part);
    }
    free(line);
    sl_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_parts_of_a_line),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
