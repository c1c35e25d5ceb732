/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of a recurrent stack. See recurrent.h. */
#include "cuda-generic/recurrent/fold.h"
#include "cuda-generic/recurrent/products.h"
#include "cuda-generic/recurrent/recurrent.h"
#include "cuda-generic/rows/rows.h"
#include "cuda-generic/recurrent/kernels/norm_inputs.h"
#include "cuda-generic/recurrent/kernels/step.h"
#include "cuda-generic/recurrent/kernels/step_tile.h"

/* Up to this many sequences, memory limits the product of a step; with more, it has enough rows for tiles. */
enum { FUSED_SEQUENCES_MOST = 16 };

static bool runs_tiles(const struct cg_call *call, const struct cg_stack *s)
{
    return s->lone && call->axis->sequences > FUSED_SEQUENCES_MOST;
}

/* Step number `turn` of one direction, for cells whose units need each other's sums. */
static seqlstm_status run_step(const struct cg_call *call, const struct cg_stack *s, const struct cg_layer *y,
                               int64_t t, int64_t turn, int64_t m, struct seqlstm_error *err)
{
    const bool projection = s->desc->projection > 0;
    const int32_t parity = (int32_t)(turn % 2);
    void *stream = call->stream;
    CG_START(call, "a step's product",
             cg_step_product(stream, y, CG_PRODUCT_H, s->compute, t, parity, m, s->late ? 2 * s->hidden : s->gh));
    CG_START(call, "a step's cells", cg_step_cell(stream, y, s->late ? CG_PHASE_RESET : CG_PHASE_WHOLE, t, parity, m));
    if (s->late) {
        CG_START(call, "a step's second product",
                 cg_step_product(stream, y, CG_PRODUCT_RESET, s->compute, t, parity, m, s->hidden));
        CG_START(call, "a step's cells", cg_step_cell(stream, y, CG_PHASE_OUTPUT, t, parity, m));
    }
    if (projection) {
        CG_START(call, "a step's projection",
                 cg_step_product(stream, y, CG_PRODUCT_OUTPUT, s->compute, t, parity, m, s->out));
        CG_START(call, "a step's projection", cg_step_publish(stream, y, t, parity, m, s->out));
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_steps(const struct cg_call *call, const struct cg_stack *s, const struct cg_layer *device,
                                const struct cg_layer *host, struct seqlstm_error *err)
{
    const int64_t steps = call->axis->steps;
    const int32_t *sizes = call->binding->recurrent->batch_sizes;
    for (int64_t turn = 0; turn < steps; turn++) {
        int64_t most = 0;
        for (int64_t direction = 0; direction < s->directions; direction++) {
            const int64_t t = host[direction].reverse ? steps - 1 - turn : turn;
            most = sizes[t] > most ? sizes[t] : most;
            if (!s->lone)
                SEQLSTM_TRY(run_step(call, s, device + direction, t, turn, sizes[t], err));
        }
        if (s->lone)
            CG_START(call, "a step",
                     runs_tiles(call, s) ? cg_tile_forward(call->stream, device, s->directions, s->compute, turn, most,
                                                           s->hidden, s->gates)
                                         : cg_step_fused(call->stream, device, s->directions, turn, most, s->hidden));
    }
    return SEQLSTM_OK;
}

/* The input's contribution to all steps, and the state that the first step reads. */
static seqlstm_status begin_direction(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                      int64_t layer, int64_t direction, struct seqlstm_error *err)
{
    const int64_t n = layer * s->directions + direction;
    const struct cg_layer *device = call->binding->recurrent->device + n, *host = &call->binding->recurrent->host[n];
    const struct cg_drop drop = cg_drop_input(call, s, l, layer, direction);
    const float *x = drop.rows > 0 ? drop.y : cg_layer_input(call, s, l, layer);
    SEQLSTM_TRY(cg_recurrent_multiply_input(call, s, n, l, x, host->u, err));
    if (s->folded)
        SEQLSTM_TRY(cg_fold_begin(call, s, n, err));
    if (call->op->variant != CG_STEP_GRAPH)
        return SEQLSTM_OK;
    CG_START(call, "the first step",
             runs_tiles(call, s)
                 ? cg_tile_begin(call->stream, device, s->compute, call->axis->sequences, s->hidden, s->gates)
                 : cg_step_begin(call->stream, device, call->axis->sequences, s->out));
    return SEQLSTM_OK;
}

/* All steps of all directions. */
static seqlstm_status run_layer(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                int64_t layer, struct seqlstm_error *err)
{
    const int64_t n = layer * s->directions;
    const struct cg_layer *device = call->binding->recurrent->device_run + n;
    if (s->normed && call->op->variant != CG_STEP_GRAPH)
        CG_START(call, "normalising inputs", cg_norm_inputs(call->stream, device, s->directions, call->rows));
    switch (call->op->variant) {
    case CG_CLUSTER_4:
    case CG_CLUSTER_8:
    case CG_CLUSTER_16:
        return cg_run_clusters(call, s, device, false, err);
    case CG_SMALL:
        return cg_small_run(call, s, device, false, err);
    case CG_RESIDENT:
        return cg_run_resident(call, s, l, device, false, err);
    default:
        return cg_run_loop(call, s, n, run_steps, err);
    }
}

/* After the steps: the projections of all rows, and the final states, unless `small` has written them; the masked input
 * of the next layer, unless directions are merged first. */
static seqlstm_status finish_direction(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                       int64_t n, struct seqlstm_error *err)
{
    const struct cg_recurrent_binding *r = call->binding->recurrent;
    const struct cg_layer *y = &r->host[n];
    const struct cg_drop drop =
        s->directions == 1 && n + 1 < s->layers ? cg_drop_input(call, s, l, n + 1, 0) : (struct cg_drop){.rows = 0};
    if (s->folded)
        SEQLSTM_TRY(cg_fold_finish(call, s, n, err));
    if ((call->op->variant != CG_SMALL || s->folded) && (y->hn || y->cn))
        CG_START(
            call, "final states",
            cg_step_finish(call->stream, r->device + n, call->axis->sequences, y->cn ? s->hidden : 0, s->out, &drop));
    else if (drop.rows > 0)
        return cg_mask_rows(call, &drop, err);
    return SEQLSTM_OK;
}

static seqlstm_status merge(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                            int64_t layer, struct seqlstm_error *err)
{
    const bool last = layer == s->layers - 1;
    float *y = last ? cg_slot(call, SEQLSTM_SLOT_RECURRENT_Y) : cg_merged(call, s, l, layer);
    if (s->directions == 1)
        return last && y && y != cg_merged(call, s, l, layer)
                   ? cg_copy(call, y, cg_merged(call, s, l, layer), call->rows * s->out, err)
                   : SEQLSTM_OK;
    if (y == NULL)
        return SEQLSTM_OK;
    const struct cg_merge m = {
        .kind = s->desc->merge,
        .inputs = 2,
        .widths = {s->out, s->out},
        .width = s->merged,
        .x = {cg_record(call, s, l, 2 * layer, l->h, s->out), cg_record(call, s, l, 2 * layer + 1, l->h, s->out)}};
    const struct cg_drop drops[2] = {
        last ? (struct cg_drop){.rows = 0} : cg_drop_input(call, s, l, layer + 1, 0),
        last ? (struct cg_drop){.rows = 0} : cg_drop_input(call, s, l, layer + 1, 1),
    };
    CG_START(call, "merging directions",
             drops[0].rows > 0 ? cg_merge_masked(call->stream, &m, call->rows, y, drops, call->axis)
                               : cg_merge_forward(call->stream, &m, call->rows, y));
    return SEQLSTM_OK;
}

seqlstm_status cg_recurrent_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct cg_stack s = cg_stack_make(call->op);
    const struct cg_layout l = cg_layout_make(&s);
    struct cg_recurrent_binding *r = call->binding->recurrent;
    for (int64_t n = 0; n < r->count; n++) {
        struct cg_layer *y = &r->host[n];
        *y = cg_layer_make(call, &s, &l, n / s.directions, n % s.directions);
        y->hm[0] = cg_own(call, &s, &l, n, l.hm0);
        y->hm[1] = cg_own(call, &s, &l, n, l.hm1);
        y->product = cg_own(call, &s, &l, n, l.product);
        y->raw = cg_own(call, &s, &l, n, l.raw);
        y->projected = cg_own(call, &s, &l, n, l.projected);
        y->reset = cg_own(call, &s, &l, n, l.reset);
    }
    if (s.folded)
        cg_fold_make_forward(call, &s, &l);
    SEQLSTM_TRY(cg_store_layers(call, &s, &l, false, err));
    for (int64_t layer = 0; layer < s.layers; layer++) {
        for (int64_t direction = 0; direction < s.directions; direction++)
            SEQLSTM_TRY(begin_direction(call, &s, &l, layer, direction, err));
        SEQLSTM_TRY(run_layer(call, &s, &l, layer, err));
        for (int64_t direction = 0; direction < s.directions; direction++)
            SEQLSTM_TRY(finish_direction(call, &s, &l, layer * s.directions + direction, err));
        SEQLSTM_TRY(merge(call, &s, &l, layer, err));
    }
    return SEQLSTM_OK;
}
