/* SPDX-License-Identifier: Apache-2.0 */
/* What costs are computed from: the axes of a batch, similar work that was timed, and an operation without one of its
 * options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/cost/axes.h"
#include "dispatch/cost/desc_option.h"
#include "dispatch/cost/experience.h"
#include "oom.h"

/* ---- axes ---------------------------------------------------------------------------------------------------------
 */

enum { SEQUENCES_MOST = 6 };

static void check_axis(const struct seqlstm_axis *axis, const int32_t *lengths, int64_t sequences, int64_t steps)
{
    int64_t rows = 0;
    assert_int_equal(axis->struct_size, sizeof *axis);
    assert_int_equal(axis->sequences, sequences);
    assert_int_equal(axis->steps, steps);
    for (int64_t t = 0; t < steps; t++) {
        int32_t live = 0;
        for (int64_t k = 0; k < sequences; k++)
            live += (lengths ? lengths[k] : 1) > t;
        assert_int_equal(axis->batch_sizes[t], live);
        assert_int_equal(axis->row_offsets[t], rows);
        rows += live;
    }
    assert_int_equal(axis->row_offsets[steps], rows);
    assert_int_equal(axis->rows, rows);
    for (int64_t k = 0; k < sequences; k++) {
        assert_int_equal(axis->lengths[k], !lengths ? 1 : lengths[k] < steps ? lengths[k] : steps);
        assert_int_equal(axis->sequence_id[k], k);
        assert_int_equal(axis->position0[k], 0);
    }
}

static void axes_are_those_of_the_lengths(void **state)
{
    static const struct {
        int64_t sequences, alive, steps_most, steps;
        int32_t lengths[SEQUENCES_MOST];
        bool stream, uniform;
    } cases[] = {
        {4, 4, 99, 5, {5, 3, 3, 1}, false, false},
        {4, 2, 99, 7, {7, 2, 0, 0}, true, false},
        {3, 3, 99, 4, {4, 4, 4}, true, true},
        {3, 3, 2, 2, {4, 3, 2}, false, true},
        {3, 3, 3, 3, {4, 3, 2}, false, false},
        {2, 0, 99, 0, {0, 0}, false, true},
        {1, 1, 1, 1, {6}, false, true},
        {6, 5, 99, 1, {1, 1, 1, 1, 1, 0}, false, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t lengths[SEQUENCES_MOST];
        struct sl_axes axes = {0};
        memcpy(lengths, cases[i].lengths, sizeof lengths);
        const struct sl_profile profile = {.sequences = cases[i].sequences, .lengths = lengths, .weight = 1};
        const uint32_t stream = cases[i].stream ? SEQLSTM_BIT_AXIS_STREAM : 0;
        assert_int_equal(sl_axes_init(&axes, &profile, cases[i].steps_most, cases[i].stream, NULL), SEQLSTM_OK);
        check_axis(&axes.steps, lengths, cases[i].alive, cases[i].steps);
        check_axis(&axes.rows, NULL, cases[i].sequences, 1);
        assert_int_equal(axes.steps.flags, stream | (cases[i].uniform ? SEQLSTM_BIT_AXIS_UNIFORM : 0));
        assert_int_equal(axes.rows.flags, stream | SEQLSTM_BIT_AXIS_UNIFORM);
        sl_axes_deinit(&axes);
        assert_null(axes.storage);
    }
    struct sl_axes axes = {0}; /* data without steps */
    const struct sl_profile flat = {.sequences = 5};
    assert_int_equal(sl_axes_init(&axes, &flat, 9, false, NULL), SEQLSTM_OK);
    assert_int_equal(axes.steps.sequences, 0);
    assert_int_equal(axes.steps.rows, 0);
    check_axis(&axes.rows, NULL, 5, 1);
    sl_axes_deinit(&axes);
}

/* ---- experience ---------------------------------------------------------------------------------------------------
 */

static struct sl_backend *backend(int k)
{
    static char backends[3];
    return (struct sl_backend *)(void *)&backends[k];
}

static void add(struct sl_experience *e, const struct sl_candidate *candidate, uint32_t op, double work, double forward,
                double backward)
{
    const struct sl_cost cost = {SL_COST_MEASURED, forward, backward};
    assert_int_equal(sl_experience_add(e, candidate, op, work, &cost, NULL), SEQLSTM_OK);
}

static void expect(const struct sl_experience *e, const struct sl_candidate *candidate, uint32_t op, double work,
                   double forward, double backward)
{
    struct sl_cost cost = {0};
    assert_true(sl_experience_predict(e, candidate, op, work, &cost));
    assert_int_equal(cost.source, SL_COST_ESTIMATE);
    if (cost.forward_ns != forward || cost.backward_ns != backward)
        fail_msg("work %g: %g + %g, expected %g + %g", work, cost.forward_ns, cost.backward_ns, forward, backward);
}

static void similar_work_predicts(void **state)
{
    (void)state;
    struct sl_experience e = {0};
    struct sl_cost cost;
    const struct sl_candidate mine = {.backend = backend(0), .device = 1, .variant_index = 2};
    const struct sl_candidate others[] = {{.backend = backend(1), .device = 1, .variant_index = 2},
                                          {.backend = backend(0), .device = 0, .variant_index = 2},
                                          {.backend = backend(0), .device = 1, .variant_index = 0}};
    assert_false(sl_experience_predict(&e, &mine, 3, 100, &cost));
    assert_true(sl_experience_get_bound(&e, &mine, 3, 100) == 0);
    add(&e, &mine, 3, 100, 10, 30);
    add(&e, &mine, 3, 800, 40, 72);
    add(&e, &mine, 4, 200, 7, 9);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        assert_false(sl_experience_predict(&e, &others[k], 3, 100, &cost));
        assert_true(sl_experience_get_bound(&e, &others[k], 3, 900) == 0);
        add(&e, &others[k], 3, 160, 1000, 2000);
    }
    assert_false(sl_experience_predict(&e, &mine, 5, 100, &cost));
    expect(&e, &mine, 3, 100, 10, 30);
    expect(&e, &mine, 3, 200, 20, 60); /* twice the first is nearer than a quarter of the second */
    expect(&e, &mine, 3, 400, 20, 36);
    expect(&e, &mine, 3, 50, 5, 15);
    expect(&e, &mine, 3, 1600, 80, 144);
    expect(&e, &mine, 4, 100, 3.5, 4.5);
    /* more work does not take less time */
    assert_true(sl_experience_get_bound(&e, &mine, 3, 99) == 0);
    assert_true(sl_experience_get_bound(&e, &mine, 3, 100) == 40);
    assert_true(sl_experience_get_bound(&e, &mine, 3, 799) == 40);
    assert_true(sl_experience_get_bound(&e, &mine, 3, 800) == 112);
    add(&e, &mine, 3, 400, 200, 1); /* the dearest of those with less work */
    assert_true(sl_experience_get_bound(&e, &mine, 3, 900) == 201);
    for (int k = 0; k < 100; k++) /* more than it has room for at first */
        add(&e, &mine, 6, 10 + k, k, 0);
    expect(&e, &mine, 6, 10, 0, 0);
    expect(&e, &mine, 6, 109, 99, 0);
    sl_experience_deinit(&e);
    assert_int_equal(e.count, 0);
}

