/* SPDX-License-Identifier: Apache-2.0 */
/* No memory, at each allocation in turn, while plugins are searched, mapped, checked and opened: that is said, or it
 * does no harm, and nothing is left behind. */
#define OOM_ARENAS

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "descriptors.h"
#include "fake_collectives.h"
#include "oom.h"
#include "registry_fixture.h"
#include "scratch.h"

enum { TRIES_MOST = 5000 };

/* Of the system, or of an arena. */
static void fail_at(bool arena, int n)
{
    if (arena)
        arena_fail_at(n);
    else
        oom_fail_at(n);
}

static bool disarm(bool arena)
{
    return arena ? arena_disarm() : oom_disarm();
}

static void expect_no_memory(seqlstm_status status, const struct seqlstm_error *err, int n)
{
    if (status != SEQLSTM_NO_MEMORY || !strstr(err->message, "out of memory"))
        fail_msg("allocation %d fails: status %d, %s", n, (int)status, err->message);
}

static const char *say(const char *text)
{
    return text ? text : "-";
}

/* All that records say. */
static char *describe(const struct sl_registry *registry)
{
    struct sl_buf said = {0};
    for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, r);
        sl_buf_printf(&said, "%s %s %s %d %d %d %s %s %s %s %u devices %u options\n", say(record->id),
                      say(record->file), say(record->origin), record->entry, (int)record->status, record->wrong_setting,
                      say(record->reason), say(record->version), say(record->warning), say(record->dlerror),
                      record->device_count, record->option_count);
        for (uint32_t f = 0; f < record->file_count; f++)
            sl_buf_printf(&said, "  %s %s %s\n", say(record->files[f].path), say(record->files[f].soname),
                          say(record->files[f].build_id));
        for (uint32_t f = 0; f < record->searched_count; f++)
            sl_buf_printf(&said, "  searched %s\n", say(record->searched[f]));
    }
    return sl_buf_take(&said, NULL);
}

/* By its path, by its name on the backend path, among all, and twice; and names that are near to others. */
static void open_plugins(bool arena)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    static const struct seqlstm_setting settings[] = {{"threads", "1"}};
    char path[600];
    const char *folders[] = {scratch_folder, "/no/such/folder", scratch_path("more")};
    snprintf(path, sizeof path, "%s/libseqlstm_backend_fake-a.so", scratch_folder);
    const struct sl_registry_entry entries[] = {{.name = path, .origin = "m.yaml:2:3"},
                                                {.name = "fake-b", .require = true},
                                                {.name = "fake-b"},
                                                {.name = "referense"},
                                                {.name = "reference", .settings = settings, .setting_count = 1}};
    const struct sl_registry_request request = {.entries = entries,
                                                .entry_count = 5,
                                                .builtins = builtins,
                                                .builtin_count = 1,
                                                .folders = folders,
                                                .folder_count = 3,
                                                .only_folders = true,
                                                .all_backends = true,
                                                .all_builtins = true,
                                                .trust = true};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry = NULL;
    ok(sl_registry_create(&request, &registry, &err), &err); /* what is mapped once stays so */
    char *expected = describe(registry);
    assert_null(dlsym(RTLD_DEFAULT, "seqlstm_backend_query_v0")); /* names of plugins do not meet */
    assert_int_equal(sl_registry_get_backend_count(registry), 3);
    sl_registry_destroy(registry);
    const int open = descriptors_count();
    int n = 1, failures = 0;
    for (bool failed = true; failed; n++) {
        assert_true(n < TRIES_MOST);
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        registry = NULL;
        fail_at(arena, n);
        const seqlstm_status status = sl_registry_create(&request, &registry, &err);
        failed = disarm(arena);
        if (status != SEQLSTM_OK) {
            expect_no_memory(status, &err, n);
            assert_null(registry);
            failures++;
        } else {
            char *said = describe(registry);
            assert_string_equal(said, expected);
            free(said);
            sl_registry_destroy(registry);
        }
        assert_int_equal(descriptors_count(), open);
    }
    assert_true(failures > 10);
    free(expected);
}

