/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what the library never touches of the buffers that it requests (parts.h), so that predictions of memory can
 * leave it out.
 *
 * For a stack, the library copies what the layers read and write. A single layer that runs from the first step to the
 * last works on the caller's tensors instead. In the workspace it touches the gates, the upper half of c (of layer 1 of
 * 2), the gradients by layer, and the lower halves of the other gradients (layer 0). In the scratch, training touches
 * only what lies behind the space, and of that no more than the bytes of the gates and the small parts. */
#include <stdatomic.h>

#include "common/idle.h"
#include "cpu-onednn/library.h"
#include "cpu-onednn/recurrent/parts.h"

enum { PAGE = 4096, RANGES = 3 };

/* The untouched ranges of one primitive's workspace or scratch, in order. */
struct ranges {
    struct seqlstm_range at[RANGES];
    int32_t count;
};

static void add(struct ranges *ranges, uint64_t begin, uint64_t end)
{
    if (begin < end)
        ranges->at[ranges->count++] = (struct seqlstm_range){begin, end};
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct ranges find_ws(const struct odn_recurrent *r, const struct odn_need *need)
{
    const struct odn_parts parts = odn_parts_of(r, need);
    const struct odn_places p = odn_places_of(&parts);
    struct ranges ranges = {0};
    if (p.end != need->ws_bytes)
        return ranges;
    add(&ranges, need->way ? p.unused : r->projection ? p.states : p.projected, p.c + parts.c / 2);
    add(&ranges, p.step_grads + parts.step_grads / 2, p.c_grads);
    add(&ranges, p.c_grads + parts.c_grads / 2, p.c_grads + parts.c_grads);
    return ranges;
}

/* Small parts may also lie before the gates, so the gates may begin later, by up to the bytes of all small parts. */
static struct ranges find_training_scratch(const struct odn_recurrent *r, const struct odn_need *need)
{
    const int32_t large = need->scratch[ODN_BACKWARD] > need->scratch[ODN_FORWARD] ? ODN_BACKWARD : ODN_FORWARD;
    const int32_t other = large == ODN_FORWARD ? ODN_BACKWARD : ODN_FORWARD;
    const struct odn_scratch s = odn_scratch_of(r, need, large), o = odn_scratch_of(r, need, other);
    struct ranges ranges = {0};
    if (!odn_scratch_is(r, need, large))
        return ranges;
    uint64_t begin = s.gates, end = 2 * s.gates + need->scratch[large] - s.end;
    if (o.gates != s.gates || !odn_scratch_is(r, need, other)) {
        begin = odn_scratch_is(r, need, other) ? least(begin, o.gates) : 0;
        end = most(end, need->scratch[other]);
    }
    add(&ranges, 0, begin);
    add(&ranges, end, s.end);
    return ranges;
}

static struct ranges find_inference_scratch(const struct odn_recurrent *r, const struct odn_need *need)
{
    const struct odn_parts parts = odn_parts_of(r, need);
    const struct odn_scratch s = odn_scratch_of(r, need, ODN_FORWARD);
    struct ranges ranges = {0};
    if (need->scratch_bytes < s.before)
        return ranges;
    /* the part that begins there holds a copy of x */
    add(&ranges, need->way ? parts.states + PAGE : 0, s.before - parts.c / 2);
    if (odn_scratch_is(r, need, ODN_FORWARD)) {
        const uint64_t small = need->scratch_bytes - s.end;
        add(&ranges, s.before + small, s.before + s.gates);
        add(&ranges, s.before + 2 * s.gates + small, s.end);
    }
    return ranges;
}

/* Reduces `ranges` to what both leave untouched. Entries at the same index belong together. */
static void meet(struct ranges *ranges, const struct ranges *other)
{
    const struct ranges before = *ranges;
    ranges->count = 0;
    for (int32_t i = 0; i < before.count && i < other->count; i++)
        add(ranges, most(before.at[i].begin, other->at[i].begin),
            before.at[i].end < other->at[i].end ? before.at[i].end : other->at[i].end);
}

/* For a slice of one rectangle: the bytes that its primitives need, and what they leave untouched. */
struct found {
    struct ranges ws[ODN_KINDS][ODN_WAYS], scratch;
};

static seqlstm_status find_slice(const struct odn_recurrent *r, struct odn_slice *s, struct found *out_found,
                                 struct seqlstm_error *err)
{
    s->scratch_bytes = 0;
    for (int32_t k = 0; k < r->kinds; k++)
        for (int32_t d = 0; d < r->directions; d++) {
            struct odn_need need = {
                .kind = k, .way = odn_way_of(r, d), .n = s->rectangles[0].n, .steps = s->rectangles[0].steps};
            SEQLSTM_TRY(odn_need_find(r, &need, err));
            const struct ranges scratch =
                r->training ? find_training_scratch(r, &need) : find_inference_scratch(r, &need);
            out_found->ws[k][d] = find_ws(r, &need);
            if (k == 0 && d == 0)
                out_found->scratch = scratch;
            else
                meet(&out_found->scratch, &scratch);
            s->ws_bytes[k] = d == 0 ? align_bytes(need.ws_bytes) : s->ws_bytes[k];
            s->scratch_bytes = most(need.scratch_bytes, s->scratch_bytes);
        }
    return SEQLSTM_OK;
}

static void say_slice(const struct odn_recurrent *r, const struct odn_slice *s, const struct found *found,
                      struct seqlstm_idle *idle)
{
    for (int32_t n = 0; r->training && n < r->layers * r->directions; n++) {
        const int32_t layer = n / r->directions, d = n % r->directions;
        const struct ranges *ws = &found->ws[odn_kind_of(r, layer)][d];
        const uint64_t at = odn_ws_place(r, s, layer, d);
        for (int32_t i = 0; i < ws->count; i++)
            idle_add(&idle->reserve, at + ws->at[i].begin, at + ws->at[i].end);
    }
    for (int32_t i = 0; i < found->scratch.count; i++)
        idle_add(&idle->workspace, s->scratch + found->scratch.at[i].begin, s->scratch + found->scratch.at[i].end);
}

static seqlstm_status find_uniform(struct odn_recurrent_binding *b, const struct seqlstm_sizes *sizes,
                                   struct seqlstm_idle *idle, struct seqlstm_error *err)
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
        say_slice(b->r, &b->slices[m], &found[m], idle);
    host_release(host, found);
    idle_add(&idle->reserve, reserve, sizes->reserve_bytes);
    idle_add(&idle->workspace, workspace, sizes->workspace_bytes);
    return status;
}

