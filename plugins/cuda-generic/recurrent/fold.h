/* SPDX-License-Identifier: Apache-2.0 */
/* Projections in the variants that run all steps in one launch.
 *
 * A step multiplies W_h by the h of the step before, which is W_p r; r is o * output(c) of all units. If nothing
 * happens to h between the two, the step multiplies F = W_h W_p by r. So the kernels run a layer without a projection
 * (`folded`), whose recurrent weights are F and whose h is r. All else is products of all rows:
 *
 *   forward    before the steps F, and the record z of first steps += W_h h0; after them h = W_p r
 *   backward   before the steps the gradient of r, W_p' (dy + dhn), without what comes from the step after, which the
 *              kernels add by F'; after them the whole gradient of h, which adds W_h' dz of the step after, and dh0
 *
 * Not for what changes h in each step (recurrent dropout, zoneout), nor with LAYER_NORM, which normalises W_h h and
 * the input of first steps by themselves, nor with STEPWISE. Those run in step_graph. */
#ifndef CG_FOLD_H
#define CG_FOLD_H

#include "cuda-generic/recurrent/recurrent.h"

/* The layers that the kernels of all steps run, from those with the projection. They stay as they are. */
void cg_fold_make_forward(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout);
void cg_fold_make_backward(const struct cg_call *call, const struct cg_stack *stack, const struct cg_layout *layout);

/* Before and after the steps of layer and direction n. [queue] */
seqlstm_status cg_fold_begin(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                             struct seqlstm_error *err);
seqlstm_status cg_fold_finish(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                              struct seqlstm_error *err);
seqlstm_status cg_fold_begin_back(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                                  struct seqlstm_error *err);
seqlstm_status cg_fold_finish_back(const struct cg_call *call, const struct cg_stack *stack, int64_t n,
                                   struct seqlstm_error *err);

#endif
