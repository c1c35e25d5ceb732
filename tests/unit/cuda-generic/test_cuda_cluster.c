/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on clusters of blocks, as far as the host decides: which shapes there are, where h may become large, and how a
 * batch is divided. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda-generic/recurrent/cluster/cluster_shape.h"

enum { ROOM = 227 * 1024 };

static struct seqlstm_recurrent_desc make_layer(uint32_t cell, int64_t hidden)
{
    struct seqlstm_recurrent_desc d = {.cell = cell, .hidden = hidden};
    d.activations[SEQLSTM_PLACE_GATE][0].kind = SEQLSTM_ACT_SIGMOID;
    d.activations[SEQLSTM_PLACE_CANDIDATE][0].kind = d.activations[SEQLSTM_PLACE_OUTPUT][0].kind = SEQLSTM_ACT_TANH;
    return d;
}

/* Every sequence has a cluster, none is empty, and no more of them run one after another than eight sequences per group
 * make necessary. */
static void divisions_are_complete(void **state)
{
    (void)state;
    for (int32_t together = 1; together <= 33; together += 4)
        for (int32_t most = 1; most <= CG_CLUSTER_GROUPS_MOST; most++)
            for (int64_t sequences = 1; sequences <= 1500; sequences += sequences < 70 ? 1 : 13) {
                const struct cg_cluster_share s = cg_cluster_divide(sequences, together, most);
                const int64_t each = s.groups * s.slots, full = s.groups * CG_CLUSTER_COLUMNS;
                assert_true(s.groups >= 1 && s.groups <= most && s.slots >= 1 && s.slots <= CG_CLUSTER_COLUMNS);
                assert_true(s.clusters * each >= sequences && (s.clusters - 1) * each < sequences);
                const int64_t waves = (s.clusters + together - 1) / together;
                assert_int_equal(waves, ((sequences + full - 1) / full + together - 1) / together);
            }
}

static void small_batches_use_all_clusters(void **state)
{
    (void)state;
    static const int32_t expected[][5] = {/* sequences, together, clusters, groups, slots */
                                          {1, 7, 1, 1, 1},    {7, 7, 7, 1, 1},  {32, 7, 7, 1, 5},
                                          {32, 15, 11, 1, 3}, {57, 7, 6, 2, 5}, {1024, 15, 30, 5, 7}};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        const struct cg_cluster_share s = cg_cluster_divide(expected[k][0], expected[k][1], 6);
        assert_int_equal(s.clusters, expected[k][2]);
        assert_int_equal(s.groups, expected[k][3]);
        assert_int_equal(s.slots, expected[k][4]);
    }
}

static void shapes_hold_the_layer(void **state)
{
    (void)state;
    struct cg_cluster c;
    for (int64_t hidden = 1; hidden <= 600; hidden++) {
        const struct seqlstm_recurrent_desc d = make_layer(SEQLSTM_CELL_LSTM, hidden);
        for (int32_t blocks = 4; blocks <= 16; blocks *= 2) {
            const bool exists = hidden >= 65 && hidden <= 512 &&
                                (hidden <= 128   ? blocks <= 8
                                 : hidden <= 256 ? blocks >= 8
                                                 : blocks == 16);
            assert_int_equal(cg_cluster_make(&d, blocks, ROOM, &c), exists);
            if (exists)
                assert_true(c.hidden >= hidden && c.hidden < 2 * hidden && c.blocks == blocks && c.parts == 2);
        }
    }
    const struct seqlstm_recurrent_desc large = make_layer(SEQLSTM_CELL_LSTM, 512);
    assert_false(cg_cluster_make(&large, 16, 99 * 1024, &c));
}

/* A block needs room for its head and for one group, in both passes, and not a byte more. */
static void a_shape_needs_room_for_one_group(void **state)
{
    static const int32_t shapes[][2] = {{128, 4}, {128, 8}, {256, 8}, {256, 16}, {512, 16}};
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (int linked = 0; linked < 2; linked++)
            for (int parts = 1; parts <= 2; parts++) {
                struct seqlstm_recurrent_desc d = make_layer(SEQLSTM_CELL_LSTM, shapes[k][0]);
                struct cg_cluster c;
                int32_t needed = 0;
                d.options = linked ? SEQLSTM_BIT_RECURRENT_LAYER_NORM : 0;
                d.head.dtype_compute = parts == 2 ? SEQLSTM_DTYPE_FLOAT32 : SEQLSTM_DTYPE_BFLOAT16;
                for (int back = 0; back < 2; back++) {
                    const struct cg_cluster_sizes s = cg_cluster_size(shapes[k][0], shapes[k][1], parts, linked, back);
                    needed = s.head + s.group > needed ? s.head + s.group : needed;
                }
                assert_true(cg_cluster_make(&d, shapes[k][1], needed, &c));
                assert_true(c.parts == parts && c.linked == linked && c.room == needed);
                assert_false(cg_cluster_make(&d, shapes[k][1], needed - 1, &c));
            }
}

static bool is_wild(const struct seqlstm_recurrent_desc *d)
{
    struct cg_cluster c;
    assert_true(cg_cluster_make(d, 8, ROOM, &c));
    assert_true(!c.wild || c.parts == 2);
    return c.wild;
}

static void growing_states_are_noticed(void **state)
{
    (void)state;
    struct seqlstm_recurrent_desc lstm = make_layer(SEQLSTM_CELL_LSTM, 100), gru = make_layer(SEQLSTM_CELL_GRU, 100);
    struct seqlstm_recurrent_desc rnn = make_layer(SEQLSTM_CELL_RNN, 100);
    assert_false(is_wild(&lstm) || is_wild(&gru) || is_wild(&rnn));
    lstm.activations[SEQLSTM_PLACE_CANDIDATE][0].kind = SEQLSTM_ACT_RELU; /* c may grow, h not */
    gru.activations[SEQLSTM_PLACE_GATE][0].kind = SEQLSTM_ACT_TANH;       /* a negative update gate */
    rnn.activations[SEQLSTM_PLACE_CANDIDATE][0].kind = SEQLSTM_ACT_RELU;
    assert_true(!is_wild(&lstm) && is_wild(&gru) && is_wild(&rnn));
    lstm.head.dtype_compute = SEQLSTM_DTYPE_BFLOAT16;
    lstm.activations[SEQLSTM_PLACE_OUTPUT][1].kind = SEQLSTM_ACT_RELU; /* of a direction that it lacks */
    assert_false(is_wild(&lstm));
    lstm.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    assert_true(is_wild(&lstm));
    lstm = make_layer(SEQLSTM_CELL_LSTM, 100);
    lstm.recurrent_dropout = 0.9999f; /* the others count ten thousand times */
    assert_true(is_wild(&lstm));
    lstm.recurrent_dropout = 0.5f;
    lstm.activations[SEQLSTM_PLACE_OUTPUT][0] =
        (struct seqlstm_activation){.kind = SEQLSTM_ACT_SCALED_TANH, .alpha = -1.7f, .beta = 0.6f};
    assert_false(is_wild(&lstm));
    lstm.activations[SEQLSTM_PLACE_OUTPUT][0].alpha = -1e4f;
    assert_true(is_wild(&lstm));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisions_are_complete),     cmocka_unit_test(small_batches_use_all_clusters),
        cmocka_unit_test(shapes_hold_the_layer),      cmocka_unit_test(a_shape_needs_room_for_one_group),
        cmocka_unit_test(growing_states_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
