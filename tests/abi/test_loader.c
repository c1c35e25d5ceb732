/* SPDX-License-Identifier: Apache-2.0 */
/* The registry against plugins that break one rule each (hostile.c): none of them may harm the process, and each
 * is refused with a reason that names what it did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/operation/op_signature.h"
#include "registry/watch/guard.h"
#include "registry/registry.h"
#include "../unit/support/temporary.h"

enum { PATH_BYTES = 512 };
static char hostile_folder[400]; /* where the plugins are built */
static char scratch[256];        /* a folder of our own, mode 700 */

struct expected {
    const char *name; /* file and id are h-NAME */
    enum sl_backend_status status;
    const char *reason; /* part of it */
};

static const struct expected expectations[] = {
    {"good", SL_BACKEND_OK, NULL},
    {"magic", SL_BACKEND_REFUSED, "magic number 0xdeadbeef"},
    {"size", SL_BACKEND_REFUSED, "claims a size of 40 bytes"},
    {"short-table", SL_BACKEND_OK, NULL},
    {"long-table", SL_BACKEND_OK, NULL},
    {"endless-table", SL_BACKEND_REFUSED, "claims a size of 4294967280 bytes"},
    {"minor", SL_BACKEND_REFUSED, "built for ABI 0."},
    {"major", SL_BACKEND_REFUSED, "built for ABI 9."},
    {"bad-id", SL_BACKEND_REFUSED, "id is missing or not of the form"},
    {"no-vendor", SL_BACKEND_REFUSED, "vendor"},
    {"null-slot", SL_BACKEND_REFUSED, "'forward'"},
    {"null-table", SL_BACKEND_REFUSED, "returned NULL"},
    {"moving-table", SL_BACKEND_REFUSED, "another table"},
    {"no-desc-bytes", SL_BACKEND_REFUSED, "desc_bytes"},
    {"desc-bytes", SL_BACKEND_REFUSED, "desc_bytes"},
    {"missing-symbol", SL_BACKEND_REFUSED, "does not export seqlstm_backend_query_v0"},
    {"second-symbol", SL_BACKEND_REFUSED, "seqlstm_extra_symbol"},
    {"unresolved", SL_BACKEND_REFUSED, "seqlstm_no_such_function"},
    {"open-fails", SL_BACKEND_REFUSED, "flux capacitor"},
    {"open-without-reason", SL_BACKEND_REFUSED, "gave no reason"},
    {"open-without-instance", SL_BACKEND_REFUSED, "no instance"},
    {"open-unavailable", SL_BACKEND_UNAVAILABLE, "libflux.so.1 is not installed"},
    {"no-device", SL_BACKEND_UNAVAILABLE, "no device"},
    {"many-devices", SL_BACKEND_REFUSED, "4294967295 devices"},
    {"device-text", SL_BACKEND_REFUSED, "name, class or domain"},
    {"chdir-in-open", SL_BACKEND_REFUSED, "current folder"},
    {"signal-at-load", SL_BACKEND_REFUSED, "handler for signal"},
    {"locale-at-load", SL_BACKEND_REFUSED, "locale"},
#if defined(__x86_64__)
    {"ftz-at-load", SL_BACKEND_REFUSED, "floating-point mode"},
    {"ftz-in-query", SL_BACKEND_REFUSED, "floating-point mode"},
    {"daz-in-open", SL_BACKEND_REFUSED, "floating-point mode"},
#endif
};

/* ---- helpers ---------------------------------------------------------------------------------- */

static struct sl_registry *create(const struct sl_registry_entry *entries, uint32_t count, const char *const *folders,
                                  uint32_t folder_count)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry = NULL;
    struct sl_registry_request request = {
        .entries = entries,
        .entry_count = count,
        .folders = folders,
        .folder_count = folder_count,
        .only_folders = true,
    };
    if (sl_registry_create(&request, &registry, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return registry;
}

static struct sl_registry *create_one(const char *name)
{
    const char *folders[] = {hostile_folder};
    struct sl_registry_entry entry = {.name = name};
    return create(&entry, 1, folders, 1);
}

static const struct sl_backend_record *only_record(const struct sl_registry *registry)
{
    assert_int_equal(sl_registry_get_record_count(registry), 1);
    return sl_registry_get_record(registry, 0);
}

static void path_of(char out[PATH_BYTES], const char *folder, const char *id)
{
    snprintf(out, PATH_BYTES, "%s/libseqlstm_backend_%s.so", folder, id);
}

static void copy_file(const char *from, const char *to, long most)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    for (int c; most-- > 0 && (c = getc(in)) != EOF;)
        putc(c, out);
    fclose(in);
    fclose(out);
}

