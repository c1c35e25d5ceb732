/* SPDX-License-Identifier: Apache-2.0 */
/* The variant resident, as far as the host decides: how a layer is divided among the blocks of a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda-generic/recurrent/resident/resident_shape.h"

enum { ROOM = 227 * 1024, DEVICE = 132 };

static struct seqlstm_recurrent_desc make_layer(uint32_t cell, int64_t hidden, uint32_t sequences, uint32_t compute)
{
    struct seqlstm_recurrent_desc d = {.cell = cell, .hidden = hidden};
    d.head.max_sequences = sequences;
    d.head.dtype_compute = compute;
    d.activations[SEQLSTM_PLACE_GATE][0].kind = SEQLSTM_ACT_SIGMOID;
    d.activations[SEQLSTM_PLACE_CANDIDATE][0].kind = d.activations[SEQLSTM_PLACE_OUTPUT][0].kind = SEQLSTM_ACT_TANH;
    return d;
}

/* All units have a block, all warps have rows, columns and a part of each slice, and everything fits. */
static void check_division(const struct cg_resident *r, int64_t hidden, int32_t rows, int32_t multiprocessors)
{
    assert_true(r->blocks * r->units >= hidden && (r->blocks - 1) * r->units < hidden);
    assert_true(r->groups >= 1 && r->together * r->groups * r->blocks <= multiprocessors);
    assert_true(r->columns % 16 == 0 && r->shared_bytes == cg_resident_count_bytes(r) && r->shared_bytes <= ROOM);
    if (r->scatter) {
        assert_true(r->rows % 16 == 0 && r->rows >= hidden && r->segment >= r->units);
        assert_true(r->kept >= 0 && 16 * r->kept <= r->rows);
        return;
    }
    assert_true(r->rows >= rows && r->rows == 16 * r->row_tiles * r->row_warps);
    assert_true(r->row_warps * r->column_warps * r->splits <= CG_RESIDENT_WARPS);
    assert_true(r->columns <= cg_resident_columns(r) * r->column_warps);
    assert_true(r->segment % 8 == 0 && r->words == r->blocks * r->segment / 2);
    assert_true(r->chunk % (8 * r->splits) == 0 && (r->chunk & (r->chunk - 1)) == 0);
    assert_true(r->kept % r->chunk == 0 && r->kept >= 0 && r->kept <= cg_resident_depth(r));
    assert_true(cg_resident_depth(r) >= r->words && r->pitch == r->kept + 4 && r->pitch % 8 == 4);
}

static void divisions_hold_the_layer(void **state)
{
    (void)state;
    static const int32_t sizes[] = {1, 20, 65, 100, 256, 300, 511, 650, 1000, 1536, 2048};
    static const int32_t batches[] = {1, 7, 32, 300, 1024};
    for (uint32_t cell = SEQLSTM_CELL_LSTM; cell <= SEQLSTM_CELL_RNN; cell++)
        for (size_t h = 0; h < sizeof sizes / sizeof *sizes; h++)
            for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
                for (int back = 0; back < 2; back++) {
                    const int32_t gates = cell == SEQLSTM_CELL_LSTM ? 4 : cell == SEQLSTM_CELL_GRU ? 3 : 1;
                    const struct seqlstm_recurrent_desc d =
                        make_layer(cell, sizes[h], (uint32_t)batches[b], SEQLSTM_DTYPE_BFLOAT16);
                    struct cg_resident r;
                    assert_true(cg_resident_make(&d, back, DEVICE, ROOM, &r));
                    check_division(&r, sizes[h], (back ? 1 : gates) * r.units, DEVICE);
                    assert_true(r.groups <= batches[b]);
                    assert_true(!back || r.row_tiles <= 1); /* there is no such kernel */
                }
}

/* Weights for which shared memory has no room are a part of the exchange, and only they: what is published and what
 * units need of each other are there in any case. */
static void weights_without_room_are_in_the_exchange(void **state)
{
    (void)state;
    static const struct {
        int64_t hidden;
        uint32_t compute;
        bool spills;
    } cases[] = {{512, SEQLSTM_DTYPE_FLOAT32, false},   {1000, SEQLSTM_DTYPE_BFLOAT16, false},
                 {1500, SEQLSTM_DTYPE_BFLOAT16, false}, {1500, SEQLSTM_DTYPE_FLOAT32, true},
                 {2048, SEQLSTM_DTYPE_BFLOAT16, true},  {2048, SEQLSTM_DTYPE_FLOAT32, true}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int back = 0; back < 2; back++) {
            const struct seqlstm_recurrent_desc d =
                make_layer(SEQLSTM_CELL_LSTM, cases[k].hidden, 32, cases[k].compute);
            struct cg_resident r;
            assert_true(cg_resident_make(&d, back, DEVICE, ROOM, &r));
            check_division(&r, d.hidden, (back ? 1 : 4) * r.units, DEVICE);
            const int64_t spill = cg_resident_spill_words(&r), all = (int64_t)r.parts * 2 * d.hidden * r.units;
            assert_true(cases[k].spills ? spill > 0 && spill < 2 * all : spill == 0 || r.scatter);
            const int32_t columns = cg_resident_count_columns(32, r.groups);
            assert_int_equal(cg_resident_exchange_words(&r, 32),
                             r.together * (cg_resident_counter_words(&r) +
                                           r.groups * (2 * cg_resident_group_words(&r, columns) + r.blocks * spill)));
        }
}

