/* SPDX-License-Identifier: Apache-2.0 */
/* The matches of a comparison: on which units the two sides are compared, and which backend runs the rest.
 *
 * A match is one unit of the graph (side.h) that runs. If it is compared, each side runs it on its own backend;
 * otherwise both run it on the same one. */
#ifndef SL_COMPARE_AB_MATCH_H
#define SL_COMPARE_AB_MATCH_H

#include "compare/side/side.h"

struct sl_match {
    int32_t unit;
    bool compared;
    struct sl_compare_side_choice a, b; /* equal if it is not compared */
};

/* Chooses the units that run, in order: a coarser unit if both sides accept it, otherwise its parts. A layer that
 * the model pins to a backend stays on it. `sides_help`: units that are not compared may run on one of the two
 * compared backends, since both sides have the same backend under its id. `*out_matches` [*out_count] lives in
 * `arena`. Errors: UNAVAILABLE, with the refusals, if no common backend runs a unit, or if nothing is compared. */
seqlstm_status sl_matches_create(struct sl_arena *arena, const struct sl_graph *graph,
                                 const struct sl_compare_side_facts *a, const struct sl_compare_side_facts *b,
                                 bool sides_help, struct sl_match **out_matches, int32_t *out_count,
                                 struct seqlstm_error *err);

#endif
