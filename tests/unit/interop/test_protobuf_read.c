/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of each wire type: what they hold, and that a message that is cut off anywhere but between two fields fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "interop/protobuf_read.h"

/* One field of each kind; `ends` are the places between two of them. */
static const unsigned char message[] = {
    0x08, 0x05,                                                             /* 1: 5 */
    0x90, 0x03, 0xac, 0x02,                                                 /* 50: 300 */
    0x19, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88,                   /* 3: 64 bits */
    0x22, 0x03, 'a',  'b',  'c',                                            /* 4: three bytes */
    0x2d, 0x00, 0x00, 0x20, 0xc0,                                           /* 5: -2.5f */
    0x32, 0x00,                                                             /* 6: no bytes */
    0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,       /* 7: all 64 bits */
    0xf8, 0xff, 0xff, 0xff, 0x0f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, /* 2^29 - 1: 2^42 */
};
static const size_t ends[] = {0, 2, 6, 15, 20, 25, 27, 38, 50};

static const struct sl_protobuf_field fields[] = {
    {.number = 1, .value = 5},
    {.number = 50, .value = 300},
    {.number = 3, .value = 0x8807060504030201u},
    {.number = 4, .is_bytes = true, .data = message + 17, .bytes = 3},
    {.number = 5, .value = 0xc0200000u},
    {.number = 6, .is_bytes = true, .data = message + 27, .bytes = 0},
    {.number = 7, .value = UINT64_MAX},
    {.number = (1u << 29) - 1, .value = UINT64_C(1) << 42},
};

enum { FIELDS = sizeof fields / sizeof *fields };

static void check_field(const struct sl_protobuf_field *got, int k)
{
    assert_int_equal(got->number, fields[k].number);
    assert_int_equal(got->is_bytes, fields[k].is_bytes);
    assert_int_equal(got->value, fields[k].value);
    if (got->is_bytes) {
        assert_ptr_equal(got->data, fields[k].data);
        assert_int_equal(got->bytes, fields[k].bytes);
    }
}

/* The fields before the cut are handed out; then it ends, with a failure unless the cut is between two fields. */
static void test_a_message_that_is_cut_off(void **state)
{
    (void)state;
    assert_int_equal(ends[FIELDS], sizeof message);
    for (size_t bytes = 0; bytes <= sizeof message; bytes++) {
        struct sl_protobuf_reader reader = sl_protobuf_begin(message, bytes);
        struct sl_protobuf_field field;
        int whole = 0;
        while (whole < FIELDS && ends[whole + 1] <= bytes)
            whole++;
        for (int k = 0; k < whole; k++) {
            assert_true(sl_protobuf_next(&reader, &field));
            check_field(&field, k);
            assert_ptr_equal(reader.at, message + ends[k + 1]);
        }
        for (int again = 0; again < 3; again++) { /* it stays so */
            assert_false(sl_protobuf_next(&reader, &field));
            if (reader.failed != (ends[whole] != bytes))
                fail_msg("%d bytes: %s", (int)bytes, reader.failed ? "fails" : "no failure");
        }
    }
}

static void test_numbers(void **state)
{
    static const struct {
        unsigned char bytes[12];
        size_t count;
        bool fails;
        uint64_t first;
    } rows[] = {
        {{0}, 0, false, 99}, /* the end */
        {{0x00}, 1, false, 0},
        {{0x7f, 0x01}, 2, false, 127},
        {{0x80}, 1, true, 99},
        {{0xff, 0xff}, 2, true, 99},
        {{0x80, 0x01}, 2, false, 128},
        {{0xff, 0xff, 0xff, 0xff, 0x0f}, 5, false, UINT32_MAX},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 9, false, INT64_MAX},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 10, false, UINT64_C(1) << 63},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 11, true, 99}, /* no number has 11 */
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_protobuf_reader reader = sl_protobuf_begin(rows[k].bytes, rows[k].count);
        uint64_t value = 99;
        assert_int_equal(sl_protobuf_next_varint(&reader, &value), rows[k].count > 0 && !rows[k].fails);
        assert_int_equal(value, rows[k].first);
        assert_int_equal(reader.failed, rows[k].fails);
        value = 99;
        if (rows[k].count != 2 || rows[k].fails) { /* what has failed or ended gives no other number */
            assert_false(sl_protobuf_next_varint(&reader, &value));
            assert_int_equal(reader.failed, rows[k].fails);
            assert_int_equal(value, 99);
        }
    }
}

/* Wire types 3 and 4 are groups; there are no 6 and 7. */
static void test_types_that_are_not_read(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 8; type++) {
        const unsigned char bytes[9] = {(unsigned char)(1u << 3 | type)};
        struct sl_protobuf_reader reader = sl_protobuf_begin(bytes, sizeof bytes);
        struct sl_protobuf_field field;
        const bool known = type == 0 || type == 1 || type == 2 || type == 5;
        assert_int_equal(sl_protobuf_next(&reader, &field), known);
        assert_int_equal(reader.failed, !known);
        if (known)
            assert_int_equal(field.number, 1);
    }
}

static void test_texts_and_floats(void **state)
{
    static const unsigned char text[] = "location";
    const struct sl_protobuf_field field = {.is_bytes = true, .data = text, .bytes = 8},
                                   number = {.data = text, .bytes = 8};
    (void)state;
    assert_true(sl_protobuf_field_is(&field, "location"));
    assert_false(sl_protobuf_field_is(&field, "locatio"));
    assert_false(sl_protobuf_field_is(&field, "locations"));
    assert_false(sl_protobuf_field_is(&field, "locatiom"));
    assert_false(sl_protobuf_field_is(&field, ""));
    assert_false(sl_protobuf_field_is(&number, "location"));
    assert_true(sl_protobuf_field_get_float(&fields[4]) == -2.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_that_is_cut_off),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_types_that_are_not_read),
        cmocka_unit_test(test_texts_and_floats),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
