/* SPDX-License-Identifier: Apache-2.0 */
/* See sizes.h. */
#include "dispatch/memory/sizes.h"

#include <stdlib.h>

#include "dispatch/cost/axes.h"
#include "dispatch/cost/estimate.h"
#include "dispatch/memory/footprint_query.h"

/* One side of the batches of an epoch, those without steps left out. */
struct epoch {
    struct sl_axes *axes;
    const struct seqlstm_axis **steps;
    uint32_t count;
};

static void epoch_deinit(struct epoch *epoch)
{
    for (uint32_t b = 0; b < epoch->count; b++)
        sl_axes_deinit(&epoch->axes[b]);
    free(epoch->axes);
    free(epoch->steps);
}

static seqlstm_status epoch_init(struct epoch *epoch, const struct sl_profiles *profiles, bool is_source,
                                 struct seqlstm_error *err)
{
    const size_t most = (size_t)profiles->epoch_count + 1;
    epoch->axes = calloc(most, sizeof *epoch->axes);
    epoch->steps = calloc(most, sizeof *epoch->steps);
    if (epoch->axes == NULL || epoch->steps == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the batches of an epoch");
    for (int32_t b = 0; b < profiles->epoch_count; b++) {
        struct sl_profile side = profiles->epoch[b];
        struct sl_axes *axes = &epoch->axes[epoch->count];
        side.lengths = is_source ? side.source_lengths : side.lengths;
        SEQLSTM_TRY(sl_axes_init(axes, &side, INT64_MAX, profiles->stream, err));
        if (axes->steps.rows == 0)
            sl_axes_deinit(axes);
        else
            epoch->steps[epoch->count++] = &axes->steps;
    }
    return SEQLSTM_OK;
}

static seqlstm_status find_own(const struct epoch *epoch, struct sl_call *call, struct seqlstm_error *err)
{
    const struct sl_footprint footprint = sl_footprint_of_call(call);
    if (epoch->count == 0)
        return SEQLSTM_OK;
    return sl_footprint_ask_own(&footprint, epoch->steps, epoch->count, SL_SHAPES_BOUND, &call->own_bytes, err);
}

static seqlstm_status profile_side(const struct sl_graph *graph, const struct sl_profiles *profiles, bool is_source,
                                   struct sl_call *calls, int32_t count, struct seqlstm_error *err)
{
    struct epoch epoch = {0};
    seqlstm_status status = epoch_init(&epoch, profiles, is_source, err);
    for (int32_t c = 0; c < count && status == SEQLSTM_OK; c++)
        if (!sl_call_is_in_loop(graph, &calls[c]) && sl_node_is_on_steps(graph, calls[c].node) &&
            sl_axis_is_source(sl_graph_get_axis(graph, calls[c].node)) == is_source)
            status = find_own(&epoch, &calls[c], err);
    epoch_deinit(&epoch);
    return status;
}

seqlstm_status sl_sizes_profile(const struct sl_graph *graph, const struct sl_profiles *profiles, struct sl_call *calls,
                                int32_t count, struct seqlstm_error *err)
{
    if (profiles == NULL)
        return SEQLSTM_OK;
    SEQLSTM_TRY(profile_side(graph, profiles, false, calls, count, err));
    return profile_side(graph, profiles, true, calls, count, err);
}
