/* SPDX-License-Identifier: Apache-2.0 */
/* The index tensors of batches, against what <graph/graph.h> says of each, sequence by sequence: for all lengths of
 * three pairs from 0 to 3 (of the target, not increasing). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure/batch_rows.h"
#include "oom.h"

enum { B = 3, MOST = 3, CAPACITY = B + 2, ROOM = B * MOST + CAPACITY + 1 };

static double out[ROOM];

static void load(const struct sl_batch *batch, enum sl_tensor_role role, int64_t rows)
{
    const struct sl_tensor tensor = {.role = role, .rows = rows, .features = 1};
    for (int i = 0; i < ROOM; i++)
        out[i] = -1;
    assert_true(sl_batch_load_index(batch, &tensor, out));
}

/* The rest of `out` is as it was. */
static void check_end(int64_t count)
{
    for (int64_t i = count; i < ROOM; i++)
        assert_true(out[i] == -1);
}

static void check_steps(const struct sl_batch *batch, const int32_t *lengths)
{
    load(batch, SL_TENSOR_SEQUENCE, 0);
    for (int32_t k = 0; k < B; k++)
        for (int32_t t = 0; t < lengths[k]; t++)
            assert_true(out[sl_batch_row(batch, k, t)] == k);
    check_end(batch->axis.rows);
    load(batch, SL_TENSOR_MEMORY_OF, 0);
    for (int32_t k = 0; k < B; k++)
        for (int32_t t = 0; t < lengths[k]; t++)
            assert_true(out[sl_batch_row(batch, k, t)] == batch->source.place[k]);
    check_end(batch->axis.rows);
    load(batch, SL_TENSOR_PLACE, 0);
    for (int32_t k = 0; k < B; k++)
        assert_true(out[k] == batch->source.place[k]);
    check_end(B);
}

/* The memories lie one after the other, in the order of the source; what there is no sequence for is empty. */
static void check_memories(const struct sl_batch *batch, const int32_t *source_lengths)
{
    int64_t first = 0;
    double rows[ROOM];
    load(batch, SL_TENSOR_MEMORY_ROW, 0);
    memcpy(rows, out, sizeof rows);
    load(batch, SL_TENSOR_MEMORY_OFFSET, CAPACITY + 1);
    for (int32_t place = 0; place < B; place++) {
        const int32_t k = batch->source.sequence[place];
        assert_true(out[place] == (double)first);
        for (int32_t t = 0; t < source_lengths[k]; t++)
            assert_true(rows[first + t] == (double)sl_batch_source_row(batch, k, t));
        first += source_lengths[k];
    }
    assert_int_equal(first, batch->source.axis.rows);
    for (int32_t place = B; place <= CAPACITY; place++)
        assert_true(out[place] == (double)first);
    check_end(CAPACITY + 1);
    memcpy(out, rows, sizeof rows);
    check_end(first);
}

static void check_source(const struct sl_batch *batch)
{
    for (int64_t r = 0; r < batch->source.axis.rows; r++)
        ((int32_t *)(uintptr_t)batch->source.input.ids)[r] = (int32_t)(7 * r + 3);
    load(batch, SL_TENSOR_SOURCE, 0);
    for (int64_t r = 0; r < batch->source.axis.rows; r++)
        assert_true(out[r] == (double)(7 * r + 3));
    check_end(batch->source.axis.rows);
}

static void check_counts(const struct sl_batch *batch)
{
    assert_int_equal(sl_batch_count_rows(batch, SL_AXIS_FREE), 0);
    assert_int_equal(sl_batch_count_rows(batch, SL_AXIS_SEQUENCES), B);
    assert_int_equal(sl_batch_count_rows(batch, SL_AXIS_STEPS), batch->axis.rows);
    assert_int_equal(sl_batch_count_rows(batch, SL_AXIS_SOURCE_STEPS), batch->source.axis.rows);
    assert_int_equal(sl_batch_get_rows(batch), batch->axis.rows + batch->source.axis.rows);
}