/* ---- tests ------------------------------------------------------------------------------------- */

/* Everything of hostile.c, one after the other in one process. */
static void hostile_plugins_are_refused_with_a_reason(void **state)
{
    (void)state;
    struct sl_fp_state before = sl_fp_state_get();
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        const struct expected *e = &expectations[i];
        char id[64], folder[4096], folder_after[4096];
        snprintf(id, sizeof id, "h-%s", e->name);
        assert_non_null(getcwd(folder, sizeof folder));
        struct sl_registry *registry = create_one(id);
        const struct sl_backend_record *record = only_record(registry);
        if (record->status != e->status)
            fail_msg("%s: status %s (%s)", id, sl_backend_status_name(record->status),
                     record->reason ? record->reason : "no reason");
        if (e->reason && (!record->reason || !strstr(record->reason, e->reason)))
            fail_msg("%s: the reason is '%s', expected '%s' in it", id, record->reason, e->reason);
        assert_int_equal(sl_registry_get_backend_count(registry), e->status == SL_BACKEND_OK);
        sl_registry_destroy(registry);
        assert_non_null(getcwd(folder_after, sizeof folder_after));
        assert_string_equal(folder, folder_after);
        struct sl_fp_state after = sl_fp_state_get();
        assert_int_equal(before.vector, after.vector);
        assert_int_equal(before.x87, after.x87);
    }
    struct sigaction action;
    assert_int_equal(sigaction(SIGUSR2, NULL, &action), 0);
    assert_true(action.sa_handler == SIG_DFL);
}

static void a_sound_plugin_leaves_a_complete_record(void **state)
{
    (void)state;
    struct sl_registry *registry = create_one("h-good");
    const struct sl_backend_record *r = only_record(registry);
    assert_string_equal(r->id, "h-good");
    assert_string_equal(r->version, "1.2.3");
    assert_string_equal(r->vendor, "none");
    assert_string_equal(r->license, "Apache-2.0");
    assert_string_equal(r->build, "test");
    assert_true(r->has_abi);
    assert_int_equal(r->abi_minor_needed, SEQLSTM_ABI_MINOR);
    assert_int_equal(r->device_count, 1);
    assert_string_equal(r->devices[0].device_class, "cpu:any");
    assert_true(r->file_count >= 2);
    assert_non_null(strstr(r->files[0].path, "h-good"));
    assert_true(strlen(r->files[0].build_id) >= 16);
    assert_int_equal(strspn(r->files[0].build_id, "0123456789abcdef"), strlen(r->files[0].build_id));
    bool libc = false;
    for (uint32_t i = 1; i < r->file_count; i++)
        libc = libc || strstr(r->files[i].path, "libc.so") != NULL || strstr(r->files[i].path, "libc-") != NULL;
    assert_true(libc);
    struct sl_backend *backend = sl_registry_find_backend(registry, "h-good");
    assert_non_null(backend);
    assert_int_equal(sl_backend_get_table(backend)->struct_size, sizeof(struct seqlstm_backend));
    assert_null(sl_backend_get_table(backend)->backward);
    assert_true(sl_backend_get_live_bytes(backend) > 0);
    sl_registry_destroy(registry);
}

/* A vendor's library that a plugin maps in open() belongs to it, at the second open too, which maps nothing new. */
static void files_mapped_in_open_are_recorded(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct sl_registry *registry = create_one("h-opens-library");
        const struct sl_backend_record *r = only_record(registry);
        assert_int_equal(r->status, SL_BACKEND_OK);
        int found = 0;
        for (uint32_t i = 1; i < r->file_count; i++)
            if (strstr(r->files[i].path, "h-opened.so")) {
                assert_true(strlen(r->files[i].build_id) >= 16);
                found++;
            }
        assert_int_equal(found, 1);
        sl_registry_destroy(registry);
    }
}

