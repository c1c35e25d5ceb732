/* SPDX-License-Identifier: Apache-2.0 */
/* Which files become records, in which order: with the same folder under several spellings, the same id in two folders,
 * the id of what is built in, files that are no plugins, entries by id and by file. The plugins are copies of the fake
 * devices of tests/gpu.
 */
#include "model_fixture.h"
#include "ok.h"
#include "scratch.h"

#include <sys/stat.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "registry/registry.h"
#include "registry/search.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};

/* A copy of one of the fake devices; NULL: a file that is no plugin. */
static void place(const char *fake, const char *to)
{
    char from[512], *bytes;
    size_t count;
    if (fake == NULL) {
        assert_int_equal(sl_file_write(scratch_path(to), "no plugin", 9, NULL), SEQLSTM_OK);
        return;
    }
    snprintf(from, sizeof from, "%s/tests/gpu/libseqlstm_backend_%s.so", getenv("SEQLSTM_BUILD"), fake);
    assert_int_equal(sl_file_read(from, 64 << 20, &bytes, &count, NULL), SEQLSTM_OK);
    assert_int_equal(sl_file_write(scratch_path(to), bytes, count, NULL), SEQLSTM_OK);
    free(bytes);
}

static int make_folders(void **state)
{
    assert_int_equal(scratch_make(state), 0);
    assert_int_equal(mkdir(scratch_path("one"), 0755), 0);
    assert_int_equal(mkdir(scratch_path("two"), 0755), 0);
    assert_int_equal(mkdir(scratch_path("none"), 0755), 0);
    assert_int_equal(mkdir(scratch_path("three"), 0755), 0);
    place("fake-a", "one/libseqlstm_backend_fake-a.so");
    place("fake-a", "two/libseqlstm_backend_fake-a.so");
    place("fake-b", "two/libseqlstm_backend_fake-b.so");
    place("fake-a", "three/libseqlstm_backend_fake-a.so");
    place("fake-b", "two/libseqlstm_backend_reference.so");
    place(NULL, "one/libseqlstm_backend_junk.so");
    place(NULL, "one/libseqlstm_collectives_other.so");
    place(NULL, "one/seqlstm_backend_odd.so");
    place(NULL, "one/notes.txt");
    return 0;
}

/* "fake-a ok one; junk refused one", in the order of the records. */
static void expect(const struct sl_registry_request *request, const char *expected)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry;
    struct sl_buf out = {0};
    ok(sl_registry_create(request, &registry, &err), &err);
    for (uint32_t k = 0; k < sl_registry_get_record_count(registry); k++) {
        const struct sl_backend_record *r = sl_registry_get_record(registry, k);
        const char *folder = r->file ? r->file + strlen(scratch_folder) + 1 : "built-in/";
        if (r->status == SL_BACKEND_NOT_FOUND)
            folder = "nowhere/";
        sl_buf_printf(&out, "%s%s %s %.*s", k ? "; " : "", r->id, sl_backend_status_name(r->status),
                      (int)strcspn(folder, "/"), folder);
    }
    assert_string_equal(sl_buf_text(&out), expected);
    sl_buf_deinit(&out);
    sl_registry_destroy(registry);
}

static struct sl_registry_request make_request(const char *const *folders, uint32_t count)
{
    return (struct sl_registry_request){.all_backends = true,
                                        .trust = true,
                                        .builtins = builtins,
                                        .builtin_count = 1,
                                        .folders = folders,
                                        .folder_count = count,
                                        .only_folders = true};
}

static void each_folder_counts_once(void **state)
{
    (void)state;
    static char spellings[5][128];
    static const char *const ends[] = {"one", "one/", "two///", "one//", "two"};
    const char *folders[5];
    for (int k = 0; k < 5; k++) {
        snprintf(spellings[k], sizeof spellings[k], "%s", scratch_path(ends[k]));
        folders[k] = spellings[k];
    }
    struct sl_registry_request request = make_request(folders, 1);
    expect(&request, "fake-a ok one; junk refused one");
    request.folder_count = 2;
    expect(&request, "fake-a ok one; junk refused one");
    for (request.folder_count = 3; request.folder_count <= 5; request.folder_count++)
        expect(&request, "fake-a ok one; junk refused one; fake-a shadowed two; fake-b ok two");
    request.folders = folders + 2; /* the other first */
    request.folder_count = 2;
    expect(&request, "fake-a ok two; fake-b ok two; fake-a shadowed one; junk refused one");
    request.all_builtins = true;
    request.folder_count = 1;
    expect(&request, "fake-a ok two; fake-b ok two; reference ok built-in");
}

