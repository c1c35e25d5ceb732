/* SPDX-License-Identifier: Apache-2.0 */
/* The buffers of a plan: at which offset every tensor lies, and how much memory a run needs. Private to core/dispatch.
 *
 * The folder: layout (offsets and sizes), footprint (asks backends what they really use), touched (which pages are
 * really used), sizes (what backends allocate for themselves). */
#ifndef SL_DISPATCH_MEMORY_LAYOUT_H
#define SL_DISPATCH_MEMORY_LAYOUT_H

#include "dispatch/plan/plan.h"

/* Fills tensor_offsets, grad_offsets, activation_bytes, scratch_grad_offset, reserve, packed and workspace of a
 * plan whose calls are chosen, and the memory table. Errors: NO_MEMORY; INVALID_CONFIG when a size overflows. */
seqlstm_status sl_plan_lay_out(struct sl_plan *plan, struct sl_call *calls, int32_t optimizer_states,
                               struct seqlstm_error *err);

/* For the memory table: what the process holds besides the plan's buffers now, and the most that it has held. */
void sl_plan_set_process(struct sl_plan *plan, int64_t resident_bytes, int64_t reached_bytes);

#endif
