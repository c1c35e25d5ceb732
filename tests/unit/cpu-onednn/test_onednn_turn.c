/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and columns of cpu-onednn's matrices: whole lines, parts of them, aligned and not, streamed and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu-onednn/recurrent/turn.h"

enum { WIDTH_MOST = 70, PITCH_MOST = 35, ELEMENTS = 2 * WIDTH_MOST * PITCH_MOST };

static _Alignas(64) float from[ELEMENTS], to[ELEMENTS];
static const float untouched = -1.0f;

static void fill(void)
{
    for (int64_t i = 0; i < ELEMENTS; i++) {
        from[i] = (float)i;
        to[i] = untouched;
    }
}

static void check_turn(int64_t count, int64_t width, int64_t pitch, int64_t first, bool streams)
{
    const int64_t row_pitch = width + 1;
    fill();
    odn_rows_turn(from + 1, row_pitch, count, width, streams, to + first, pitch);
    odn_streams_end();
    for (int64_t i = 0; i < ELEMENTS; i++) {
        const int64_t column = (i - first) / pitch, row = (i - first) % pitch;
        const bool is_ours = i >= first && column < width && row < count;
        const float expected = is_ours ? (float)(1 + row * row_pitch + column) : untouched;
        if (to[i] != expected)
            fail_msg("%d rows of %d to pitch %d from %d, streams %d: element %d is %g, not %g", (int)count, (int)width,
                     (int)pitch, (int)first, (int)streams, (int)i, (double)to[i], (double)expected);
    }
}

static void rows_become_columns(void **state)
{
    static const int64_t widths[] = {1, 2, 3, 4, 5, 15, 16, 17, WIDTH_MOST}, pitches[] = {16, 17, 20, 32, PITCH_MOST};
    (void)state;
    for (int64_t count = 1; count <= ODN_LINE; count++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (size_t p = 0; p < sizeof pitches / sizeof *pitches; p++)
                for (int64_t first = 0; first <= ODN_LINE; first++)
                    for (int streams = 0; streams < 2; streams++)
                        check_turn(count, widths[w], pitches[p], first, streams);
}

static void rows_are_copied(void **state)
{
    (void)state;
    for (int64_t count = 0; count <= WIDTH_MOST; count++)
        for (int64_t first = 0; first <= ODN_LINE; first++)
            for (int streams = 0; streams < 2; streams++) {
                fill();
                odn_row_copy(from + 3, count, streams, to + first);
                odn_streams_end();
                for (int64_t i = 0; i < ELEMENTS; i++) {
                    const bool is_ours = i >= first && i < first + count;
                    assert_true(to[i] == (is_ours ? (float)(3 + i - first) : untouched));
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_become_columns), cmocka_unit_test(rows_are_copied)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
