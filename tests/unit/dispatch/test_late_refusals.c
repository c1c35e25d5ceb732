/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that accepts an operation, and refuses it only when it is to create it: another one runs that, and the plan
 * says why. The backend is the reference under another name. */
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"
#include "temporary.h"

#include "dispatch/cost/cost_cache.h"
#include "dispatch/cost/tune.h"
#include "dispatch/plan/plan.h"
#include "dispatch/planner.h"
#include "registry/registry.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

enum { CALLS = 4, MOST = 64 };
static const char *const names[CALLS] = {"a", "b", "out", "loss"};

static const struct seqlstm_backend *inner;
static bool refused[MOST + 1]; /* by the width of a layer, or 0 the loss */
static seqlstm_status answer;
static int created, destroyed, attempts; /* to create what is refused */

/* Units of the recurrent layers, outputs of the dense one. */
static int64_t get_width(const struct seqlstm_desc *desc)
{
    const union seqlstm_any_desc *any = (const void *)desc;
    return desc->op == SEQLSTM_OP_RECURRENT ? any->recurrent.hidden
           : desc->op == SEQLSTM_OP_DENSE   ? any->dense.output
           : desc->op == SEQLSTM_OP_LOSS    ? 0
                                            : MOST;
}

static int asked, fails_at; /* questions whether it supports an operation; the one that fails, 0: none */

static seqlstm_status picky_supports(const char *device_class, const struct seqlstm_desc *desc,
                                     struct seqlstm_answer *out_answer, struct seqlstm_error *err)
{
    if (++asked == fails_at)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the card fell off");
    return inner->supports(device_class, desc, out_answer, err);
}

static seqlstm_status picky_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                                   const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    attempts += refused[get_width(desc)];
    if (refused[get_width(desc)])
        SEQLSTM_FAIL(err, answer, "width %d is odd", (int)get_width(desc));
    created++;
    return inner->op_create(instance, device, desc, variant, out_op, err);
}

static void picky_destroy(struct seqlstm_op *op)
{
    destroyed++;
    inner->op_destroy(op);
}

static const struct seqlstm_backend *query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    inner = seqlstm_reference_query_v0(host_minor);
    table = *inner;
    table.id = "picky";
    table.supports = picky_supports;
    table.op_create = picky_create;
    table.op_destroy = picky_destroy;
    return &table;
}

struct world {
    struct loaded loaded;
    struct sl_registry *registry;
    struct sl_graph *graph;
};

static void open_world(struct world *w, const char *policy)
{
    static const struct sl_backend_builtin builtins[] = {{"picky", query}, {"reference", seqlstm_reference_query_v0}};
    static const struct sl_registry_entry entries[] = {{.name = "picky"}, {.name = "reference"}};
    static const struct sl_registry_request request = {
        .entries = entries, .entry_count = 2, .builtins = builtins, .builtin_count = 2, .only_folders = true};
    static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                               .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 2},
                                               .has_steps = true,
                                               .envelope = {.sequences = 4, .steps = 6, .rows = 19}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char text[400];
    snprintf(text, sizeof text,
             "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n"
             "model:\n  - {type: lstm, name: a, units: 5, return_sequences: true}\n"
             "  - {type: gru, name: b, units: 7, return_sequences: true}\n"
             "  - {type: dense, name: out, units: 2}\ntrain: {loss: mse, epochs: 1}\n"
             "dispatch: {policy: %s}\n",
             policy);
    ok(sl_registry_create(&request, &w->registry, &err), &err);
    w->loaded = load_clean(text);
    /* the output is needed, so that the dense layer and the loss are apart */
    const struct sl_graph_request wanted = {
        .model = w->loaded.model, .facts = &facts, .phase = SL_PHASE_TRAIN, .need_output = true};
    ok(sl_graph_create(&wanted, &w->graph, &err), &err);
    memset(refused, 0, sizeof refused);
    answer = SEQLSTM_UNSUPPORTED;
    created = destroyed = asked = fails_at = 0;
}

static void close_world(struct world *w)
{
    sl_graph_destroy(w->graph);
    unload(&w->loaded);
    sl_registry_destroy(w->registry);
    assert_int_equal(created, destroyed);
}

static seqlstm_status make(const struct world *w, struct sl_plan **out_plan, struct seqlstm_error *err)
{
    const struct sl_plan_request request = {.graph = w->graph, .registry = w->registry};
    return sl_plan_create(&request, out_plan, err);
}

/* Each set of them, by each policy. */
static void another_backend_runs_what_is_refused_late(void **state)
{
    static const char *const policies[] = {"order", "measured"};
    static const int widths[CALLS] = {5, 7, 2, 0};
    (void)state;
    for (int policy = 0; policy < 2; policy++)
        for (int set = 0; set < 1 << CALLS; set++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_plan *plan = NULL;
            struct world w;
            open_world(&w, policies[policy]);
            for (int c = 0; c < CALLS; c++)
                refused[widths[c]] = set >> c & 1;
            ok(make(&w, &plan, &err), &err);
            assert_int_equal(plan->call_count, CALLS);
            for (int c = 0; c < CALLS; c++) {
                const struct sl_call *call = &plan->calls[c];
                char reason[40];
                snprintf(reason, sizeof reason, "width %d is odd", widths[c]);
                assert_string_equal(call->node->name, names[c]);
                assert_string_equal(sl_backend_get_id(call->backend), set >> c & 1 ? "reference" : "picky");
                assert_int_equal(call->refusal_count, set >> c & 1);
                if (call->refusal_count) {
                    assert_string_equal(call->refusals[0].backend, "picky");
                    assert_string_equal(call->refusals[0].reason, reason);
                }
            }
            sl_plan_destroy(plan);
            close_world(&w);
        }
}

