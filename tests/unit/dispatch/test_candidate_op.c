/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of candidates, by backends that the test makes up: which one is created, what its failure is called, who
 * destroys it, and what of a candidate the call is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/candidate/candidate.h"
#include "dispatch/plan/refusal.h"
#include "ok.h"
#include "oom.h"
#include "registry/plugin.h"
#include "registry/registry.h"

enum { BACKENDS = 3 };

/* The backends are their addresses, as are their tables, instances and operations. */
static char backends[BACKENDS], tables[BACKENDS], instances[BACKENDS], ops[BACKENDS];
static const char *const ids[BACKENDS] = {"a", "b", "c"};

/* What they answer. */
static struct {
    seqlstm_status create, sizes;
    const char *why;
} answer;

static struct sl_buf noted;

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);
const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend);
struct seqlstm_instance *__wrap_sl_backend_get_instance(const struct sl_backend *backend);
struct sl_option_place __wrap_sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node,
                                                   uint32_t option);
seqlstm_status __wrap_sl_plugin_create_op(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                          uint32_t device, const struct seqlstm_desc *desc, const char *variant,
                                          struct seqlstm_op **out_op, struct seqlstm_error *err);
seqlstm_status __wrap_sl_plugin_get_sizes(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                          struct seqlstm_sizes *sizes, struct seqlstm_error *err);
void __wrap_sl_plugin_destroy_op(const struct seqlstm_backend *table, struct seqlstm_op *op);

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    return ids[(const char *)backend - backends];
}

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend)
{
    return (const void *)&tables[(const char *)backend - backends];
}

struct seqlstm_instance *__wrap_sl_backend_get_instance(const struct sl_backend *backend)
{
    return (void *)&instances[(const char *)backend - backends];
}

struct sl_option_place __wrap_sl_graph_find_option(const struct sl_graph *graph, const struct sl_node *node,
                                                   uint32_t option)
{
    (void)graph, (void)node, (void)option;
    return (struct sl_option_place){.key = "a key"};
}

