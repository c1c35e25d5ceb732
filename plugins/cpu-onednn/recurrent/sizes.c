/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory recurrent calls need: exactly, for a batch that has been cut; and as an upper bound over all batches
 * of a descriptor, from the library's answers for some shapes.
 *
 * Layout of a slice. In the reserve (in inference: in the workspace, with the y of two layers and the states of one
 * layer, used alternately):
 *   x [rows, I] · y of each layer [rows, D O] · merged y of each layer · states h, c of each layer and direction
 *   · the primitives' own workspaces, one per rectangle
 * In the workspace of a call, after the scratch of the primitives of all slices (layers use the same memory; where its
 * layout is the same in all of them, all leave the same bytes untouched):
 *   dy, dx of a layer [rows, widest] twice · dx of the second direction
 *   · dh, dc twice · gradients of the weights of one layer and direction */
#include "cpu-onednn/recurrent/recurrent.h"

static int64_t widest(const struct odn_recurrent *r)
{
    const int64_t y = odn_y_width(r), x = r->kind[0].input;
    return x > y ? x : y;
}

static int32_t layers_kept(const struct odn_recurrent *r)
{
    return r->training || r->layers < 2 ? r->layers : 2;
}

static bool merges(const struct odn_recurrent *r)
{
    return r->directions == 2 && !r->concat;
}

/* The offsets in the reserve for `rows` rows and `states` rows of states of one slice, without the primitives'
 * workspaces. */
static void place_reserve(const struct odn_recurrent *r, struct odn_slice *s, uint64_t *end)
{
    const uint64_t rows = (uint64_t)s->rows, states = (uint64_t)s->state_rows, elem = r->elem.bytes;
    const uint64_t layers = (uint64_t)layers_kept(r), directions = (uint64_t)r->directions;
    const uint64_t output = (uint64_t)r->output;
    s->x = odn_take(end, rows * (uint64_t)r->kind[0].input * elem);
    s->y_stride = align_bytes(rows * directions * output * elem);
    s->y = odn_take(end, layers * s->y_stride);
    s->merged_stride = merges(r) ? align_bytes(rows * output * elem) : 0;
    s->merged = odn_take(end, layers * s->merged_stride);
    const uint64_t kept = r->training ? (uint64_t)r->layers * directions : 1;
    s->h_stride = align_bytes(states * output * elem);
    s->h = odn_take(end, kept * s->h_stride);
    s->c_stride = r->lstm ? align_bytes(states * (uint64_t)r->hidden * sizeof(float)) : 0;
    s->c = odn_take(end, kept * s->c_stride);
}

static uint64_t grads_bytes(const struct odn_recurrent *r)
{
    const uint64_t first = r->training ? r->kind[0].grad_bytes : 0, above = r->training ? r->kind[1].grad_bytes : 0;
    return align_bytes(first > above ? first : above);
}

static void place_workspace(const struct odn_recurrent *r, struct odn_slice *s, uint64_t *end)
{
    if (!r->training)
        return;
    const uint64_t wide = (uint64_t)s->rows * (uint64_t)widest(r) * sizeof(float);
    s->dy[0] = odn_take(end, wide);
    s->dy[1] = odn_take(end, wide);
    s->dx = odn_take(end, r->directions == 2 ? wide : 0);
    s->states = odn_take(end, 2 * (uint64_t)s->sequences * (uint64_t)(r->output + r->hidden) * sizeof(float));
    s->grads = odn_take(end, grads_bytes(r));
}

static uint64_t ws_of_layers(const struct odn_recurrent *r, const uint64_t bytes[ODN_KINDS])
{
    const uint64_t directions = (uint64_t)r->directions;
    return directions * (bytes[0] + (uint64_t)(r->layers - 1) * bytes[r->kinds - 1]);
}

uint64_t odn_ws_place(const struct odn_recurrent *r, const struct odn_slice *s, int32_t l, int32_t d)
{
    const uint64_t directions = (uint64_t)r->directions;
    if (l == 0)
        return s->ws + (uint64_t)d * s->ws_bytes[0];
    return s->ws + directions * s->ws_bytes[0] +
           ((uint64_t)(l - 1) * directions + (uint64_t)d) * s->ws_bytes[r->kinds - 1];
}

void odn_slices_lay_out(struct odn_recurrent_binding *b, uint64_t *out_reserve, uint64_t *out_workspace)
{
    const struct odn_recurrent *r = b->r;
    uint64_t reserve = 0, workspace = 0;
    uint64_t *kept = r->training ? &reserve : &workspace;
    for (int32_t m = 0; m < b->slices_count; m++)
        b->slices[m].scratch = odn_take(&workspace, b->slices[m].scratch_bytes);
    for (int32_t m = 0; m < b->slices_count; m++) {
        struct odn_slice *s = &b->slices[m];
        place_reserve(r, s, kept);
        s->ws = odn_take(kept, ws_of_layers(r, s->ws_bytes));
        place_workspace(r, s, &workspace);
    }
    *out_reserve = reserve;
    *out_workspace = workspace;
}

