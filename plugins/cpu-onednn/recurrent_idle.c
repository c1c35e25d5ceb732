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
#include <stdatomic.h>

#include "common/idle.h"
#include "library.h"
#include "recurrent.h"

enum { PAGE = 4096, LINE_BYTES = 64, SPANS = 3 };

/* Of one primitive's workspace or scratch, in order. */
struct spans {
    struct seqlstm_span at[SPANS];
    int32_t count;
};

static void add(struct spans *spans, uint64_t begin, uint64_t end)
{
    if (begin < end)
        spans->at[spans->count++] = (struct seqlstm_span){begin, end};
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

/* Where some of them begin in the workspace, and where all end. */
struct places {
    uint64_t projected, states, unused, c, step_grads, c_grads, end;
};

static struct places places_of(const struct parts *parts)
{
    struct places p = {0};
    place(&p.end, parts->gates);
    p.projected = place(&p.end, parts->projected);
    p.states = place(&p.end, parts->states);
    p.unused = place(&p.end, parts->states);
    place(&p.end, parts->states);
    p.c = place(&p.end, parts->c);
    place(&p.end, parts->layer_grads);
    p.step_grads = place(&p.end, parts->step_grads);
    p.c_grads = place(&p.end, parts->c_grads);
    place(&p.end, parts->grid);
    return p;
}

static struct spans find_ws(const struct odn_recurrent *r, const struct odn_need *need, const struct parts *parts)
{
    const struct places p = places_of(parts);
    struct spans spans = {0};
    if (p.end != need->ws_bytes)
        return spans;
    add(&spans, need->way ? p.unused : r->projection ? p.states : p.projected, p.c + parts->c / 2);
    add(&spans, p.step_grads + parts->step_grads / 2, p.c_grads);
    add(&spans, p.c_grads + parts->c_grads / 2, p.c_grads + parts->c_grads);
    return spans;
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

/* Small parts lie before the large ones, too, so that these may begin later, by all of the former at most. */
static struct spans find_scratch(const struct odn_recurrent *r, const struct odn_need *need, const struct parts *parts)
{
    const uint64_t states = parts->states * 3 + parts->c, gates = training_gates(r, need, parts);
    struct spans spans = {0};
    if (r->training) {
        const uint64_t small = need->scratch_bytes - 5 * gates;
        add(&spans, 0, gates);
        add(&spans, 2 * gates + small, 5 * gates);
        return spans;
    }
    if (need->scratch_bytes < states)
        return spans;
    /* Gates of all steps of a GRU stand behind the space, which has their room once more: a quarter is used. */
    const uint64_t all = r->elem.type == dnnl_f32 ? 4 * parts->gates : 0, large = states + all + all / 4;
    if (r->cell == ODN_GRU_RESET_AFTER && need->way == 0 && all > 0 && need->scratch_bytes >= large) {
        add(&spans, 0, states + all / 4);
        add(&spans, states + all / 2 + (need->scratch_bytes - large), large);
    } else { /* what begins at the end copies x */
        add(&spans, need->way ? parts->states + PAGE : 0, states - parts->c / 2);
    }
    return spans;
}

/* What both leave; spans that stand at the same place belong together. */
static void meet(struct spans *spans, const struct spans *other)
{
    const struct spans before = *spans;
    spans->count = 0;
    for (int32_t i = 0; i < before.count && i < other->count; i++)
        add(spans, most(before.at[i].begin, other->at[i].begin),
            before.at[i].end < other->at[i].end ? before.at[i].end : other->at[i].end);
}

/* Of a slice of one rectangle: bytes that its primitives need, and what they leave. */
struct found {
    struct spans ws[ODN_KINDS][ODN_WAYS], scratch;
};

static seqlstm_status find_slice(const struct odn_recurrent *r, struct odn_slice *s, struct found *out_found,
                                 struct seqlstm_error *err)
{
    s->scratch_bytes = 0;
    for (int32_t k = 0; k < r->kinds; k++)
        for (int32_t d = 0; d < r->directions; d++) {
            struct odn_need need = {.kind = k, .way = odn_way_of(r, d), .n = s->rectangles[0].n,
                                    .steps = s->rectangles[0].steps};
            SEQLSTM_TRY(odn_need_find(r, &need, err));
            const struct parts parts = parts_of(r, &need);
            const struct spans scratch = find_scratch(r, &need, &parts);
            out_found->ws[k][d] = find_ws(r, &need, &parts);
            if (k == 0 && d == 0)
                out_found->scratch = scratch;
            else
                meet(&out_found->scratch, &scratch);
            s->ws_bytes[k] = d == 0 ? odn_round_up(need.ws_bytes) : s->ws_bytes[k];
            s->scratch_bytes = most(need.scratch_bytes, s->scratch_bytes);
        }
    return SEQLSTM_OK;
}

static void say_slice(const struct odn_recurrent *r, const struct odn_slice *s, const struct found *found,
                      struct seqlstm_sizes *sizes)
{
    for (int32_t n = 0; r->training && n < r->layers * r->directions; n++) {
        const int32_t layer = n / r->directions, d = n % r->directions;
        const struct spans *ws = &found->ws[odn_kind_of(r, layer)][d];
        const uint64_t at = odn_ws_place(r, s, layer, d);
        for (int32_t i = 0; i < ws->count; i++)
            idle_add_reserve(sizes, at + ws->at[i].begin, at + ws->at[i].end);
    }
    for (int32_t i = 0; i < found->scratch.count; i++)
        idle_add_workspace(sizes, s->scratch + found->scratch.at[i].begin, s->scratch + found->scratch.at[i].end);
}

static seqlstm_status find_uniform(struct odn_recurrent_binding *b, struct seqlstm_sizes *sizes,
                                   struct seqlstm_error *err)
{
    const struct seqlstm_host *host = b->r->op->instance->host;
    struct found *found = host_allocate(host, (uint64_t)b->slices_count * sizeof *found);
    if (found == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for what calls leave idle");
    uint64_t reserve, workspace;
    seqlstm_status status = SEQLSTM_OK;
    for (int32_t m = 0; m < b->slices_count && status == SEQLSTM_OK; m++)
        status = find_slice(b->r, &b->slices[m], &found[m], err);
    odn_slices_lay_out(b, &reserve, &workspace);
    for (int32_t m = 0; m < b->slices_count && status == SEQLSTM_OK; m++)
        say_slice(b->r, &b->slices[m], &found[m], sizes);
    host_release(host, found);
    idle_add_reserve(sizes, reserve, sizes->reserve_bytes);
    idle_add_workspace(sizes, workspace, sizes->workspace_bytes);
    return status;
}

/* ---- a batch of unequal lengths ------------------------------------------------------------------------ */

/* Its buffers are as large as the worst batch may need, which this one is not. What lies between the library's parts is
 * touched by and by, as rectangles of other batches lie elsewhere. */

/* `is_known`: the library's parts are as above. */
static uint64_t expect_ws(const struct odn_recurrent *r, int32_t kind, const struct odn_rectangle *rectangle,
                          bool is_known)
{
    const struct odn_need need = {.kind = kind, .n = rectangle->n, .steps = rectangle->steps};
    const struct parts parts = parts_of(r, &need);
    const struct odn_ws_model *m = &r->kind[kind].ws;
    const double n = (double)rectangle->n, steps = (double)rectangle->steps;
    if (is_known)
        return odn_round_up(places_of(&parts).end);
    return odn_round_up((uint64_t)(m->per_row * n * steps + m->per_sequence * n + m->per_step * steps + m->rest) +
                        ODN_PAGE_SLACK / 4);
}

/* The rectangle of all slices that has the most in `more` steps more than it has: what is kept by step has some. */
static const struct odn_rectangle *find_largest(const struct odn_recurrent_binding *b, int64_t more)
{
    const struct odn_rectangle *largest = b->slices[0].rectangles;
    for (int32_t m = 0; m < b->slices_count; m++)
        for (int32_t i = 0; i < b->slices[m].rectangle_count; i++) {
            const struct odn_rectangle *rectangle = &b->slices[m].rectangles[i];
            if (rectangle->n * (rectangle->steps + more) > largest->n * (largest->steps + more))
                largest = rectangle;
        }
    return largest;
}

/* Bytes that the slices' primitives need. What scratch there is of depends on the kernels: on rows, on steps and one or
 * two more, on sequences. */
static seqlstm_status expect_needs(struct odn_recurrent_binding *b, struct seqlstm_error *err)
{
    static const int64_t more[] = {0, 1, 2, 4, 8, INT32_MAX};
    const struct odn_recurrent *r = b->r;
    uint64_t scratch = 0;
    for (int32_t k = 0; k < r->kinds; k++) {
        const struct odn_rectangle *before = NULL;
        bool is_known = true;
        for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
            const struct odn_rectangle *largest = find_largest(b, more[i]);
            struct odn_need need = {.kind = k, .way = odn_way_of(r, 0), .n = largest->n, .steps = largest->steps};
            if (largest == before)
                continue;
            SEQLSTM_TRY(odn_need_find(r, &need, err));
            const struct parts parts = parts_of(r, &need);
            is_known = is_known && places_of(&parts).end == need.ws_bytes;
            scratch = most(scratch, need.scratch_bytes);
            before = largest;
        }
        for (int32_t m = 0; m < b->slices_count && r->training; m++)
            for (int32_t i = 0; i < b->slices[m].rectangle_count; i++)
                b->slices[m].ws_bytes[k] += expect_ws(r, k, &b->slices[m].rectangles[i], is_known);
    }
    for (int32_t m = 0; m < b->slices_count; m++)
        b->slices[m].scratch_bytes = scratch;
    return SEQLSTM_OK;
}

static seqlstm_status find_mixed(struct odn_recurrent_binding *b, struct seqlstm_sizes *sizes,
                                 struct seqlstm_error *err)
{
    uint64_t reserve, workspace;
    SEQLSTM_TRY(expect_needs(b, err));
    odn_slices_lay_out(b, &reserve, &workspace);
    idle_add_reserve(sizes, reserve, sizes->reserve_bytes);
    idle_add_workspace(sizes, workspace, sizes->workspace_bytes);
    return SEQLSTM_OK;
}

/* The operation was chosen and is going to run: what code the library needs for that then counts with the process. */
static void warm_up(struct odn_recurrent *r, int32_t threads)
{
    static atomic_bool is_warm[2]; /* for inference, for training */
    const struct odn_entry_key key = {.way = odn_way_of(r, 0), .threads = threads, .n = 1, .steps = 1};
    struct seqlstm_error ignored = SEQLSTM_ERROR_INIT; /* whoever binds the shape will hear of it */
    struct odn_entry *entry = NULL;
    odn_library_warm_up();
    if (!atomic_exchange(&is_warm[r->training], true) && odn_entry_acquire(r, &key, &entry, &ignored) == SEQLSTM_OK)
        odn_entry_release(r, entry);
}

seqlstm_status odn_recurrent_find_idle(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                       struct seqlstm_error *err)
{
    struct odn_recurrent *r = op->recurrent;
    const struct seqlstm_desc *head = &r->desc->head;
    const struct seqlstm_axis *axis = sizes->axis;
    if (axis == NULL || axis->sequences > head->max_sequences || axis->steps > head->max_steps ||
        axis->rows > head->max_rows)
        return SEQLSTM_OK;
    struct odn_recurrent_binding b;
    SEQLSTM_TRY(odn_binding_suppose(&b, r, axis, err));
    if (SEQLSTM_HAS(sizes, members) && sizes->members > 0 && sizes->members < b.slices_count)
        b.slices_count = sizes->members;
    const int threads = op->exclusive ? op->instance->members_max : 1, before = odn_threads_set(threads);
    warm_up(r, threads);
    seqlstm_status status = odn_slices_cut(&b, err);
    if (status == SEQLSTM_OK)
        status = r->desc->head.flags & SEQLSTM_DESC_UNIFORM ? find_uniform(&b, sizes, err)
                                                            : find_mixed(&b, sizes, err);
    odn_threads_set(before);
    odn_binding_forget(&b);
    return status;
}
