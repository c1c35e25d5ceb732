/* SPDX-License-Identifier: Apache-2.0 */
/* Which units two parties are compared on, and who runs the rest. */
#ifndef SL_COMPARE_PAIRING_H
#define SL_COMPARE_PAIRING_H

#include "compare/party.h"

struct sl_pair {
    int32_t unit;
    bool compared;
    struct sl_party_choice a, b; /* equal where it is not compared */
};

/* The units of one plan, in order: a coarser unit where both accept it, else its parts; what is pinned in the model
 * stays with its pin. `sides_help`: what is not compared may run on one of the compared backends, since both sides
 * have the same under its id. `*out_pairs` [*out_count] in `arena`. Errors: UNAVAILABLE when some unit is run by
 * nobody in common, or when nothing is compared, with the refusals. */
seqlstm_status sl_pairing_create(struct sl_arena *arena, const struct sl_graph *graph, const struct sl_party_facts *a,
                                 const struct sl_party_facts *b, bool sides_help, struct sl_pair **out_pairs,
                                 int32_t *out_count, struct seqlstm_error *err);

#endif
