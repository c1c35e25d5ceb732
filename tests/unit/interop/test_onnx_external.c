/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of a file beside an ONNX file are those of a tensor: each offset, each length and none, against the bytes
 * themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "interop/import/onnx_external.h"
#include "interop/protobuf.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"

enum { BYTES = 6 };
static const char numbers[BYTES + 1] = "abcdef";

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

static void add_entry(struct sl_buf *tensor, const char *key, const char *value)
{
    enum { EXTERNAL_DATA = 13, KEY = 1, VALUE = 2 };
    struct sl_buf entry = {0};
    sl_protobuf_append_text(&entry, KEY, key);
    sl_protobuf_append_text(&entry, VALUE, value);
    sl_protobuf_append_message(tensor, EXTERNAL_DATA, &entry);
    sl_buf_deinit(&entry);
}

/* NULL: there is no such entry. */
static seqlstm_status read_place(struct sl_onnx_external **list, const char *location, const char *offset,
                                 const char *length, const unsigned char **data, size_t *bytes,
                                 struct seqlstm_error *err)
{
    char path[256];
    struct sl_buf tensor = {0};
    snprintf(path, sizeof path, "%s", scratch_path("m.onnx"));
    if (length)
        add_entry(&tensor, "length", length);
    if (location)
        add_entry(&tensor, "location", location);
    add_entry(&tensor, "checksum", "1234");
    if (offset)
        add_entry(&tensor, "offset", offset);
    const struct sl_protobuf_field field = {
        .is_bytes = true, .data = (const unsigned char *)sl_buf_text(&tensor), .bytes = tensor.length_bytes};
    const seqlstm_status status = sl_onnx_external_read(list, path, &field, data, bytes, err);
    sl_buf_deinit(&tensor);
    return status;
}

/* From each offset, so many bytes; without a length to the end of the file, without an offset from its begin. */
static void test_places(void **state)
{
    struct sl_onnx_external *list = NULL;
    (void)state;
    write_file("w.bin", numbers);
    for (int offset = -1; offset <= BYTES + 1; offset++)
        for (int length = -1; length <= BYTES + 1; length++) {
            char at[24], many[24];
            const unsigned char *data = NULL;
            size_t bytes = 99;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            snprintf(at, sizeof at, "%d", offset);
            snprintf(many, sizeof many, "%d", length);
            const seqlstm_status status =
                read_place(&list, "w.bin", offset < 0 ? NULL : at, length < 0 ? NULL : many, &data, &bytes, &err);
            const int first = offset < 0 ? 0 : offset;
            if (first > BYTES || (length >= 0 && first + length > BYTES)) {
                assert_int_equal(status, SEQLSTM_CORRUPT_DATA);
                assert_non_null(strstr(err.message, "m.onnx: its file w.bin is cut off"));
                continue;
            }
            ok(status, &err);
            const int expected = length < 0 ? BYTES - first : length;
            if ((int)bytes != expected || memcmp(data, numbers + first, bytes) != 0)
                fail_msg("offset %d, length %d: %zu bytes, expected %d", offset, length, bytes, expected);
        }
    sl_onnx_external_free(list);
}

/* Each file is read once, and tensors of two files lie beside each other. */
static void test_files(void **state)
{
    struct sl_onnx_external *list = NULL;
    const unsigned char *a, *b, *again;
    size_t bytes;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    write_file("a.bin", "first");
    write_file("b.bin", "second");
    ok(read_place(&list, "a.bin", NULL, NULL, &a, &bytes, &err), &err);
    ok(read_place(&list, "b.bin", "1", NULL, &b, &bytes, &err), &err);
    assert_int_equal(bytes, 5);
    assert_memory_equal(b, "econd", 5);
    write_file("a.bin", "other");
    ok(read_place(&list, "a.bin", "2", "3", &again, &bytes, &err), &err);
    assert_ptr_equal(again, a + 2);
    assert_memory_equal(again, "rst", 3);
    sl_onnx_external_free(list);
}