/* Built in, and from a file that is not there. A connection that was opened is closed again. */
static void open_connections(bool arena)
{
    fake_reset();
    int n = 1, failures = 0;
    const int open = descriptors_count();
    for (bool failed = true; failed; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_connection *connection = NULL;
        assert_true(n < TRIES_MOST);
        fake.closed = 0;
        fail_at(arena, n);
        const seqlstm_status status = fake_connect(1, 3, &connection, &err);
        failed = disarm(arena);
        if (status != SEQLSTM_OK) {
            expect_no_memory(status, &err, n);
            assert_null(connection);
            failures++;
        } else {
            sl_connection_close(connection);
            assert_int_equal(fake.closed, 1);
        }
        assert_int_equal(fake.groups, 0);
        assert_int_equal(descriptors_count(), open);
    }
    assert_true(failures > 1);
}

static void open_nothing(bool arena)
{
    const char *const folders[] = {"/no/such/folder", scratch_folder};
    struct sl_connection_request request = {
        .folders = folders, .folder_count = 2, .ranks = 2, .job = "a-job", .timeout_ns = 1000};
    static const char *const names[] = {"nothing", "/no/such/file.so", "other"};
    static const char *const reasons[] = {
        "the collectives nothing cannot be used: there is no file libseqlstm_collectives_nothing.so in any of the ",
        "the collectives /no/such/file.so cannot be used: /no/such/file.so: No such file or directory",
        "the collectives other cannot be used: the file is named after other but says that it is comm-shm"};
    static const seqlstm_status expected[] = {SEQLSTM_NOT_FOUND, SEQLSTM_NOT_FOUND, SEQLSTM_UNAVAILABLE};
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error whole = SEQLSTM_ERROR_INIT;
        struct sl_connection *none = NULL;
        int n = 1;
        request.name = names[k];
        assert_int_equal(sl_connection_open(&request, &none, &whole), expected[k]);
        assert_non_null(strstr(whole.message, reasons[k]));
        for (bool failed = true; failed; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_connection *connection = NULL;
            assert_true(n < TRIES_MOST);
            fail_at(arena, n);
            const seqlstm_status status = sl_connection_open(&request, &connection, &err);
            failed = disarm(arena);
            if (status != expected[k])
                expect_no_memory(status, &err, n);
            else
                assert_string_equal(err.message, whole.message); /* with the number of folders */
            assert_null(connection);
        }
        assert_true(n > 2);
    }
}

/* A folder with no other plugins. */
static int link_plugins(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    for (const char *id = "ab"; *id; id++) {
        char from[600], to[600];
        snprintf(from, sizeof from, "%s/tests/gpu/libseqlstm_backend_fake-%c.so", getenv("SEQLSTM_BUILD"), *id);
        snprintf(to, sizeof to, "%s/libseqlstm_backend_fake-%c.so", scratch_folder, *id);
        if (symlink(from, to) != 0)
            return -1;
    }
    char shm[600], a[600];
    snprintf(shm, sizeof shm, "%s/plugins/libseqlstm_collectives_comm-shm.so", getenv("SEQLSTM_BUILD"));
    snprintf(a, sizeof a, "%s/tests/gpu/libseqlstm_backend_fake-a.so", getenv("SEQLSTM_BUILD"));
    return mkdir(scratch_path("more"), 0700) != 0 ||
           symlink(a, scratch_path("more/libseqlstm_backend_fake-a.so")) != 0 ||
           symlink(shm, scratch_path("libseqlstm_collectives_other.so")) != 0;
}

static void plugins_are_opened_or_memory_is_missing(void **state)
{
    (void)state;
    open_plugins(false);
    open_plugins(true);
}

static void connections_are_opened_or_memory_is_missing(void **state)
{
    (void)state;
    open_connections(false);
    open_connections(true);
}

static void a_file_that_is_not_there_is_told_or_memory_is_missing(void **state)
{
    (void)state;
    open_nothing(false);
    open_nothing(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plugins_are_opened_or_memory_is_missing),
        cmocka_unit_test(connections_are_opened_or_memory_is_missing),
        cmocka_unit_test(a_file_that_is_not_there_is_told_or_memory_is_missing),
    };
    return cmocka_run_group_tests(tests, link_plugins, scratch_remove);
}