void odn_recurrent_place(struct odn_recurrent_binding *b, uint64_t *out_reserve, uint64_t *out_workspace)
{
    const struct odn_recurrent *r = b->r;
    for (int32_t m = 0; m < b->slices_count; m++) {
        struct odn_slice *s = &b->slices[m];
        s->scratch_bytes = 0;
        for (int32_t k = 0; k < r->kinds; k++) {
            s->ws_bytes[k] = 0;
            for (int32_t i = 0; i < s->rectangle_count; i++) {
                struct odn_rectangle *rectangle = &s->rectangles[i];
                for (int32_t d = 0; d < r->directions; d++) {
                    const struct odn_entry *e = s->shapes[rectangle->shape].calls[k][odn_way_of(r, d)]->entry;
                    s->scratch_bytes = e->scratch_bytes > s->scratch_bytes ? e->scratch_bytes : s->scratch_bytes;
                    if (d == 0)
                        rectangle->ws[k] = odn_take(&s->ws_bytes[k], e->ws_bytes);
                }
            }
        }
    }
    odn_slices_lay_out(b, out_reserve, out_workspace);
}

/* ---- bounds -------------------------------------------------------------------------------------------- */

seqlstm_status odn_need_find(const struct odn_recurrent *r, struct odn_need *need, struct seqlstm_error *err)
{
    dnnl_primitive_desc_t pd[ODN_PASSES] = {NULL, NULL};
    dnnl_status_t status = dnnl_success;
    need->ws_bytes = need->scratch_bytes = 0;
    need->scratch[ODN_FORWARD] = need->scratch[ODN_BACKWARD] = 0;
    need->arguments = 0;
    for (int32_t p = 0; p < odn_passes(r) && status == dnnl_success; p++) {
        status = odn_primitive_describe(r, need->kind, need->way, need->n, need->steps, p, true, pd[ODN_FORWARD],
                                        r->attr, &pd[p]);
        if (status != dnnl_success)
            break;
        need->scratch[p] = odn_argument_bytes(pd[p], DNNL_ARG_SCRATCHPAD);
        need->scratch_bytes = need->scratch[p] > need->scratch_bytes ? need->scratch[p] : need->scratch_bytes;
        need->arguments += odn_arguments_count(pd[p]);
    }
    if (status == dnnl_success)
        need->ws_bytes = odn_argument_bytes(pd[ODN_FORWARD], DNNL_ARG_WORKSPACE);
    for (int p = 0; p < ODN_PASSES; p++)
        if (pd[p] != NULL)
            odn.primitive_desc_destroy(pd[p]);
    return odn_check(status, "a recurrent primitive", err);
}

/* How a batch may be cut, summed over all slices. */
struct parts {
    uint64_t rows, rectangles, sequences, steps; /* sums over rectangles of: n * steps, 1, n, steps */
};

/* The parts of a batch in which each slice has `runs` different batch sizes, one after another. Sizes decrease, so a
 * batch with many of them has fewer rows. A run is cut into powers of two: one of 2^k - 1 steps into k. */
static struct parts parts_of_runs(const struct seqlstm_desc *head, uint64_t slices, uint64_t runs)
{
    const uint64_t most = ((uint64_t)head->max_sequences + slices - 1) / slices, steps = (uint64_t)head->max_steps;
    const uint64_t rows = slices * (most * steps - runs * (runs - 1) / 2), more = runs < most ? runs + 1 : runs;
    /* `more`: slices may differ, and then some have one more run. The second power of a run costs it 2 steps, the third
     * 4, … */
    uint64_t extra = 0, left = steps - runs;
    for (uint64_t cost = 2; cost <= left; cost *= 2) {
        const uint64_t bought = left / cost < more ? left / cost : more;
        extra += bought;
        left -= bought * cost;
    }
    struct parts parts = {.rows = rows < (uint64_t)head->max_rows ? rows : (uint64_t)head->max_rows,
                          .rectangles = slices * (more + extra),
                          .sequences = slices * (more * (2 * most - more + 1) / 2 + extra * most),
                          .steps = slices * steps};
    parts.sequences = parts.sequences < parts.rows ? parts.sequences : parts.rows;
    return parts;
}

