/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of parameters, of which some are frozen: where each lies, what is counted, who owns gradients; and the
 * weights of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory/memory.h"
#include "exec/exec_private.h"
#include "exec/params/params.h"
#include "exec/shape/indices.h"
#include "ok.h"
#include "oom.h"
#include "registry_fixture.h"

enum { PARAMS = 4 };

static struct sl_param graph_params[PARAMS] = {
    {.name = "a", .rows = 3, .columns = 7, .trainable = false, .layer = 2},
    {.name = "b", .rows = 16, .columns = 1, .trainable = true, .layer = 1},
    {.name = "c", .rows = 1, .columns = 5, .trainable = false, .layer = 4},
    {.name = "d", .rows = 2, .columns = 9, .trainable = true, .layer = 3},
};
static const struct sl_graph graph = {.params = graph_params, .param_count = PARAMS};

/* Those that are trained come first, each on a border of 16 numbers. */
static void trained_parameters_come_first(void **state)
{
    static const int64_t offsets[PARAMS] = {48, 0, 80, 16};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_params *params;
    (void)state;
    for (int training = 0; training < 2; training++)
        for (int states = 0; states <= 3; states++) {
            struct sl_memory memory;
            sl_memory_init(&memory);
            ok(sl_params_create(&graph, training, states, &memory, &params, &err), &err);
            assert_int_equal(params->trainable_elems, 48);
            assert_int_equal(params->param_elems, 21 + 16 + 5 + 18);
            for (int32_t p = 0; p < PARAMS; p++) {
                const struct sl_param_view *view = sl_params_find(params, graph_params[p].name);
                assert_ptr_equal(view, &params->views[p]);
                assert_true(view->offset_elems == offsets[p] && view->layer == graph_params[p].layer &&
                            view->trainable == graph_params[p].trainable &&
                            view->elems == graph_params[p].rows * graph_params[p].columns);
            }
            assert_null(sl_params_find(params, "e"));
            assert_int_equal(params->grads != NULL, training);
            for (int s = 0; s < 3; s++)
                assert_int_equal(params->states[s] != NULL, training && s < states);
            sl_params_destroy(params);
            assert_int_equal(memory.live_blocks, 0);
        }
}

/* Gradients that are lent are not freed, one after the other; the own ones are. */
static void lent_gradients_stay_with_their_owner(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_params *params, *shared;
    struct sl_memory memory;
    (void)state;
    sl_memory_init(&memory);
    ok(sl_params_create(&graph, true, 1, &memory, &params, &err), &err);
    const int64_t before = memory.live_blocks;
    float *first = sl_memory_alloc_zeroed(&memory, 96 * sizeof *first);
    float *second = sl_memory_alloc_zeroed(&memory, 96 * sizeof *second);
    sl_params_lend_grads(params, first);
    assert_int_equal(memory.live_blocks, before + 1); /* two more, and the own ones are gone */
    sl_params_lend_grads(params, second);
    assert_ptr_equal(params->grads, second);
    assert_int_equal(memory.live_blocks, before + 1);
    ok(sl_params_share(params, &shared, &err), &err);
    assert_ptr_equal(shared->values, params->values);
    sl_params_destroy(shared);
    assert_int_equal(memory.live_blocks, before + 1);
    sl_params_destroy(params);
    assert_int_equal(memory.live_blocks, 2);
    sl_memory_free(&memory, first);
    sl_memory_free(&memory, second);
    assert_int_equal(memory.live_blocks, 0);
}

/* ---- weights of rows --------------------------------------------------------------------------------------------- */

/* Class weights count where the loss has some, for values by which half they are in; a row without a class weighs
 * nothing. */
static void rows_have_weights(void **state)
{
    static float before[] = {5000, 2, 30, 400}, *const classes = before + 1;
    static float values[] = {0, 0.5f, 0.6f, 1}, weights[] = {1, 0.5f, 0.25f, 3};
    static int32_t ids[] = {2, -1, 0, 1}, index[4];
    static struct sl_exec exec;
    (void)state;
    exec.places[SL_PLACE_HOST].class_weights = classes;
    struct sl_batch batch = {.sequences = 4, .axis = {.rows = 3}};
    batch.target = (struct sl_field){.kind = SL_FIELD_IDS, .ids = ids, .features = 1};
    assert_true(sl_exec_weigh(&exec, &batch) == 400 + 0 + 2 + 30);
    batch.target.on_steps = true; /* then the rows of the steps count */
    assert_true(sl_exec_weigh(&exec, &batch) == 400 + 0 + 2);
    batch.weight = (struct sl_field){.kind = SL_FIELD_VALUES, .values = weights, .features = 1};
    assert_true(sl_exec_weigh(&exec, &batch) == 400 + 0.25 * 2);
    batch.target = (struct sl_field){.kind = SL_FIELD_VALUES, .values = values, .features = 1};
    assert_true(sl_exec_weigh(&exec, &batch) == 4.75); /* no class weights */
    exec.indices[SL_TENSOR_ROW_WEIGHT - SL_TENSOR_SEQUENCE] = index;
    assert_true(sl_exec_weigh(&exec, &batch) == 2 + 0.5 * 2 + 0.25 * 30 + 3 * 30);
    batch.weight.kind = SL_FIELD_NONE;
    assert_true(sl_exec_weigh(&exec, &batch) == 2 + 2 + 30 + 30);
}

