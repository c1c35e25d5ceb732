/* SPDX-License-Identifier: Apache-2.0 */
/* See places.h. */
#include "places.h"

#include <string.h>

static uint64_t take(uint64_t *end, uint64_t bytes)
{
    const uint64_t at = *end;
    *end += cdn_align(bytes);
    return at;
}

void cdn_places_make(struct cdn_places *places, const struct seqlstm_recurrent_desc *desc, const struct cdn_plan *plan,
                     int64_t rows, int64_t sequences, const struct cdn_session *sessions)
{
    const bool training = desc->head.mode == SEQLSTM_MODE_TRAINING;
    const int64_t output = cdn_output(desc), wider = output > desc->hidden ? output : desc->hidden;
    const uint64_t element = cdn_element_bytes(desc);
    const uint64_t input_bytes = (uint64_t)(rows * desc->input) * element;
    const uint64_t output_bytes = (uint64_t)(rows * cdn_width(desc)) * element;
    const uint64_t state_bytes = (uint64_t)(plan->nets[0].layers * cdn_directions(desc) * sequences * wider) * element;
    uint64_t end = 0, library = 0;
    memset(places, 0, sizeof *places);
    places->x = take(&end, input_bytes);
    places->y = take(&end, output_bytes);
    places->dx = take(&end, training ? input_bytes : 0);
    places->dy = take(&end, training ? output_bytes : 0);
    for (int k = 0; k < CDN_STATE_COUNT; k++)
        places->states[k] = take(&end, state_bytes);
    for (int k = 0; k < 2; k++)
        places->between[k] = take(&end, plan->count > 1 ? output_bytes : 0);
    places->input = take(&places->reserve_bytes, cdn_keeps_edges(desc) ? input_bytes : 0);
    places->gradients = take(&end, training ? plan->weight_bytes : 0);
    for (int32_t k = 0; k < plan->count; k++) {
        const struct cdn_net *net = &plan->nets[k];
        const uint64_t workspace = sessions != NULL ? sessions[k].workspace_bytes : net->workspace_bytes;
        library = workspace > library ? workspace : library;
        if (!training)
            continue;
        if (cdn_keeps_output(desc, plan, k))
            places->outputs[k] = take(&places->reserve_bytes, output_bytes);
        places->reserves[k] =
            take(&places->reserve_bytes, sessions != NULL ? sessions[k].reserve_bytes : net->reserve_bytes);
    }
    places->library = take(&end, library);
    places->workspace_bytes = end;
}
