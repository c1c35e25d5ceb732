/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of the reserves of a plan batches touch: each operation of encoder and decoder by the lengths of its own
 * side, all batches together. The backend says of a batch that it touches one page, the one with the number of its
 * rows, and of the largest batch that it touches all. */
#include <unistd.h>

#include <seqlstm/ext/footprint.h>

#include "exec_world.h"
#include "oom.h"

#include "dispatch/memory/footprint_query.h"
#include "dispatch/memory/sizes.h"
#include "dispatch/memory/touched.h"

enum { B = 3, STEPS = 6, SOURCE_STEPS = 9, ROWS = 14, SOURCE_ROWS = 20, PAGES = 32 };

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static seqlstm_status size_in_pages(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    (void)op, (void)err;
    sizes->workspace_bytes = 0;
    sizes->reserve_bytes = PAGES * page_bytes();
    sizes->packed_bytes = 0;
    return SEQLSTM_OK;
}

static seqlstm_status touch_one(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                const struct seqlstm_axis *axis, struct seqlstm_idle *idle, struct seqlstm_error *err)
{
    (void)op, (void)err;
    if (axis == NULL)
        return SEQLSTM_OK;
    const uint64_t at = (uint64_t)axis->rows * page_bytes();
    assert_true(idle->reserve.room >= 2);
    idle->reserve.at[0] = (struct seqlstm_range){0, at};
    idle->reserve.at[1] = (struct seqlstm_range){at + page_bytes(), sizes->reserve_bytes};
    idle->reserve.count = 2;
    return SEQLSTM_OK;
}

/* A number that tells which batches were named, and how many of them are bound. */
static seqlstm_status add_up(const struct seqlstm_op *op, const struct seqlstm_axis *const *shapes, uint32_t count,
                             uint32_t bound_count, uint64_t *out_bytes, struct seqlstm_error *err)
{
    (void)op, (void)err;
    *out_bytes = 1000000 * (uint64_t)bound_count;
    for (uint32_t b = 0; b < count; b++)
        *out_bytes += (b + 1) * (uint64_t)(100 * shapes[b]->rows + shapes[b]->steps);
    return SEQLSTM_OK;
}

/* What a backend says that cannot be; NULL: what it says is right. */
static const struct seqlstm_range *wrong;
static uint32_t wrong_count;

static seqlstm_status say_wrong(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                const struct seqlstm_axis *axis, struct seqlstm_idle *idle, struct seqlstm_error *err)
{
    (void)op, (void)sizes, (void)axis, (void)err;
    memcpy(idle->workspace.at, wrong, wrong_count * sizeof *wrong);
    idle->workspace.count = wrong_count;
    return SEQLSTM_OK;
}

static const void *find_wrong(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_footprint footprint = {.struct_size = sizeof footprint, .idle_ranges = say_wrong};
    (void)instance;
    return strcmp(id, SEQLSTM_FOOTPRINT_EXTENSION) == 0 ? &footprint : NULL;
}

static const void *find_footprint(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_footprint footprint = {
        .struct_size = sizeof footprint, .idle_ranges = touch_one, .own_bytes = add_up};
    (void)instance;
    return strcmp(id, SEQLSTM_FOOTPRINT_EXTENSION) == 0 ? &footprint : NULL;
}

static const struct seqlstm_backend *query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.op_sizes = size_in_pages;
    table.get_extension = find_footprint;
    return &table;
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

struct lengths {
    int32_t target[B], source[B];
};

static int64_t count_rows(const int32_t lengths[B])
{
    int64_t rows = 0;
    for (int k = 0; k < B; k++)
        rows += lengths[k];
    return rows;
}

/* Long targets of short sources, and the other way; no side of the last batch fits, and in the one before only one. */
static const struct lengths batches[] = {{{6, 5, 3}, {2, 1, 1}},
                                         {{2, 1, 0}, {9, 7, 4}},
                                         {{2, 2, 1}, {9, 7, 4}},
                                         {{3, 1, 1}, {9, 9, 9}},
                                         {{7, 1, 1}, {10, 1, 1}}};
