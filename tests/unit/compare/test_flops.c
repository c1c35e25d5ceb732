/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of products, against a count of one multiplication and one addition for each weight that a row
 * meets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "measure/flops.h"
#include "oom.h"

static double count(const struct sl_node *node, int64_t rows, bool backward, bool input_grad)
{
    return sl_flops_count(node, rows, backward, input_grad);
}

struct layer {
    uint32_t cell, direction, merge;
    int64_t layers, input, hidden, projection;
};

/* Weights that meet a row: those that read the layer's input, and all others. */
static void count_weights(const struct layer *l, double *out_input, double *out_rest)
{
    const double gates = l->cell == SEQLSTM_CELL_LSTM ? 4 : l->cell == SEQLSTM_CELL_GRU ? 3 : 1;
    const int directions = l->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    const int64_t out = l->projection ? l->projection : l->hidden;
    *out_input = *out_rest = 0;
    for (int64_t k = 0; k < l->layers; k++)
        for (int d = 0; d < directions; d++) {
            const bool both = directions == 2 && l->merge == SEQLSTM_KIND_MERGE_CONCAT;
            const double reads = k == 0 ? (double)l->input : (double)(both ? 2 * out : out);
            *(k == 0 ? out_input : out_rest) += gates * (double)l->hidden * reads;
            *out_rest += gates * (double)l->hidden * (double)out + (double)(l->hidden * l->projection);
        }
}

static void recurrent_layers(void **state)
{
    static const struct layer layers[] = {
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_FORWARD, 0, 1, 3, 5, 0},
        {SEQLSTM_CELL_GRU, SEQLSTM_DIRECTION_BACKWARD, 0, 2, 3, 5, 0},
        {SEQLSTM_CELL_RNN, SEQLSTM_DIRECTION_FORWARD, 0, 3, 7, 2, 0},
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_BIDIRECTIONAL, SEQLSTM_KIND_MERGE_CONCAT, 3, 4, 6, 0},
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_BIDIRECTIONAL, SEQLSTM_KIND_MERGE_SUM, 3, 4, 6, 2},
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_BIDIRECTIONAL, SEQLSTM_KIND_MERGE_CONCAT, 2, 9, 5, 3},
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_FORWARD, 0, 2, 9, 5, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const struct layer *l = &layers[i];
        struct sl_node node;
        double input, rest;
        memset(&node, 0, sizeof node);
        node.desc.recurrent = (struct seqlstm_recurrent_desc){.head.op = SEQLSTM_OP_RECURRENT,
                                                              .cell = l->cell,
                                                              .direction = l->direction,
                                                              .merge = l->merge,
                                                              .layers = l->layers,
                                                              .input = l->input,
                                                              .hidden = l->hidden,
                                                              .projection = l->projection};
        count_weights(l, &input, &rest);
        assert_true(count(&node, 11, false, false) == 11 * 2 * (input + rest));
        assert_true(count(&node, 11, false, true) == 11 * 2 * (input + rest));
        assert_true(count(&node, 11, true, true) == 3 * 11 * 2 * (input + rest));
        assert_true(count(&node, 11, true, false) == 11 * 2 * (2 * input + 3 * rest));
        assert_true(count(&node, 0, true, true) == 0);
    }
}

static void other_operations(void **state)
{
    (void)state;
    struct sl_node node;
    memset(&node, 0, sizeof node);
    node.desc.dense = (struct seqlstm_dense_desc){.head.op = SEQLSTM_OP_DENSE, .input = 3, .output = 7};
    assert_true(count(&node, 5, false, false) == 2 * 3 * 7 * 5);
    assert_true(count(&node, 5, true, false) == 2 * 2 * 3 * 7 * 5);
    assert_true(count(&node, 5, true, true) == 3 * 2 * 3 * 7 * 5);
    memset(&node, 0, sizeof node);
    node.desc.dense_loss = (struct seqlstm_dense_loss_desc){.head.op = SEQLSTM_OP_DENSE_LOSS, .input = 4, .output = 9};
    assert_true(count(&node, 5, false, false) == 2 * 4 * 9 * 5);
    assert_true(count(&node, 5, true, true) == 3 * 2 * 4 * 9 * 5);
    memset(&node, 0, sizeof node);
    node.desc.head.op = SEQLSTM_OP_LAYER_NORM;
    assert_true(count(&node, 5, true, true) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrent_layers),
        cmocka_unit_test(other_operations),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