/* Slots behind the end of a shorter table do not exist, whatever stands there in memory. */
static void tables_of_other_headers_are_cut_to_size(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        bool has_estimate;
    } cases[] = {{"h-good", true}, {"h-short-table", false}, {"h-long-table", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_registry *registry = create_one(cases[i].id);
        const struct sl_backend *backend = sl_registry_find_backend(registry, cases[i].id);
        assert_non_null(backend);
        const struct seqlstm_backend *table = sl_backend_get_table(backend);
        assert_int_equal(table->struct_size, sizeof *table);
        assert_int_equal(table->estimate != NULL, cases[i].has_estimate);
        assert_null(table->get_extension);
        assert_non_null(table->op_destroy);
        sl_registry_destroy(registry);
    }
}

static void garbage_answers_become_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *id, *reason;
    } cases[] = {
        {"h-answer-seven", "neither yes nor no"},     {"h-answer-no-reason", "without a reason"},
        {"h-answer-no-code", "without a known code"}, {"h-answer-no-variant", "number of variants"},
        {"h-answer-unterminated", "without an end"},  {"h-answer-variants", "number of variants"},
        {"h-answer-twins", "one variant twice"},      {"h-answer-option", "unknown option"},
    };
    struct seqlstm_dense_desc desc = {.head = {.struct_size = sizeof desc, .op = SEQLSTM_OP_DENSE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_answer answer;
        struct sl_registry *registry = create_one(cases[i].id);
        struct sl_backend *backend = sl_registry_find_backend(registry, cases[i].id);
        assert_non_null(backend);
        assert_int_equal(sl_backend_supports(backend, 0, &desc.head, &answer, &err), SEQLSTM_OK);
        assert_int_equal(answer.accepted, 0);
        assert_int_equal(answer.code, SEQLSTM_BIT_REFUSED_ABI);
        if (!strstr(answer.reason, cases[i].reason) || !strstr(answer.reason, cases[i].id))
            fail_msg("%s: '%s', expected '%s' in it", cases[i].id, answer.reason, cases[i].reason);
        sl_registry_destroy(registry);
    }
}

static void an_error_is_not_a_no(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer;
    struct seqlstm_dense_desc desc = {.head = {.struct_size = sizeof desc, .op = SEQLSTM_OP_DENSE}};
    struct sl_registry *registry = create_one("h-answer-error");
    struct sl_backend *backend = sl_registry_find_backend(registry, "h-answer-error");
    assert_non_null(backend);
    assert_int_equal(sl_backend_supports(backend, 0, &desc.head, &answer, &err), SEQLSTM_INTERNAL);
    assert_non_null(strstr(err.message, "h-answer-error"));
    assert_non_null(strstr(err.message, "the oracle is silent"));
    assert_int_equal(sl_backend_supports(backend, 1, &desc.head, &answer, &err), SEQLSTM_INVALID_ARGUMENT);
    sl_registry_destroy(registry);
}

/* The plugin says yes to everything; the host must not even ask where it cannot know. */
static void bytes_beyond_the_known_are_refused_unasked(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer;
    struct sl_registry *registry = create_one("h-answer-yes");
    struct sl_backend *backend = sl_registry_find_backend(registry, "h-answer-yes");
    struct seqlstm_recurrent_desc desc = {.head = {.struct_size = sizeof desc, .op = SEQLSTM_OP_RECURRENT}};
    assert_non_null(backend);
    assert_int_equal(sl_backend_supports(backend, 0, &desc.head, &answer, &err), SEQLSTM_OK);
    assert_int_equal(answer.accepted, 1);
    assert_string_equal(answer.variants[0], "yes");
    desc.data_shift = 1; /* in the last 8 bytes */
    assert_int_equal(sl_backend_supports(backend, 0, &desc.head, &answer, &err), SEQLSTM_OK);
    assert_int_equal(answer.accepted, 0);
    assert_int_equal(answer.code, SEQLSTM_BIT_REFUSED_ABI);
    desc.data_shift = 0;
    desc.head.op = SEQLSTM_OP_LOSS; /* not offered: desc_bytes is 0 */
    assert_int_equal(sl_backend_supports(backend, 0, &desc.head, &answer, &err), SEQLSTM_OK);
    assert_int_equal(answer.code, SEQLSTM_BIT_REFUSED_OPERATION);
    desc.head.op = 12345;
    assert_int_equal(sl_backend_supports(backend, 0, &desc.head, &answer, &err), SEQLSTM_OK);
    assert_int_equal(answer.code, SEQLSTM_BIT_REFUSED_OPERATION);
    sl_registry_destroy(registry);
}