seqlstm_status __wrap_sl_plugin_create_op(const struct seqlstm_backend *table, struct seqlstm_instance *instance,
                                          uint32_t device, const struct seqlstm_desc *desc, const char *variant,
                                          struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    const ptrdiff_t b = (const char *)(const void *)table - tables;
    assert_ptr_equal(instance, &instances[b]);
    sl_buf_printf(&noted, "creates %s:%s on %u for %u; ", ids[b], variant, device, desc->dtype_compute);
    if (answer.create != SEQLSTM_OK)
        return seqlstm_error_set(err, answer.create, "plugin.c", 1, "%s", answer.why);
    *out_op = (void *)&ops[b];
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_plugin_get_sizes(const struct seqlstm_backend *table, const struct seqlstm_op *op,
                                          struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    const ptrdiff_t b = (const char *)(const void *)table - tables;
    assert_ptr_equal(op, &ops[b]);
    assert_int_equal(sizes->struct_size, sizeof *sizes);
    sl_buf_printf(&noted, "asks %s for %d threads; ", ids[b], sizes->members);
    sizes->workspace_bytes = 100 + (uint64_t)b;
    return answer.sizes == SEQLSTM_OK ? SEQLSTM_OK
                                      : seqlstm_error_set(err, answer.sizes, "plugin.c", 1, "%s", answer.why);
}

void __wrap_sl_plugin_destroy_op(const struct seqlstm_backend *table, struct seqlstm_op *op)
{
    const ptrdiff_t b = (const char *)(const void *)table - tables;
    assert_ptr_equal(op, &ops[b]);
    sl_buf_printf(&noted, "destroys that of %s; ", ids[b]);
}

static void expect_noted(const char *expected)
{
    assert_string_equal(sl_buf_text(&noted), expected);
    sl_buf_deinit(&noted);
}

/* ---- a subgraph with a candidate of each backend ----------------------------------------------------------------- */

struct world {
    struct sl_arena arena;
    struct sl_node node;
    struct sl_candidate candidates[BACKENDS];
    struct sl_refusal refusals[BACKENDS];
    struct sl_subgraph subgraph;
    struct sl_subgraphs subgraphs;
    struct sl_backend *listed[BACKENDS];
};

static void make_world(struct world *w)
{
    static const char *const variants[BACKENDS] = {"p", "q", "r"};
    memset(w, 0, sizeof *w);
    memset(&answer, 0, sizeof answer);
    sl_arena_init(&w->arena);
    for (uint32_t b = 0; b < BACKENDS; b++) {
        w->listed[b] = (struct sl_backend *)(void *)&backends[b];
        w->candidates[b] = (struct sl_candidate){.backend = w->listed[b],
                                                 .rank = b,
                                                 .device = 5 + b,
                                                 .variant = variants[b],
                                                 .cost = {SL_COST_MEASURED, 10 + b, 20 + b}};
    }
    w->subgraph = (struct sl_subgraph){.node = &w->node,
                                       .first = 4,
                                       .count = 2,
                                       .candidates = w->candidates,
                                       .candidate_count = BACKENDS,
                                       .refusals = w->refusals};
    w->subgraphs = (struct sl_subgraphs){.arena = &w->arena,
                                         .listed = w->listed,
                                         .listed_count = BACKENDS,
                                         .threads = 3,
                                         .items = &w->subgraph,
                                         .count = 1};
    w->node.desc.head.dtype_compute = SEQLSTM_DTYPE_BFLOAT16;
}

static seqlstm_status open_op(struct world *w, int b, struct seqlstm_error *err)
{
    return sl_subgraph_open_candidate(&w->subgraphs, &w->subgraph, &w->node.desc, &w->candidates[b], err);
}

static void operations_are_created_once(void **state)
{
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    make_world(&w);
    ok(open_op(&w, 1, &err), &err);
    ok(open_op(&w, 1, &err), &err);
    expect_noted("creates b:q on 6 for 2; asks b for 3 threads; ");
    assert_ptr_equal(w.candidates[1].op, &ops[1]);
    assert_int_equal(w.candidates[1].sizes.workspace_bytes, 101);
    assert_null(w.candidates[0].op);
    ok(open_op(&w, 2, &err), &err);
    expect_noted("creates c:r on 7 for 2; asks c for 3 threads; ");
    const struct sl_call call = sl_candidate_make_call(&w.subgraph, &w.candidates[2]);
    assert_ptr_equal(call.node, &w.node);
    assert_true(call.node_first == 4 && call.node_count == 2 && call.device == 7);
    assert_ptr_equal(call.backend, w.listed[2]);
    assert_string_equal(call.variant, "r");
    assert_ptr_equal(call.op, &ops[2]);
    assert_true(call.sizes.workspace_bytes == 102 && call.cost.forward_ns == 12 && call.cost.backward_ns == 22);
    assert_true(call.refusals == w.refusals && call.refusal_count == 0 && !call.fallback);
    w.candidates[2].op = NULL;       /* the call has it */
    w.candidates[1].excluded = true; /* after it was created: it could not be timed */
    sl_subgraphs_destroy(&w.subgraphs);
    expect_noted("destroys that of b; ");
    sl_subgraphs_destroy(&w.subgraphs); /* none is left */
    expect_noted("");
    sl_arena_deinit(&w.arena);
}

/* A backend that says later that it does not run the operation is excluded; the others are not. */
static void a_late_refusal_excludes_the_candidate(void **state)
{
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    make_world(&w);
    answer.create = SEQLSTM_UNSUPPORTED;
    answer.why = "not so wide";
    ok(open_op(&w, 1, &err), &err);
    ok(open_op(&w, 0, &err), &err);
    expect_noted("creates b:q on 6 for 2; creates a:p on 5 for 2; ");
    assert_true(w.candidates[0].excluded && w.candidates[1].excluded && !w.candidates[2].excluded);
    assert_int_equal(sl_subgraph_count_candidates(&w.subgraph), 1);
    assert_int_equal(w.subgraph.refusal_count, 2); /* in the order of the list */
    for (uint32_t r = 0; r < 2; r++) {
        assert_string_equal(w.refusals[r].backend, ids[r]);
        assert_string_equal(w.refusals[r].reason, "not so wide");
        assert_string_equal(w.refusals[r].option, ""); /* the whole operation */
        assert_true(w.refusals[r].rank == r && w.refusals[r].code == SEQLSTM_BIT_REFUSED_OPTION);
        assert_null(w.candidates[r].op);
    }
    const struct sl_call call = sl_candidate_make_call(&w.subgraph, &w.candidates[2]);
    assert_true(call.refusal_count == 2 && call.fallback);
    sl_arena_deinit(&w.arena);
}

/* The backend and what it was doing are named, unless its own message says so. */
static void other_failures_are_those_of_the_backend(void **state)
{
    static const struct {
        seqlstm_status create, sizes, expected;
        const char *why, *message;
    } rows[] = {
        {SEQLSTM_NO_MEMORY, SEQLSTM_OK, SEQLSTM_NO_MEMORY, "none", "the backend c failed in op_create: none"},
        {SEQLSTM_INTERNAL, SEQLSTM_OK, SEQLSTM_INTERNAL, "the backend c: it is so", "the backend c: it is so"},
        {SEQLSTM_OK, SEQLSTM_NUMERIC, SEQLSTM_NUMERIC, "none", "the backend c failed in op_sizes: none"},
        {SEQLSTM_OK, SEQLSTM_UNSUPPORTED, SEQLSTM_UNSUPPORTED, "too late",
         "the backend c failed in op_sizes: too late"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct world w;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        make_world(&w);
        answer.create = rows[k].create;
        answer.sizes = rows[k].sizes;
        answer.why = rows[k].why;
        assert_int_equal(open_op(&w, 2, &err), rows[k].expected);
        assert_string_equal(err.message, rows[k].message);
        assert_true(!w.candidates[2].excluded && w.subgraph.refusal_count == 0);
        sl_buf_deinit(&noted);
        sl_subgraphs_destroy(&w.subgraphs); /* what was created is not lost */
        expect_noted(rows[k].create == SEQLSTM_OK ? "destroys that of c; " : "");
        sl_arena_deinit(&w.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_created_once),
        cmocka_unit_test(a_late_refusal_excludes_the_candidate),
        cmocka_unit_test(other_failures_are_those_of_the_backend),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
