/* SPDX-License-Identifier: Apache-2.0 */
/* What is written as .npy is read back by our own reader, and has NumPy's alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "data/read/npy.h"
#include "interop/npy_write.h"
#include "oom.h"

static void headers_are_read_back(void **state)
{
    (void)state;
    static const struct {
        int dimensions;
        int64_t shape[4];
    } cases[] = {{1, {3}}, {2, {3, 2}}, {3, {2, 1, 4}}, {4, {1, 2, 3, 4}}, {2, {0, 7}}, {2, {1, 1000000}}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct sl_buf buf = {0};
        struct sl_npy npy;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        sl_npy_append_header(&buf, cases[c].dimensions, cases[c].shape);
        assert_int_equal(buf.length_bytes % 64, 0);
        int64_t elems = 1;
        for (int i = 0; i < cases[c].dimensions; i++)
            elems *= cases[c].shape[i];
        for (int64_t i = 0; i < elems; i++) {
            float value = (float)i / 4;
            sl_buf_append(&buf, &value, sizeof value);
        }
        assert_false(buf.failed);
        if (sl_npy_parse("x", buf.data, buf.length_bytes, &npy, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(npy.type, SL_NPY_FLOAT32);
        assert_int_equal(npy.dimensions, cases[c].dimensions);
        for (int i = 0; i < npy.dimensions; i++)
            assert_int_equal(npy.shape[i], cases[c].shape[i]);
        for (int64_t i = 0; i < elems && i < 100; i++)
            assert_true(sl_npy_get(&npy, i) == (double)i / 4);
        sl_npy_close(&npy);
        sl_buf_deinit(&buf);
    }
}

/* A header is whole, or the buffer says that it is not. */
static void headers_without_memory(void **state)
{
    (void)state;
    static const int64_t shape[] = {3, 2};
    for (int n = 1;; n++) {
        struct sl_buf buf = {0};
        oom_fail_at(n);
        sl_npy_append_header(&buf, 2, shape);
        const bool fails = oom_disarm();
        assert_int_equal(buf.failed, fails);
        sl_buf_deinit(&buf);
        if (!fails)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_read_back),
        cmocka_unit_test(headers_without_memory),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
