/* SPDX-License-Identifier: Apache-2.0 */
/* Would this backend run this operation of the graph, with which variant, and if not, why not? */
#ifndef SL_JUDGE_OFFER_H
#define SL_JUDGE_OFFER_H

#include "registry/registry.h"
#include "graph/graph.h"

struct sl_offer {
    bool accepted;
    uint32_t device;
    char variant[SEQLSTM_MAX_VARIANT_BYTES]; /* accepted: the first variant that could be created */
    bool no_operation;                       /* refused: the backend does not have this operation */
    const char *option;                      /* refused: the key in the model file; "" for the whole operation */
    struct sl_place place;                   /* the place of that option */
    char value[SL_OPTION_VALUE_BYTES];
    char reason[sizeof((struct seqlstm_answer *)0)->reason];
};

/* Asks, and creates the operation once to be sure. `variant` NULL: any. Errors: INTERNAL if the plugin gave no
 * answer; NO_MEMORY or DEVICE from creating the operation. */
seqlstm_status sl_offer_ask(const struct sl_backend *backend, const struct sl_graph *graph, const struct sl_node *node,
                            const char *variant, struct sl_offer *out_offer, struct seqlstm_error *err);

#endif