/* Units that need more blocks than the device runs are refused. */
static void too_many_blocks_are_refused(void **state)
{
    (void)state;
    struct cg_resident r;
    const struct seqlstm_recurrent_desc d = make_layer(SEQLSTM_CELL_LSTM, 512, 32, SEQLSTM_DTYPE_FLOAT32);
    assert_true(cg_resident_make(&d, false, DEVICE, ROOM, &r));
    assert_false(cg_resident_make(&d, false, 10, ROOM, &r));
}

/* A large batch of a large layer has more units per block than shared memory has room for, since each block then reads
 * the values of fewer sequences. */
static void large_batches_have_many_units_per_block(void **state)
{
    (void)state;
    struct cg_resident r;
    const struct seqlstm_recurrent_desc d = make_layer(SEQLSTM_CELL_LSTM, 1024, 1024, SEQLSTM_DTYPE_BFLOAT16);
    assert_true(cg_resident_make(&d, false, DEVICE, ROOM, &r));
    assert_true(r.units == 32 && r.groups == 4 && cg_resident_spill_words(&r) > 0);
}

/* Where forward fits, backward does: parts of the gradient need no more weights than forward. */
static void backward_fits_where_forward_does(void **state)
{
    (void)state;
    for (int64_t hidden = 100; hidden <= 1048; hidden += 79) {
        struct cg_resident r;
        const struct seqlstm_recurrent_desc d = make_layer(SEQLSTM_CELL_LSTM, hidden, 32, SEQLSTM_DTYPE_FLOAT32);
        assert_true(cg_resident_make(&d, false, DEVICE, ROOM, &r));
        assert_true(cg_resident_make(&d, true, DEVICE, ROOM, &r));
    }
}

/* Parts of the gradient of large batches exceed L2, so that gradients of gates are published instead. */
static void large_batches_publish_gates(void **state)
{
    (void)state;
    struct cg_resident r;
    struct seqlstm_recurrent_desc d = make_layer(SEQLSTM_CELL_LSTM, 512, 1024, SEQLSTM_DTYPE_BFLOAT16);
    assert_true(cg_resident_make(&d, true, DEVICE, ROOM, &r));
    assert_false(r.scatter);
    d.head.max_sequences = 32;
    d.head.dtype_compute = SEQLSTM_DTYPE_FLOAT32;
    assert_true(cg_resident_make(&d, true, DEVICE, ROOM, &r));
    assert_true(r.scatter);
}

/* Both directions run side by side if that is faster than one after the other. */
static void directions_share_the_device(void **state)
{
    (void)state;
    struct cg_resident r;
    struct seqlstm_recurrent_desc d = make_layer(SEQLSTM_CELL_LSTM, 256, 8, SEQLSTM_DTYPE_FLOAT32);
    d.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    for (int place = 0; place < 3; place++)
        d.activations[place][1] = d.activations[place][0];
    assert_true(cg_resident_make(&d, false, DEVICE, ROOM, &r));
    assert_int_equal(r.together, 2);
    d.hidden = 2000;
    assert_true(cg_resident_make(&d, false, DEVICE, ROOM, &r));
    assert_int_equal(r.together, 1);
}

/* Units need sums of each other twice in a step of an LSTM with layer norm, once in other cells with it and in a late
 * GRU. */
static void units_wait_for_sums_of_each_other(void **state)
{
    static const struct {
        uint32_t cell, options;
        int32_t linked;
    } rows[] = {{SEQLSTM_CELL_LSTM, 0, 0},
                {SEQLSTM_CELL_LSTM, SEQLSTM_BIT_RECURRENT_LAYER_NORM, 2},
                {SEQLSTM_CELL_GRU, SEQLSTM_BIT_RECURRENT_RESET_AFTER, 0},
                {SEQLSTM_CELL_GRU, SEQLSTM_BIT_RECURRENT_RESET_AFTER | SEQLSTM_BIT_RECURRENT_LAYER_NORM, 1},
                {SEQLSTM_CELL_GRU, 0, 1},
                {SEQLSTM_CELL_RNN, 0, 0},
                {SEQLSTM_CELL_RNN, SEQLSTM_BIT_RECURRENT_LAYER_NORM, 1}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct cg_resident r;
        struct seqlstm_recurrent_desc d = make_layer(rows[k].cell, 100, 32, SEQLSTM_DTYPE_FLOAT32);
        d.options = rows[k].options;
        assert_true(cg_resident_make(&d, false, DEVICE, ROOM, &r));
        assert_int_equal(r.linked, rows[k].linked);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisions_hold_the_layer),         cmocka_unit_test(weights_without_room_are_in_the_exchange),
        cmocka_unit_test(too_many_blocks_are_refused),      cmocka_unit_test(large_batches_have_many_units_per_block),
        cmocka_unit_test(backward_fits_where_forward_does), cmocka_unit_test(large_batches_publish_gates),
        cmocka_unit_test(directions_share_the_device),      cmocka_unit_test(units_wait_for_sums_of_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
