/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of a recurrent stack, and its table. */
#include "recurrent.h"

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_recurrent_desc *d = &desc->recurrent;
    const int64_t gh = ref_gates_of(d) * d->hidden, out = ref_out_of(d), ld = d->layers * ref_directions_of(d);
    const bool lstm = d->cell == SEQLSTM_CELL_LSTM;
    const uint32_t o = d->options;
    const int64_t h_elems = extent->states * out, c_elems = lstm ? extent->states * d->hidden : 0;
    const bool initial = o & SEQLSTM_BIT_RECURRENT_INITIAL_STATE, final = o & SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    const int64_t bias = o & SEQLSTM_BIT_RECURRENT_RESET_AFTER ? 4 * d->hidden : gh;
    ref_slot_set(&slot[SEQLSTM_SLOT_RECURRENT_X], REF_INPUT, extent->rows * d->input);
    ref_slot_set(&slot[SEQLSTM_SLOT_RECURRENT_Y], REF_OUTPUT,
                 o & SEQLSTM_BIT_RECURRENT_OUTPUT ? extent->rows * ref_merged_of(d) : 0);
    for (int64_t n = 0; n < ld; n++) {
        const int64_t input = n < ref_directions_of(d) ? d->input : ref_merged_of(d);
        struct ref_slot *state = &slot[SEQLSTM_SLOT_RECURRENT_STATE(n, 0)];
        struct ref_slot *param = &slot[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, 0)];
        ref_slot_set(&state[SEQLSTM_STATE_H0], REF_STATE, initial ? h_elems : 0);
        ref_slot_set(&state[SEQLSTM_STATE_C0], REF_STATE, initial ? c_elems : 0);
        ref_slot_set(&state[SEQLSTM_STATE_HN], REF_OUTPUT, final ? h_elems : 0);
        ref_slot_set(&state[SEQLSTM_STATE_CN], REF_OUTPUT, final ? c_elems : 0);
        ref_slot_set(&param[SEQLSTM_PARAM_W_X], REF_PARAM, gh * input);
        ref_slot_set(&param[SEQLSTM_PARAM_W_H], REF_PARAM, gh * out);
        ref_slot_set(&param[SEQLSTM_PARAM_BIAS], REF_PARAM, o & SEQLSTM_BIT_RECURRENT_USE_BIAS ? bias : 0);
        ref_slot_set(&param[SEQLSTM_PARAM_PEEPHOLE], REF_PARAM, o & SEQLSTM_BIT_RECURRENT_PEEPHOLE ? 3 * d->hidden : 0);
        ref_slot_set(&param[SEQLSTM_PARAM_PROJECTION], REF_PARAM, d->projection * d->hidden);
        ref_slot_set(&param[SEQLSTM_PARAM_NORM], REF_PARAM,
                     o & SEQLSTM_BIT_RECURRENT_LAYER_NORM ? 2 * gh + (lstm ? 2 * d->hidden : 0) : 0);
    }
    return (int32_t)SEQLSTM_SLOT_RECURRENT_COUNT(ld);
}

static int64_t reserve_elems(const union seqlstm_any_desc *desc, const struct ref_extent *extent)
{
    return ref_stack_reserve(&desc->recurrent, extent->rows);
}

const struct ref_family ref_recurrent = {.slots = slots,
                                         .scratch_elems = ref_stack_scratch,
                                         .reserve_elems = reserve_elems,
                                         .forward = ref_recurrent_forward,
                                         .backward = ref_recurrent_backward};
