/* SPDX-License-Identifier: Apache-2.0 */
/* See estimate.h. */
#include "dispatch/cost/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "base/operation/op_signature.h"
#include "dispatch/cost/axes.h"
#include "registry/plugin.h"

/* An average core. It only matters that small work costs little, and that no backend is preferred. */
static const double call_ns = 2000, flops_per_ns = 20, bytes_per_ns = 5;

bool sl_node_is_on_steps(const struct sl_graph *graph, const struct sl_node *node)
{
    return sl_axis_is_steps(sl_graph_get_axis(graph, node));
}

static seqlstm_status guess(const union seqlstm_any_desc *desc, bool backward, double rows, struct sl_cost *out_cost,
                            struct seqlstm_error *err)
{
    struct sl_slot *slots = calloc(SL_SLOTS_MAX, sizeof *slots);
    int32_t count = 0;
    if (slots == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an estimate");
    seqlstm_status status = sl_op_signature(&desc->head, slots, SL_SLOTS_MAX, &count, err);
    double flops = 0, bytes = 0;
    for (int32_t s = 0; status == SEQLSTM_OK && s < count; s++) {
        double elems = (double)slots[s].features * (slots[s].axis == SL_SLOT_FREE ? (double)slots[s].rows : rows);
        if (slots[s].role == SL_SLOT_ABSENT)
            continue;
        if (slots[s].role == SL_SLOT_PARAM && desc->head.op != SEQLSTM_OP_EMBEDDING)
            flops += 2 * elems * rows;
        bytes += elems * (double)sl_dtype_bytes(slots[s].dtype);
    }
    free(slots);
    double forward = call_ns + flops / flops_per_ns + bytes / bytes_per_ns;
    *out_cost =
        (struct sl_cost){.source = SL_COST_GUESS, .forward_ns = forward, .backward_ns = backward ? 2 * forward : 0};
    return status;
}

static bool is_cost(double value)
{
    return isfinite(value) && value >= 0;
}

/* Asks for the backend's estimate. *out_answered false: it has none. */
static seqlstm_status ask(const struct sl_candidate *candidate, bool on_steps, bool backward,
                          const struct sl_profiles *profiles, bool *out_answered, struct sl_cost *out_cost,
                          struct seqlstm_error *err)
{
    const struct seqlstm_backend *table = sl_backend_get_table(candidate->backend);
    struct sl_cost sum = {.source = SL_COST_ESTIMATE};
    *out_answered = table->estimate != NULL;
    for (int32_t p = 0; *out_answered && p < profiles->count; p++) {
        struct sl_axes axes = {0};
        SEQLSTM_TRY(sl_axes_init(&axes, &profiles->items[p], INT64_MAX, profiles->stream, err));
        const struct seqlstm_axis *axis = on_steps ? &axes.steps : &axes.rows;
        struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                    .flags = on_steps ? 0 : SEQLSTM_BIT_BIND_ON_SEQUENCES,
                                    .rows = axis->rows,
                                    .rows_in = axis->rows,
                                    .axis = axis,
                                    .t1 = axis->steps};
        struct seqlstm_cost cost = {.struct_size = sizeof cost};
        if (axis->rows > 0)
            *out_answered = sl_plugin_estimate(table, candidate->op, &bind, &cost, NULL) == SEQLSTM_OK &&
                            is_cost(cost.forward_ns) && is_cost(cost.backward_ns);
        sl_axes_deinit(&axes);
        sum.forward_ns += profiles->items[p].weight * cost.forward_ns;
        sum.backward_ns += backward ? profiles->items[p].weight * cost.backward_ns : 0;
    }
    *out_cost = sum;
    return SEQLSTM_OK;
}

seqlstm_status sl_cost_guess(const struct sl_graph *graph, const struct sl_node *node,
                             const union seqlstm_any_desc *desc, const struct sl_profiles *profiles,
                             struct sl_cost *out_cost, struct seqlstm_error *err)
{
    bool on_steps = sl_node_is_on_steps(graph, node);
    double rows = 0;
    for (int32_t p = 0; p < profiles->count; p++)
        rows += profiles->items[p].weight *
                (double)(on_steps ? sl_profile_get_rows(&profiles->items[p]) : profiles->items[p].sequences);
    return guess(desc, node->needs_backward, rows, out_cost, err);
}

seqlstm_status sl_cost_estimate(const struct sl_graph *graph, const struct sl_node *node,
                                const union seqlstm_any_desc *desc, const struct sl_candidate *candidate,
                                const struct sl_profiles *profiles, struct sl_cost *out_cost, struct seqlstm_error *err)
{
    bool answered;
    SEQLSTM_TRY(
        ask(candidate, sl_node_is_on_steps(graph, node), node->needs_backward, profiles, &answered, out_cost, err));
    return answered ? SEQLSTM_OK : sl_cost_guess(graph, node, desc, profiles, out_cost, err);
}
