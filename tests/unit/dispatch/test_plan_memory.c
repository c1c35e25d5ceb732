/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of plans that the test makes up: of several vector operations the largest counts, what the process holds
 * replaces what it held, and what a backend says of its own memory has a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ext/footprint.h>

#include "dispatch/memory/footprint_query.h"
#include "dispatch/memory/layout.h"
#include "dispatch/memory/touched.h"
#include "ok.h"
#include "oom.h"
#include "registry/plugin.h"

enum { VECTORS = 3 };

/* Wherever it stands: its workspace is laid out, and all of its pages are touched. */
static void the_largest_workspace_counts(void **state)
{
    static const uint64_t bytes[] = {100, 50000, 9000};
    (void)state;
    for (int turn = 0; turn < VECTORS; turn++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const struct sl_graph graph = {.phase = SL_PHASE_TRAIN};
        struct sl_vector_call vectors[VECTORS] = {{0}};
        struct sl_arena arena;
        sl_arena_init(&arena);
        for (int v = 0; v < VECTORS; v++)
            vectors[v].sizes.workspace_bytes = bytes[(v + turn) % VECTORS];
        struct sl_plan plan = {.arena = &arena, .graph = &graph, .vectors = vectors, .vector_count = VECTORS};
        ok(sl_plan_lay_out(&plan, NULL, 2, &err), &err);
        assert_true(plan.workspace_bytes >= 50000 && plan.workspace_bytes < 50000 + SEQLSTM_ALIGNMENT);
        assert_int_equal(plan.memory.workspace_bytes, plan.workspace_bytes);
        ok(sl_touched_count(&plan, NULL, &err), &err);
        assert_int_equal(plan.memory.workspace_bytes, plan.workspace_bytes);
        assert_int_equal(plan.memory.peak_bytes, plan.workspace_bytes);
        sl_arena_deinit(&arena);
    }
}

static void the_process_is_counted_once(void **state)
{
    struct sl_plan plan = {.memory = {.peak_bytes = 1000}};
    (void)state;
    for (int64_t resident = 300; resident >= 100; resident -= 100) {
        sl_plan_set_process(&plan, resident, resident + 7);
        assert_int_equal(plan.memory.peak_bytes, 1000 + resident);
        assert_int_equal(plan.memory.process_bytes, resident);
        assert_int_equal(plan.memory.reached_bytes, resident + 7);
    }
}

/* ---- what backends say ------------------------------------------------------------------------------------------- */

static uint64_t said;
static seqlstm_status failure; /* of what it says */

static seqlstm_status say(const struct seqlstm_op *op, const struct seqlstm_axis *const *batches, uint32_t batch_count,
                          uint32_t bound_count, uint64_t *out_bytes, struct seqlstm_error *err)
{
    (void)op, (void)batches, (void)batch_count, (void)bound_count;
    *out_bytes = said;
    return failure ? seqlstm_error_set(err, failure, "p.c", 1, "the card fell off") : SEQLSTM_OK;
}

static struct seqlstm_footprint extension;

static const void *find(struct seqlstm_instance *instance, const char *id)
{
    (void)instance, (void)id;
    return &extension;
}

static void own_memory_has_a_limit(void **state)
{
    static const struct seqlstm_backend table = {.id = "greedy", .get_extension = find};
    const struct sl_footprint footprint = {.table = &table};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    uint64_t got = 5;
    (void)state;
    extension = (struct seqlstm_footprint){.struct_size = sizeof extension};
    ok(sl_footprint_ask_own(&footprint, NULL, 0, 0, &got, &err), &err); /* it does not say */
    assert_int_equal(got, 0);
    extension.own_bytes = say;
    said = SL_PLUGIN_BYTES_MOST;
    ok(sl_footprint_ask_own(&footprint, NULL, 0, 0, &got, &err), &err);
    assert_true(got == said);
    said = SL_PLUGIN_BYTES_MOST + 3;
    assert_int_equal(sl_footprint_ask_own(&footprint, NULL, 0, 0, &got, &err), SEQLSTM_INTERNAL);
    assert_string_equal(err.message, "the backend greedy is faulty: its own_bytes returned 70368744177667 bytes, more "
                                     "than any machine has");
    said = 5;
    failure = SEQLSTM_DEVICE;
    assert_int_equal(sl_footprint_ask_own(&footprint, NULL, 0, 0, &got, &err), SEQLSTM_DEVICE);
    assert_non_null(strstr(err.message, "the card fell off"));
    failure = SEQLSTM_OK;
    extension.struct_size = offsetof(struct seqlstm_footprint, own_bytes); /* an older table */
    ok(sl_footprint_ask_own(&footprint, NULL, 0, 0, &got, &err), &err);
    assert_int_equal(got, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_workspace_counts),
        cmocka_unit_test(the_process_is_counted_once),
        cmocka_unit_test(own_memory_has_a_limit),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