/* ---- options ------------------------------------------------------------------------------------------------------
 */

static struct seqlstm_recurrent_desc make_full(void)
{
    struct seqlstm_recurrent_desc d;
    memset(&d, 0, sizeof d);
    d.head.op = SEQLSTM_OP_RECURRENT;
    d.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    d.merge = SEQLSTM_KIND_MERGE_SUM;
    d.options = SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES | SEQLSTM_BIT_RECURRENT_LAYER_NORM;
    d.layers = 2, d.input = 3, d.hidden = 4, d.projection = 5;
    for (int place = 0; place < 3; place++)
        for (int k = 0; k < 2; k++)
            d.activations[place][k] = (struct seqlstm_activation){.kind = SEQLSTM_ACT_ELU, .alpha = 0.5f};
    d.dropout = 0.1f, d.recurrent_dropout = 0.2f, d.zoneout_cell = 0.3f, d.zoneout_hidden = 0.4f, d.weight_drop = 0.5f;
    d.cell_clip = 6, d.gate_clip = 7, d.layer_norm_epsilon = 0.01f;
    return d;
}

static void set_both(struct seqlstm_recurrent_desc *d, int place, uint32_t kind)
{
    for (int k = 0; k < 2; k++)
        d->activations[place][k] = (struct seqlstm_activation){.kind = kind};
}

/* What each option leaves. */
static void remove_by_hand(struct seqlstm_recurrent_desc *d, uint32_t option)
{
    if (option == SEQLSTM_OPTION_ACTIVATION)
        set_both(d, SEQLSTM_PLACE_CANDIDATE, SEQLSTM_ACT_TANH);
    if (option == SEQLSTM_OPTION_RECURRENT_ACTIVATION)
        set_both(d, SEQLSTM_PLACE_GATE, SEQLSTM_ACT_SIGMOID);
    if (option == SEQLSTM_OPTION_OUTPUT_ACTIVATION)
        set_both(d, SEQLSTM_PLACE_OUTPUT, SEQLSTM_ACT_TANH);
    if (option == SEQLSTM_OPTION_DIRECTION) {
        d->direction = SEQLSTM_DIRECTION_FORWARD, d->merge = 0;
        for (int place = 0; place < 3; place++)
            memset(&d->activations[place][1], 0, sizeof d->activations[place][1]);
    }
    if (option == SEQLSTM_OPTION_LAYER_NORM)
        d->layer_norm_epsilon = 0;
    if (option == SEQLSTM_OPTION_ZONEOUT)
        d->zoneout_hidden = 0;
}

