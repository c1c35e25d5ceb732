/* SPDX-License-Identifier: Apache-2.0 */
/* Which units two sides are compared on, and who runs the rest. */
#ifndef SL_COMPARE_MATCH_H
#define SL_COMPARE_MATCH_H

#include "compare/side.h"

struct sl_match {
    int32_t unit;
    bool compared;
    struct sl_compare_side_choice a, b; /* equal where it is not compared */
};

/* The units of one plan, in order: a coarser unit where both accept it, else its parts; what is pinned in the model
 * stays with its pin. `sides_help`: what is not compared may run on one of the compared backends, since both sides
 * have the same under its id. `*out_matches` [*out_count] in `arena`. Errors: UNAVAILABLE when some unit is run by
 * nobody in common, or when nothing is compared, with the refusals. */
seqlstm_status sl_matches_create(struct sl_arena *arena, const struct sl_graph *graph,
                                 const struct sl_compare_side_facts *a, const struct sl_compare_side_facts *b,
                                 bool sides_help, struct sl_match **out_matches, int32_t *out_count,
                                 struct seqlstm_error *err);

#endif
