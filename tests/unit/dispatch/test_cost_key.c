/* SPDX-License-Identifier: Apache-2.0 */
/* A measured cost is found again for the same call only: what changes its time changes its key, and nothing else does.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/cost/cost_key.h"
#include "registry/registry.h"
#include "oom.h"

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
    static const struct sl_backend_builtin builtins[] = {{"reference", query}};
    static const struct seqlstm_setting settings[] = {{"tile", "2"}};
    static const struct sl_registry_entry entries[] = {{.name = "reference"},
                                                       {.name = "reference", .settings = settings, .setting_count = 1}};
    struct sl_registry_request request = {
        .entries = entries, .entry_count = 1, .builtins = builtins, .builtin_count = 1, .only_folders = true};
    oom_group_begin(state);
    assert_int_equal(sl_registry_create(&request, &registry, NULL), SEQLSTM_OK);
    request.entries = &entries[1];
    assert_int_equal(sl_registry_create(&request, &set_registry, NULL), SEQLSTM_OK);
    backend = sl_registry_find_backend(registry, "reference");
    set_backend = sl_registry_find_backend(set_registry, "reference");
    return backend && set_backend ? 0 : 1;
}

static int close_reference(void **state)
{
    sl_registry_destroy(registry);
    sl_registry_destroy(set_registry);
    return oom_group_end(state);
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

static void expect_all_different(const struct sl_cost_key *keys, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (is_same(keys[i], keys[k]))
                fail_msg("keys %d and %d are equal", i, k);
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
    expect_all_different(keys, (int)(sizeof keys / sizeof *keys));
}

/* Each of these processes, in turn, has keys of its own; the sums of environments do not depend on their order. */
static void what_is_measured_and_where_changes_the_key(void **state)
{
    (void)state;
    int32_t lengths[3] = {4, 2, 1}, others[3] = {4, 3, 1}, sources[3] = {5, 5, 2}, longer[3] = {6, 5, 2};
    struct sl_cost_key keys[16];
    int count = 0;
    const struct {
        int64_t sequences;
        int32_t *lengths, *sources;
        double weight;
        bool stream;
        int32_t copies;
    } batches[] = {{3, lengths, NULL, 1, false, 1},    {3, others, NULL, 1, false, 1},
                   {3, lengths, NULL, 1, true, 1},     {3, lengths, NULL, 0.5, false, 1},
                   {2, lengths, NULL, 1, false, 1},    {3, NULL, NULL, 1, false, 1},
                   {3, lengths, sources, 1, false, 1}, {3, lengths, longer, 1, false, 1},
                   {3, lengths, NULL, 1, false, 2},    {3, lengths, NULL, 1, false, 0}};
    for (size_t k = 0; k < sizeof batches / sizeof *batches; k++) {
        struct sl_profiles profiles = {.count = batches[k].copies, .stream = batches[k].stream};
        for (int32_t p = 0; p < profiles.count; p++)
            profiles.items[p] =
                (struct sl_profile){batches[k].sequences, batches[k].lengths, batches[k].sources, batches[k].weight};
        keys[count++] = sl_cost_key_begin(1, &profiles);
        assert_true(is_same(keys[count - 1], sl_cost_key_begin(1, &profiles)));
    }
    const struct sl_profiles none = {0};
    setenv("OMP_PLACES", "cores", 1);
    keys[count++] = sl_cost_key_begin(1, &none);
    setenv("DNNL_VERBOSE", "0", 1);
    const struct sl_cost_key both = keys[count++] = sl_cost_key_begin(1, &none);
    unsetenv("OMP_PLACES");
    keys[count++] = sl_cost_key_begin(1, &none);
    setenv("OMP_PLACES", "cores", 1);
    assert_true(is_same(both, sl_cost_key_begin(1, &none)));
    unsetenv("OMP_PLACES");
    unsetenv("DNNL_VERBOSE");
    setenv("SEQLSTM_LOG", "x", 1); /* it steers no numeric library */
    assert_true(is_same(keys[9], sl_cost_key_begin(1, &none)));
    unsetenv("SEQLSTM_LOG");
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++)
        if (CPU_ISSET(c, &all))
            CPU_SET(c, &one);
    if (CPU_COUNT(&all) > 1) {
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        keys[count++] = sl_cost_key_begin(1, &none);
        assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    }
    expect_all_different(keys, count);
}

static void what_does_not_change_the_time_leaves_the_key(void **state)
{
    (void)state;
    const struct sl_profiles none = {0};
    const struct sl_cost_key process = sl_cost_key_begin(2, &none);
    union seqlstm_any_desc desc = make_desc(), masked = make_desc();
    masked.recurrent.stream_base = 77;
    masked.recurrent.data_scale = 3;
    masked.recurrent.data_shift = 2;
    struct sl_cost_key a = sl_cost_key_get(&process, backend, 0, "a", &desc, 1),
                       b = sl_cost_key_get(&process, backend, 0, "a", &masked, 1);
    assert_true(is_same(a, b));
    memset(&desc, 0, sizeof desc);
    desc.dropout.head = (struct seqlstm_desc){.struct_size = sizeof desc.dropout, .op = SEQLSTM_OP_DROPOUT};
    desc.dropout.rate = 0.5f;
    masked = desc;
    masked.dropout.stream = 7;
    assert_true(is_same(sl_cost_key_get(&process, backend, 0, "a", &desc, 1),
                        sl_cost_key_get(&process, backend, 0, "a", &masked, 1)));
    masked.dropout.rate = 0.25f;
    assert_false(is_same(sl_cost_key_get(&process, backend, 0, "a", &desc, 1),
                         sl_cost_key_get(&process, backend, 0, "a", &masked, 1)));
    sl_cost_key_join(&a, &b);
    assert_false(is_same(a, b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_the_time_changes_the_key),
        cmocka_unit_test(what_is_measured_and_where_changes_the_key),
        cmocka_unit_test(what_does_not_change_the_time_leaves_the_key),
    };
    return cmocka_run_group_tests(tests, open_reference, close_reference);
}