static void an_option_is_removed_alone(void **state)
{
#define FIELD(option, member, left)                                                                                    \
    {                                                                                                                  \
        SEQLSTM_OPTION_##option, offsetof(struct seqlstm_recurrent_desc, member), left                                 \
    }
    enum { NONE = 0 };
    static const struct {
        uint32_t option;
        size_t offset;
        uint32_t left; /* the four bytes of the field */
    } fields[] = {
        {SEQLSTM_OPTION_ACTIVATION, NONE, 0},
        {SEQLSTM_OPTION_RECURRENT_ACTIVATION, NONE, 0},
        {SEQLSTM_OPTION_OUTPUT_ACTIVATION, NONE, 0},
        {SEQLSTM_OPTION_DIRECTION, NONE, 0},
        FIELD(MERGE, merge, SEQLSTM_KIND_MERGE_CONCAT),
        FIELD(PROJECTION, projection, 0),
        FIELD(USE_BIAS, options,
              SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES |
                  SEQLSTM_BIT_RECURRENT_LAYER_NORM),
        FIELD(PEEPHOLE, options, SEQLSTM_BIT_RECURRENT_COUPLED_GATES | SEQLSTM_BIT_RECURRENT_LAYER_NORM),
        FIELD(COUPLED_GATES, options, SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_LAYER_NORM),
        FIELD(LAYER_NORM, options, SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES),
        FIELD(RESET_AFTER, options,
              SEQLSTM_BIT_RECURRENT_RESET_AFTER | SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_COUPLED_GATES |
                  SEQLSTM_BIT_RECURRENT_LAYER_NORM),
        FIELD(CELL_CLIP, cell_clip, 0),
        FIELD(GATE_CLIP, gate_clip, 0),
        FIELD(DROPOUT, dropout, 0),
        FIELD(RECURRENT_DROPOUT, recurrent_dropout, 0),
        FIELD(ZONEOUT, zoneout_cell, 0),
        FIELD(WEIGHT_DROP, weight_drop, 0),
    };
#undef FIELD
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        union seqlstm_any_desc got, wanted;
        memset(&got, 0, sizeof got);
        got.recurrent = make_full();
        wanted = got;
        remove_by_hand(&wanted.recurrent, fields[i].option);
        if (fields[i].offset != NONE)
            memcpy((char *)&wanted.recurrent + fields[i].offset, &fields[i].left, sizeof fields[i].left);
        assert_true(sl_desc_remove_option(&got, fields[i].option));
        if (memcmp(&got, &wanted, sizeof got) != 0)
            fail_msg("option %u is not removed, or another one is", fields[i].option);
        if (fields[i].option != SEQLSTM_OPTION_RESET_AFTER) {
            assert_false(sl_desc_remove_option(&got, fields[i].option)); /* it is gone */
            assert_memory_equal(&got, &wanted, sizeof got);
        }
    }
}

static void other_operations_keep_theirs(void **state)
{
    (void)state;
    union seqlstm_any_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.recurrent = make_full();
    assert_false(sl_desc_remove_option(&desc, SEQLSTM_OPTION_NONE));
    desc.recurrent.direction = SEQLSTM_DIRECTION_FORWARD; /* the second place is not used then */
    assert_true(sl_desc_remove_option(&desc, SEQLSTM_OPTION_ACTIVATION));
    assert_int_equal(desc.recurrent.activations[SEQLSTM_PLACE_CANDIDATE][0].kind, SEQLSTM_ACT_TANH);
    assert_int_equal(desc.recurrent.activations[SEQLSTM_PLACE_CANDIDATE][1].kind, SEQLSTM_ACT_ELU);
    memset(&desc, 0, sizeof desc);
    desc.head.op = SEQLSTM_OP_DENSE;
    desc.dense.input = 3, desc.dense.output = 4, desc.dense.activation.kind = SEQLSTM_ACT_RELU;
    assert_false(sl_desc_remove_option(&desc, SEQLSTM_OPTION_DROPOUT));
    assert_true(sl_desc_remove_option(&desc, SEQLSTM_OPTION_ACTIVATION));
    assert_int_equal(desc.dense.activation.kind, SEQLSTM_ACT_NONE);
    assert_int_equal(desc.dense.input, 3);
    assert_int_equal(desc.dense.output, 4);
    assert_false(sl_desc_remove_option(&desc, SEQLSTM_OPTION_ACTIVATION));
    desc.head.op = SEQLSTM_OP_ACTIVATION;
    assert_false(sl_desc_remove_option(&desc, SEQLSTM_OPTION_ACTIVATION));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_are_those_of_the_lengths),
        cmocka_unit_test(similar_work_predicts),
        cmocka_unit_test(an_option_is_removed_alone),
        cmocka_unit_test(other_operations_keep_theirs),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