/* ---- memories ---------------------------------------------------------------------------------------------------- */

/* One after the other in the order of the source; those that the batch does not have are empty. */
static void memories_are_where_attention_looks(void **state)
{
    enum { MOST = 5, ROWS = 5 };
    static const int32_t lengths[] = {3, 2, 99}, sizes[] = {2, 2, 1}; /* what is behind is none */
    static const int64_t row_offsets[] = {0, 2, 4, 5};
    static const int32_t expected_offset[] = {0, 3, 5, 5, 5, 5, -7}, expected_row[] = {0, 2, 4, 1, 3, -7};
    static const int32_t place[] = {1, 0}, target_sizes[] = {2, 1};
    static const int64_t target_offsets[] = {0, 2, 3};
    static struct sl_graph target_graph;
    int32_t offset[MOST + 2], row[ROWS + 1], sequence[4], memory[4];
    struct sl_exec *exec = calloc(1, sizeof *exec);
    (void)state;
    assert_non_null(exec);
    target_graph.facts.envelope.sequences = MOST;
    exec->graph = &target_graph;
    exec->indices[SL_TENSOR_SEQUENCE - SL_TENSOR_SEQUENCE] = sequence;
    exec->indices[SL_TENSOR_MEMORY_OF - SL_TENSOR_SEQUENCE] = memory;
    exec->indices[SL_TENSOR_MEMORY_OFFSET - SL_TENSOR_SEQUENCE] = offset;
    exec->indices[SL_TENSOR_MEMORY_ROW - SL_TENSOR_SEQUENCE] = row;
    for (int k = 0; k < MOST + 2; k++)
        offset[k] = row[k % (ROWS + 1)] = sequence[k % 4] = memory[k % 4] = -7;
    struct sl_batch batch = {
        .sequences = 2,
        .axis = {.sequences = 2, .steps = 2, .rows = 3, .batch_sizes = target_sizes, .row_offsets = target_offsets}};
    batch.source.present = true;
    batch.source.sequences = 2;
    batch.source.place = (int32_t *)(uintptr_t)place;
    batch.source.axis = (struct seqlstm_axis){
        .sequences = 2, .steps = 3, .rows = 5, .lengths = lengths, .batch_sizes = sizes, .row_offsets = row_offsets};
    sl_exec_fill_indices(exec, &batch);
    assert_memory_equal(offset, expected_offset, sizeof offset);
    assert_memory_equal(row, expected_row, sizeof row);
    assert_true(sequence[0] == 0 && sequence[1] == 1 && sequence[2] == 0 && sequence[3] == -7);
    assert_true(memory[0] == 1 && memory[1] == 0 && memory[2] == 1 && memory[3] == -7);
    free(exec);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static void note(struct sl_params *params, int32_t place, int32_t p)
{
    sl_params_note_written(params, place, SL_PART_VALUES, params->views[p].offset_elems, params->views[p].elems);
}

static void fill(struct sl_params *params, float value)
{
    for (int64_t e = 0; e < params->elems; e++)
        params->values[e] = value;
}

/* Of three neighbours the host writes some, and the device the others: a copy that goes over several of them, with what
 * lies in between, takes none that is newer where it goes to. */
static void copies_go_around_what_is_newer(void **state)
{
    (void)state;
    enum { BETWEEN = 3 };
    static const int64_t widths[] = {16, 5, 17};
    static const struct sl_registry_entry entries[] = {{.name = "fake-a"}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_registry *registry = registry_open(entries, 1);
    for (int width = 0; width < 3; width++)
        for (int written = 1; written < 7; written++) {
            struct sl_param own[BETWEEN] = {{.name = "a", .rows = 1, .columns = 16, .trainable = true},
                                            {.name = "b", .rows = 1, .columns = widths[width], .trainable = true},
                                            {.name = "c", .rows = 1, .columns = 4, .trainable = true}};
            const struct sl_graph three = {.params = own, .param_count = BETWEEN};
            struct sl_params *params;
            int32_t place;
            float *values;
            ok(sl_params_create(&three, false, 0, NULL, &params, &err), &err);
            ok(sl_params_find_place(params, sl_registry_get_backend(registry, 0), 0, &place, &err), &err);
            assert_int_equal(place, 1);
            fill(params, 1);
            ok(sl_params_provide(params, place, SL_PART_VALUES, 0, params->elems, &values, &err), &err);
            fill(params, 2); /* also what the host does not say that it has written */
            for (int32_t p = 0; p < BETWEEN; p++)
                note(params, written >> p & 1 ? SL_PLACE_HOST : place, p);
            ok(sl_params_provide(params, place, SL_PART_VALUES, 0, params->elems, &values, &err), &err);
            fill(params, 3);
            for (int32_t p = 0; p < BETWEEN; p++)
                note(params, place, p);
            ok(sl_params_pull(params, &err), &err);
            for (int32_t p = 0; p < BETWEEN; p++)
                for (int64_t e = 0; e < params->views[p].elems; e++)
                    assert_true(params->values[params->views[p].offset_elems + e] == (written >> p & 1 ? 2 : 1));
            sl_params_destroy(params);
        }
    sl_registry_destroy(registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_go_around_what_is_newer),
        cmocka_unit_test(memories_are_where_attention_looks),
        cmocka_unit_test(trained_parameters_come_first),
        cmocka_unit_test(lent_gradients_stay_with_their_owner),
        cmocka_unit_test(rows_have_weights),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
