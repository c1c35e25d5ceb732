/* SPDX-License-Identifier: Apache-2.0 */
/* Private modules: where they are looked for, and which files are not loaded. The module is a copy of a fake device of
 * tests/gpu. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/system/module.h"
#include "base/system/owner.h"
#include "scratch.h"

static const char symbol[] = "seqlstm_backend_query_v0";

static void expect(const char *name, seqlstm_status status, const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const void *table = NULL;
    assert_int_equal(sl_module_open(name, symbol, &table, &err), status);
    assert_int_equal(table != NULL, status == SEQLSTM_OK);
    if (status != SEQLSTM_OK && !strstr(err.message, message))
        fail_msg("'%s' does not say '%s'", err.message, message);
}

static int make_modules(void **state)
{
    char from[512], *bytes;
    size_t count;
    assert_int_equal(scratch_make(state), 0);
    snprintf(from, sizeof from, "%s/tests/gpu/libseqlstm_backend_fake-a.so", getenv("SEQLSTM_BUILD"));
    if (sl_file_read(from, 64 << 20, &bytes, &count, NULL) != SEQLSTM_OK)
        return -1;
    assert_int_equal(sl_file_write(scratch_path("libseqlstm_good.so"), bytes, count, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_write(scratch_path("libseqlstm_open.so"), bytes, count, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_write(scratch_path("libseqlstm_text.so"), "no module", 9, NULL), SEQLSTM_OK);
    assert_int_equal(mkdir(scratch_path("libseqlstm_folder.so"), 0755), 0);
    assert_int_equal(symlink("gone", scratch_path("libseqlstm_gone.so")), 0);
    assert_int_equal(symlink("libseqlstm_good.so", scratch_path("libseqlstm_link.so")), 0);
    assert_int_equal(chmod(scratch_path("libseqlstm_open.so"), 0666), 0);
    free(bytes);
    return 0;
}

static void the_folder_of_the_environment_is_the_only_one(void **state)
{
    (void)state;
    const void *table;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(setenv("SEQLSTM_MODULE_PATH", scratch_folder, 1), 0);
    expect("good", SEQLSTM_OK, NULL);
    expect("link", SEQLSTM_OK, NULL);
    expect("none", SEQLSTM_UNAVAILABLE, "there is no module libseqlstm_none.so (the last place searched: /");
    expect("http", SEQLSTM_UNAVAILABLE, "there is no module libseqlstm_http.so");
    expect("gone", SEQLSTM_UNAVAILABLE, "there is no module libseqlstm_gone.so");
    expect("text", SEQLSTM_UNAVAILABLE, "libseqlstm_text.so cannot be mapped: ");
    expect("folder", SEQLSTM_UNAVAILABLE, "libseqlstm_folder.so is not a file");
    expect("open", SEQLSTM_UNAVAILABLE, "is not safe to load: any user may write to");
    assert_int_equal(sl_module_open("good", "no_such_symbol", &table, &err), SEQLSTM_UNAVAILABLE);
    assert_non_null(strstr(err.message, "libseqlstm_good.so does not export no_such_symbol"));
}

/* Not in the current folder, which any user may have filled. */
static void a_relative_folder_is_not_followed(void **state)
{
    (void)state;
    char before[512];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(scratch_folder), 0);
    static const char *const relative[] = {".", "./", "../.", "modules"};
    for (size_t k = 0; k < sizeof relative / sizeof *relative; k++) {
        assert_int_equal(setenv("SEQLSTM_MODULE_PATH", relative[k], 1), 0);
        expect("good", SEQLSTM_UNAVAILABLE, "there is no module libseqlstm_good.so (the last place searched: none)");
    }
    assert_int_equal(chdir(before), 0);
    for (int empty = 0; empty < 2; empty++) { /* an empty variable says nothing, as one that is not there */
        assert_int_equal(empty ? setenv("SEQLSTM_MODULE_PATH", "", 1) : unsetenv("SEQLSTM_MODULE_PATH"), 0);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const void *table;
        assert_int_equal(sl_module_open("good", symbol, &table, &err), SEQLSTM_UNAVAILABLE);
        assert_non_null(strstr(err.message, "there is no module libseqlstm_good.so (the last place searched: /"));
        assert_non_null(strstr(err.message, "/seqlstm/modules/libseqlstm_good.so)"));
        assert_null(strstr(err.message, "/tests/unit/")); /* beside the program, which comes before */
    }
    assert_int_equal(unsetenv("SEQLSTM_MODULE_PATH"), 0);
}

/* A folder that all may write is no harm above the file's own, if only owners remove what is in it: /tmp. */
static void who_can_have_written_a_file(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char inner[256], file[256];
    snprintf(inner, sizeof inner, "%s", scratch_path("inner"));
    snprintf(file, sizeof file, "%s/file", inner);
    assert_int_equal(mkdir(inner, 0755), 0);
    assert_int_equal(sl_owner_check(file, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "cannot be examined"));
    assert_int_equal(sl_file_write(file, "", 0, NULL), SEQLSTM_OK);
    static const struct {
        mode_t file, folder, above;
        bool safe;
    } cases[] = {{0644, 0755, 0755, true},  {0664, 0775, 0775, true},   {0646, 0755, 0755, false},
                 {0644, 0757, 0755, false}, {0644, 01777, 0755, false}, {0644, 0755, 0757, false},
                 {0644, 0755, 01777, true}, {0600, 0700, 0700, true},   {01646, 0755, 01777, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_true(chmod(file, cases[k].file) == 0 && chmod(inner, cases[k].folder) == 0 &&
                    chmod(scratch_folder, cases[k].above) == 0);
        assert_int_equal(sl_owner_check(file, &err), cases[k].safe ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
    }
    assert_int_equal(chmod(scratch_folder, 0700), 0);
    char path[PATH_MAX + 1]; /* the root folder, in so many bytes */
    for (size_t bytes = PATH_MAX - 2; bytes <= PATH_MAX; bytes++) {
        for (size_t k = 0; k < bytes; k++)
            path[k] = k % 2 ? '.' : '/';
        path[bytes] = '\0';
        assert_int_equal(sl_owner_check(path, &err), bytes < PATH_MAX ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
    }
    assert_string_equal(err.message, "has a path of more than 4095 bytes");
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(file, 12345, 12345), 0);
    assert_int_equal(sl_owner_check(file, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "belongs to user 12345, neither root nor you"));
    /* to that user it is its own, and what is root's is safe, too */
    static const uid_t owners[] = {12345, 0, 23456};
    assert_true(chmod(scratch_folder, 0755) == 0 && chmod(file, 0644) == 0);
    for (size_t k = 0; k < sizeof owners / sizeof *owners; k++) {
        assert_int_equal(chown(file, owners[k], owners[k]), 0);
        assert_int_equal(seteuid(12345), 0);
        const bool reached = sl_file_exists(file); /* TMPDIR may be root's alone */
        const seqlstm_status status = sl_owner_check(file, &err);
        assert_int_equal(seteuid(0), 0);
        assert_true(!reached || status == (owners[k] < 23456 ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_of_the_environment_is_the_only_one),
        cmocka_unit_test(a_relative_folder_is_not_followed),
        cmocka_unit_test(who_can_have_written_a_file),
    };
    return cmocka_run_group_tests(tests, make_modules, scratch_remove);
}
