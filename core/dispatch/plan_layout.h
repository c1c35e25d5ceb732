/* SPDX-License-Identifier: Apache-2.0 */
/* Where every tensor of a plan lives. Private to core/dispatch. */
#ifndef SL_DISPATCH_PLAN_LAYOUT_H
#define SL_DISPATCH_PLAN_LAYOUT_H

#include "dispatch/plan.h"

/* Fills tensor_offsets, grad_offsets, activation_bytes, scratch_grad_offset, reserve, packed and workspace of a
 * plan whose calls are chosen, and the memory table. Errors: NO_MEMORY; INVALID_CONFIG when a size overflows. */
seqlstm_status sl_plan_lay_out(struct sl_plan *plan, struct sl_call *calls, int32_t optimizer_states,
                               struct seqlstm_error *err);

/* Fills the devices of a plan whose calls are chosen. Errors: NO_MEMORY. */
seqlstm_status sl_plan_list_devices(struct sl_plan *plan, struct seqlstm_error *err);

#endif