static void each_index_is_what_its_role_says(void **state)
{
    (void)state;
    enum { BASE = MOST + 1, ALL = BASE * BASE * BASE };
    for (int32_t a = 0; a < ALL; a++)
        for (int32_t b = 0; b < ALL; b++) {
            const int32_t lengths[B] = {a / (BASE * BASE), a / BASE % BASE, a % BASE};
            const int32_t source_lengths[B] = {b / (BASE * BASE), b / BASE % BASE, b % BASE};
            const struct sl_batch_shape shape = {.sequences = B,
                                                 .lengths = lengths,
                                                 .input_kind = SL_FIELD_IDS,
                                                 .input_features = 1,
                                                 .input_on_steps = true,
                                                 .source_lengths = source_lengths,
                                                 .source_kind = SL_FIELD_IDS,
                                                 .source_features = 1};
            struct sl_batch *batch = NULL;
            if (lengths[0] < lengths[1] || lengths[1] < lengths[2])
                continue;
            assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
            check_steps(batch, lengths);
            check_memories(batch, source_lengths);
            check_source(batch);
            check_counts(batch);
            sl_batch_destroy(batch);
        }
}

static void other_roles_have_no_index(void **state)
{
    (void)state;
    const int32_t lengths[] = {1};
    const struct sl_batch_shape shape = {
        .sequences = 1, .lengths = lengths, .input_kind = SL_FIELD_IDS, .input_features = 1, .input_on_steps = true};
    struct sl_batch *batch = NULL;
    assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
    for (int role = SL_TENSOR_ACTIVATION; role <= SL_TENSOR_SUMS; role++) {
        const struct sl_tensor tensor = {.role = (enum sl_tensor_role)role, .features = 1};
        const bool is_index = role >= SL_TENSOR_SOURCE && role <= SL_TENSOR_MEMORY_OF;
        if (!is_index)
            assert_false(sl_batch_load_index(batch, &tensor, out));
    }
    sl_batch_destroy(batch);
}

/* Rows are counted on the axis that a node writes, and rows that come in on the one that it reads: gather and attention
 * read another one. */
static void rows_are_those_of_the_axis(void **state)
{
    enum { ON_FREE, ON_STEPS, ON_SEQUENCES, ON_SOURCE_STEPS, ON_SOURCE_SEQUENCES, ON_MEMORY, AXES };
    static const int32_t lengths[B] = {5, 2, 1}, source_lengths[B] = {2, 4, 6};
    static const int64_t rows[AXES] = {0, 8, B, 12, B, 12};
    static struct sl_tensor tensors[AXES];
    const struct sl_batch_shape shape = {.sequences = B,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_IDS,
                                         .input_features = 1,
                                         .input_on_steps = true,
                                         .source_lengths = source_lengths,
                                         .source_kind = SL_FIELD_IDS,
                                         .source_features = 1};
    const struct sl_graph graph = {.tensors = tensors, .tensor_count = AXES};
    struct sl_batch *batch = NULL;
    (void)state;
    assert_int_equal(sl_batch_create(&shape, &batch, NULL), SEQLSTM_OK);
    for (int axis = 0; axis < AXES; axis++) {
        tensors[axis].axis = (enum sl_axis)axis;
        assert_int_equal(sl_batch_count_rows(batch, (enum sl_axis)axis), rows[axis]);
        assert_ptr_equal(sl_batch_get_axis(batch, (enum sl_axis)axis),
                         axis >= ON_SOURCE_STEPS ? &batch->source.axis : &batch->axis);
    }
    for (int32_t from = ON_STEPS; from < AXES; from++)
        for (int32_t to = ON_STEPS; to < AXES; to++) {
            int32_t gathers[] = {from, to, to}, attends[] = {to, from, to, to}, others[] = {to, from};
            struct sl_node node = {.slots = gathers, .slot_count = 3};
            node.desc.head.op = SEQLSTM_OP_GATHER;
            assert_int_equal(sl_batch_count_node_rows(batch, &graph, &node), rows[to]);
            assert_int_equal(sl_batch_count_rows_in(batch, &graph, &node), rows[from]);
            node.slots = attends;
            node.desc.head.op = SEQLSTM_OP_ATTENTION;
            assert_int_equal(sl_batch_count_node_rows(batch, &graph, &node), rows[to]);
            assert_int_equal(sl_batch_count_rows_in(batch, &graph, &node), rows[from]);
            node.slots = others;
            node.desc.head.op = SEQLSTM_OP_DENSE;
            assert_int_equal(sl_batch_count_node_rows(batch, &graph, &node), rows[to]);
            assert_int_equal(sl_batch_count_rows_in(batch, &graph, &node), rows[to]);
        }
    sl_batch_destroy(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_index_is_what_its_role_says),
        cmocka_unit_test(other_roles_have_no_index),
        cmocka_unit_test(rows_are_those_of_the_axis),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