static void settings_are_checked_by_the_plugins_own_list(void **state)
{
    (void)state;
    static const struct {
        struct seqlstm_setting setting;
        const char *reason; /* NULL: fine */
    } cases[] = {
        {{"tile", "128"}, NULL},
        {{"tile", "0x80"}, NULL},
        {{"tile", "many"}, "expected int"},
        {{"mode", "slow"}, NULL},
        {{"mode", "slo"}, "fast|slow"},
        {{"mode", ""}, "fast|slow"},
        {{"loud", "true"}, NULL},
        {{"loud", "yes"}, "bool"},
        {{"factor", "1e-3"}, NULL},
        {{"factor", "1,5"}, "float"},
        {{"path", "any thing"}, NULL},
        {{"tiel", "1"}, "did you mean 'tile'"},
        {{"tile", "0"}, "expected int 1..4096"},
        {{"tile", "4097"}, "expected int 1..4096"},
        {{"tile", "4096"}, NULL},
        {{"factor", "2.5"}, "float 0..1"},
        {{"factor", "1"}, NULL},
        {{"factor", ".nan"}, "float 0..1"},
    };
    const char *folders[] = {hostile_folder};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_registry_entry entry = {.name = "h-good", .settings = &cases[i].setting, .setting_count = 1};
        struct sl_registry *registry = create(&entry, 1, folders, 1);
        const struct sl_backend_record *r = only_record(registry);
        if (!cases[i].reason && r->status != SL_BACKEND_OK)
            fail_msg("%s=%s: %s", cases[i].setting.key, cases[i].setting.value, r->reason);
        if (cases[i].reason && (r->status != SL_BACKEND_REFUSED || !strstr(r->reason, cases[i].reason)))
            fail_msg("%s=%s: %s", cases[i].setting.key, cases[i].setting.value, r->reason ? r->reason : "accepted");
        sl_registry_destroy(registry);
    }
}

static void files_that_are_no_plugins(void **state)
{
    (void)state;
    char good[PATH_BYTES], path[PATH_BYTES];
    path_of(good, hostile_folder, "h-good");
    const char *folders[] = {scratch};
    static const struct {
        const char *id, *reason;
    } cases[] = {{"text", "not an ELF file"},
                 {"empty", "not an ELF file"},
                 {"cut", "damaged"},
                 {"folder", "not a file"},
                 {"renamed", "named after backend renamed"}};
    path_of(path, scratch, "text");
    FILE *text = fopen(path, "w");
    assert_non_null(text);
    fputs("#!/bin/sh\nexit 1\n", text);
    fclose(text);
    path_of(path, scratch, "empty");
    copy_file(good, path, 0);
    path_of(path, scratch, "cut");
    copy_file(good, path, 5000);
    path_of(path, scratch, "renamed");
    copy_file(good, path, 1L << 30);
    path_of(path, scratch, "folder");
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_registry_entry entry = {.name = cases[i].id};
        struct sl_registry *registry = create(&entry, 1, folders, 1);
        const struct sl_backend_record *r = only_record(registry);
        assert_int_equal(r->status, SL_BACKEND_REFUSED);
        if (!strstr(r->reason, cases[i].reason))
            fail_msg("%s: %s", cases[i].id, r->reason);
        sl_registry_destroy(registry);
    }
    path_of(path, scratch, "folder");
    rmdir(path);
}