/* By measured costs a late refusal is kept with its reason, also for the next process: the backend is not asked to
 * create the same once more. */
static void late_refusals_are_kept(void **state)
{
    (void)state;
    static const int32_t lengths[] = {6, 5, 5, 3};
    static const struct sl_interrupt never;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_profiles profiles = {0};
    struct world w;
    char folder[TEMPORARY_BYTES], command[TEMPORARY_BYTES + 16];
    assert_non_null(mkdtemp(temporary_template(folder, "refusals")));
    open_world(&w, "measured");
    ok(sl_profiles_add(&profiles, 4, lengths, NULL, 1, &err), &err);
    refused[7] = refused[2] = true;
    for (int again = 0; again < 2; again++) {
        struct sl_cost_cache *cache = NULL;
        struct sl_plan *plan = NULL;
        ok(sl_cost_cache_open(folder, &cache, &err), &err);
        const struct sl_tuning tuning = {.profiles = &profiles, .cache = cache, .interrupt = &never};
        const struct sl_plan_request request = {
            .graph = w.graph, .registry = w.registry, .tuning = &tuning, .threads = 1};
        attempts = 0;
        ok(sl_plan_create(&request, &plan, &err), &err);
        assert_int_equal(attempts, again ? 0 : 2);
        for (int c = 1; c <= 2; c++) {
            const struct sl_call *call = &plan->calls[c];
            assert_string_equal(sl_backend_get_id(call->backend), "reference");
            assert_int_equal(call->refusal_count, 1);
            assert_string_equal(call->refusals[0].backend, "picky");
            assert_string_equal(call->refusals[0].reason, c == 1 ? "width 7 is odd" : "width 2 is odd");
        }
        sl_plan_destroy(plan);
        ok(sl_cost_cache_save(cache, &err), &err);
        sl_cost_cache_close(cache);
    }
    sl_profiles_deinit(&profiles);
    close_world(&w);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* Any other answer is a failure, and ends the plan; nothing is left of what was created before. */
static void a_failure_is_no_refusal(void **state)
{
    static const seqlstm_status answers[] = {SEQLSTM_NO_MEMORY, SEQLSTM_DEVICE, SEQLSTM_INTERNAL};
    (void)state;
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_plan *plan = NULL;
        struct world w;
        open_world(&w, "order");
        refused[7] = true;
        answer = answers[k];
        assert_int_equal(make(&w, &plan, &err), answers[k]);
        assert_null(plan);
        assert_non_null(strstr(err.message, "picky"));
        assert_non_null(strstr(err.message, "width 7 is odd"));
        close_world(&w);
    }
}

static struct sl_registry *open_picky(void)
{
    static const struct sl_backend_builtin builtins[] = {{"picky", query}};
    static const struct sl_registry_entry entries[] = {{.name = "picky"}};
    static const struct sl_registry_request request = {
        .entries = entries, .entry_count = 1, .builtins = builtins, .builtin_count = 1, .only_folders = true};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry = NULL;
    ok(sl_registry_create(&request, &registry, &err), &err);
    return registry;
}

/* Picky is the only one, and refuses what is so wide: no plan is made. */
static void plan_alone(int width, struct seqlstm_error *err)
{
    struct sl_plan *plan = NULL;
    struct world w;
    open_world(&w, "order");
    struct sl_registry *both = w.registry;
    w.registry = open_picky();
    refused[width] = true;
    assert_int_equal(make(&w, &plan, err), SEQLSTM_UNAVAILABLE);
    assert_null(plan);
    sl_registry_destroy(both);
    close_world(&w);
}

/* It is named with its reason and the layer. */
static void where_no_other_runs_it(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    plan_alone(7, &err);
    assert_non_null(strstr(err.message, "no listed backend runs `b` (recurrent): picky: "));
    assert_non_null(strstr(err.message, "width 7 is odd"));
    assert_int_equal(strncmp(err.where, "m.yaml:5:", 9), 0);
}

/* An operation of the update is of no layer: it stands where the training is described. */
static void where_no_other_runs_the_update(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    plan_alone(MOST, &err);
    assert_non_null(strstr(err.message, "no listed backend runs `update` (optimizer): picky: "));
    assert_non_null(strstr(err.message, "width 64 is odd"));
    assert_string_equal(err.where, "m.yaml:7:1");
}

/* Whichever operation it is asked about. */
static void a_question_that_fails_ends_the_plan(void **state)
{
    (void)state;
    bool whole = false;
    for (int n = 1; !whole; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_plan *plan = NULL;
        struct world w;
        open_world(&w, "order");
        fails_at = n;
        const seqlstm_status status = make(&w, &plan, &err);
        whole = asked < n;
        assert_int_equal(status, whole ? SEQLSTM_OK : SEQLSTM_INTERNAL);
        if (!whole)
            assert_non_null(strstr(err.message, "backend picky failed (status "));
        assert_true(!whole || n > CALLS);
        sl_plan_destroy(plan);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_backend_runs_what_is_refused_late),
        cmocka_unit_test(late_refusals_are_kept),
        cmocka_unit_test(a_failure_is_no_refusal),
        cmocka_unit_test(where_no_other_runs_it),
        cmocka_unit_test(where_no_other_runs_the_update),
        cmocka_unit_test(a_question_that_fails_ends_the_plan),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
