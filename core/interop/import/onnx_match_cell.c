/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the attributes of ONNX's recurrent operators with the options of a layer. */
#include <stdio.h>
#include <string.h>

#include "interop/onnx_cell.h"
#include "interop/import/onnx_match.h"

static bool is_same_activation(const struct seqlstm_activation *ours, const struct seqlstm_activation *theirs)
{
    const struct sl_onnx_activation *named = sl_onnx_activation_get(theirs->kind);
    bool ours_is_none = ours->kind == SEQLSTM_ACT_NONE;
    if (ours_is_none ? theirs->kind != SEQLSTM_ACT_AFFINE : theirs->kind != ours->kind)
        return false;
    return (!named->has_alpha || (ours_is_none ? 1.0f : ours->alpha) == theirs->alpha) &&
           (!named->has_beta || (ours_is_none ? 0.0f : ours->beta) == theirs->beta);
}

/* ONNX lists f, g and h of each direction. The lists alpha and beta have one number for each of those that takes
 * one, in the same order. */
static seqlstm_status check_activations(const struct sl_onnx_match *m, const struct sl_node *node,
                                        const struct sl_onnx_cell_use *use, int32_t ours, int32_t theirs)
{
    static const char *const defaults[] = {"Sigmoid", "Tanh", "Tanh"};
    static const uint32_t options[] = {SEQLSTM_OPTION_RECURRENT_ACTIVATION, SEQLSTM_OPTION_ACTIVATION,
                                       SEQLSTM_OPTION_OUTPUT_ACTIVATION};
    static const char *const keys[] = {"recurrent_activation", "activation", "output_activation"};
    const struct sl_onnx_cell *cell = sl_onnx_cell_get(&node->desc.recurrent);
    const struct sl_onnx_attribute *names = sl_onnx_node_find_attribute(use->node, "activations");
    const struct sl_onnx_attribute *alphas = sl_onnx_node_find_attribute(use->node, "activation_alpha");
    const struct sl_onnx_attribute *betas = sl_onnx_node_find_attribute(use->node, "activation_beta");
    int32_t at = 0, alpha = 0, beta = 0;
    for (int32_t d = 0; d < use->directions; d++)
        for (int32_t place = cell->first_place; place <= cell->last_place; place++, at++) {
            struct seqlstm_activation found;
            const char *name = names && names->texts && at < names->count ? names->texts[at] : defaults[place];
            char text[96];
            if (!sl_onnx_activation_find(name, &found))
                return sl_onnx_match_fail_option(m, node, use->node, options[place], keys[place],
                                                 "an activation that ONNX does not have");
            const struct sl_onnx_activation *named = sl_onnx_activation_get(found.kind);
            if (named->has_alpha && alphas && alphas->floats && alpha < alphas->count)
                found.alpha = alphas->floats[alpha++];
            if (named->has_beta && betas && betas->floats && beta < betas->count)
                found.beta = betas->floats[beta++];
            if (d != theirs || is_same_activation(&node->desc.recurrent.activations[place][ours], &found))
                continue;
            snprintf(text, sizeof text, "%s (alpha %g, beta %g)", name, (double)found.alpha, (double)found.beta);
            return sl_onnx_match_fail_option(m, node, use->node, options[place], keys[place], text);
        }
    return SEQLSTM_OK;
}

static seqlstm_status check_direction(const struct sl_onnx_match *m, const struct sl_node *node,
                                      const struct sl_onnx_cell_use *use, int32_t ours, int32_t theirs)
{
    const struct sl_onnx_attribute *direction = sl_onnx_node_find_attribute(use->node, "direction");
    const char *said = direction && direction->text ? direction->text : "forward";
    bool is_reverse = strcmp(said, "reverse") == 0 || theirs == 1;
    bool wants_reverse = node->desc.recurrent.direction == SEQLSTM_DIRECTION_BACKWARD || ours == 1;
    char text[64], name[256];
    if (is_reverse == wants_reverse)
        return SEQLSTM_OK;
    if (use->directions == 2 && node->desc.recurrent.direction == SEQLSTM_DIRECTION_BIDIRECTIONAL) {
        seqlstm_error_set(m->err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                          "%s: the halves of %s are swapped: the file joins what it computes backward before what it "
                          "computes forward, and layer `%s` the other way round; describe it as a layer with "
                          "`direction: backward`, one with `direction: forward` and a `concat` of both, in this order",
                          m->path, sl_onnx_describe_node(use->node, name, sizeof name), node->name);
        return sl_onnx_match_set_place(m, node, SEQLSTM_OPTION_DIRECTION);
    }
    snprintf(text, sizeof text, "direction %s", said);
    return sl_onnx_match_fail_option(m, node, use->node, SEQLSTM_OPTION_DIRECTION, "direction", text);
}