static void what_others_can_write_is_not_loaded(void **state)
{
    (void)state;
    char good[PATH_BYTES], path[PATH_BYTES], open_folder[300];
    struct sl_registry *registry;
    path_of(good, hostile_folder, "h-good");
    path_of(path, scratch, "h-good");
    copy_file(good, path, 1L << 30);
    struct sl_registry_entry entry = {.name = path};
    assert_int_equal(chmod(path, 0666), 0);
    registry = create(&entry, 1, NULL, 0);
    assert_int_equal(only_record(registry)->status, SL_BACKEND_REFUSED);
    assert_non_null(strstr(only_record(registry)->reason, "any user may write"));
    assert_non_null(strstr(only_record(registry)->reason, "--trust"));
    sl_registry_destroy(registry);

    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry_request request = {.entries = &entry, .entry_count = 1, .only_folders = true, .trust = true};
    assert_int_equal(sl_registry_create(&request, &registry, &err), SEQLSTM_OK);
    assert_int_equal(only_record(registry)->status, SL_BACKEND_OK);
    sl_registry_destroy(registry);

    assert_int_equal(chmod(path, 0664), 0); /* group-writable is fine */
    registry = create(&entry, 1, NULL, 0);
    assert_int_equal(only_record(registry)->status, SL_BACKEND_OK);
    sl_registry_destroy(registry);

    snprintf(open_folder, sizeof open_folder, "%s/open", scratch);
    assert_int_equal(mkdir(open_folder, 0700), 0);
    assert_int_equal(chmod(open_folder, 01777), 0); /* even sticky: another file may appear in it */
    path_of(path, open_folder, "h-good");
    copy_file(good, path, 1L << 30);
    registry = create(&entry, 1, NULL, 0);
    assert_int_equal(only_record(registry)->status, SL_BACKEND_REFUSED);
    sl_registry_destroy(registry);
    unlink(path);
    rmdir(open_folder);
    path_of(path, scratch, "h-good");
    unlink(path);
}

static void the_first_file_of_an_id_wins_and_both_are_reported(void **state)
{
    (void)state;
    char good[PATH_BYTES], path[PATH_BYTES];
    path_of(good, hostile_folder, "h-good");
    path_of(path, scratch, "h-good");
    copy_file(good, path, 1L << 30);
    const char *folders[] = {scratch, hostile_folder};
    struct sl_registry_entry entries[] = {{.name = "h-good"}, {.name = good}};
    struct sl_registry *registry = create(entries, 2, folders, 2);
    assert_int_equal(sl_registry_get_record_count(registry), 3);
    assert_string_equal(sl_registry_get_record(registry, 0)->file, path);
    assert_int_equal(sl_registry_get_record(registry, 0)->status, SL_BACKEND_OK);
    assert_string_equal(sl_registry_get_record(registry, 1)->file, good);
    assert_int_equal(sl_registry_get_record(registry, 1)->status, SL_BACKEND_SHADOWED);
    assert_int_equal(sl_registry_get_record(registry, 2)->status, SL_BACKEND_SHADOWED); /* by path */
    assert_int_equal(sl_registry_get_backend_count(registry), 1);
    sl_registry_destroy(registry);
    unlink(path);
}

static void a_required_backend_that_is_absent_is_recorded(void **state)
{
    (void)state;
    const char *folders[] = {hostile_folder};
    struct sl_registry_entry entries[] = {{.name = "nowhere"}, {.name = "h-good", .require = true}};
    struct sl_registry *registry = create(entries, 2, folders, 1);
    assert_int_equal(sl_registry_get_record(registry, 0)->status, SL_BACKEND_NOT_FOUND);
    assert_int_equal(sl_registry_get_record(registry, 0)->searched_count, 1);
    assert_string_equal(sl_registry_get_record(registry, 0)->searched[0], hostile_folder);
    assert_false(sl_registry_get_record(registry, 0)->required);
    sl_registry_destroy(registry);
    entries[0].require = true;
    entries[0].origin = "model.yaml:3:5";
    registry = create(entries, 2, folders, 1);
    assert_true(sl_registry_get_record(registry, 0)->required);
    assert_string_equal(sl_registry_get_record(registry, 0)->id, "nowhere");
    assert_string_equal(sl_registry_get_record(registry, 0)->origin, "model.yaml:3:5");
    sl_registry_destroy(registry);
    struct sl_registry_entry unavailable = {.name = "h-open-unavailable", .require = true};
    registry = create(&unavailable, 1, folders, 1);
    assert_true(sl_registry_get_record(registry, 0)->required);
    assert_int_equal(sl_registry_get_record(registry, 0)->status, SL_BACKEND_UNAVAILABLE);
    sl_registry_destroy(registry);
}

