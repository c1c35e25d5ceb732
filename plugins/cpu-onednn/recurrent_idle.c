/* SPDX-License-Identifier: Apache-2.0 */
/* What the library never touches of the buffers that it asks for, so that memory is predicted without it.
 *
 * Its workspace (rnn_utils.cpp, set_offsets, 2.6 to 3.7) has parts for a stack of layers with copies of what they read
 * and write; a layer alone that runs from the first step to the last works on the caller's tensors instead:
 *
 *   gates · projected h · states of layers · states of steps, twice · c · their gradients by layer · by step · of c
 *
 * Touched are the gates, the upper half of c (of layer 1 of 2), the gradients by layer, and the lower halves of the
 * others (layer 0). Scratch (ref_rnn.hpp, init_scratchpad) begins with a space that training does not use and inference
 * uses as workspace, and asks for the gates in bytes where elements are counted: four times too much.
 */
#include "library.h"
#include "recurrent.h"

enum { PAGE = 4096, LINE_BYTES = 64 };
static const uint64_t huge_page = 2u << 20;

/* A run of bytes: the huge pages that lie in it wherever it begins. */
static uint64_t whole(uint64_t begin, uint64_t end)
{
    return end > begin + huge_page ? end - begin - huge_page : 0;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Elements from row to row (get_good_ld). */
static uint64_t pitch(uint64_t width, uint64_t elem)
{
    const uint64_t line = LINE_BYTES / elem, rows = (width + line - 1) / line * line;
    return rows % 256 == 0 ? rows + line : rows;
}

static uint64_t place(uint64_t *end, uint64_t bytes)
{
    const uint64_t begin = (*end + PAGE - 1) / PAGE * PAGE;
    *end = begin + bytes;
    return begin;
}

/* Bytes of the library's parts. */
struct parts {
    uint64_t gates, projected, states, c, layer_grads, step_grads, c_grads, grid;
};

static struct parts parts_of(const struct odn_recurrent *r, const struct odn_need *need)
{
    const uint64_t n = (uint64_t)need->n, steps = (uint64_t)need->steps, elem = r->elem.bytes;
    const uint64_t input = (uint64_t)r->kind[need->kind].input, output = (uint64_t)r->output;
    const uint64_t hidden = (uint64_t)r->hidden, two = 2 * (steps + 1) * n; /* layers */
    const uint64_t grads = two * pitch(most(most(input, output), hidden), sizeof(float)) * sizeof(float);
    struct parts parts = {
        .gates = steps * n * pitch(hidden * (uint64_t)r->gates, elem) * elem,
        .projected = steps * n * pitch(hidden, elem) * elem,
        .states = two * pitch(most(input, output), elem) * elem,
        .c = r->lstm ? two * hidden * sizeof(float) : 0,
        .layer_grads = grads,
        .step_grads = grads,
        .c_grads = r->lstm ? two * hidden * sizeof(float) : 0,
        .grid = r->cell == ODN_GRU_RESET_AFTER ? steps * n * hidden * sizeof(float) * sizeof(float) : 0,
    };
    return parts;
}

static uint64_t find_ws(const struct odn_recurrent *r, const struct odn_need *need, const struct parts *parts)
{
    uint64_t end = 0;
    place(&end, parts->gates);
    const uint64_t projected = place(&end, parts->projected), states = place(&end, parts->states);
    const uint64_t unused = place(&end, parts->states);
    place(&end, parts->states);
    const uint64_t c = place(&end, parts->c);
    place(&end, parts->layer_grads);
    const uint64_t step_grads = place(&end, parts->step_grads), c_grads = place(&end, parts->c_grads);
    place(&end, parts->grid);
    if (end != need->ws_bytes)
        return 0;
    const uint64_t begin = need->way ? unused : r->projection ? states : projected;
    return whole(begin, c + parts->c / 2) + whole(step_grads + parts->step_grads / 2, c_grads) +
           whole(c_grads + parts->c_grads / 2, c_grads + parts->c_grads);
}

/* Scratch of training: [not used: gates] [gates of all steps] [not used: three times as much] [small parts]; 0: it is
 * not so. */
static uint64_t training_gates(const struct odn_recurrent *r, const struct odn_need *need, const struct parts *parts)
{
    const uint64_t states = parts->states * 3 + parts->c;
    const bool known = r->training && r->elem.type == dnnl_f32 && need->scratch_bytes >= 5 * parts->gates &&
                       need->scratch_bytes < 5 * parts->gates + states;
    return known ? parts->gates : 0;
}

static uint64_t find_scratch(const struct odn_recurrent *r, const struct odn_need *need, const struct parts *parts)
{
    const uint64_t states = parts->states * 3 + parts->c, gates = training_gates(r, need, parts);
    if (r->training)
        return gates > 0 ? whole(0, gates) + whole(2 * gates, 5 * gates) : 0;
    if (need->scratch_bytes < states)
        return 0;
    /* Gates of all steps of a GRU stand behind the space, which has their room once more: a quarter is used. */
    const uint64_t all = r->elem.type == dnnl_f32 ? 4 * parts->gates : 0;
    if (r->cell == ODN_GRU_RESET_AFTER && need->way == 0 && all > 0 && need->scratch_bytes >= states + all + all / 4)
        return whole(0, states + all / 4) + whole(states + all / 2, states + all + all / 4);
    /* what begins at the end copies x */
    return whole(need->way ? parts->states : 0, states - parts->c / 2);
}

seqlstm_status odn_idle_find_uniform(const struct odn_recurrent *r, struct seqlstm_sizes *sizes,
                                     struct seqlstm_error *err)
{
    const struct seqlstm_desc *head = &r->desc->head;
    const uint64_t slices = (uint64_t)r->slices_max;
    uint64_t least = UINT64_MAX;
    for (int32_t k = 0; k < r->kinds; k++)
        for (int32_t d = 0; d < r->directions; d++) {
            struct odn_need need = {.kind = k, .way = odn_way_of(r, d), .steps = head->max_steps,
                                    .n = (head->max_sequences + r->slices_max - 1) / r->slices_max};
            SEQLSTM_TRY(odn_need_find(r, &need, err));
            const struct parts parts = parts_of(r, &need);
            /* the first layer is of the first kind, all above it of the last, which may be the same */
            const uint64_t layers = (k == 0 ? 1 : 0) + (k == r->kinds - 1 ? (uint64_t)r->layers - 1 : 0);
            const uint64_t scratch = find_scratch(r, &need, &parts);
            sizes->reserve_idle_bytes += r->training ? slices * layers * find_ws(r, &need, &parts) : 0;
            least = scratch < least ? scratch : least; /* all use the same */
        }
    sizes->workspace_idle_bytes = slices * least;
    return SEQLSTM_OK;
}

/* ---- a batch of unequal lengths ------------------------------------------------------------------------ */

/* Its buffers are as large as the worst batch may need, which this one is not. What lies between the library's parts is
 * touched by and by, as rectangles of other batches lie elsewhere. */

static uint64_t expect_ws(const struct odn_ws_model *m, const struct odn_rectangle *rectangle)
{
    const double n = (double)rectangle->n, steps = (double)rectangle->steps;
    return odn_round_up((uint64_t)(m->per_row * n * steps + m->per_sequence * n + m->per_step * steps + m->rest) +
                        ODN_PAGE_SLACK / 4);
}

/* Bytes that the slices' primitives need; the first slice has the most sequences. */
static seqlstm_status expect_needs(struct odn_recurrent_binding *b, struct seqlstm_error *err)
{
    const struct odn_recurrent *r = b->r;
    uint64_t scratch = 0;
    for (int32_t k = 0; k < r->kinds; k++) {
        const struct odn_rectangle *largest = b->slices[0].rectangles;
        for (int32_t i = 0; i < b->slices[0].rectangle_count; i++)
            if (b->slices[0].rectangles[i].n * b->slices[0].rectangles[i].steps > largest->n * largest->steps)
                largest = &b->slices[0].rectangles[i];
        struct odn_need need = {.kind = k, .way = odn_way_of(r, 0), .n = largest->n, .steps = largest->steps};
        SEQLSTM_TRY(odn_need_find(r, &need, err));
        scratch = need.scratch_bytes > scratch ? need.scratch_bytes : scratch;
        for (int32_t m = 0; m < b->slices_count && r->training; m++)
            for (int32_t i = 0; i < b->slices[m].rectangle_count; i++)
                b->slices[m].ws_bytes[k] += expect_ws(&r->kind[k].ws, &b->slices[m].rectangles[i]);
    }
    for (int32_t m = 0; m < b->slices_count; m++)
        b->slices[m].scratch_bytes = scratch;
    return SEQLSTM_OK;
}

static seqlstm_status find_idle(struct odn_recurrent_binding *b, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    uint64_t reserve, workspace;
    SEQLSTM_TRY(odn_slices_cut(b, err));
    SEQLSTM_TRY(expect_needs(b, err));
    odn_slices_lay_out(b, &reserve, &workspace);
    sizes->reserve_idle_bytes = whole(reserve, sizes->reserve_bytes);
    sizes->workspace_idle_bytes = whole(workspace, sizes->workspace_bytes);
    return SEQLSTM_OK;
}

seqlstm_status odn_recurrent_find_idle(const struct seqlstm_op *op, const struct seqlstm_axis *axis,
                                       struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    struct odn_recurrent *r = op->recurrent;
    const bool one_length = r->desc->head.flags & SEQLSTM_DESC_UNIFORM;
    sizes->workspace_idle_bytes = op->sizes.workspace_idle_bytes;
    sizes->reserve_idle_bytes = op->sizes.reserve_idle_bytes;
    if (axis != NULL) /* it was chosen and is going to run: what that takes then counts with the process */
        odn_library_warm_up();
    if (axis == NULL || one_length)
        return SEQLSTM_OK;
    struct odn_recurrent_binding b;
    SEQLSTM_TRY(odn_binding_suppose(&b, r, axis, err));
    const int before = odn_threads_set(op->exclusive ? op->instance->members_max : 1);
    seqlstm_status status = find_idle(&b, sizes, err);
    odn_threads_set(before);
    odn_binding_forget(&b);
    return status;
}
