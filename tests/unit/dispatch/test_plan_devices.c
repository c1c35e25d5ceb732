/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of its devices: each once, in the order of first use; and whether a training step can be captured,
 * or which call is in the way. The backends are the reference and the fake devices of tests/gpu. */
#include <string.h>

#include "ok.h"
#include "oom.h"
#include "registry_fixture.h"

#include "dispatch/plan/capture.h"
#include "dispatch/plan/plan.h"

enum { CALLS = 4 };

/* Whether a device has graphs; meson.build leads the question here. */
static bool has_captures;

bool __wrap_sl_domain_has_captures(const struct seqlstm_backend *table);
bool __wrap_sl_domain_has_captures(const struct seqlstm_backend *table)
{
    (void)table;
    return has_captures;
}

static struct sl_registry *registry;

static int open_registry(void **state)
{
    static const struct sl_registry_entry entries[] = {{.name = "reference"}, {.name = "fake-a"}, {.name = "fake-b"}};
    oom_group_begin(state);
    registry = registry_open(entries, 3);
    return 0;
}

static int close_registry(void **state)
{
    sl_registry_destroy(registry);
    return oom_group_end(state);
}

/* r: the reference, a and b: the fake devices. */
static struct sl_backend *find_backend(char letter)
{
    return sl_registry_get_backend(registry, letter == 'r' ? 0 : letter == 'a' ? 1 : 2);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static void each_device_once_in_the_order_of_first_use(void **state)
{
    (void)state;
    static const struct {
        const char *calls, *vectors, *devices;
    } cases[] = {{"r", "", "r"},       {"rr", "r", "r"},  {"a", "r", "ar"},
                 {"r", "a", "ra"},     {"bab", "", "ba"}, {"ab", "rab", "abr"},
                 {"rra", "bb", "rab"}, {"", "ba", "ba"},  {"aaab", "bbbr", "abr"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_call calls[CALLS] = {{0}};
        struct sl_vector_call vectors[CALLS] = {{0}};
        struct sl_arena arena;
        sl_arena_init(&arena);
        struct sl_plan plan = {.arena = &arena,
                               .calls = calls,
                               .call_count = (int32_t)strlen(cases[c].calls),
                               .vectors = vectors,
                               .vector_count = (int32_t)strlen(cases[c].vectors)};
        for (int32_t k = 0; k < plan.call_count; k++)
            calls[k].backend = find_backend(cases[c].calls[k]);
        for (int32_t k = 0; k < plan.vector_count; k++)
            vectors[k].backend = find_backend(cases[c].vectors[k]);
        ok(sl_plan_list_devices(&plan, &err), &err);
        assert_int_equal(plan.device_count, strlen(cases[c].devices));
        for (int32_t d = 0; d < plan.device_count; d++) {
            const struct sl_backend *backend = find_backend(cases[c].devices[d]);
            const struct seqlstm_device_info *info = sl_backend_get_device(backend, 0);
            assert_string_equal(plan.devices[d].backend, sl_backend_get_id(backend));
            assert_string_equal(plan.devices[d].name, info->name);
            assert_string_equal(plan.devices[d].device_class, info->device_class);
        }
        sl_arena_deinit(&arena);
    }
}

/* ---- captures -----------------------------------------------------------------------------------------------------
 */

/* Calls and vectors: backend and what it allows of captures (n: nothing, s: per shape, y: any). Vectors are named by
 * their operation: + adds gradients, * another operation on vectors, o an optimizer. */
static const struct {
    const char *calls, *vectors;
    bool adds; /* some tensor has several readers */
    bool has_graphs;
    bool possible, with_update, on_device;
    const char *reason;
} captures[] = {
    {"ay", "", false, true, true, true, true, ""},
    {"as ay", "", false, true, true, true, true, ""},
    {"ry", "", false, true, false, false, false, "n0 runs on the host (reference)"},
    {"ay ry", "", false, true, false, false, true, "n1 runs on the host (reference)"},
    {"ay by", "", false, true, false, false, true, "n0 runs in fake:fake-a, n1 in fake:fake-b"},
    {"ay ay by", "", false, true, false, false, true, "n0 runs in fake:fake-a, n2 in fake:fake-b"},
    {"ay an", "", false, true, false, false, true, "fake-a:v does not allow n1 to be captured"},
    {"an by", "", false, true, false, false, true, "fake-a:v does not allow n0 to be captured"},
    {"ay", "", false, false, false, false, true, "fake-a cannot capture graphs"},
    {"ay", "oay", false, true, true, true, true, ""},
    {"ay", "oan", false, true, true, false, true, "the operation optimizer of the update runs on fake-a"},
    {"ay", "ory", false, true, true, false, true, "the operation optimizer of the update runs on reference"},
    {"ay", "*as oby", false, true, true, false, true, "the operation optimizer of the update runs on fake-b"},
    {"ay", "*an oby", false, true, true, false, true, "the operation vector of the update runs on fake-a"},
    {"ay", "+an", true, true, false, false, true, "gradients are added by fake-a"},
    {"ay", "oay +ry", true, true, false, false, true, "gradients are added by reference"},
    {"ay", "+ry", false, true, true, false, true, "the operation vector of the update runs on reference"},
    {"ay", "+as", true, true, true, true, true, ""},
    {"ay", "*an", true, true, true, false, true, "the operation vector of the update runs on fake-a"},
};

static struct seqlstm_sizes allow(char letter)
{
    return (struct seqlstm_sizes){.capture = letter == 's'   ? SEQLSTM_CAPTURE_PER_SHAPE
                                             : letter == 'y' ? SEQLSTM_CAPTURE_ANY_SHAPE
                                                             : SEQLSTM_CAPTURE_NONE};
}

static union seqlstm_any_desc describe(char letter)
{
    union seqlstm_any_desc desc = {.head = {.op = letter == 'o' ? SEQLSTM_OP_OPTIMIZER : SEQLSTM_OP_VECTOR}};
    if (letter != 'o')
        desc.vector.kind = letter == '+' ? SEQLSTM_KIND_VECTOR_AXPY : SEQLSTM_KIND_VECTOR_SCALE;
    return desc;
}

static void steps_are_captured_in_one_domain(void **state)
{
    (void)state;
    static const struct sl_node nodes[CALLS] = {{.name = "n0"}, {.name = "n1"}, {.name = "n2"}, {.name = "n3"}};
    for (size_t c = 0; c < sizeof captures / sizeof *captures; c++) {
        struct sl_graph graph = {.phase = SL_PHASE_TRAIN};
        struct sl_call calls[CALLS] = {{0}};
        struct sl_vector_call vectors[CALLS] = {{0}};
        union seqlstm_any_desc descs[CALLS];
        struct sl_plan plan = {
            .graph = &graph, .calls = calls, .vectors = vectors, .scratch_grad_offset = captures[c].adds ? 0 : -1};
        for (const char *word = captures[c].calls; *word; word += word[2] ? 3 : 2) {
            struct sl_call *call = &calls[plan.call_count];
            *call = (struct sl_call){.node = &nodes[plan.call_count++],
                                     .backend = find_backend(word[0]),
                                     .variant = "v",
                                     .sizes = allow(word[1])};
        }
        for (const char *word = captures[c].vectors; *word; word += word[3] ? 4 : 3) {
            struct sl_vector_call *call = &vectors[plan.vector_count];
            descs[plan.vector_count] = describe(word[0]);
            *call = (struct sl_vector_call){
                .desc = &descs[plan.vector_count++], .backend = find_backend(word[1]), .sizes = allow(word[2])};
        }
        has_captures = captures[c].has_graphs;
        const struct sl_capture got = sl_plan_find_capture(&plan);
        if (got.possible != captures[c].possible || got.with_update != captures[c].with_update ||
            got.on_device != captures[c].on_device || strcmp(got.reason, captures[c].reason) != 0)
            fail_msg("`%s` and `%s`: %d %d %d `%s`", captures[c].calls, captures[c].vectors, got.possible,
                     got.with_update, got.on_device, got.reason);
        graph.phase = SL_PHASE_EVALUATE;
        const struct sl_capture other = sl_plan_find_capture(&plan);
        assert_false(other.possible || other.with_update);
        assert_int_equal(other.on_device, captures[c].on_device);
        assert_string_equal(other.reason, "only training steps are captured");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_device_once_in_the_order_of_first_use),
        cmocka_unit_test(steps_are_captured_in_one_domain),
    };
    return cmocka_run_group_tests(tests, open_registry, close_registry);
}
