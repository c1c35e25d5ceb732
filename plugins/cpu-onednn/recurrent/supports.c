/* SPDX-License-Identifier: Apache-2.0 */
/* Which recurrent layers the library's primitives can compute, and why not the others. */
#include "cpu-onednn/recurrent/recurrent.h"

static bool refuse_option(struct seqlstm_answer *answer, uint32_t option, const char *reason, const char *hint,
                          const char *value)
{
    return answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, option, reason, hint, "%s", value);
}

static bool check_activations(const struct seqlstm_recurrent_desc *d, struct seqlstm_answer *answer)
{
    const int directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    for (int i = 0; i < directions; i++) {
        const uint32_t gate = d->activations[SEQLSTM_PLACE_GATE][i].kind;
        const uint32_t candidate = d->activations[SEQLSTM_PLACE_CANDIDATE][i].kind;
        const uint32_t output = d->activations[SEQLSTM_PLACE_OUTPUT][i].kind;
        if (d->cell == SEQLSTM_CELL_RNN) {
            if (candidate != SEQLSTM_ACT_TANH && candidate != SEQLSTM_ACT_RELU && candidate != SEQLSTM_ACT_SIGMOID)
                return refuse_option(answer, SEQLSTM_OPTION_ACTIVATION,
                                     "oneDNN's simple RNN supports only tanh, relu and sigmoid.", "activation: tanh",
                                     answer_activation_name(candidate));
            if (candidate != d->activations[SEQLSTM_PLACE_CANDIDATE][0].kind)
                return refuse_option(answer, SEQLSTM_OPTION_ACTIVATION,
                                     "cpu-onednn uses the same activation in both directions.", "",
                                     answer_activation_name(candidate));
            continue;
        }
        if (gate != SEQLSTM_ACT_SIGMOID)
            return refuse_option(answer, SEQLSTM_OPTION_RECURRENT_ACTIVATION, "oneDNN's gates are always sigmoids.",
                                 "recurrent_activation: sigmoid", answer_activation_name(gate));
        if (candidate != SEQLSTM_ACT_TANH)
            return refuse_option(answer, SEQLSTM_OPTION_ACTIVATION, "oneDNN's candidate is always tanh.",
                                 "activation: tanh", answer_activation_name(candidate));
        if (d->cell == SEQLSTM_CELL_LSTM && output != SEQLSTM_ACT_TANH)
            return refuse_option(answer, SEQLSTM_OPTION_OUTPUT_ACTIVATION, "oneDNN's output activation is always tanh.",
                                 "output_activation: tanh", answer_activation_name(output));
    }
    return true;
}

/* Refuses options that the primitives do not have, and masks, which only exist in training. */
static bool check_options(const struct seqlstm_recurrent_desc *d, struct seqlstm_answer *answer)
{
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING;
    const struct {
        double value; /* 0: off */
        uint32_t option;
        bool training_only, flag;
        const char *reason;
    } refused[] = {
        {(d->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) != 0, SEQLSTM_OPTION_COUPLED_GATES, false, true,
         "oneDNN has no coupled gates."},
        {(d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) != 0, SEQLSTM_OPTION_LAYER_NORM, false, true,
         "oneDNN's cells have no layer normalisation."},
        {(d->options & SEQLSTM_BIT_RECURRENT_STEPWISE) != 0, SEQLSTM_OPTION_LENGTHS, false, true,
         "oneDNN computes weight gradients together with those of the inputs, not in a later call."},
        {(double)d->cell_clip, SEQLSTM_OPTION_CELL_CLIP, false, false, "oneDNN does not clip the cell."},
        {(double)d->gate_clip, SEQLSTM_OPTION_GATE_CLIP, false, false, "oneDNN does not clip the gates."},
        {(double)d->zoneout_cell, SEQLSTM_OPTION_ZONEOUT, false, false, "oneDNN has no zoneout."},
        {(double)d->zoneout_hidden, SEQLSTM_OPTION_ZONEOUT, false, false, "oneDNN has no zoneout."},
        {(double)d->dropout, SEQLSTM_OPTION_DROPOUT, true, false,
         "oneDNN has no masks on the input of a recurrent layer."},
        {(double)d->recurrent_dropout, SEQLSTM_OPTION_RECURRENT_DROPOUT, true, false,
         "oneDNN has no masks on the recurrent input."},
        {(double)d->weight_drop, SEQLSTM_OPTION_WEIGHT_DROP, true, false,
         "oneDNN has no masks on the recurrent weights."},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (refused[i].value == 0.0 || (refused[i].training_only && !training))
            continue;
        return refused[i].flag ? refuse_option(answer, refused[i].option, refused[i].reason, "", "true")
                               : answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, refused[i].option, refused[i].reason, "",
                                           "%g", refused[i].value);
    }
    return true;
}

bool odn_recurrent_supports(const union seqlstm_any_desc *desc, struct seqlstm_answer *answer)
{
    const struct seqlstm_recurrent_desc *d = &desc->recurrent;
    const bool low = d->head.dtype_compute != SEQLSTM_DTYPE_FLOAT32,
               bytes = d->head.dtype_compute == SEQLSTM_DTYPE_INT8;
    if (!check_activations(d, answer) || !check_options(d, answer))
        return false;
    if (d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL && d->merge == SEQLSTM_KIND_MERGE_MUL)
        return refuse_option(answer, SEQLSTM_OPTION_MERGE, "cpu-onednn cannot merge directions by multiplication.",
                             "merge: concat, sum or ave", "mul");
    if (d->projection > 0 && d->head.mode == SEQLSTM_MODE_TRAINING)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_COMBINATION, SEQLSTM_OPTION_PROJECTION,
                         "cpu-onednn cannot train a projection.", "a layer without projection", "%lld",
                         (long long)d->projection);
    if (low && (d->projection > 0 || (d->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE) || d->cell != SEQLSTM_CELL_LSTM))
        return answer_no(answer, SEQLSTM_BIT_REFUSED_COMBINATION, SEQLSTM_OPTION_DTYPE,
                         "cpu-onednn supports bfloat16 and int8 only for LSTMs without peepholes and projection.",
                         "precision: float32", bytes ? "int8" : "bfloat16");
    if (bytes && d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL && d->merge != SEQLSTM_KIND_MERGE_CONCAT)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_COMBINATION, SEQLSTM_OPTION_MERGE,
                         "cpu-onednn merges directions in int8 only by concat.", "merge: concat",
                         d->merge == SEQLSTM_KIND_MERGE_SUM ? "sum" : "ave");
    return true;
}
