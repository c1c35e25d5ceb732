/* SPDX-License-Identifier: Apache-2.0 */
/* Places of errors as text: whole where there is room, otherwise without a part of the middle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/error_place.h"
#include "oom.h"

static void places_are_short_enough(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int line, column;
        size_t capacity;
        const char *expected;
    } cases[] = {
        {"a.yaml", 3, 5, 64, "a.yaml:3:5"},
        {"a.yaml", 0, 5, 64, "a.yaml"},
        {NULL, 3, 5, 64, ":3:5"},
        {"", 0, 0, 64, ""},
        {"a.yaml", 3, 5, 11, "a.yaml:3:5"},
        {"a.yaml", 3, 5, 8, "…:3:5"},
        {"a.yaml", 12345, 678, 64, "a.yaml:12345:678"},
        {"/home/someone/runs/first/config.yaml", 3, 5, 41, "/home/someone/runs/first/config.yaml:3:5"},
        {"/home/someone/runs/first/config.yaml", 3, 5, 40, "/home/some…runs/first/config.yaml:3:5"},
        {"/home/someone/runs/first/config.yaml", 0, 0, 37, "/home/someone/runs/first/config.yaml"},
        {"/home/someone/runs/first/config.yaml", 0, 0, 30, "/home/so…/first/config.yaml"},
        {"/home/someone/runs/first/config.yaml", 3, 5, 24, "/hom…/config.yaml:3:5"},
        {"/runs/a-name-that-is-longer-than-all", 3, 5, 24, "…-longer-than-all:3:5"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char out[64];
        memset(out, 'x', sizeof out);
        sl_error_place_write(cases[k].file, cases[k].line, cases[k].column, out, cases[k].capacity);
        assert_string_equal(out, cases[k].expected);
        assert_true(strlen(out) < cases[k].capacity);
    }
}

/* Of every capacity: the end of the text is whole, no character is cut, and little room is left. */
static void characters_are_never_cut(void **state)
{
    (void)state;
    static const char path[] = "/täglich/ärgerliche/übergrößen/längenmaß/dàta/€uro/文件.yaml", numbers[] = ":7:1234";
    for (size_t capacity = 24; capacity < sizeof path + sizeof numbers + 4; capacity++) {
        char out[128];
        memset(out, 'x', sizeof out);
        sl_error_place_write(path, 7, 1234, out, capacity);
        const size_t bytes = strlen(out);
        assert_true(bytes < capacity && out[capacity] == 'x');
        assert_string_equal(out + bytes - strlen(numbers), numbers);
        if (bytes == strlen(path) + strlen(numbers)) {
            assert_memory_equal(out, path, strlen(path));
            assert_true(capacity > bytes);
            continue;
        }
        assert_true(capacity <= strlen(path) + strlen(numbers) && bytes + 2 * 2 + 1 >= capacity);
        const char *gap = strstr(out, "…");
        assert_non_null(gap);
        const size_t begin = (size_t)(gap - out), end = bytes - strlen(numbers) - begin - strlen("…");
        assert_memory_equal(out, path, begin);
        assert_memory_equal(gap + strlen("…"), path + strlen(path) - end, end);
        assert_true(((unsigned char)path[begin] & 0xC0) != 0x80 &&
                    ((unsigned char)path[strlen(path) - end] & 0xC0) != 0x80);
        assert_true(capacity < 48 || strstr(out, "/文件.yaml:7:1234") != NULL);
    }
}

static void an_error_keeps_its_place(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_error_place_set(&err, "data/train.csv", 7, 2);
    assert_string_equal(err.where, "data/train.csv:7:2");
    sl_error_place_set(NULL, "data/train.csv", 7, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_short_enough),
        cmocka_unit_test(characters_are_never_cut),
        cmocka_unit_test(an_error_keeps_its_place),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