static void test_what_is_no_place(void **state)
{
    static const struct {
        const char *location, *offset, *length;
        seqlstm_status status;
        const char *says;
    } rows[] = {
        {NULL, "0", "1", SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"", "0", "1", SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {".", NULL, NULL, SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"..", NULL, NULL, SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"./w.bin", NULL, NULL, SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"w.bin", "", "1", SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"w.bin", "-1", "1", SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"w.bin", "1", "x", SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"w.bin", "1", "1 ", SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"w.bin", "18446744073709551616", "1", SEQLSTM_CORRUPT_DATA, "not a file of the same folder"},
        {"w.bin", "18446744073709551615", "1", SEQLSTM_CORRUPT_DATA, "cut off"},
        {"w.bin", "1", "18446744073709551614", SEQLSTM_CORRUPT_DATA, "cut off"},
        {"none.bin", "0", "1", SEQLSTM_NOT_FOUND, "the file `none.bin` of the same folder, which is not there"},
        {"folder", NULL, NULL, SEQLSTM_CORRUPT_DATA, "its weights are in something that is no file"},
    };
    (void)state;
    write_file("w.bin", numbers);
    assert_int_equal(mkdir(scratch_path("folder"), 0777), 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_onnx_external *list = NULL;
        const unsigned char *data;
        size_t bytes;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status =
            read_place(&list, rows[k].location, rows[k].offset, rows[k].length, &data, &bytes, &err);
        if (status != rows[k].status || !strstr(err.message, rows[k].says))
            fail_msg("row %zu: status %d, %s", k, (int)status, err.message);
        sl_onnx_external_free(list);
    }
}

/* The longest name that a file can have, and one more. */
static void test_long_names(void **state)
{
    enum { LONGEST = 255 };
    char name[LONGEST + 2];
    (void)state;
    for (int length = LONGEST; length <= LONGEST + 1; length++) {
        struct sl_onnx_external *list = NULL;
        const unsigned char *data;
        size_t bytes;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        memset(name, 'n', sizeof name);
        name[length] = '\0';
        const seqlstm_status status = read_place(&list, name, NULL, NULL, &data, &bytes, &err);
        assert_int_equal(status, length == LONGEST ? SEQLSTM_NOT_FOUND : SEQLSTM_CORRUPT_DATA);
        sl_onnx_external_free(list);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    write_file("w.bin", numbers);
    for (int n = 1;; n++) {
        struct sl_onnx_external *list = NULL;
        struct sl_buf tensor = {0};
        const unsigned char *data;
        size_t bytes = 0;
        char path[256];
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        add_entry(&tensor, "location", "w.bin");
        snprintf(path, sizeof path, "%s", scratch_path("m.onnx"));
        const struct sl_protobuf_field field = {
            .is_bytes = true, .data = (const unsigned char *)sl_buf_text(&tensor), .bytes = tensor.length_bytes};
        oom_fail_at(n);
        const seqlstm_status status = sl_onnx_external_read(&list, path, &field, &data, &bytes, &err);
        const bool fails = oom_disarm();
        assert_int_equal(status, fails ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        assert_int_equal(list != NULL, !fails);
        sl_onnx_external_free(list);
        sl_buf_deinit(&tensor);
        if (!fails)
            break;
    }
}

/* Behind each of the keys, a field is cut off. */
static void test_entries_that_are_cut_off(void **state)
{
    static const char *const entries[][2] = {{"location", "w.bin"}, {"offset", "1"}, {"length", "2"}, {"other", "x"}};
    enum { EXTERNAL_DATA = 13, KEY = 1, VALUE = 2, UNKNOWN = 3 };
    (void)state;
    write_file("w.bin", numbers);
    for (size_t cut = 0; cut <= 4; cut++) { /* 4: none is */
        char path[256];
        struct sl_onnx_external *list = NULL;
        struct sl_buf tensor = {0};
        const unsigned char *data;
        size_t bytes = 0;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        snprintf(path, sizeof path, "%s", scratch_path("m.onnx"));
        for (size_t k = 0; k < 4; k++) {
            struct sl_buf entry = {0};
            sl_protobuf_append_text(&entry, KEY, entries[k][0]);
            sl_protobuf_append_text(&entry, VALUE, entries[k][1]);
            sl_protobuf_append_text(&entry, UNKNOWN, "end");
            sl_protobuf_append_bytes(&tensor, EXTERNAL_DATA, entry.data, entry.length_bytes - (k == cut));
            sl_buf_deinit(&entry);
        }
        const struct sl_protobuf_field field = {
            .is_bytes = true, .data = (const unsigned char *)sl_buf_text(&tensor), .bytes = tensor.length_bytes};
        const seqlstm_status status = sl_onnx_external_read(&list, path, &field, &data, &bytes, &err);
        if (status != (cut < 4 ? SEQLSTM_CORRUPT_DATA : SEQLSTM_OK))
            fail_msg("entry %zu: status %d, %s", cut, (int)status, err.message);
        assert_int_equal(bytes, cut < 4 ? 0 : 2);
        assert_true(cut < 4 ? strstr(err.message, "not a file of the same folder") != NULL
                            : memcmp(data, "bc", 2) == 0);
        sl_onnx_external_free(list);
        sl_buf_deinit(&tensor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),           cmocka_unit_test(test_files),
        cmocka_unit_test(test_what_is_no_place), cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_no_memory),        cmocka_unit_test(test_entries_that_are_cut_off),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
