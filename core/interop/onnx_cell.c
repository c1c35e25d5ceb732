/* SPDX-License-Identifier: Apache-2.0 */
/* What ONNX calls the parts of a cell. */
#include "interop/onnx_cell.h"

#include <strings.h>

const int32_t sl_onnx_peephole_order[3] = {0, 2, 1};

const struct sl_onnx_cell *sl_onnx_cell_get(const struct seqlstm_recurrent_desc *desc)
{
    static const struct sl_onnx_cell lstm = {.op = "LSTM",
                                             .gates = 4,
                                             .weight = {0, 3, 1, 2},
                                             .bias_home = {0, 3, 1, 2, -1, -1, -1, -1},
                                             .bias = {0, 3, 1, 2, 0, 3, 1, 2},
                                             .first_place = SEQLSTM_PLACE_GATE,
                                             .last_place = SEQLSTM_PLACE_OUTPUT};
    static const struct sl_onnx_cell gru = {.op = "GRU",
                                            .gates = 3,
                                            .weight = {1, 0, 2},
                                            .bias_home = {1, 0, 2, -1, -1, -1},
                                            .bias = {1, 0, 2, 1, 0, 2},
                                            .first_place = SEQLSTM_PLACE_GATE,
                                            .last_place = SEQLSTM_PLACE_CANDIDATE};
    static const struct sl_onnx_cell gru_reset_after = {.op = "GRU",
                                                        .gates = 3,
                                                        .weight = {1, 0, 2},
                                                        .bias_home = {1, 0, 2, -1, -1, 3},
                                                        .bias = {1, 0, 2, 1, 0, 3},
                                                        .first_place = SEQLSTM_PLACE_GATE,
                                                        .last_place = SEQLSTM_PLACE_CANDIDATE};
    static const struct sl_onnx_cell rnn = {.op = "RNN",
                                            .gates = 1,
                                            .weight = {0},
                                            .bias_home = {0, -1},
                                            .bias = {0, 0},
                                            .first_place = SEQLSTM_PLACE_CANDIDATE,
                                            .last_place = SEQLSTM_PLACE_CANDIDATE};
    if (desc->cell == SEQLSTM_CELL_LSTM)
        return &lstm;
    if (desc->cell == SEQLSTM_CELL_RNN)
        return &rnn;
    return desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER ? &gru_reset_after : &gru;
}

static const struct sl_onnx_activation activations[SEQLSTM_ACT_COUNT] = {
    [SEQLSTM_ACT_NONE] = {"Affine", true, true, 1.0f, 0.0f},
    [SEQLSTM_ACT_TANH] = {.name = "Tanh"},
    [SEQLSTM_ACT_SIGMOID] = {.name = "Sigmoid"},
    [SEQLSTM_ACT_RELU] = {.name = "Relu"},
    [SEQLSTM_ACT_LEAKY_RELU] = {"LeakyRelu", true, false, 0.01f, 0.0f},
    [SEQLSTM_ACT_THRESHOLDED_RELU] = {"ThresholdedRelu", true, false, 1.0f, 0.0f},
    [SEQLSTM_ACT_SCALED_TANH] = {"ScaledTanh", true, true, 1.0f, 1.0f},
    [SEQLSTM_ACT_HARD_SIGMOID] = {"HardSigmoid", true, true, 0.2f, 0.5f},
    [SEQLSTM_ACT_ELU] = {"Elu", true, false, 1.0f, 0.0f},
    [SEQLSTM_ACT_SOFTSIGN] = {.name = "Softsign"},
    [SEQLSTM_ACT_SOFTPLUS] = {.name = "Softplus"},
    [SEQLSTM_ACT_AFFINE] = {"Affine", true, true, 1.0f, 0.0f},
};

const struct sl_onnx_activation *sl_onnx_activation_get(uint32_t kind)
{
    return &activations[kind];
}

bool sl_onnx_activation_find(const char *name, struct seqlstm_activation *out_activation)
{
    for (uint32_t kind = SEQLSTM_ACT_NONE + 1; kind < SEQLSTM_ACT_COUNT; kind++)
        if (name && activations[kind].name && strcasecmp(activations[kind].name, name) == 0) {
            *out_activation = (struct seqlstm_activation){kind, activations[kind].alpha, activations[kind].beta, 0};
            return true;
        }
    return false;
}
