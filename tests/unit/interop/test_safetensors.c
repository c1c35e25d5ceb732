/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors format: what is written comes back, and what is not one is refused with a reason. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "interop/safetensors.h"
#include "oom.h"
#include "scratch.h"

static const float MATRIX[6] = {1, -2, 3.5f, -0.0f, 1e-40f, 6};
static const int64_t IDS[2] = {INT64_MIN, 7};

static struct sl_safetensors_content make_content(bool checksum)
{
    static const struct sl_safetensors_entry entries[] = {
        {.name = "lstm_1.l0.forward.w_x", .dtype = SL_SAFETENSORS_F32, .rank = 2, .shape = {2, 3}, .data = MATRIX},
        {.name = "empty", .dtype = SL_SAFETENSORS_F32, .rank = 2, .shape = {0, 5}, .data = NULL},
        {.name = "scalar \"x\"\\", .dtype = SL_SAFETENSORS_F32, .rank = 0, .data = MATRIX + 2},
        {.name = "ids", .dtype = SL_SAFETENSORS_I64, .rank = 1, .shape = {2}, .data = IDS},
    };
    static const struct sl_safetensors_text texts[] = {{"format", "a"}, {"text", "line\n\"quoted\" \x01 \xc3\xbc"}};
    return (struct sl_safetensors_content){entries, 4, texts, 2, checksum};
}

static void round_trip(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors *file = NULL;
    struct sl_safetensors_content content = make_content(true);
    const char *path = scratch_path("a.safetensors");
    assert_int_equal(sl_safetensors_write(path, &content, &err), SEQLSTM_OK);
    assert_int_equal(sl_safetensors_open(path, &file, &err), SEQLSTM_OK);
    assert_int_equal(sl_safetensors_verify(file, &err), SEQLSTM_OK);
    assert_int_equal(sl_safetensors_get_count(file), 4);
    assert_string_equal(sl_safetensors_find_text(file, "text"), content.texts[1].value);
    assert_null(sl_safetensors_find_text(file, "absent"));
    assert_null(sl_safetensors_find(file, "absent"));
    for (int32_t i = 0; i < content.entry_count; i++) {
        const struct sl_safetensors_entry *want = &content.entries[i];
        const struct sl_safetensors_entry *got = sl_safetensors_find(file, want->name);
        assert_non_null(got);
        assert_int_equal(got->dtype, want->dtype);
        assert_int_equal(got->rank, want->rank);
        assert_memory_equal(got->shape, want->shape, sizeof want->shape);
        size_t bytes = (size_t)sl_safetensors_count_elems(want) * sl_safetensors_dtype_get_bytes(want->dtype);
        assert_int_equal(got->data_bytes, bytes);
        if (bytes)
            assert_memory_equal(got->data, want->data, bytes);
    }
    float back[6];
    const struct sl_safetensors_entry *entry = sl_safetensors_find(file, "lstm_1.l0.forward.w_x");
    assert_int_equal(sl_safetensors_read_float32(entry, back, 6, &err), SEQLSTM_OK);
    assert_memory_equal(back, MATRIX, sizeof MATRIX);
    assert_int_equal(sl_safetensors_read_float32(entry, back, 5, &err), SEQLSTM_CORRUPT_DATA);
    assert_string_equal(err.message, "`lstm_1.l0.forward.w_x` has 6 elements, not 5");
    entry = sl_safetensors_find(file, "ids");
    assert_int_equal(sl_safetensors_read_float32(entry, back, 2, &err), SEQLSTM_CORRUPT_DATA);
    sl_safetensors_close(file);
}

