/* SPDX-License-Identifier: Apache-2.0 */
/* Guarded buffers: every byte around and inside of one is overwritten once, and must be seen where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "judge/guarded.h"
#include "oom.h"

static const uint64_t sizes[] = {0, 1, 7, 64, 100};
enum { SIZES = sizeof sizes / sizeof *sizes };

static struct sl_guarded make(uint64_t bytes)
{
    struct sl_guarded buffer = {.block = NULL};
    assert_int_equal(sl_guarded_init(&buffer, NULL, bytes, NULL), SEQLSTM_OK);
    assert_true((buffer.data == NULL) == (bytes == 0));
    assert_ptr_equal(sl_guarded_get_address(&buffer), buffer.data);
    return buffer;
}

static void each_byte_outside_is_seen(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        struct sl_guarded buffer = make(sizes[s]);
        unsigned char *payload = buffer.block + SL_GUARD_BYTES;
        assert_int_equal(sl_guarded_check(&buffer), 0);
        for (int64_t far = 1; far <= SL_GUARD_BYTES; far++)
            for (int behind = 0; behind < 2; behind++) {
                unsigned char *at = behind ? payload + sizes[s] + far - 1 : payload - far;
                const unsigned char before = *at;
                *at ^= 1;
                assert_int_equal(sl_guarded_check(&buffer), behind ? far : -far);
                *at = before;
            }
        memset(payload, 0, sizes[s]); /* what is inside is no fault */
        assert_int_equal(sl_guarded_check(&buffer), 0);
        sl_guarded_deinit(&buffer);
    }
}

/* For each range and each written byte: the first of the range, or none. */
static void each_byte_inside_is_found(void **state)
{
    (void)state;
    for (int s = 0; s < SIZES; s++) {
        struct sl_guarded buffer = make(sizes[s]);
        const int64_t bytes = (int64_t)sizes[s];
        for (int64_t at = 0; at < bytes; at++) {
            ((unsigned char *)buffer.data)[at] ^= 1;
            for (int64_t begin = 0; begin <= bytes; begin += 1 + bytes / 25)
                for (int64_t end = begin; end <= bytes + 1; end += 1 + bytes / 25)
                    assert_int_equal(sl_guarded_find_written(&buffer, (uint64_t)begin, (uint64_t)end),
                                     begin <= at && at < end ? at : -1);
            assert_int_equal(sl_guarded_find_written(&buffer, (uint64_t)at, (uint64_t)at + 1), at);
            sl_guarded_poison(&buffer);
        }
        assert_int_equal(sl_guarded_find_written(&buffer, 0, sizes[s]), -1);
        sl_guarded_deinit(&buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_outside_is_seen),
        cmocka_unit_test(each_byte_inside_is_found),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