/* ---- a batch of unequal lengths ------------------------------------------------------------------------ */

/* The buffers are as large as the worst batch needs, and this batch needs less. Between the library's parts, everything
 * is touched sooner or later, because the rectangles of other batches have other offsets. The exception is what all
 * batches leave untouched of their scratch: the bytes behind the gates. */

/* `is_known`: the library's parts are as in parts.h. */
static uint64_t expect_ws(const struct odn_recurrent *r, int32_t kind, const struct odn_rectangle *rectangle,
                          bool is_known)
{
    const struct odn_need need = {.kind = kind, .n = rectangle->n, .steps = rectangle->steps};
    const struct odn_parts parts = odn_parts_of(r, &need);
    const struct odn_ws_model *m = &r->kind[kind].ws;
    const double n = (double)rectangle->n, steps = (double)rectangle->steps;
    if (is_known)
        return align_bytes(odn_places_of(&parts).end);
    return align_bytes((uint64_t)(m->per_row * n * steps + m->per_sequence * n + m->per_step * steps + m->rest) +
                       ODN_PAGE_SLACK / 4);
}

/* The rectangle with the most rows if each had `more` steps more. (Buffers that hold a value per step have some
 * more.) */
static const struct odn_rectangle *find_largest(const struct odn_slice *slice, int64_t more)
{
    const struct odn_rectangle *largest = slice->rectangles;
    for (int32_t i = 0; i < slice->rectangle_count; i++) {
        const struct odn_rectangle *rectangle = &slice->rectangles[i];
        if (rectangle->n * (rectangle->steps + more) > largest->n * (largest->steps + more))
            largest = rectangle;
    }
    return largest;
}