enum { BATCHES = sizeof batches / sizeof *batches };

static bool fits(const struct lengths *b, bool is_source)
{
    return is_source ? b->source[0] <= SOURCE_STEPS && count_rows(b->source) <= SOURCE_ROWS
                     : b->target[0] <= STEPS && count_rows(b->target) <= ROWS;
}

/* How many pages the first `count` batches touch in one reserve of an operation on that side. */
static int64_t count_pages(int32_t count, bool is_source)
{
    bool touched[PAGES] = {false};
    int64_t pages = 0;
    for (int32_t b = 0; b < count; b++)
        if (fits(&batches[b], is_source))
            touched[count_rows(is_source ? batches[b].source : batches[b].target)] = true;
    for (int p = 0; p < PAGES; p++)
        pages += touched[p];
    return pages;
}

static int64_t expect_reserves(const struct sl_plan *plan, int32_t count)
{
    int64_t pages = 0;
    for (int32_t c = 0; c < plan->call_count; c++) {
        const enum sl_axis axis = sl_graph_get_axis(plan->graph, plan->calls[c].node);
        const bool asks = sl_axis_is_steps(axis) && !sl_call_is_in_loop(plan->graph, &plan->calls[c]);
        pages += sl_call_count_reserves(plan, &plan->calls[c]) *
                 (asks ? count_pages(count, sl_axis_is_source(axis)) : PAGES);
    }
    return pages * (int64_t)page_bytes();
}

/* What counting takes from the plan's memory, apart from what it takes of the activations for any data. */
static int64_t count_saved(struct sl_plan *plan, const struct sl_profiles *profiles)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_plan_memory before = plan->memory;
    ok(sl_touched_count(plan, profiles, &err), &err);
    const int64_t saved = before.activations_bytes - plan->memory.activations_bytes;
    assert_int_equal(before.peak_bytes - plan->memory.peak_bytes,
                     saved + before.workspace_bytes - plan->memory.workspace_bytes);
    return saved;
}

static void open_pairs(struct world *w, const char *layers)
{
    static const char data[] = "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace}\n";
    const struct sl_data_facts facts = {
        .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 7},
        .target = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 7},
        .source = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 9},
        .has_steps = true,
        .envelope = {
            .sequences = B, .steps = STEPS, .rows = ROWS, .source_steps = SOURCE_STEPS, .source_rows = SOURCE_ROWS}};
    world_query = query;
    open_world(w, data, layers, &facts, false);
    world_query = seqlstm_reference_query_v0;
}

static void check(const char *layers)
{
    struct sl_profiles profiles = {.count = 0};
    struct world w;
    open_pairs(&w, layers);
    const int64_t usual = count_saved(w.plan, NULL);
    for (int32_t b = 0; b < BATCHES; b++) {
        if (b == 0) /* the largest of both sides: the same activations as of any data */
            ok(sl_profiles_add(&profiles, B, batches[b].target, batches[b].source, 1, NULL), NULL);
        else
            ok(sl_profiles_add_epoch(&profiles, B, batches[b].target, batches[b].source, NULL), NULL);
        if (b > 0)
            assert_int_equal(count_saved(w.plan, &profiles) - usual,
                             w.plan->reserve_bytes - expect_reserves(w.plan, b + 1));
    }
    sl_profiles_deinit(&profiles);
    close_world(&w);
}

#define ENCODER "model: {encoder: [{type: embedding, dim: 4}, {type: lstm, units: 4, return_sequences: true}], "
#define DECODER "decoder: [{type: embedding, dim: 3}, {type: lstm, units: 4, return_sequences: true}, "
#define OUTPUT  " {type: output, activation: softmax}]}\ntrain: {epochs: 1}"

/* Batches of the epoch in its order, those of its own side with steps, for each operation on steps that runs at once.
 */
