/* SPDX-License-Identifier: Apache-2.0 */
/* See touched.h. Activations are touched up to the rows of the largest batch. For workspace and reserves, backends
 * report which parts the calls on a batch leave idle; a page counts unless every batch leaves it idle. */
#include "dispatch/memory/touched.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/alignment.h"
#include "base/memory/pages.h"
#include "base/operation/op_signature.h"
#include "dispatch/cost/axes.h"
#include "dispatch/cost/estimate.h"
#include "dispatch/memory/footprint_query.h"

/* The batches of one side, except those without steps and those that the graph is not made for. */
struct side {
    struct sl_axes *axes;
    int32_t count;
    int64_t rows_most; /* of one of them; 0: there are none */
};

struct touched {
    const struct sl_plan *plan;
    struct side target, source;
    struct sl_pages activations, workspace, reserve;
    struct seqlstm_idle idle; /* what calls on one batch leave */
};

/* ---- batches ------------------------------------------------------------------------------------------- */

/* Is the graph made for such a batch? The batches of a test may be smaller than those of the profiles. */
static bool fits(const struct sl_graph *graph, const struct seqlstm_axis *axis, bool is_source)
{
    const struct sl_envelope *most = &graph->facts.envelope;
    return axis->sequences <= most->sequences && axis->rows <= (is_source ? most->source_rows : most->rows) &&
           axis->steps <= (is_source ? most->source_steps : most->steps);
}

static seqlstm_status add_batch(const struct sl_graph *graph, struct side *side, const struct sl_profile *batch,
                                bool is_source, bool stream, struct seqlstm_error *err)
{
    struct sl_profile one = *batch;
    struct sl_axes *axes = &side->axes[side->count];
    one.lengths = is_source ? one.source_lengths : one.lengths;
    SEQLSTM_TRY(sl_axes_init(axes, &one, INT64_MAX, stream, err));
    if (axes->steps.rows == 0 || !fits(graph, &axes->steps, is_source)) {
        sl_axes_deinit(axes);
        return SEQLSTM_OK;
    }
    if (axes->steps.rows > side->rows_most)
        side->rows_most = axes->steps.rows;
    side->count++;
    return SEQLSTM_OK;
}

static seqlstm_status open_side(const struct sl_graph *graph, struct side *side, const struct sl_profiles *profiles,
                                bool is_source, struct seqlstm_error *err)
{
    side->axes = calloc((size_t)profiles->count + (size_t)profiles->epoch_count + 1, sizeof *side->axes);
    if (side->axes == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the batches of an epoch");
    for (int32_t p = 0; p < profiles->count; p++)
        SEQLSTM_TRY(add_batch(graph, side, &profiles->items[p], is_source, profiles->stream, err));
    for (int32_t b = 0; b < profiles->epoch_count; b++)
        SEQLSTM_TRY(add_batch(graph, side, &profiles->epoch[b], is_source, profiles->stream, err));
    return SEQLSTM_OK;
}

static void close_side(struct side *side)
{
    for (int32_t b = 0; b < side->count; b++)
        sl_axes_deinit(&side->axes[b]);
    free(side->axes);
}

/* ---- workspace and reserve ----------------------------------------------------------------------------- */

/* Touches `bytes` bytes from `begin` on, except the idle parts. */
static void touch_rest(struct sl_pages *pages, int64_t begin, uint64_t bytes, const struct seqlstm_ranges *idle)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < idle->count; i++) {
        sl_pages_touch(pages, begin + (int64_t)at, begin + (int64_t)idle->at[i].begin);
        at = idle->at[i].end;
    }
    sl_pages_touch(pages, begin + (int64_t)at, begin + (int64_t)bytes);
}

static seqlstm_status touch_call(struct touched *t, const struct sl_call *call, const struct seqlstm_axis *axis,
                                 struct seqlstm_error *err)
{
    const struct seqlstm_sizes *bounds = &call->sizes;
    const struct sl_footprint footprint = sl_footprint_of_call(call);
    SEQLSTM_TRY(sl_footprint_ask_idle(&footprint, axis, &t->idle, err));
    touch_rest(&t->workspace, 0, bounds->workspace_bytes, &t->idle.workspace);
    if (bounds->reserve_bytes == 0)
        return SEQLSTM_OK;
    const int64_t each = sl_align((int64_t)bounds->reserve_bytes);
    for (int64_t r = 0; r < sl_call_count_reserves(t->plan, call); r++)
        touch_rest(&t->reserve, call->reserve_offset + r * each, bounds->reserve_bytes, &t->idle.reserve);
    return SEQLSTM_OK;
}

