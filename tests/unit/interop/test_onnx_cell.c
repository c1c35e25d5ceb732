/* SPDX-License-Identifier: Apache-2.0 */
/* The names, defaults and orders of ONNX's recurrent operators, written down from the operators' specification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "interop/onnx_cell.h"

/* "Default values are the same as of corresponding ONNX operators", and those for ScaledTanh and Affine, which have
 * none there, are 1 (and 0): as onnxruntime takes them. */
static void activations_have_their_defaults(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t kind;
        bool has_alpha, has_beta;
        float alpha, beta;
    } wanted[] = {
        {"Relu", SEQLSTM_ACT_RELU, false, false, 0, 0},
        {"Tanh", SEQLSTM_ACT_TANH, false, false, 0, 0},
        {"Sigmoid", SEQLSTM_ACT_SIGMOID, false, false, 0, 0},
        {"Affine", SEQLSTM_ACT_AFFINE, true, true, 1, 0},
        {"LeakyRelu", SEQLSTM_ACT_LEAKY_RELU, true, false, 0.01f, 0},
        {"ThresholdedRelu", SEQLSTM_ACT_THRESHOLDED_RELU, true, false, 1, 0},
        {"ScaledTanh", SEQLSTM_ACT_SCALED_TANH, true, true, 1, 1},
        {"HardSigmoid", SEQLSTM_ACT_HARD_SIGMOID, true, true, 0.2f, 0.5f},
        {"Elu", SEQLSTM_ACT_ELU, true, false, 1, 0},
        {"Softsign", SEQLSTM_ACT_SOFTSIGN, false, false, 0, 0},
        {"Softplus", SEQLSTM_ACT_SOFTPLUS, false, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct seqlstm_activation found = {.kind = 99};
        if (!sl_onnx_activation_find(wanted[i].name, &found) || found.kind != wanted[i].kind)
            fail_msg("%s is activation %u", wanted[i].name, found.kind);
        const struct sl_onnx_activation *named = sl_onnx_activation_get(found.kind);
        assert_string_equal(named->name, wanted[i].name);
        assert_true(named->has_alpha == wanted[i].has_alpha && named->has_beta == wanted[i].has_beta);
        if (memcmp(&found.alpha, &wanted[i].alpha, sizeof found.alpha) != 0 ||
            memcmp(&found.beta, &wanted[i].beta, sizeof found.beta) != 0)
            fail_msg("%s has alpha %g and beta %g", wanted[i].name, (double)found.alpha, (double)found.beta);
    }
    struct seqlstm_activation found;
    assert_true(sl_onnx_activation_find("hardsigmoid", &found) && found.kind == SEQLSTM_ACT_HARD_SIGMOID);
    assert_false(sl_onnx_activation_find("Gelu", &found));
    assert_false(sl_onnx_activation_find(NULL, &found));
    assert_string_equal(sl_onnx_activation_get(SEQLSTM_ACT_NONE)->name, "Affine");
}

/* ONNX: LSTM has i o f c, GRU z r h, RNN i; here: i f g o, r z n, h. */
static void gates_are_in_their_order(void **state)
{
    (void)state;
    static const struct {
        struct seqlstm_recurrent_desc desc;
        const char *op, *theirs, *ours;
    } cells[] = {
        {{.cell = SEQLSTM_CELL_LSTM}, "LSTM", "iofc", "ifco"},
        {{.cell = SEQLSTM_CELL_GRU}, "GRU", "zrh", "rzh"},
        {{.cell = SEQLSTM_CELL_GRU, .options = SEQLSTM_BIT_RECURRENT_RESET_AFTER}, "GRU", "zrh", "rzh"},
        {{.cell = SEQLSTM_CELL_RNN}, "RNN", "i", "i"},
    };
    for (size_t c = 0; c < sizeof cells / sizeof *cells; c++) {
        const struct sl_onnx_cell *cell = sl_onnx_cell_get(&cells[c].desc);
        const int32_t gates = (int32_t)strlen(cells[c].theirs);
        const bool own_bias = cells[c].desc.options & SEQLSTM_BIT_RECURRENT_RESET_AFTER; /* of R for the candidate */
        assert_string_equal(cell->op, cells[c].op);
        assert_int_equal(cell->gates, gates);
        for (int32_t k = 0; k < gates; k++) {
            const int32_t home = (int32_t)(strchr(cells[c].ours, cells[c].theirs[k]) - cells[c].ours);
            const bool apart = own_bias && cells[c].theirs[k] == 'h';
            assert_int_equal(cell->weight[k], home);
            assert_int_equal(cell->bias_home[k], home);
            assert_int_equal(cell->bias[k], home);
            assert_int_equal(cell->bias_home[gates + k], apart ? 3 : -1);
            assert_int_equal(cell->bias[gates + k], apart ? 3 : home);
        }
        assert_int_equal(cell->first_place,
                         cells[c].desc.cell == SEQLSTM_CELL_RNN ? SEQLSTM_PLACE_CANDIDATE : SEQLSTM_PLACE_GATE);
        assert_int_equal(cell->last_place,
                         cells[c].desc.cell == SEQLSTM_CELL_LSTM ? SEQLSTM_PLACE_OUTPUT : SEQLSTM_PLACE_CANDIDATE);
    }
    for (int k = 0; k < 3; k++) /* peepholes: i o f in ONNX, i f o here */
        assert_int_equal(sl_onnx_peephole_order[k], strchr("ifo", "iof"[k]) - "ifo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_have_their_defaults),
        cmocka_unit_test(gates_are_in_their_order),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