static void bytes_depend_on_the_content_alone(void **state)
{
    (void)state;
    struct sl_safetensors_content content = make_content(true);
    char *a, *b;
    size_t n, m;
    assert_int_equal(sl_safetensors_write(scratch_path("one"), &content, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_read(scratch_path("one"), 1 << 20, &a, &n, NULL), SEQLSTM_OK);
    assert_int_equal(sl_safetensors_write(scratch_path("two"), &content, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_read(scratch_path("two"), 1 << 20, &b, &m, NULL), SEQLSTM_OK);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    uint64_t header = 0;
    memcpy(&header, a, 8);
    assert_int_equal((8 + header) % 8, 0);
    free(a);
    free(b);
}

/* Every damaged byte is found: by the structure or by the checksum. */
static void every_flipped_byte_is_found(void **state)
{
    (void)state;
    struct sl_safetensors_content content = make_content(true);
    char *bytes;
    size_t n;
    assert_int_equal(sl_safetensors_write(scratch_path("flip"), &content, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_read(scratch_path("flip"), 1 << 20, &bytes, &n, NULL), SEQLSTM_OK);
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit += 3) {
            struct sl_safetensors *file = NULL;
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
            seqlstm_status status = sl_safetensors_open_bytes("flip", bytes, n, &file, NULL);
            if (status == SEQLSTM_OK) {
                status = sl_safetensors_verify(file, NULL);
                sl_safetensors_close(file);
            }
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
            assert_int_equal(status, SEQLSTM_CORRUPT_DATA);
        }
    for (size_t length = 0; length < n; length++) {
        struct sl_safetensors *file = NULL;
        char *cut = malloc(length + 1); /* so that ASan sees reads beyond the end */
        memcpy(cut, bytes, length);
        assert_int_equal(sl_safetensors_open_bytes("cut", cut, length, &file, NULL), SEQLSTM_CORRUPT_DATA);
        free(cut);
    }
    free(bytes);
}

/* A file of a header and so many bytes of data. */
static seqlstm_status open_text(const char *header, size_t data_bytes, struct seqlstm_error *err)
{
    struct sl_safetensors *file = NULL;
    size_t length = strlen(header), n = 8 + length + data_bytes;
    char *bytes = calloc(n, 1);
    uint64_t wide = length;
    memcpy(bytes, &wide, 8);
    memcpy(bytes + 8, header, length);
    seqlstm_status status = sl_safetensors_open_bytes("x", bytes, n, &file, err);
    if (status == SEQLSTM_OK)
        sl_safetensors_close(file);
    free(bytes);
    return status;
}

#define ENTRY(name, shape, first, last)                                                                                \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #first "," #last "]}"

static void hostile_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t bytes;
        const char *says;
    } cases[] = {
        {"[]", 0, "begin with"},
        {"{\"a\":1}", 0, "not {dtype"},
        {" {}", 0, "begin with"},
        {"{}x", 0, "JSON"},
        {"{}", 4, "belong to no tensor"},
        {"{" ENTRY("a", "[1]", 0, 4) "," ENTRY("a", "[1]", 4, 8) "}", 8, "JSON"},
        {"{" ENTRY("a", "[1]", 0, 4) "," ENTRY("b", "[1]", 0, 4) "}", 4, "overlaps"},
        {"{" ENTRY("a", "[1]", 0, 4) "," ENTRY("b", "[1]", 8, 12) "}", 12, "hole"},
        {"{" ENTRY("a", "[1]", 4, 8) "}", 8, "hole"},
        {"{" ENTRY("a", "[1]", 0, 4) "}", 8, "belong to no tensor"},
        {"{" ENTRY("a", "[1]", 0, 4) "}", 3, "of 3"},
        {"{" ENTRY("a", "[2]", 0, 4) "}", 4, "say otherwise"},
        {"{" ENTRY("a", "[1]", 0, 8) "}", 8, "`a` has 8 bytes, its shape and dtype say otherwise"},
        {"{" ENTRY("a", "[1]", 4, 0) "}", 4, "stands at"},
        {"{" ENTRY("a", "[-1]", 0, 4) "}", 4, "shape"},
        {"{" ENTRY("a", "[1.0]", 0, 4) "}", 4, "shape"},
        {"{" ENTRY("a", "4", 0, 4) "}", 4, "shape"},
        {"{" ENTRY("a", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, "shape"},
        {"{" ENTRY("a", "[4294967296,4294967296]", 0, 4) "}", 4, "say otherwise"},
        {"{" ENTRY("a", "[9223372036854775807]", 0, 4) "}", 4, "say otherwise"},
        {"{" ENTRY("a", "[99999999999999999999]", 0, 4) "}", 4, "JSON"},
        {"{" ENTRY("a", "[1]", -4, 0) "}", 4, "stands at"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "unknown dtype `F33`"},
        {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":{}}}", 4, "data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"more\":1}}", 4, "not {dtype"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "not a text"},
        {"{\"__metadata__\":[]}", 0, "not an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_status status = open_text(cases[i].header, cases[i].bytes, &err);
        if (status != SEQLSTM_CORRUPT_DATA || !strstr(err.message, cases[i].says))
            fail_msg("%s: status %d, `%s`, expected `%s`", cases[i].header, status, err.message, cases[i].says);
    }
    assert_int_equal(open_text("{}", 0, NULL), SEQLSTM_OK);
    assert_int_equal(open_text("{}  \n ", 0, NULL), SEQLSTM_OK);
    assert_int_equal(open_text("{" ENTRY("a", "[1]", 4, 8) "," ENTRY("b", "[1]", 0, 4) "}", 8, NULL), SEQLSTM_OK);
    assert_int_equal(open_text("{" ENTRY("a", "[1,1,1,1,1,1,1,1]", 0, 4) "}", 4, NULL), SEQLSTM_OK);
    /* empty tensors stand before, between and behind others, whatever their order in the header */
    static const char *const entries[] = {ENTRY("a", "[2]", 0, 8), ENTRY("none", "[0]", 0, 0), ENTRY("c", "[1]", 8, 12),
                                          ENTRY("zero", "[3,0]", 8, 8), ENTRY("last", "[0]", 12, 12)};
    for (int turn = 0; turn < 10; turn++) {
        char header[600] = "{";
        for (int k = 0; k < 5; k++)
            snprintf(header + strlen(header), sizeof header - strlen(header), "%s%s", k ? "," : "",
                     entries[turn < 5 ? (k + turn) % 5 : (turn - k) % 5]);
        assert_int_equal(open_text(strcat(header, "}"), 12, NULL), SEQLSTM_OK);
    }
}

static void absurd_lengths_are_refused(void **state)
{
    (void)state;
    static const uint64_t LENGTHS[] = {0, 1, 3, 100, 100000001, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
        struct sl_safetensors *file = NULL;
        char bytes[10] = "        {}";
        memcpy(bytes, &LENGTHS[i], 8);
        assert_int_equal(sl_safetensors_open_bytes("x", bytes, 10, &file, NULL), SEQLSTM_CORRUPT_DATA);
    }
    static const struct {
        const char *bytes, *says;
        size_t count;
    } others[] = {{"a,b,c\n1,2,3\n", ", but text: data are named", 12},
                  {"a,b,c\n1,2,3\n\x01\xff", ": it does not begin with the length of a header", 14},
                  {"\x08\x07\x12\x07pytorch", ", but perhaps ONNX", 11},
                  {"\x08\x1f\x3a\x07pytorch", ", but perhaps ONNX", 11},
                  {"a,b,c\n1,2\x7f\n\n", ": it does not begin with the length of a header", 12},
                  {"\x08\x20\x12\x07pytorch", ": it does not begin", 11}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_safetensors *file = NULL;
        assert_int_equal(sl_safetensors_open_bytes("x", others[i].bytes, others[i].count, &file, &err),
                         SEQLSTM_CORRUPT_DATA);
        assert_non_null(strstr(err.message, others[i].says));
    }
    assert_int_equal(sl_safetensors_open("/nonexistent/x", &(struct sl_safetensors *){NULL}, NULL), SEQLSTM_NOT_FOUND);
}

static void other_floats_become_float32(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const uint16_t HALVES[] = {0x3c00, 0xc000, 0x7c00, 0xfc00, 0x7e00, 0x0001, 0x83ff, 0x0400, 0x8000, 0x3555};
    static const float WANT[] = {1,        -2,    INFINITY,       -INFINITY, NAN, 0x1p-24f, -1023 * 0x1p-24f,
                                 0x1p-14f, -0.0f, 0.333251953125f};
    static const uint16_t BRAINS[] = {0x3f80, 0xc040};
    static const double WIDE[] = {0.1, 1e300};
    float got[10];
    struct sl_safetensors_entry entry = {.name = "h", .dtype = SL_SAFETENSORS_F16, .rank = 1, .shape = {10}};
    entry.data = HALVES;
    assert_int_equal(sl_safetensors_read_float32(&entry, got, 10, &err), SEQLSTM_OK);
    for (int i = 0; i < 10; i++)
        if (isnan(WANT[i]))
            assert_true(isnan(got[i]));
        else
            assert_memory_equal(&got[i], &WANT[i], sizeof(float));
    entry = (struct sl_safetensors_entry){.name = "b", .dtype = SL_SAFETENSORS_BF16, .rank = 1, .shape = {2}};
    entry.data = BRAINS;
    assert_int_equal(sl_safetensors_read_float32(&entry, got, 2, &err), SEQLSTM_OK);
    assert_true(got[0] == 1 && got[1] == -3);
    entry.dtype = SL_SAFETENSORS_F64;
    entry.data = WIDE;
    assert_int_equal(sl_safetensors_read_float32(&entry, got, 2, &err), SEQLSTM_OK);
    assert_true(got[0] == 0.1f && isinf(got[1]));
}

static void what_cannot_be_written(void **state)
{
    (void)state;
    struct sl_safetensors_entry twice[] = {
        {.name = "a", .dtype = SL_SAFETENSORS_F32, .rank = 1, .shape = {1}, .data = MATRIX},
        {.name = "a", .dtype = SL_SAFETENSORS_F32, .rank = 1, .shape = {1}, .data = MATRIX},
    };
    struct sl_safetensors_content content = {.entries = twice, .entry_count = 2};
    const char *path = scratch_path("never");
    assert_int_equal(sl_safetensors_write(path, &content, NULL), SEQLSTM_INVALID_ARGUMENT);
    twice[1].name = "__metadata__";
    assert_int_equal(sl_safetensors_write(path, &content, NULL), SEQLSTM_INVALID_ARGUMENT);
    twice[1].name = "b\xff";
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_safetensors_write(path, &content, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "tensor 1 is not UTF-8");
    twice[1].name = "b";
    twice[1].shape[0] = -1;
    assert_int_equal(sl_safetensors_write(path, &content, NULL), SEQLSTM_INVALID_ARGUMENT);
    twice[1].shape[0] = INT64_MAX / 2;
    assert_int_equal(sl_safetensors_write(path, &content, NULL), SEQLSTM_INVALID_ARGUMENT);
    struct sl_safetensors_text own = {"checksum", "mine"};
    content = (struct sl_safetensors_content){.texts = &own, .text_count = 1};
    assert_int_equal(sl_safetensors_write(path, &content, NULL), SEQLSTM_INVALID_ARGUMENT);
    assert_false(sl_file_exists(path));
}

/* Wherever the two of one name stand among others, and whatever their order. */
/* The header ends at a multiple of eight bytes, with fewer than eight blanks, whatever its length. */
static void headers_are_aligned(void **state)
{
    (void)state;
    for (int length = 1; length <= 17; length++) {
        char name[20] = "", *bytes;
        size_t count, header, blanks = 0;
        memset(name, 'n', (size_t)length);
        const struct sl_safetensors_entry entry = {
            .name = name, .dtype = SL_SAFETENSORS_F32, .rank = 8, .shape = {1, 1, 1, 1, 1, 1, 1, 1}, .data = MATRIX};
        const struct sl_safetensors_content content = {&entry, 1, NULL, 0, false};
        assert_int_equal(sl_safetensors_write(scratch_path("one"), &content, NULL), SEQLSTM_OK);
        assert_int_equal(sl_file_read(scratch_path("one"), 1 << 20, &bytes, &count, NULL), SEQLSTM_OK);
        header = (unsigned char)bytes[0];
        assert_int_equal(count, 8 + header + sizeof *MATRIX);
        assert_int_equal(header % 8, 0);
        while (bytes[8 + header - 1 - blanks] == ' ')
            blanks++;
        assert_in_range(blanks, 0, 7);
        free(bytes);
    }
}

/* Each text is looked at, not only the first. */
static void each_text_is_utf_8(void **state)
{
    (void)state;
    static const struct sl_safetensors_text texts[] = {{"a", "fine"}, {"b", "also"}, {"c", "no\xff"}};
    const struct sl_safetensors_content content = {NULL, 0, texts, 3, false};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_safetensors_write(scratch_path("one"), &content, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the text `c` is not UTF-8");
}

static void names_that_stand_twice(void **state)
{
    (void)state;
    enum { COUNT = 5 };
    static const char *const names[COUNT] = {"c", "e", "a", "d", "b"};
    for (int one = 0; one < COUNT; one++)
        for (int other = 0; other < COUNT; other++) {
            struct sl_safetensors_entry entries[COUNT];
            struct sl_safetensors_text texts[COUNT];
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            char tensor[32], text[32];
            for (int k = 0; k < COUNT; k++) {
                const char *name = names[k == one ? other : k];
                entries[k] = (struct sl_safetensors_entry){
                    .name = name, .dtype = SL_SAFETENSORS_F32, .rank = 1, .shape = {1}, .data = MATRIX};
                texts[k] = (struct sl_safetensors_text){name, "value"};
            }
            const struct sl_safetensors_content tensors = {.entries = entries, .entry_count = COUNT},
                                                metadata = {.texts = texts, .text_count = COUNT};
            const seqlstm_status expected = one == other ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT;
            snprintf(tensor, sizeof tensor, "tensor `%s` stands twice", names[other]);
            snprintf(text, sizeof text, "text `%s` stands twice", names[other]);
            assert_int_equal(sl_safetensors_write(scratch_path("names"), &tensors, &err), expected);
            assert_true(one == other || strstr(err.message, tensor));
            assert_int_equal(sl_safetensors_write(scratch_path("names"), &metadata, &err), expected);
            assert_true(one == other || strstr(err.message, text));
        }
}

/* A checksum that is not there, too short, written in another way, or of another content. */
static void checksums_of_others(void **state)
{
    (void)state;
    static const struct {
        const char *header, *message;
    } files[] = {
        {"{}", "the file has no checksum"},
        {"{\"__metadata__\":{\"sum\":\"0123456789abcdef\"}}", "the file has no checksum"},
        {"{\"__metadata__\":{\"checksum\":\"0123456789abcde\"}}", "the file has no checksum"},
        {"{\"__metadata__\":{\"checksum\": \"0123456789abcdef\"}}", "not written as seqlstm writes it"},
        {"{\"__metadata__\":{\"checksum\":\"0123456789abcdef\"}}", "does not match its checksum (0123456789abcdef, "},
    };
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char bytes[128] = {(char)strlen(files[f].header)};
        struct sl_safetensors *file = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        memcpy(bytes + 8, files[f].header, strlen(files[f].header));
        assert_int_equal(sl_safetensors_open_bytes("f", bytes, 8 + strlen(files[f].header), &file, &err), SEQLSTM_OK);
        assert_int_equal(sl_safetensors_verify(file, &err), SEQLSTM_CORRUPT_DATA);
        if (strstr(err.message, files[f].message) == NULL)
            fail_msg("%s: `%s`", files[f].header, err.message);
        sl_safetensors_close(file);
    }
}

/* The old file survives every failing call, and nothing is left beside it. */
static void failing_writes_leave_the_old_file(void **state)
{
    (void)state;
    struct sl_safetensors_content old = make_content(true), next = make_content(true);
    next.entry_count = 2;
    char *want;
    size_t n;
    const char *path = scratch_path("kept");
    assert_int_equal(sl_safetensors_write(path, &old, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_read(path, 1 << 20, &want, &n, NULL), SEQLSTM_OK);
    int failures = 0;
    for (int fault = 1;; fault++) {
        io_fail_at(fault, ENOSPC, 3);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        seqlstm_status status = sl_safetensors_write(path, &next, &err);
        if (!io_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            break;
        }
        /* The fsync of the folder comes after the rename: then the new file stands. */
        assert_int_equal(status, SEQLSTM_IO);
        assert_int_equal(err.native_code, ENOSPC);
        char *now;
        size_t m;
        assert_int_equal(sl_file_read(path, 1 << 20, &now, &m, NULL), SEQLSTM_OK);
        struct sl_safetensors *file = NULL;
        assert_int_equal(sl_safetensors_open(path, &file, NULL), SEQLSTM_OK);
        assert_int_equal(sl_safetensors_verify(file, NULL), SEQLSTM_OK);
        failures += sl_safetensors_get_count(file) == 4;
        sl_safetensors_close(file);
        free(now);
    }
    assert_true(failures >= 3);
    free(want);
}

static int count_files(void)
{
    int count = 0;
    DIR *files = opendir(scratch_folder);
    assert_non_null(files);
    while (readdir(files))
        count++;
    closedir(files);
    return count;
}

/* The same with arrays that are written at once, while the file is made. */
static void failing_writes_of_large_arrays(void **state)
{
    (void)state;
    enum { ELEMS = 50000 };
    float *values = calloc(ELEMS, sizeof *values);
    const struct sl_safetensors_entry entries[] = {
        {.name = "a", .dtype = SL_SAFETENSORS_F32, .rank = 1, .shape = {ELEMS}, .data = values},
        {.name = "b", .dtype = SL_SAFETENSORS_F32, .rank = 1, .shape = {ELEMS}, .data = values}};
    const struct sl_safetensors_content content = {entries, 2, NULL, 0, true};
    const char *path = scratch_path("large");
    const int before = count_files();
    int failures = 0;
    for (int fault = 1;; fault++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        unlink(path);
        io_fail_at(fault, ENOSPC, fault % 2 ? 1000 : -1);
        const seqlstm_status status = sl_safetensors_write(path, &content, &err);
        const bool fails = io_disarm();
        assert_int_equal(status, fails ? SEQLSTM_IO : SEQLSTM_OK);
        assert_int_equal(count_files(), before + sl_file_exists(path));
        failures += !sl_file_exists(path);
        if (!fails)
            break;
    }
    assert_true(failures > 3);
    free(values);
}

static void failing_allocations(void **state)
{
    (void)state;
    struct sl_safetensors_content content = make_content(true);
    const char *path = scratch_path("memory");
    for (int n = 1;; n++) {
        oom_fail_at(n);
        seqlstm_status status = sl_safetensors_write(path, &content, NULL);
        if (!oom_disarm())
            break;
        if (status != SEQLSTM_OK) /* realpath may fail and be done without */
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
    }
    for (int n = 1;; n++) {
        struct sl_safetensors *file = NULL;
        oom_fail_at(n);
        seqlstm_status status = sl_safetensors_open(path, &file, NULL);
        if (!oom_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            sl_safetensors_close(file);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(bytes_depend_on_the_content_alone),
        cmocka_unit_test(every_flipped_byte_is_found),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(absurd_lengths_are_refused),
        cmocka_unit_test(other_floats_become_float32),
        cmocka_unit_test(what_cannot_be_written),
        cmocka_unit_test(headers_are_aligned),
        cmocka_unit_test(each_text_is_utf_8),
        cmocka_unit_test(names_that_stand_twice),
        cmocka_unit_test(checksums_of_others),
        cmocka_unit_test(failing_writes_leave_the_old_file),
        cmocka_unit_test(failing_writes_of_large_arrays),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
