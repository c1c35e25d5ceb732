/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of a recurrent stack. See recurrent.h. */
#include "cluster.h"
#include "gemm.h"
#include "one_block.h"
#include "recurrent.h"
#include "rows.h"
#include "step.h"
#include "step_tile.h"

/* Up to so many sequences the product of a step waits for memory; beyond, it has enough rows to be tiled. */
enum { FUSED_SEQUENCES_MOST = 16 };

static bool runs_tiles(const struct cg_call *call, const struct cg_stack *s)
{
    return s->lone && call->axis->sequences > FUSED_SEQUENCES_MOST;
}

/* The `turn`-th step. */
static seqlstm_status run_step(const struct cg_call *call, const struct cg_stack *s, const struct cg_layer *y,
                               int64_t t, int64_t turn, int64_t m, struct seqlstm_error *err)
{
    const bool projection = s->desc->projection > 0;
    const int32_t parity = (int32_t)(turn % 2);
    void *stream = call->stream;
    if (s->lone) {
        CG_START(call, "a step",
                 runs_tiles(call, s) ? cg_tile_forward(stream, y, s->compute, t, turn, m, s->hidden, s->gates)
                                     : cg_step_fused(stream, y, t, parity, m, s->hidden));
        return SEQLSTM_OK;
    }
    CG_START(call, "a step's product",
             cg_step_product(stream, y, CG_PRODUCT_H, s->compute, t, parity, m, s->late ? 2 * s->hidden : s->gh));
    CG_START(call, "a step's cells",
             cg_step_cell(stream, y, s->late ? CG_PHASE_RESET : CG_PHASE_WHOLE, t, parity, m));
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
    for (int64_t k = 0; k < steps; k++) {
        const int64_t t = host->reverse ? steps - 1 - k : k;
        SEQLSTM_TRY(run_step(call, s, device, t, k, call->binding->recurrent->batch_sizes[t], err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_direction(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                                    int64_t layer, int64_t direction, struct seqlstm_error *err)
{
    const int64_t n = layer * s->directions + direction, width = cg_layer_width(s, layer);
    const struct cg_layer *device = call->binding->recurrent->device + n, *host = &call->binding->recurrent->host[n];
    SEQLSTM_TRY(cg_draw_masks(call, s, l, layer, direction, err));
    const float *x = l->x_masked >= 0 ? cg_workspace(call, l->x_masked) : cg_layer_input(call, s, l, layer);
    const struct cg_gemm u = {.m = call->rows, .n = s->gh, .depth = width, .a = x, .a_row = width, .a_column = 1,
                              .b = cg_param(call, s, n, SEQLSTM_PARAM_W_X), .b_row = 1, .b_column = width,
                              .c = host->u, .c_row = s->gh, .compute = s->compute};
    CG_START(call, "the input's product", cg_gemm_launch(call->stream, &u));
    if (call->op->variant == CG_GRID) {
        SEQLSTM_TRY(cg_run_grid(call, l, device, false, err));
    } else if (call->op->variant == CG_CLUSTER) {
        CG_START(call, "all steps",
                 cg_cluster_forward(call->stream, device, &call->op->grid[0], call->axis->sequences));
    } else if (call->op->variant == CG_ONE_BLOCK) {
        CG_START(call, "all steps", cg_one_block_forward(call->stream, device, call->axis->sequences, s->gh));
    } else {
        CG_START(call, "the first step",
                 runs_tiles(call, s) ? cg_tile_begin(call->stream, device, s->compute, call->axis->sequences, s->hidden,
                                                     s->gates)
                                     : cg_step_begin(call->stream, device, call->axis->sequences, s->out));
        SEQLSTM_TRY(cg_run_loop(call, s, n, run_steps, err));
    }
    if (host->hn || host->cn)
        CG_START(call, "final states",
                 cg_step_finish(call->stream, device, call->axis->sequences, host->cn ? s->hidden : 0, s->out));
    return SEQLSTM_OK;
}

static seqlstm_status merge(const struct cg_call *call, const struct cg_stack *s, const struct cg_layout *l,
                            int64_t layer, struct seqlstm_error *err)
{
    const bool last = layer == s->layers - 1;
    float *y = last ? cg_slot(call, SEQLSTM_RECURRENT_Y) : cg_merged(call, s, l, layer);
    if (s->directions == 1)
        return last && y ? cg_copy(call, y, cg_merged(call, s, l, layer), call->rows * s->out, err) : SEQLSTM_OK;
    if (y == NULL)
        return SEQLSTM_OK;
    const struct cg_merge m = {.kind = s->desc->merge, .inputs = 2, .widths = {s->out, s->out}, .width = s->merged,
                               .x = {cg_record(call, s, l, 2 * layer, l->h, s->out),
                                     cg_record(call, s, l, 2 * layer + 1, l->h, s->out)}};
    CG_START(call, "merging directions", cg_merge_forward(call->stream, &m, call->rows, y));
    return SEQLSTM_OK;
}

seqlstm_status cg_recurrent_forward(const struct cg_call *call, struct seqlstm_error *err)
{
    const struct cg_stack s = cg_stack_make(&call->desc->recurrent);
    const struct cg_layout l = cg_layout_make(&s);
    struct cg_recurrent_binding *r = call->binding->recurrent;
    for (int64_t n = 0; n < r->count; n++) {
        struct cg_layer *y = &r->host[n];
        *y = cg_layer_make(call, &s, &l, n / s.directions, n % s.directions);
        y->hm[0] = cg_workspace(call, l.hm0);
        y->hm[1] = cg_workspace(call, l.hm1);
        y->product = cg_workspace(call, l.product);
        y->raw = cg_workspace(call, l.raw);
        y->projected = cg_workspace(call, l.projected);
        y->reset = cg_workspace(call, l.reset);
    }
    SEQLSTM_TRY(cg_store_layers(call, r->device, err));
    for (int64_t layer = 0; layer < s.layers; layer++) {
        for (int64_t direction = 0; direction < s.directions; direction++)
            SEQLSTM_TRY(run_direction(call, &s, &l, layer, direction, err));
        SEQLSTM_TRY(merge(call, &s, &l, layer, err));
    }
    return SEQLSTM_OK;
}