static seqlstm_status model_ws(const struct odn_recurrent *r, int32_t kind, struct odn_ws_model *out_model,
                               struct seqlstm_error *err)
{
    const double n = 256, t = 16;
    struct odn_need p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = (struct odn_need){
            .kind = kind, .way = odn_way_of(r, 0), .n = (int64_t)n << (i & 1), .steps = (int64_t)t << (i >> 1)};
        SEQLSTM_TRY(odn_need_find(r, &p[i], err));
    }
    const double f11 = (double)p[0].ws_bytes, f21 = (double)p[1].ws_bytes, f12 = (double)p[2].ws_bytes,
                 f22 = (double)p[3].ws_bytes;
    struct odn_ws_model m = {.per_row = (f22 - f21 - f12 + f11) / (n * t)};
    m.per_sequence = (f21 - f11 - m.per_row * n * t) / n;
    m.per_step = (f12 - f11 - m.per_row * n * t) / t;
    m.rest = f11 - m.per_row * n * t - m.per_sequence * n - m.per_step * t;
    m.per_sequence = m.per_sequence > 0 ? m.per_sequence : 0;
    m.per_step = m.per_step > 0 ? m.per_step : 0;
    m.rest = m.rest > 0 ? m.rest : 0;
    *out_model = m;
    return SEQLSTM_OK;
}

static uint64_t bound_ws(const struct odn_ws_model *m, const struct parts *parts)
{
    return (uint64_t)(1.01 *
                      (m->per_row * (double)parts->rows + m->per_sequence * (double)parts->sequences +
                       m->per_step * (double)parts->steps + (m->rest + ODN_PAGE_SLACK) * (double)parts->rectangles));
}

/* The scratch of `slices` slices together. */
static seqlstm_status bound_scratch(struct odn_recurrent *r, int32_t slices, uint64_t *out_bytes,
                                    struct seqlstm_error *err)
{
    const struct seqlstm_desc *head = &r->desc->head;
    const int64_t n = (head->max_sequences + slices - 1) / slices;
    uint64_t most = 0;
    for (int32_t k = 0; k < r->kinds; k++)
        for (int64_t steps = head->max_steps;; steps = 1) {
            struct odn_need p = {.kind = k, .way = odn_way_of(r, 0), .n = n, .steps = steps};
            SEQLSTM_TRY(odn_need_find(r, &p, err));
            most = p.scratch_bytes > most ? p.scratch_bytes : most;
            p.n = 1;
            SEQLSTM_TRY(odn_need_find(r, &p, err));
            most = p.scratch_bytes > most ? p.scratch_bytes : most;
            if (steps == 1)
                break;
        }
    *out_bytes = (uint64_t)slices * align_bytes(most);
    return SEQLSTM_OK;
}

/* The needs of batches which are cut like this, on `slices` slices. */
static void add_sizes(const struct odn_recurrent *r, const struct parts *parts, uint64_t slices, uint64_t scratch,
                      struct seqlstm_sizes *sizes)
{
    uint64_t ws[ODN_KINDS] = {0, 0}, kept = 0, work = 0;
    for (int32_t k = 0; k < r->kinds && r->training; k++)
        ws[k] = bound_ws(&r->kind[k].ws, parts);
    /* one slice with all rows; below, what rounding and their own gradients add for the others */
    struct odn_slice whole = {.rows = (int64_t)parts->rows,
                              .sequences = r->desc->head.max_sequences,
                              .state_rows = (int64_t)parts->sequences + 2 * r->desc->head.max_sequences};
    place_reserve(r, &whole, &kept);
    kept += ws_of_layers(r, ws);
    odn_take(&work, scratch);
    place_workspace(r, &whole, &work);
    const uint64_t rounding = slices * 64 * (16 + 8 * (uint64_t)(r->layers * r->directions));
    kept += rounding;
    work += rounding + (slices - 1) * grads_bytes(r);
    work += r->training ? 0 : kept;
    if (r->training && kept > sizes->reserve_bytes)
        sizes->reserve_bytes = kept;
    if (work > sizes->workspace_bytes)
        sizes->workspace_bytes = work;
}

seqlstm_status odn_recurrent_measure(struct odn_recurrent *r, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    const struct seqlstm_desc *head = &r->desc->head;
    for (int32_t k = 0; k < r->kinds && r->training; k++)
        SEQLSTM_TRY(model_ws(r, k, &r->kind[k].ws, err));
    for (int32_t slices = 1; slices <= r->slices_max; slices++) {
        const int64_t most = (head->max_sequences + slices - 1) / slices;
        const int64_t runs_max = most < head->max_steps ? most : head->max_steps;
        uint64_t scratch = 0;
        SEQLSTM_TRY(bound_scratch(r, slices, &scratch, err));
        if (head->flags & SEQLSTM_BIT_DESC_UNIFORM) {
            const struct parts one = {(uint64_t)head->max_rows, (uint64_t)slices, (uint64_t)head->max_sequences,
                                      (uint64_t)(slices * head->max_steps)};
            add_sizes(r, &one, (uint64_t)slices, scratch, sizes);
            continue;
        }
        for (int64_t runs = 1; runs <= runs_max; runs++) {
            const struct parts parts = parts_of_runs(head, (uint64_t)slices, (uint64_t)runs);
            add_sizes(r, &parts, (uint64_t)slices, scratch, sizes);
        }
    }
    return SEQLSTM_OK;
}
