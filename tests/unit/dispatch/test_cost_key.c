/* SPDX-License-Identifier: Apache-2.0 */
/* A measured cost is found again for the same call only: what changes its time changes its key, and nothing else does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/cost/cost_key.h"
#include "registry/registry.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static struct sl_registry *registry, *set_registry;
static struct sl_backend *backend, *set_backend; /* the same backend without a setting and with one */
static const struct seqlstm_backend *reference;

static seqlstm_status open_without_settings(const struct seqlstm_host *host, const struct seqlstm_setting *settings,
                                            uint32_t setting_count, struct seqlstm_instance **out_instance,
                                            struct seqlstm_error *err)
{
    (void)settings;
    (void)setting_count;
    return reference->open(host, NULL, 0, out_instance, err);
}

/* The reference with an option. */
static const struct seqlstm_backend *query(uint32_t host_minor)
{
    static const struct seqlstm_option options[] = {{"tile", "int", "1", "rows of a tile"}};
    static struct seqlstm_backend table;
    reference = seqlstm_reference_query_v0(host_minor);
    table = *reference;
    table.open = open_without_settings;
    table.option_count = 1;
    table.options = options;
    return &table;
}

static int open_reference(void **state)
{
    (void)state;
    static const struct sl_backend_builtin builtins[] = {{"reference", query}};
    static const struct seqlstm_setting settings[] = {{"tile", "2"}};
    static const struct sl_registry_entry entries[] = {{.name = "reference"},
                                                       {.name = "reference", .settings = settings, .setting_count = 1}};
    struct sl_registry_request request = {
        .entries = entries, .entry_count = 1, .builtins = builtins, .builtin_count = 1, .only_folders = true};
    assert_int_equal(sl_registry_create(&request, &registry, NULL), SEQLSTM_OK);
    request.entries = &entries[1];
    assert_int_equal(sl_registry_create(&request, &set_registry, NULL), SEQLSTM_OK);
    backend = sl_registry_find_backend(registry, "reference");
    set_backend = sl_registry_find_backend(set_registry, "reference");
    return backend && set_backend ? 0 : 1;
}

static int close_reference(void **state)
{
    (void)state;
    sl_registry_destroy(registry);
    sl_registry_destroy(set_registry);
    return 0;
}

static union seqlstm_any_desc make_desc(void)
{
    union seqlstm_any_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.recurrent.head = (struct seqlstm_desc){
        .struct_size = sizeof desc.recurrent, .op = SEQLSTM_OP_RECURRENT, .max_rows = 100, .max_sequences = 10};
    desc.recurrent.input = 8;
    desc.recurrent.hidden = 16;
    desc.recurrent.layers = 1;
    return desc;
}

static bool is_same(struct sl_cost_key a, struct sl_cost_key b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void what_changes_the_time_changes_the_key(void **state)
{
    (void)state;
    const struct sl_profiles none = {0};
    const struct sl_cost_key process = sl_cost_key_begin(2, &none), other = sl_cost_key_begin(3, &none);
    union seqlstm_any_desc desc = make_desc(), wider = make_desc();
    wider.recurrent.hidden = 17;
    const struct sl_cost_key keys[] = {
        sl_cost_key_get(&process, backend, 0, "a", &desc, 1),    sl_cost_key_get(&process, backend, 0, "b", &desc, 1),
        sl_cost_key_get(&process, backend, 0, "a", &wider, 1),   sl_cost_key_get(&process, backend, 0, "a", &desc, 0),
        sl_cost_key_get(&process, backend, 0, "a", &desc, 3),    sl_cost_key_get(&other, backend, 0, "a", &desc, 1),
        sl_cost_key_get(&process, set_backend, 0, "a", &desc, 1)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        for (size_t k = 0; k < i; k++)
            if (is_same(keys[i], keys[k]))
                fail_msg("keys %d and %d are equal", (int)i, (int)k);
}

static void what_does_not_change_the_time_leaves_the_key(void **state)
{
    (void)state;
    const struct sl_profiles none = {0};
    const struct sl_cost_key process = sl_cost_key_begin(2, &none);
    union seqlstm_any_desc desc = make_desc(), masked = make_desc();
    masked.recurrent.stream_base = 77;
    struct sl_cost_key a = sl_cost_key_get(&process, backend, 0, "a", &desc, 1),
                       b = sl_cost_key_get(&process, backend, 0, "a", &masked, 1);
    assert_true(is_same(a, b));
    sl_cost_key_join(&a, &b);
    assert_false(is_same(a, b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_the_time_changes_the_key),
        cmocka_unit_test(what_does_not_change_the_time_leaves_the_key),
    };
    return cmocka_run_group_tests(tests, open_reference, close_reference);
}
