/* SPDX-License-Identifier: Apache-2.0 */
/* The registry with what is linked into the program: order, records, services, and memory running out at
 * every point. Files are the business of tests/abi/test_loader.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "registry/host.h"
#include "registry/registry.h"
#include "registry/search.h"
#include "oom.h"
#include "temporary.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};

static void the_reference_runs_only_where_it_is_listed(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry;
    struct sl_registry_request request = {
        .builtins = builtins, .builtin_count = 1, .all_backends = true, .only_folders = true};
    assert_int_equal(sl_registry_create(&request, &registry, &err), SEQLSTM_OK);
    assert_int_equal(sl_registry_get_record_count(registry), 0);
    assert_null(sl_registry_find_backend(registry, "reference"));
    sl_registry_destroy(registry);

    request.all_builtins = true;
    assert_int_equal(sl_registry_create(&request, &registry, &err), SEQLSTM_OK);
    assert_int_equal(sl_registry_get_backend_count(registry), 1);
    sl_registry_destroy(registry);

    struct sl_registry_entry entries[] = {{.name = "reference", .origin = "m.yaml:2:5"}, {.name = "reference"}};
    request = (struct sl_registry_request){
        .builtins = builtins, .builtin_count = 1, .entries = entries, .entry_count = 2, .only_folders = true};
    assert_int_equal(sl_registry_create(&request, &registry, &err), SEQLSTM_OK);
    const struct sl_backend_record *first = sl_registry_get_record(registry, 0);
    assert_int_equal(first->status, SL_BACKEND_OK);
    assert_null(first->file);
    assert_string_equal(first->origin, "m.yaml:2:5");
    assert_int_equal(sl_registry_get_record(registry, 1)->status, SL_BACKEND_SHADOWED);
    assert_int_equal(sl_registry_get_backend_count(registry), 1);
    struct sl_backend *backend = sl_registry_get_backend(registry, 0);
    assert_ptr_equal(sl_backend_get_record(backend), first);
    assert_int_equal(sl_backend_get_device_count(backend), 1);
    assert_string_equal(sl_backend_get_device(backend, 0)->domain, "host");
    sl_registry_destroy(registry);
    sl_registry_destroy(NULL);
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    struct sl_registry_entry entries[] = {{.name = "reference", .origin = "m.yaml:2:5", .require = true},
                                          {.name = "nowhere"},
                                          {.name = "reference"},
                                          {.name = "/no/such/file.so"}};
    const char *folders[] = {"/no/such/folder", "/usr/lib"};
    struct sl_registry_request request = {.builtins = builtins,
                                          .builtin_count = 1,
                                          .entries = entries,
                                          .entry_count = 4,
                                          .all_backends = true,
                                          .all_builtins = true,
                                          .folders = folders,
                                          .folder_count = 2,
                                          .only_folders = true};
    int n = 1;
    for (;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_registry *registry = NULL;
        oom_fail_at(n);
        seqlstm_status rc = sl_registry_create(&request, &registry, &err);
        bool failed = oom_disarm();
        if (!failed) {
            assert_int_equal(rc, SEQLSTM_OK);
            assert_int_equal(sl_registry_get_record_count(registry), 4);
            sl_registry_destroy(registry);
            break;
        }
        if (rc == SEQLSTM_OK) { /* opendir's own buffer: a folder that cannot be listed holds nothing */
            sl_registry_destroy(registry);
            continue;
        }
        assert_int_equal(rc, SEQLSTM_NO_MEMORY);
        assert_null(registry);
        assert_true(err.message[0] != 0);
    }
    assert_true(n > 3);
}

struct seen {
    char last[256];
    enum sl_log_level level;
};

static void keep(void *context, enum sl_log_level level, const char *message)
{
    struct seen *seen = context;
    snprintf(seen->last, sizeof seen->last, "%s", message);
    seen->level = level;
}

