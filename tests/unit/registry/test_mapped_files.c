/* SPDX-License-Identifier: Apache-2.0 */
/* Which shared objects a plugin has brought when it was opened, and what is told of those that are mapped. */
#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ok.h"
#include "registry/mapped_files.h"
#include "registry/objects.h"

static struct sl_backend_file own_files[] = {{"/made/up/one.so", "", ""}, {"/made/up/two.so", "", ""}};

/* A record of a plugin with one or both of these files. */
static struct sl_backend_record make_record(int first, uint32_t count)
{
    return (struct sl_backend_record){.file = own_files[first].path, .files = &own_files[first], .file_count = count};
}

static void expect_brought(const struct sl_backend_record *record, uint32_t own, const char *one, const char *other)
{
    int ones = 0, others = 0;
    assert_int_equal(record->file_count, own + (one != NULL) + (other != NULL));
    for (uint32_t k = own; k < record->file_count; k++) {
        ones += one && strcmp(record->files[k].soname, one) == 0;
        others += other && strcmp(record->files[k].soname, other) == 0;
    }
    assert_true(ones == (one != NULL) && others == (other != NULL));
}

/* What is mapped while a plugin is opened is its own from then on, once. */
static void libraries_belong_to_the_plugin_that_mapped_them(void **state)
{
    (void)state;
    static const char *const names[] = {"libanl.so.1", "libutil.so.1"}; /* no program needs them any more */
    struct sl_arena arena;
    struct sl_mapped_files outer, inner;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_backend_record one = make_record(0, 1), again = make_record(0, 2), other = make_record(1, 1),
                             builtin = {.file = NULL}, last = make_record(0, 1);
    for (int k = 0; k < 2; k++)
        if (dlopen(names[k], RTLD_NOW | RTLD_NOLOAD) != NULL) {
            print_message("%s is mapped already\n", names[k]);
            return;
        }
    sl_arena_init(&arena);
    sl_mapped_files_begin(&outer, &arena);
    sl_mapped_files_begin(&inner, &arena);
    if (dlopen(names[0], RTLD_NOW) == NULL || dlopen(names[1], RTLD_NOW) == NULL) {
        print_message("the C library has no %s\n", names[0]);
        sl_arena_deinit(&arena);
        return;
    }
    ok(sl_mapped_files_end(&inner, &one, &err), &err);
    expect_brought(&one, 1, names[0], names[1]);
    ok(sl_mapped_files_end(&outer, &again, &err), &err); /* it has noted them before */
    expect_brought(&again, 2, names[0], names[1]);
    sl_mapped_files_begin(&inner, &arena);
    ok(sl_mapped_files_end(&inner, &other, &err), &err); /* another plugin */
    expect_brought(&other, 1, NULL, NULL);
    ok(sl_mapped_files_end(&outer, &builtin, &err), &err);
    assert_int_equal(builtin.file_count, 0);
    ok(sl_mapped_files_end(&inner, &last, &err), &err); /* the first, opened again */
    expect_brought(&last, 1, names[0], names[1]);
    sl_arena_deinit(&arena);
}

/* In a file: the note of the linker, whatever other notes lie before it. "": there is none. */
static void find_build_id(const char *path, char out[41])
{
    static const char head[16] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
    static char bytes[8192];
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    assert_non_null(file);
    const size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t at = 0; at + 36 <= count && !out[0]; at++)
        for (int k = 0; k < 20 && memcmp(bytes + at, head, sizeof head) == 0; k++)
            snprintf(out + 2 * k, 3, "%02x", (unsigned char)bytes[at + 16 + (size_t)k]);
}

/* The path of each leads through no link, as that of libcmocka.so.0 does. */
static void mapped_files_have_their_own_paths_and_build_ids(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_backend_file *files;
    struct sl_arena arena;
    uint32_t count, libc = 0;
    sl_arena_init(&arena);
    ok(sl_objects_list(&arena, &files, &count, &err), &err);
    for (uint32_t k = 0; k < count; k++) {
        char expected[41], real[PATH_MAX];
        assert_non_null(realpath(files[k].path, real));
        assert_string_equal(files[k].path, real);
        find_build_id(files[k].path, expected);
        assert_string_equal(files[k].build_id, expected);
        libc += strcmp(files[k].soname, "libc.so.6") == 0;
    }
    assert_int_equal(libc, 1);
    sl_arena_deinit(&arena);
}

/* The library itself comes first. The dynamic linker is needed by the C library alone, or by two of them: it is there
 * once. */
static void what_a_library_needs_is_found_to_the_end(void **state)
{
    (void)state;
    static const char *const names[] = {"libutil.so.1", "libcmocka.so.0"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_backend_file *all, *files;
    struct sl_arena arena;
    uint32_t mapped, count;
    int found = 0;
    dlopen(names[0], RTLD_NOW);
    sl_arena_init(&arena);
    ok(sl_objects_list(&arena, &all, &mapped, &err), &err);
    for (uint32_t m = 0; m < mapped; m++) {
        int linkers = 0;
        if (strcmp(all[m].soname, names[0]) != 0 && strcmp(all[m].soname, names[1]) != 0)
            continue;
        ok(sl_objects_find(&arena, all[m].path, &files, &count, &err), &err);
        assert_true(count >= 3);
        assert_string_equal(files[0].path, all[m].path);
        for (uint32_t k = 0; k < count; k++) {
            linkers += strncmp(files[k].soname, "ld-linux", 8) == 0;
            for (uint32_t before = 0; before < k; before++)
                assert_string_not_equal(files[k].path, files[before].path);
        }
        assert_int_equal(linkers, 1);
        found++;
    }
    assert_true(found > 0);
    sl_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libraries_belong_to_the_plugin_that_mapped_them),
        cmocka_unit_test(mapped_files_have_their_own_paths_and_build_ids),
        cmocka_unit_test(what_a_library_needs_is_found_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