/* Files that were named are not found a second time, even those that are no plugins; and only for an id were folders
 * searched. */
static void named_files_are_there_once(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static char one[128], junk[160], good[160];
    snprintf(one, sizeof one, "%s", scratch_path("one"));
    snprintf(junk, sizeof junk, "%s/libseqlstm_backend_junk.so", one);
    snprintf(good, sizeof good, "%s/libseqlstm_backend_fake-a.so", one);
    const char *folders[] = {scratch_path("none"), one};
    struct sl_registry_entry entries[] = {{.name = junk}, {.name = good}, {.name = "gone"}, {.name = "fake-a"}};
    struct sl_registry_request request = make_request(folders, 2);
    request.entries = entries;
    request.entry_count = 4;
    struct sl_registry *registry;
    ok(sl_registry_create(&request, &registry, &err), &err);
    assert_int_equal(sl_registry_get_record_count(registry), 4);
    static const uint32_t searched[] = {0, 0, 2, 2};
    for (uint32_t k = 0; k < 4; k++) {
        const struct sl_backend_record *r = sl_registry_get_record(registry, k);
        assert_int_equal(r->searched_count, searched[k]);
        assert_int_equal(r->entry, k);
    }
    sl_registry_destroy(registry);
}

/* In the order of their names, not in that of the folder. */
static void files_of_a_folder_are_sorted(void **state)
{
    (void)state;
    static const char letters[] = "hcpajomekbnidglf";
    static char many[128];
    struct sl_buf expected = {0};
    snprintf(many, sizeof many, "%s", scratch_path("many"));
    assert_int_equal(mkdir(many, 0755), 0);
    for (const char *c = letters; *c; c++) {
        char name[64];
        snprintf(name, sizeof name, "many/libseqlstm_backend_%c.so", *c);
        place(NULL, name);
        sl_buf_printf(&expected, "%s%c refused many", c > letters ? "; " : "", (char)('a' + (c - letters)));
    }
    const char *folders[] = {many};
    struct sl_registry_request request = make_request(folders, 1);
    expect(&request, sl_buf_text(&expected));
    sl_buf_deinit(&expected);
}

/* However many folders have it, and where some of the files are named. */
static void each_file_of_a_backend_is_there_once(void **state)
{
    (void)state;
    static char names[3][128], files[3][180];
    static const char *const ends[] = {"one", "two", "three"};
    const char *folders[3];
    for (int k = 0; k < 3; k++) {
        snprintf(names[k], sizeof names[k], "%s", scratch_path(ends[k]));
        snprintf(files[k], sizeof files[k], "%s/libseqlstm_backend_fake-a.so", names[k]);
        folders[k] = names[k];
    }
    struct sl_registry_request request = make_request(folders, 3);
    expect(&request, "fake-a ok one; junk refused one; fake-a shadowed two; fake-b ok two; fake-a shadowed three");
    struct sl_registry_entry entries[] = {{.name = files[1]}, {.name = files[2]}};
    request.entries = entries;
    request.entry_count = 1;
    expect(&request, "fake-a ok two; fake-a shadowed one; junk refused one; fake-b ok two; fake-a shadowed three");
    request.entry_count = 2;
    expect(&request, "fake-a ok two; fake-a shadowed three; fake-a shadowed one; junk refused one; fake-b ok two");
    entries[0].name = "fake-a"; /* finds all of them */
    request.entry_count = 1;
    expect(&request, "fake-a ok one; fake-a shadowed two; fake-a shadowed three; junk refused one; fake-b ok two");
}

static void entries_come_first(void **state)
{
    (void)state;
    static char one[128], two[128], file[128], renamed[128];
    snprintf(one, sizeof one, "%s", scratch_path("one"));
    snprintf(two, sizeof two, "%s", scratch_path("two"));
    snprintf(file, sizeof file, "%s/libseqlstm_backend_fake-a.so", two);
    snprintf(renamed, sizeof renamed, "%s/libseqlstm_backend_reference.so", two);
    const char *folders[] = {one, two};
    struct sl_registry_entry entries[] = {{.name = "fake-b"}, {.name = file}, {.name = "gone"}};
    struct sl_registry_request request = make_request(folders, 2);
    request.entries = entries;
    request.entry_count = 3;
    request.all_backends = false;
    expect(&request, "fake-b ok two; fake-a ok two; gone not_found nowhere");
    request.all_backends = true;
    expect(&request, "fake-b ok two; fake-a ok two; gone not_found nowhere; fake-a shadowed one; junk refused one");
    entries[1].name = "reference"; /* what is built in, not the file in a folder */
    request.entry_count = 2;
    request.all_backends = false;
    expect(&request, "fake-b ok two; reference ok built-in");
}