static bool is_given(const struct sl_onnx_constant *weights)
{
    return weights && !sl_onnx_constant_is_all(weights, 0);
}

static seqlstm_status check_width(const struct sl_onnx_match *m, const struct sl_node *node,
                                  const struct sl_onnx_cell_use *use)
{
    const struct seqlstm_recurrent_desc *desc = &node->desc.recurrent;
    const struct sl_onnx_cell *cell = sl_onnx_cell_get(desc);
    int64_t rows = cell->gates * desc->hidden;
    const struct {
        const char *what;
        int64_t elems;
    } wanted[] = {{"W", rows * desc->input}, {"R", rows * desc->hidden}, {"B", 2 * rows}, {"P", 3 * desc->hidden}};
    for (int k = 0; k < 4; k++)
        if (use->weights[k] && use->weights[k]->elems != use->directions * wanted[k].elems) {
            char text[256];
            SEQLSTM_FAIL(m->err, SEQLSTM_CORRUPT_DATA,
                         "%s: %s of %s has %lld numbers, but layer `%s` wants %lld: another width", m->path,
                         wanted[k].what, sl_onnx_describe_node(use->node, text, sizeof text),
                         (long long)use->weights[k]->elems, node->name, (long long)(use->directions * wanted[k].elems));
        }
    return SEQLSTM_OK;
}

seqlstm_status sl_onnx_match_cell(const struct sl_onnx_match *m, const struct sl_node *ours,
                                  const struct sl_onnx_cell_use *use, int32_t our_direction, int32_t their_direction)
{
    const struct seqlstm_recurrent_desc *desc = &ours->desc.recurrent;
    float clip = sl_onnx_node_get_float(use->node, "clip", 0);
    bool is_coupled = sl_onnx_node_get_int(use->node, "input_forget", 0) != 0;
    bool is_after = sl_onnx_node_get_int(use->node, "linear_before_reset", 0) != 0;
    char text[64];
    if (desc->projection || desc->cell_clip > 0 || desc->zoneout_cell > 0 || desc->zoneout_hidden > 0 ||
        (desc->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM))
        return sl_onnx_match_fail_option(m, ours, use->node, SEQLSTM_OPTION_CELL, "type",
                                         "no projection, cell_clip, zoneout and layer_norm");
    SEQLSTM_TRY(check_direction(m, ours, use, our_direction, their_direction));
    if (clip != desc->gate_clip) {
        snprintf(text, sizeof text, "clip %g", (double)clip);
        return sl_onnx_match_fail_option(m, ours, use->node, SEQLSTM_OPTION_GATE_CLIP, "gate_clip", text);
    }
    if (is_coupled != ((desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES) != 0))
        return sl_onnx_match_fail_option(m, ours, use->node, SEQLSTM_OPTION_COUPLED_GATES, "coupled_gates",
                                         is_coupled ? "input_forget 1" : "input_forget 0");
    if (desc->cell == SEQLSTM_CELL_GRU && is_after != ((desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER) != 0))
        return sl_onnx_match_fail_option(m, ours, use->node, SEQLSTM_OPTION_RESET_AFTER, "reset_after",
                                         is_after ? "linear_before_reset 1" : "linear_before_reset 0");
    if (is_given(use->weights[2]) && !(desc->options & SEQLSTM_BIT_RECURRENT_USE_BIAS))
        return sl_onnx_match_fail_option(m, ours, use->node, SEQLSTM_OPTION_USE_BIAS, "use_bias", "biases");
    if (is_given(use->weights[3]) && !(desc->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE))
        return sl_onnx_match_fail_option(m, ours, use->node, SEQLSTM_OPTION_PEEPHOLE, "peephole", "peepholes");
    SEQLSTM_TRY(check_width(m, ours, use));
    return check_activations(m, ours, use, our_direction, their_direction);
}