static seqlstm_status touch_calls(struct touched *t, struct seqlstm_error *err)
{
    const struct sl_plan *plan = t->plan;
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_call *call = &plan->calls[c];
        const bool is_source = sl_axis_is_source(sl_graph_get_axis(plan->graph, call->node));
        const struct side *side = is_source ? &t->source : &t->target;
        const bool is_known = !sl_call_is_in_loop(plan->graph, call) && !sl_call_is_pieced(plan->graph, call) &&
                              sl_node_is_on_steps(plan->graph, call->node);
        if (!is_known || side->count == 0)
            SEQLSTM_TRY(touch_call(t, call, NULL, err));
        for (int32_t b = 0; is_known && b < side->count; b++)
            SEQLSTM_TRY(touch_call(t, call, &side->axes[b].steps, err));
    }
    for (int32_t v = 0; v < plan->vector_count; v++)
        sl_pages_touch(&t->workspace, 0, (int64_t)plan->vectors[v].sizes.workspace_bytes);
    return SEQLSTM_OK;
}

/* ---- activations --------------------------------------------------------------------------------------- */

static int64_t count_tensor(const struct touched *t, const struct sl_tensor *tensor)
{
    const int64_t most = sl_graph_get_rows(t->plan->graph, tensor);
    int64_t rows = tensor->axis == SL_AXIS_STEPS ? t->target.rows_most : 0;
    if (tensor->axis == SL_AXIS_SOURCE_STEPS || tensor->axis == SL_AXIS_MEMORY)
        rows = t->source.rows_most;
    return (rows > 0 && rows < most ? rows : most) * tensor->features * sl_dtype_bytes(tensor->dtype);
}

static void touch_activations(struct touched *t)
{
    const struct sl_plan *plan = t->plan;
    for (int32_t k = 0; k < plan->graph->tensor_count; k++) {
        const int64_t bytes = count_tensor(t, &plan->graph->tensors[k]);
        const int64_t at = plan->tensor_offsets[k], grad_at = plan->grad_offsets[k];
        if (at >= 0)
            sl_pages_touch(&t->activations, at, at + bytes);
        if (grad_at >= 0)
            sl_pages_touch(&t->activations, grad_at, grad_at + bytes);
    }
    const int64_t scratch = plan->scratch_grad_offset;
    if (scratch >= 0)
        sl_pages_touch(&t->activations, scratch, scratch + plan->scratch_grad_bytes);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static seqlstm_status count(struct touched *t, const struct sl_profiles *profiles, struct seqlstm_error *err)
{
    const struct sl_plan *plan = t->plan;
    SEQLSTM_TRY(sl_idle_init(&t->idle, err));
    SEQLSTM_TRY(sl_pages_init(&t->activations, plan->activation_bytes, err));
    SEQLSTM_TRY(sl_pages_init(&t->workspace, plan->workspace_bytes, err));
    SEQLSTM_TRY(sl_pages_init(&t->reserve, plan->reserve_bytes, err));
    if (profiles != NULL) {
        SEQLSTM_TRY(open_side(plan->graph, &t->target, profiles, false, err));
        SEQLSTM_TRY(open_side(plan->graph, &t->source, profiles, true, err));
    }
    SEQLSTM_TRY(touch_calls(t, err));
    touch_activations(t);
    return SEQLSTM_OK;
}

seqlstm_status sl_touched_count(struct sl_plan *plan, const struct sl_profiles *profiles, struct seqlstm_error *err)
{
    for (int32_t c = 0; c < plan->call_count; c++)
        if (strcmp(sl_call_get_domain(&plan->calls[c]), "host") != 0)
            return SEQLSTM_OK;
    struct touched t = {.plan = plan};
    const seqlstm_status status = count(&t, profiles, err);
    if (status == SEQLSTM_OK) {
        const int64_t activations = plan->activation_bytes - sl_pages_count(&t.activations);
        const int64_t reserve = plan->reserve_bytes - sl_pages_count(&t.reserve);
        const int64_t workspace = plan->workspace_bytes - sl_pages_count(&t.workspace);
        plan->memory.activations_bytes -= activations + reserve;
        plan->memory.workspace_bytes -= workspace;
        plan->memory.peak_bytes -= activations + reserve + workspace;
    }
    sl_pages_deinit(&t.activations);
    sl_pages_deinit(&t.workspace);
    sl_pages_deinit(&t.reserve);
    close_side(&t.target);
    close_side(&t.source);
    sl_idle_deinit(&t.idle);
    return status;
}