/* The reason of a record, as a whole. */
static void expect_reason(const struct sl_registry *registry, uint32_t record, enum sl_backend_status status,
                          const char *reason)
{
    const struct sl_backend_record *r = sl_registry_get_record(registry, record);
    assert_int_equal(r->status, status);
    assert_string_equal(r->reason, reason);
}

/* The file that was first, not the one that came too late; the folder, the id and the name that are near. */
static void reasons_name_the_other_file(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static char one[128], two[128], files[4][160], expected[400];
    snprintf(one, sizeof one, "%s", scratch_path("one"));
    snprintf(two, sizeof two, "%s", scratch_path("two"));
    snprintf(files[0], sizeof files[0], "%s/libseqlstm_backend_fake-a.so", two);
    snprintf(files[1], sizeof files[1], "%s/libseqlstm_backend_fake-a.so", one);
    snprintf(files[2], sizeof files[2], "%s/libseqlstm_backend_fake-b.so", two);
    snprintf(files[3], sizeof files[3], "%s/libseqlstm_backend_reference.so", two); /* says that it is fake-b */
    const char *folders[] = {one, two};
    struct sl_registry_entry entries[] = {{.name = files[0]},    {.name = files[2]}, {.name = files[1]},
                                          {.name = "reference"}, {.name = files[3]}, {.name = "reference"},
                                          {.name = "fake-c"},    {.name = "gone"}};
    struct sl_registry_request request = make_request(folders, 2);
    struct sl_registry *registry;
    request.entries = entries;
    request.entry_count = 8;
    request.all_backends = false;
    ok(sl_registry_create(&request, &registry, &err), &err);
    assert_int_equal(sl_registry_get_record_count(registry), 8);
    snprintf(expected, sizeof expected, "the backend fake-a is loaded already (%s)", files[0]);
    expect_reason(registry, 2, SL_BACKEND_SHADOWED, expected);
    snprintf(expected, sizeof expected, "the backend fake-b is loaded already (%s)", files[2]);
    expect_reason(registry, 4, SL_BACKEND_SHADOWED, expected);
    expect_reason(registry, 5, SL_BACKEND_SHADOWED, "the backend reference is loaded already (built in)");
    const struct sl_backend_record *near = sl_registry_get_record(registry, 6);
    assert_int_equal(near->status, SL_BACKEND_NOT_FOUND);
    assert_non_null(strstr(near->reason, "there is no file libseqlstm_backend_fake-c.so in any of the 2 folders of the "
                                         "backend path; did you mean `fake-"));
    expect_reason(registry, 7, SL_BACKEND_NOT_FOUND,
                  "there is no file libseqlstm_backend_gone.so in any of the 2 folders of the backend path");
    assert_int_equal(sl_registry_fail_unloaded(registry, "gone", &err), SEQLSTM_UNAVAILABLE);
    assert_string_equal(err.message, "the backend `gone` is not loaded: there is no file libseqlstm_backend_gone.so in "
                                     "any of the 2 folders of the backend path; there is `fake-a`, `fake-b`, "
                                     "`reference`; `seqlstm backends -v` shows where backends were looked for");
    sl_registry_destroy(registry);

    /* in folders: one that was found first, and one that is named after another backend */
    const char *both[] = {two, one};
    request = make_request(both, 2);
    request.builtins = NULL;
    request.builtin_count = 0;
    ok(sl_registry_create(&request, &registry, &err), &err);
    snprintf(expected, sizeof expected, "%s was found first", files[0]);
    for (uint32_t k = 0, seen = 0; k <= sl_registry_get_record_count(registry); k++) {
        if (k == sl_registry_get_record_count(registry)) {
            assert_int_equal(seen, 2);
            break;
        }
        const struct sl_backend_record *r = sl_registry_get_record(registry, k);
        if (r->status == SL_BACKEND_SHADOWED)
            assert_string_equal(r->reason, expected);
        else if (strcmp(r->file, files[3]) == 0)
            assert_string_equal(r->reason, "the file is named after backend reference but says that it is fake-b");
        seen += r->status == SL_BACKEND_SHADOWED || strcmp(r->file, files[3]) == 0;
    }
    sl_registry_destroy(registry);
}