static void own_memory_is_of_the_epoch(void **state)
{
    static const int32_t targets[][B] = {{4, 2, 1}, {0, 0, 0}, {2, 2, 2}},
                         sources[][B] = {{5, 0, 0}, {7, 3, 1}, {0, 0, 0}};
    (void)state;
    struct sl_profiles profiles = {.count = 0};
    struct world w;
    open_pairs(&w, ENCODER DECODER "{type: attention, input_feeding: true}," OUTPUT);
    for (int b = 0; b < 3; b++)
        ok(sl_profiles_add_epoch(&profiles, B, targets[b], sources[b], NULL), NULL);
    ok(sl_sizes_profile(w.graph, &profiles, (struct sl_call *)w.plan->calls, w.plan->call_count, NULL), NULL);
    int own[3] = {0};
    for (int32_t c = 0; c < w.plan->call_count; c++) {
        const struct sl_call *call = &w.plan->calls[c];
        const enum sl_axis axis = sl_graph_get_axis(w.graph, call->node);
        const bool asks = sl_axis_is_steps(axis) && !sl_call_is_in_loop(w.graph, call);
        const uint64_t bound = 1000000 * SL_SHAPES_BOUND, target = bound + 704 + 2 * 602,
                       source = bound + 505 + 2 * 1107;
        assert_int_equal(call->own_bytes, !asks ? 0 : sl_axis_is_source(axis) ? source : target);
        own[!asks ? 0 : sl_axis_is_source(axis) ? 1 : 2]++;
    }
    assert_true(own[0] > 0 && own[1] > 0 && own[2] > 0);
    sl_profiles_deinit(&profiles);
    close_world(&w);
}

/* Parts of a buffer are in order, apart, and inside. */
static void idle_parts_are_checked(void **state)
{
    enum { BYTES = 100 };
    static const struct {
        struct seqlstm_range at[2];
        uint32_t count;
        const char *message; /* NULL: right */
    } cases[] = {
        {{{0, BYTES}}, 1, NULL},
        {{{0, 10}, {10, BYTES}}, 2, NULL},
        {{{50, 50}, {50, 50}}, 2, NULL},
        {{{0, BYTES + 1}}, 1, "bytes 0 to 101 of the workspace as idle, out of order or outside its 100 bytes"},
        {{{0, 10}, {9, 20}}, 2, "bytes 9 to 20 of the workspace"},
        {{{20, 30}, {0, 10}}, 2, "bytes 0 to 10 of the workspace"},
        {{{30, 20}}, 1, "bytes 30 to 20 of the workspace"}};
    static const struct seqlstm_sizes sizes = {.struct_size = sizeof sizes, .workspace_bytes = BYTES};
    struct seqlstm_backend table = *seqlstm_reference_query_v0(UINT32_MAX);
    table.get_extension = find_wrong;
    const struct sl_footprint footprint = {.table = &table, .sizes = &sizes};
    (void)state;
    struct seqlstm_idle idle;
    ok(sl_idle_init(&idle, NULL), NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        wrong = cases[i].at;
        wrong_count = cases[i].count;
        const seqlstm_status status = sl_footprint_ask_idle(&footprint, NULL, &idle, &err);
        assert_int_equal(status, cases[i].message ? SEQLSTM_INTERNAL : SEQLSTM_OK);
        if (cases[i].message && !strstr(err.message, cases[i].message))
            fail_msg("%s", err.message);
    }
    sl_idle_deinit(&idle);
}

static void each_side_counts_by_its_own_lengths(void **state)
{
    (void)state;
    check(ENCODER DECODER "attention," OUTPUT);
    check(ENCODER DECODER "{type: attention, score: additive, units: 5}," OUTPUT);
}

static void a_loop_counts_as_the_largest_batch(void **state)
{
    (void)state;
    check(ENCODER DECODER "{type: attention, input_feeding: true}," OUTPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_side_counts_by_its_own_lengths),
        cmocka_unit_test(a_loop_counts_as_the_largest_batch),
        cmocka_unit_test(own_memory_is_of_the_epoch),
        cmocka_unit_test(idle_parts_are_checked),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