enum { NEEDS = 16 };

/* The library's answers for rectangles of one kind of layer. */
struct said {
    bool is_ws, is_scratch, is_other; /* are the parts as in parts.h: in all answers; in at least one; not in one */
    struct odn_need needs[NEEDS];     /* the latest answers: slices are similar */
    int32_t count;                    /* of all answers */
};

static void hear(struct said *said, const struct odn_recurrent *r, const struct odn_need *need)
{
    const struct odn_parts parts = odn_parts_of(r, need);
    said->needs[said->count++ % NEEDS] = *need;
    said->is_ws = said->is_ws && odn_places_of(&parts).end == need->ws_bytes;
    for (int32_t p = 0; p < odn_passes(r); p++) {
        const struct odn_scratch s = odn_scratch_of(r, need, p);
        const bool is = odn_scratch_is(r, need, p);
        said->is_scratch = said->is_scratch || is;
        said->is_other = said->is_other || (!is && odn_scratch_is_clear(&s, need));
    }
}

static struct odn_scratch scratch_of(const struct odn_recurrent *r, int32_t kind, const struct odn_rectangle *rectangle,
                                     int32_t pass)
{
    const struct odn_need need = {.kind = kind, .n = rectangle->n, .steps = rectangle->steps};
    return odn_scratch_of(r, &need, pass);
}

/* What all rectangles of a slice leave untouched of their scratch: the bytes between the gates and the small parts of
 * those that need the most, from where the small parts of the others end. */
static struct seqlstm_range find_rest(const struct odn_recurrent *r, int32_t kind, const struct odn_slice *slice)
{
    const int32_t passes = odn_passes(r), count = slice->rectangle_count * passes;
    struct seqlstm_range rest = {0, 0};
    for (int32_t i = 0; i < count; i++)
        rest.end = most(rest.end, scratch_of(r, kind, &slice->rectangles[i / passes], i % passes).end);
    for (int32_t i = 0; i < count; i++) {
        const struct odn_scratch s = scratch_of(r, kind, &slice->rectangles[i / passes], i % passes);
        rest.begin = most(rest.begin, s.small + (s.end == rest.end ? s.before + 2 * s.gates : s.end));
    }
    return rest;
}

static const struct odn_need *find_need(const struct said *said, const struct odn_rectangle *rectangle)
{
    for (int32_t i = 0; i < said->count && i < NEEDS; i++)
        if (said->needs[i].n == rectangle->n && said->needs[i].steps == rectangle->steps)
            return &said->needs[i];
    return NULL;
}

/* Bytes that a slice's primitives need; 0 if its sequences have no steps. Depending on kernels, scratch grows with
 * rows, with steps plus one or two, or with sequences. */
static seqlstm_status expect_scratch(const struct odn_recurrent *r, int32_t kind, struct odn_slice *slice,
                                     struct said *io_said, struct seqlstm_error *err)
{
    static const int64_t more[] = {0, 1, 2, 4, 8, INT32_MAX};
    for (size_t i = 0; slice->rectangle_count > 0 && i < sizeof more / sizeof *more; i++) {
        const struct odn_rectangle *largest = find_largest(slice, more[i]);
        const struct odn_need *known = find_need(io_said, largest);
        struct odn_need need = {.kind = kind, .way = odn_way_of(r, 0), .n = largest->n, .steps = largest->steps};
        if (known == NULL) {
            SEQLSTM_TRY(odn_need_find(r, &need, err));
            hear(io_said, r, &need);
        } else {
            need = *known;
        }
        slice->scratch_bytes = most(slice->scratch_bytes, need.scratch_bytes);
    }
    return SEQLSTM_OK;
}