static void messages_carry_the_backends_name_and_level(void **state)
{
    (void)state;
    struct seen seen = {.last = ""};
    struct sl_log log = {.write = keep, .context = &seen, .level = SL_LOG_DEBUG};
    struct sl_host host;
    sl_host_init(&host, "mine", &log, NULL);
    static const struct {
        int32_t level;
        enum sl_log_level expected;
    } levels[] = {{SEQLSTM_LOG_ERROR, SL_LOG_ERROR},
                  {SEQLSTM_LOG_WARNING, SL_LOG_WARN},
                  {SEQLSTM_LOG_INFO, SL_LOG_INFO},
                  {SEQLSTM_LOG_DEBUG, SL_LOG_DEBUG},
                  {-5, SL_LOG_ERROR}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        host.services.log(host.services.context, levels[i].level, "tile is 64");
        assert_int_equal(seen.level, levels[i].expected);
        assert_string_equal(seen.last, "mine: tile is 64");
    }
    seen.last[0] = 0;
    host.services.log(host.services.context, SEQLSTM_LOG_TRACE, "too much");
    host.services.log(host.services.context, 1000, "far too much");
    assert_string_equal(seen.last, "");
    host.services.log(host.services.context, SEQLSTM_LOG_INFO, NULL);
    assert_string_equal(seen.last, "mine: (no message)");
}

/* Every backend that is opened is told, with where it comes from. */
static void backends_that_open_are_logged(void **state)
{
    (void)state;
    struct seen seen = {.last = ""};
    const struct sl_log log = {.write = keep, .context = &seen, .level = SL_LOG_DEBUG};
    const struct sl_registry_request request = {
        .builtins = builtins, .builtin_count = 1, .all_builtins = true, .only_folders = true, .log = &log};
    struct sl_registry *registry;
    assert_int_equal(sl_registry_create(&request, &registry, NULL), SEQLSTM_OK);
    assert_string_equal(seen.last, "backend reference 0.1.0 (built in)");
    assert_int_equal(seen.level, SL_LOG_DEBUG);
    sl_registry_destroy(registry);
}

/* Many plugins in two folders: all are found, in the order of folders and then of names. */
static void many_files_are_found_in_order(void **state)
{
    (void)state;
    enum { EACH = 41 };
    char folders[2][TEMPORARY_BYTES], path[TEMPORARY_BYTES + 32];
    const char *names[2], **files;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena;
    struct sl_search search;
    uint32_t count;
    sl_arena_init(&arena);
    for (int f = 0; f < 2; f++) {
        names[f] = mkdtemp(temporary_template(folders[f], "search"));
        assert_non_null(names[f]);
        for (int k = EACH; k-- > 0;) {
            snprintf(path, sizeof path, "%s/libseqlstm_backend_x%02d.so", names[f], k);
            fclose(fopen(path, "w"));
        }
    }
    assert_int_equal(sl_search_init(&search, &arena, names, 2, true, &err), SEQLSTM_OK);
    assert_int_equal(search.folder_count, 2);
    assert_int_equal(sl_search_find(&search, &arena, &sl_backend_kind, NULL, &files, &count, &err), SEQLSTM_OK);
    assert_int_equal(count, 2 * EACH);
    for (int k = 0; k < 2 * EACH; k++) {
        snprintf(path, sizeof path, "%s/libseqlstm_backend_x%02d.so", names[k / EACH], k % EACH);
        assert_string_equal(files[k], path);
    }
    assert_int_equal(sl_search_find(&search, &arena, &sl_backend_kind, "x07", &files, &count, &err), SEQLSTM_OK);
    assert_int_equal(count, 2);
    assert_string_equal(sl_search_copy_id(&arena, &sl_backend_kind, files[1]), "x07");
    for (int k = 0; k < 2 * EACH; k++) {
        snprintf(path, sizeof path, "%s/libseqlstm_backend_x%02d.so", names[k / EACH], k % EACH);
        unlink(path);
    }
    for (int f = 0; f < 2; f++)
        assert_int_equal(rmdir(names[f]), 0);
    sl_arena_deinit(&arena);
}

static void the_user_can_cancel(void **state)
{
    (void)state;
    struct sl_interrupt interrupt = {0};
    struct sl_host host;
    sl_host_init(&host, "mine", NULL, &interrupt);
    assert_int_equal(host.services.cancelled(host.services.context), 0);
    atomic_store(&interrupt.stop, 2);
    assert_int_equal(host.services.cancelled(host.services.context), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_runs_only_where_it_is_listed),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(messages_carry_the_backends_name_and_level),
        cmocka_unit_test(backends_that_open_are_logged),
        cmocka_unit_test(many_files_are_found_in_order),
        cmocka_unit_test(the_user_can_cancel),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