static void folders_must_be_absolute_and_the_current_one_is_never_searched(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry = NULL;
    const char *relative[] = {"backends"};
    struct sl_registry_request request = {.folders = relative, .folder_count = 1, .only_folders = true};
    assert_int_equal(sl_registry_create(&request, &registry, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "backends"));
    assert_null(registry);

    char before[4096];
    struct sl_registry_entry entry = {.name = "h-good"};
    struct sl_registry_request search = {.entries = &entry, .entry_count = 1};
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(hostile_folder), 0);
    setenv("SEQLSTM_BACKEND_PATH", ":::relative:", 1);
    assert_int_equal(sl_registry_create(&search, &registry, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "`relative` is relative"));
    setenv("SEQLSTM_BACKEND_PATH", ":::", 1);
    assert_int_equal(sl_registry_create(&search, &registry, &err), SEQLSTM_OK);
    assert_int_equal(only_record(registry)->status, SL_BACKEND_NOT_FOUND);
    for (uint32_t i = 0; i < sl_registry_get_folder_count(registry); i++)
        assert_int_equal(sl_registry_get_folder(registry, i)[0], '/');
    sl_registry_destroy(registry);

    setenv("SEQLSTM_BACKEND_PATH", hostile_folder, 1);
    assert_int_equal(sl_registry_create(&search, &registry, &err), SEQLSTM_OK);
    assert_int_equal(sl_registry_get_record(registry, 0)->status, SL_BACKEND_OK);
    sl_registry_destroy(registry);
    assert_int_equal(chdir(before), 0);
}

static void all_backends_lists_every_file_once(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry = NULL;
    const char *folders[] = {hostile_folder};
    struct sl_registry_request request = {
        .folders = folders, .folder_count = 1, .only_folders = true, .all_backends = true};
    assert_int_equal(sl_registry_create(&request, &registry, &err), SEQLSTM_OK);
    uint32_t count = sl_registry_get_record_count(registry);
    assert_true(count >= sizeof expectations / sizeof *expectations);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(sl_registry_get_record(registry, i)->file,
                                    sl_registry_get_record(registry, k)->file);
    for (uint32_t i = 1; i < count; i++)
        assert_true(strcmp(sl_registry_get_record(registry, i - 1)->file, sl_registry_get_record(registry, i)->file) <
                    0);
    sl_registry_destroy(registry);
}

static int set_up(void **state)
{
    (void)state;
    const char *build = getenv("SEQLSTM_BUILD");
    if (!build)
        return -1;
    snprintf(hostile_folder, sizeof hostile_folder, "%s/tests/abi", build);
    return mkdtemp(temporary_template(scratch, "loader")) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    static const char *const ids[] = {"text", "empty", "cut", "renamed", "h-good"};
    char path[PATH_BYTES];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        path_of(path, scratch, ids[i]);
        unlink(path);
    }
    return rmdir(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_plugins_are_refused_with_a_reason),
        cmocka_unit_test(a_sound_plugin_leaves_a_complete_record),
        cmocka_unit_test(tables_of_other_headers_are_cut_to_size),
        cmocka_unit_test(garbage_answers_become_refusals),
        cmocka_unit_test(an_error_is_not_a_no),
        cmocka_unit_test(bytes_beyond_the_known_are_refused_unasked),
        cmocka_unit_test(settings_are_checked_by_the_plugins_own_list),
        cmocka_unit_test(files_that_are_no_plugins),
        cmocka_unit_test(what_others_can_write_is_not_loaded),
        cmocka_unit_test(the_first_file_of_an_id_wins_and_both_are_reported),
        cmocka_unit_test(a_required_backend_that_is_absent_is_recorded),
        cmocka_unit_test(folders_must_be_absolute_and_the_current_one_is_never_searched),
        cmocka_unit_test(files_mapped_in_open_are_recorded),
        cmocka_unit_test(all_backends_lists_every_file_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