/* The needs of the slices' primitives, and what they leave untouched of their scratch. */
static seqlstm_status expect_needs(struct odn_recurrent_binding *b, struct seqlstm_range *rests,
                                   struct seqlstm_error *err)
{
    const struct odn_recurrent *r = b->r;
    for (int32_t k = 0; k < r->kinds; k++) {
        struct said said = {.is_ws = true};
        for (int32_t m = 0; m < b->slices_count; m++)
            SEQLSTM_TRY(expect_scratch(r, k, &b->slices[m], &said, err));
        for (int32_t m = 0; m < b->slices_count; m++) {
            struct odn_slice *s = &b->slices[m];
            const struct seqlstm_range rest = find_rest(r, k, s);
            rests[m].begin = most(rest.begin, rests[m].begin);
            rests[m].end = said.is_scratch && !said.is_other ? least(rest.end, rests[m].end) : 0;
            for (int32_t i = 0; i < s->rectangle_count && r->training; i++)
                s->ws_bytes[k] += expect_ws(r, k, &s->rectangles[i], said.is_ws);
        }
    }
    return SEQLSTM_OK;
}

static seqlstm_status find_mixed(struct odn_recurrent_binding *b, const struct seqlstm_sizes *sizes,
                                 struct seqlstm_idle *idle, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = b->r->op->instance->host;
    struct seqlstm_range *rests = host_allocate(host, (uint64_t)b->slices_count * sizeof *rests);
    if (rests == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for what calls leave idle");
    uint64_t reserve, workspace;
    for (int32_t m = 0; m < b->slices_count; m++)
        rests[m] = (struct seqlstm_range){0, UINT64_MAX};
    const seqlstm_status status = expect_needs(b, rests, err);
    odn_slices_lay_out(b, &reserve, &workspace);
    for (int32_t m = 0; m < b->slices_count && status == SEQLSTM_OK; m++)
        idle_add(&idle->workspace, b->slices[m].scratch + rests[m].begin, b->slices[m].scratch + rests[m].end);
    host_release(host, rests);
    if (status != SEQLSTM_OK)
        return status;
    idle_add(&idle->reserve, reserve, sizes->reserve_bytes);
    idle_add(&idle->workspace, workspace, sizes->workspace_bytes);
    return SEQLSTM_OK;
}

/* The operation was chosen and will run, so the code that the library loads for it should count towards the process
 * before memory is measured. */
static void warm_up(struct odn_recurrent *r, int32_t threads)
{
    static atomic_bool is_warm[2]; /* for inference, for training */
    const struct odn_entry_key key = {.way = odn_way_of(r, 0), .threads = threads, .n = 1, .steps = 1};
    struct seqlstm_error ignored = SEQLSTM_ERROR_INIT; /* binding the shape reports it */
    struct odn_calls *calls = NULL;
    odn_library_warm_up();
    if (!atomic_exchange(&is_warm[r->training], true) &&
        odn_calls_acquire(r, &key, false, &calls, &ignored) == SEQLSTM_OK)
        odn_calls_release(r, calls);
}

seqlstm_status odn_recurrent_find_idle(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                       const struct seqlstm_axis *axis, struct seqlstm_idle *idle,
                                       struct seqlstm_error *err)
{
    struct odn_recurrent *r = op->recurrent;
    const struct seqlstm_desc *head = &r->desc->head;
    if (axis->sequences > head->max_sequences || axis->steps > head->max_steps || axis->rows > head->max_rows)
        return SEQLSTM_OK;
    struct odn_recurrent_binding b;
    const bool few = SEQLSTM_HAS(sizes, members) && sizes->members > 0 && sizes->members < r->slices_max;
    SEQLSTM_TRY(odn_binding_suppose(&b, r, axis, few ? sizes->members : r->slices_max, err));
    const int threads = op->exclusive ? op->instance->members_max : 1, before = odn_threads_set(threads);
    warm_up(r, threads);
    const seqlstm_status status = r->desc->head.flags & SEQLSTM_BIT_DESC_UNIFORM ? find_uniform(&b, sizes, idle, err)
                                                                                 : find_mixed(&b, sizes, idle, err);
    odn_threads_set(before);
    odn_slices_release(&b);
    return status;
}
