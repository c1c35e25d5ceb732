/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/offer.h"

#include <string.h>

#include "base/value/text.h"
#include "dispatch/plan/refusal.h"
#include "registry/plugin.h"

static void refuse(struct sl_offer *offer, const char *reason)
{
    sl_text_snprintf(offer->reason, sizeof offer->reason, "%.250s", reason);
}

static seqlstm_status try_variants(const struct sl_backend *backend, const struct sl_node *node, const char *variant,
                                   const struct seqlstm_answer *answer, struct sl_offer *offer,
                                   struct seqlstm_error *err)
{
    const struct seqlstm_backend *table = sl_backend_get_table(backend);
    struct seqlstm_error refused = SEQLSTM_ERROR_INIT;
    for (uint32_t v = 0; v < answer->variant_count; v++) {
        struct seqlstm_op *op = NULL;
        if (variant && strcmp(variant, answer->variants[v]) != 0)
            continue;
        seqlstm_status status = sl_plugin_create_op(table, sl_backend_get_instance(backend), offer->device,
                                                    &node->desc.head, answer->variants[v], &op, &refused);
        if (status == SEQLSTM_OK) {
            sl_plugin_destroy_op(table, op);
            offer->accepted = true;
            memcpy(offer->variant, answer->variants[v], sizeof offer->variant);
            return SEQLSTM_OK;
        }
        if (status != SEQLSTM_UNSUPPORTED) {
            if (err)
                *err = refused;
            return status;
        }
    }
    if (refused.message[0])
        refuse(offer, refused.message);
    else
        sl_text_snprintf(offer->reason, sizeof offer->reason, "it has no variant `%.100s` for this operation", variant);
    return SEQLSTM_OK;
}

seqlstm_status sl_offer_ask(const struct sl_backend *backend, const struct sl_graph *graph, const struct sl_node *node,
                            const char *variant, struct sl_offer *out_offer, struct seqlstm_error *err)
{
    struct sl_offer offer = {.option = ""};
    struct seqlstm_answer answer;
    if (!sl_backend_find_device(backend, &offer.device)) {
        refuse(&offer, "it has no device whose memory this program fills");
        *out_offer = offer;
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(sl_backend_supports(backend, offer.device, &node->desc.head, &answer, err));
    if (answer.accepted) {
        SEQLSTM_TRY(try_variants(backend, node, variant, &answer, &offer, err));
    } else {
        struct sl_option_place option = sl_graph_find_option(graph, node, answer.option);
        offer.no_operation = (answer.code & SEQLSTM_BIT_REFUSED_OPERATION) != 0;
        offer.option = answer.option == SEQLSTM_OPTION_NONE ? "" : option.key;
        offer.place = option.place;
        sl_option_place_name_value(&option, answer.option, answer.value, offer.value);
        refuse(&offer, answer.reason);
    }
    *out_offer = offer;
    return SEQLSTM_OK;
}