/* The first that is required and not there, with its own reason. */
static void built_in_backends_are_proposed(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const char *folders[] = {"/nowhere"};
    struct sl_registry_entry entries[] = {{.name = "referense"}};
    struct sl_registry_request request = make_request(folders, 1);
    struct sl_registry *registry;
    request.entries = entries;
    request.entry_count = 1;
    request.all_backends = false;
    ok(sl_registry_create(&request, &registry, &err), &err);
    assert_non_null(strstr(sl_registry_get_record(registry, 0)->reason, "; did you mean `reference`"));
    sl_registry_destroy(registry);
}

static void what_is_required_is_recorded(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static char one[128], junk[160];
    snprintf(one, sizeof one, "%s", scratch_path("one"));
    snprintf(junk, sizeof junk, "%s/libseqlstm_backend_junk.so", one);
    const char *folders[] = {one};
    struct sl_registry_entry entries[] = {
        {.name = "gone"}, {.name = "fake-a", .require = true}, {.name = junk}, {.name = "lost"}};
    struct sl_registry_request request = make_request(folders, 1);
    struct sl_registry *registry;
    request.entries = entries;
    request.entry_count = 4;
    request.all_backends = false;
    ok(sl_registry_create(&request, &registry, &err), &err);
    assert_true(sl_registry_get_record(registry, 1)->required);
    assert_false(sl_registry_get_record(registry, 2)->required || sl_registry_get_record(registry, 3)->required);
    sl_registry_destroy(registry);
    entries[3].require = true;
    ok(sl_registry_create(&request, &registry, &err), &err);
    assert_true(sl_registry_get_record(registry, 3)->required);
    assert_int_equal(sl_registry_get_record(registry, 3)->status, SL_BACKEND_NOT_FOUND);
    assert_string_equal(sl_registry_get_record(registry, 3)->reason,
                        "there is no file libseqlstm_backend_lost.so in any of the 1 folders of the backend path");
    sl_registry_destroy(registry);
    entries[2].require = true;
    ok(sl_registry_create(&request, &registry, &err), &err);
    assert_true(sl_registry_get_record(registry, 2)->required);
    assert_int_equal(sl_registry_get_record(registry, 2)->status, SL_BACKEND_REFUSED);
    assert_string_equal(sl_registry_get_record(registry, 2)->file, junk);
    sl_registry_destroy(registry);
}

static void folders_of_the_environment(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_search search;
    struct sl_arena arena;
    const char *asked[] = {"/asked/", "/last"};
    setenv("SEQLSTM_BACKEND_PATH", "/x:/y/:/x/::/asked", 1);
    setenv("XDG_DATA_HOME", "/data", 1);
    sl_arena_init(&arena);
    ok(sl_search_init(&search, &arena, asked, 2, false, &err), &err);
    static const char *const expected[] = {"/asked", "/last", "/x", "/y", "/data/seqlstm/backends"};
    assert_true(search.folder_count >= 5);
    for (uint32_t k = 0; k < search.folder_count; k++) {
        if (k < 5)
            assert_string_equal(search.folders[k], expected[k]);
        for (uint32_t i = 0; i < k; i++)
            assert_string_not_equal(search.folders[k], search.folders[i]);
    }
    setenv("XDG_DATA_HOME", "data", 1); /* a relative folder does not count */
    setenv("HOME", "/home/someone", 1);
    setenv("SEQLSTM_BACKEND_PATH", "/x", 1);
    ok(sl_search_init(&search, &arena, NULL, 0, false, &err), &err);
    assert_string_equal(search.folders[0], "/x");
    assert_string_equal(search.folders[1], "/home/someone/.local/share/seqlstm/backends");
    setenv("SEQLSTM_BACKEND_PATH", "/x:y", 1);
    assert_int_equal(sl_search_init(&search, &arena, NULL, 0, false, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "`y`"));
    ok(sl_search_init(&search, &arena, asked, 1, true, &err), &err); /* the environment does not count */
    assert_int_equal(search.folder_count, 1);
    const char *relative = "here";
    assert_int_equal(sl_search_init(&search, &arena, &relative, 1, true, &err), SEQLSTM_INVALID_ARGUMENT);
    sl_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_folder_counts_once),        cmocka_unit_test(entries_come_first),
        cmocka_unit_test(reasons_name_the_other_file),    cmocka_unit_test(what_is_required_is_recorded),
        cmocka_unit_test(built_in_backends_are_proposed), cmocka_unit_test(folders_of_the_environment),
        cmocka_unit_test(named_files_are_there_once),     cmocka_unit_test(each_file_of_a_backend_is_there_once),
        cmocka_unit_test(files_of_a_folder_are_sorted),
    };
    return cmocka_run_group_tests(tests, make_folders, scratch_remove);
}
