/* SPDX-License-Identifier: Apache-2.0 */
/* Backends as users name them: every part alone and together, at the limits, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "compare/sample/backend_spec.h"
#include "ok.h"
#include "oom.h"

static struct sl_arena arena;

static int setup(void **state)
{
    oom_group_begin(state);
    sl_arena_init(&arena);
    return chdir("/");
}

static int teardown(void **state)
{
    sl_arena_deinit(&arena);
    return oom_group_end(state);
}

static void test_what_is_read(void **state)
{
    static const struct {
        const char *text, *name, *variant, *settings; /* "key=value;" of each */
        int32_t device;                               /* from 1; 0: none is said */
    } rows[] = {
        {"cpu-blas", "cpu-blas", NULL, "", 0},
        {"cpu-blas:packed", "cpu-blas", "packed", "", 0},
        {"./a.so", "/a.so", NULL, "", 0},
        {"/x:y/a.so", "/x:y/a.so", NULL, "", 0},
        {"/x:y/a.so:v", "/x:y/a.so", "v", "", 0},
        {"b/../a.so:v,k=1", "/a.so", "v", "k=1;", 0},
        {"id,", "id", NULL, "", 0},
        {"id,a=1", "id", NULL, "a=1;", 0},
        {"id,a=1,b=2=3", "id", NULL, "a=1;b=2=3;", 0},
        {"id:v,a=,b=:x", "id", "v", "a=;b=:x;", 0},
        {"id,device=0", "id", NULL, "", 1},
        {"id,a=1,device=7,b=2", "id", NULL, "a=1;b=2;", 8},
        {"id,devices=3", "id", NULL, "devices=3;", 0},
        {"id,devic=3", "id", NULL, "devic=3;", 0},
        {".so", ".so", NULL, "", 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_backend_spec spec;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf settings = {0};
        if (sl_backend_spec_parse(&arena, rows[k].text, &spec, &err) != SEQLSTM_OK)
            fail_msg("%s: %s", rows[k].text, err.message);
        for (uint32_t s = 0; s < spec.setting_count; s++)
            sl_buf_printf(&settings, "%s=%s;", spec.settings[s].key, spec.settings[s].value);
        assert_string_equal(spec.text, rows[k].text);
        assert_string_equal(spec.name, rows[k].name);
        assert_string_equal(sl_buf_text(&settings), rows[k].settings);
        assert_int_equal(spec.device, rows[k].device);
        assert_int_equal(spec.variant != NULL, rows[k].variant != NULL);
        if (spec.variant)
            assert_string_equal(spec.variant, rows[k].variant);
        const struct sl_registry_entry entry = sl_backend_spec_get_entry(&spec);
        assert_true(entry.name == spec.name && entry.settings == spec.settings && entry.device == spec.device &&
                    entry.setting_count == spec.setting_count);
        sl_buf_deinit(&settings);
    }
}

static void test_what_is_refused(void **state)
{
    static const char *const rows[][2] = {
        {"", "`` names no backend; it is written `id`, `./file.so`, `id:variant` or `id,key=value`"},
        {":v", "`:v` names no backend"},
        {"id:", "`id:` names no backend"},
        {",a=1", "`,a=1` names no backend"},
        {"a.so", "`a.so` is not the id of a backend; a file is written `./a.so`"},
        {"a.so:v", "`a.so` is not the id of a backend"},
        {"id,a", "`a` is no option of a backend; options are written `id,key=value`, at most 32 of them"},
        {"id,=1", "`=1` is no option"},
        {"id,a=1,,b=2", "`` is no option"},
        {"id,device=", "`device=`: expected the number of a device, from 0 to "},
        {"id,device=-1", "`device=-1`: expected"},
        {"id,device=1x", "`device=1x`: expected"},
        {"id,device=100000", "`device=100000`: expected"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_backend_spec spec;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_backend_spec_parse(&arena, rows[k][0], &spec, &err), SEQLSTM_INVALID_ARGUMENT);
        if (strstr(err.message, rows[k][1]) != err.message)
            fail_msg("%s: %s", rows[k][0], err.message);
    }
}

static void test_as_many_options_as_may_be(void **state)
{
    (void)state;
    for (int count = SL_BACKEND_SETTINGS_MOST - 1; count <= SL_BACKEND_SETTINGS_MOST + 1; count++) {
        struct sl_backend_spec spec;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_buf text = {0};
        sl_buf_append_text(&text, "id");
        for (int k = 0; k < count; k++)
            sl_buf_printf(&text, ",k%d=%d", k, k);
        const seqlstm_status status = sl_backend_spec_parse(&arena, sl_buf_text(&text), &spec, &err);
        assert_int_equal(status, count <= SL_BACKEND_SETTINGS_MOST ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
        if (status == SEQLSTM_OK)
            assert_int_equal(spec.setting_count, count);
        sl_buf_deinit(&text);
    }
    char text[40];
    struct sl_backend_spec spec;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(text, sizeof text, "id,device=%d", SL_BACKEND_DEVICES_MOST - 1);
    ok(sl_backend_spec_parse(&arena, text, &spec, &err), &err);
    assert_int_equal(spec.device, SL_BACKEND_DEVICES_MOST);
    snprintf(text, sizeof text, "id,device=%d", SL_BACKEND_DEVICES_MOST);
    assert_int_equal(sl_backend_spec_parse(&arena, text, &spec, &err), SEQLSTM_INVALID_ARGUMENT);
}

static void test_which_are_the_same(void **state)
{
    static const char *const texts[] = {"a",     "a:v",   "b",          "a,k=1",        "a:w,k=1",
                                        "a,k=2", "a,l=1", "a,k=1,l=2",  "a,l=2,k=1",    "a,device=0",
                                        "/a",    "./a",   "a,device=1", "a:v,device=0", "a,k=1,l=3"};
    static const int kinds[] = {0, 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 8, 9, 7, 10};
    enum { COUNT = sizeof kinds / sizeof *kinds };
    struct sl_backend_spec specs[COUNT];
    (void)state;
    for (int k = 0; k < COUNT; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        ok(sl_backend_spec_parse(&arena, texts[k], &specs[k], &err), &err);
    }
    for (int a = 0; a < COUNT; a++)
        for (int b = 0; b < COUNT; b++)
            if (sl_backend_spec_is_same(&specs[a], &specs[b]) != (kinds[a] == kinds[b]))
                fail_msg("%s and %s", texts[a], texts[b]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_as_many_options_as_may_be),
        cmocka_unit_test(test_which_are_the_same),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
