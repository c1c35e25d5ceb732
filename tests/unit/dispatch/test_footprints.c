/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that backends take and leave: which calls they are asked about, with which batches of which side, and what
 * becomes of their answers. The backend is made up; meson.build leads the questions here. */
#include <string.h>

#include <seqlstm/ext/footprint.h>

#include "ok.h"
#include "oom.h"

#include "base/value/buf.h"
#include "dispatch/memory/footprint_query.h"
#include "dispatch/memory/layout.h"
#include "dispatch/memory/sizes.h"
#include "dispatch/memory/touched.h"

enum { PAGE = 4096, CALLS = 6, MANY = SL_IDLE_ROOM + 2 };

/* ---- a backend --------------------------------------------------------------------------------------------------- */

static struct sl_buf asked;
static struct seqlstm_range told[2][MANY]; /* of workspace and reserve, where there is an axis */
static uint32_t told_count[2];
static const char *domain = "host";

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend);
struct seqlstm_instance *__wrap_sl_backend_get_instance(const struct sl_backend *backend);
const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t device);

static void fill_ranges(struct seqlstm_ranges *out, int which)
{
    for (uint32_t i = 0; i < told_count[which] && i < out->room; i++)
        out->at[i] = told[which][i];
    out->count = told_count[which];
}

/* "a: 2x5 of 7": two sequences, five steps, seven rows; "a: all" for the largest batch. */
static seqlstm_status tell_idle(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                const struct seqlstm_axis *axis, struct seqlstm_idle *idle, struct seqlstm_error *err)
{
    (void)sizes, (void)err;
    if (axis) {
        sl_buf_printf(&asked, "%s: %dx%d of %d%s\n", (const char *)op, (int)axis->sequences, (int)axis->steps,
                      (int)axis->rows, axis->flags & SEQLSTM_BIT_AXIS_STREAM ? " of a stream" : "");
        fill_ranges(&idle->workspace, 0);
        fill_ranges(&idle->reserve, 1);
    } else {
        sl_buf_printf(&asked, "%s: all\n", (const char *)op);
    }
    return SEQLSTM_OK;
}

static seqlstm_status tell_own(const struct seqlstm_op *op, const struct seqlstm_axis *const *batches,
                               uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                               struct seqlstm_error *err)
{
    (void)err;
    *out_bytes = 0;
    sl_buf_printf(&asked, "%s, %d bound:", (const char *)op, (int)bound_count);
    for (uint32_t b = 0; b < batch_count; b++) {
        *out_bytes = 10 * *out_bytes + (uint64_t)batches[b]->rows;
        sl_buf_printf(&asked, " %d", (int)batches[b]->rows);
    }
    sl_buf_append_char(&asked, '\n');
    return SEQLSTM_OK;
}

static const void *find(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_footprint extension = {
        .struct_size = sizeof extension, .idle_ranges = tell_idle, .own_bytes = tell_own};
    (void)instance, (void)id;
    return &extension;
}

static const struct seqlstm_backend table = {.id = "made-up", .get_extension = find};

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend)
{
    (void)backend;
    return &table;
}

struct seqlstm_instance *__wrap_sl_backend_get_instance(const struct sl_backend *backend)
{
    (void)backend;
    return NULL;
}

/* The last device is in a memory of its own, if any is. */
const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t device)
{
    static struct seqlstm_device_info info;
    (void)backend;
    snprintf(info.domain, sizeof info.domain, "%s", device ? domain : "host");
    return &info;
}

static void expect_asked(const char *text)
{
    if (strcmp(sl_buf_text(&asked), text) != 0)
        fail_msg("asked\n%s\nexpected\n%s", sl_buf_text(&asked), text);
    sl_buf_truncate(&asked, 0);
}

static int forget(void **state)
{
    (void)state;
    sl_buf_deinit(&asked);
    memset(told_count, 0, sizeof told_count);
    domain = "host";
    return 0;
}

/* ---- a plan ------------------------------------------------------------------------------------------------------ */

/* s: a call on the steps, e: on those of the source, q: on the sequences, l: in the loop. */
struct world {
    struct sl_tensor tensors[CALLS];
    struct sl_node nodes[CALLS];
    int32_t slots[CALLS];
    struct sl_call calls[CALLS];
    struct sl_graph graph;
    struct sl_arena arena;
    struct sl_plan plan;
    struct sl_profiles profiles;
};

static void open_world(struct world *w, const char *letters)
{
    static const char *const names[CALLS] = {"a", "b", "c", "d", "e", "f"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int32_t count = (int32_t)strlen(letters);
    *w =
        (struct world){.graph = {.tensors = w->tensors, .tensor_count = count, .nodes = w->nodes, .node_count = count}};
    w->graph.facts.envelope =
        (struct sl_envelope){.sequences = 3, .steps = 6, .rows = 14, .source_steps = 5, .source_rows = 13};
    for (int32_t c = 0; c < count; c++) {
        w->slots[c] = c;
        w->tensors[c] = (struct sl_tensor){.name = names[c], .role = SL_TENSOR_INPUT, .features = 1};
        w->tensors[c].axis = letters[c] == 'e'   ? SL_AXIS_SOURCE_STEPS
                             : letters[c] == 'q' ? SL_AXIS_SEQUENCES
                                                 : SL_AXIS_STEPS;
        w->nodes[c] = (struct sl_node){.name = names[c], .layer = c, .slots = &w->slots[c], .slot_count = 1};
        w->nodes[c].desc.head.op = SEQLSTM_OP_ACTIVATION;
        w->calls[c] = (struct sl_call){.node = &w->nodes[c], .node_first = c, .node_count = 1};
        w->calls[c].op = (struct seqlstm_op *)names[c];
        if (letters[c] == 'l' && w->graph.loop.count++ == 0)
            w->graph.loop.first = c;
    }
    sl_arena_init(&w->arena);
    w->plan = (struct sl_plan){.arena = &w->arena, .graph = &w->graph, .calls = w->calls, .call_count = count};
    static const int32_t lengths[][3] = {{6, 5, 3}, {4, 2, 1}, {7, 2, 1}, {0, 0, 0}, {3, 3, 0}, {6, 6, 4}};
    static const int32_t sources[][3] = {{5, 5, 3}, {0, 0, 0}, {5, 2, 1}, {4, 1, 1}, {5, 5, 4}, {6, 1, 1}};
    for (int k = 0; k < 2; k++)
        ok(sl_profiles_add(&w->profiles, 3, lengths[k], sources[k], 0.5, &err), &err);
    for (int k = 2; k < 6; k++)
        ok(sl_profiles_add_epoch(&w->profiles, 3, lengths[k], sources[k], &err), &err);
}

static void close_world(struct world *w)
{
    sl_profiles_deinit(&w->profiles);
    sl_arena_deinit(&w->arena);
}

static void lay_out(struct world *w)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_plan_lay_out(&w->plan, w->calls, 0, &err), &err);
    ok(sl_touched_count(&w->plan, &w->profiles, &err), &err);
}

/* Calls on one side of the steps are asked about each batch of it that has rows and that the graph is made for; all
 * others about the largest batch. */
static void calls_are_asked_about_the_batches_of_their_side(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "seqs");
    lay_out(&w);
    expect_asked("a: 3x6 of 14\na: 3x4 of 7\na: 2x3 of 6\n" /* not 7 steps, no steps, 16 rows */
                 "b: 3x5 of 13\nb: 3x5 of 8\nb: 3x4 of 6\n" /* not no steps, 14 rows, 6 steps */
                 "c: all\n"
                 "d: 3x6 of 14\nd: 3x4 of 7\nd: 2x3 of 6\n");
    w.graph.facts.envelope.sequences = 2;
    w.profiles.stream = true;
    lay_out(&w);
    expect_asked("a: 2x3 of 6 of a stream\nb: all\nc: all\nd: 2x3 of 6 of a stream\n");
    w.graph.pieces = 2; /* piece by piece, the steps of a batch are not those of a call */
    lay_out(&w);
    expect_asked("a: all\nb: all\nc: all\nd: all\n");
    close_world(&w);
    open_world(&w, "slle");
    lay_out(&w);
    expect_asked("a: 3x6 of 14\na: 3x4 of 7\na: 2x3 of 6\nb: all\nc: all\nd: 3x5 of 13\nd: 3x5 of 8\nd: 3x4 of 6\n");
    domain = "card"; /* the memory of a device is taken as a whole */
    w.calls[3].device = 1;
    lay_out(&w);
    expect_asked("");
    close_world(&w);
}

/* What every batch leaves idle takes no memory: of the workspace, and of each reserve of a call. */
static void what_stays_idle_takes_no_memory(void **state)
{
    struct world w;
    (void)state;
    open_world(&w, "ss");
    w.calls[0].sizes = (struct seqlstm_sizes){.workspace_bytes = 10 * PAGE, .reserve_bytes = 8 * PAGE};
    w.calls[1].sizes = (struct seqlstm_sizes){.reserve_bytes = 6 * PAGE};
    told[0][0] = (struct seqlstm_range){2 * PAGE, 5 * PAGE};
    told[0][1] = (struct seqlstm_range){6 * PAGE, 10 * PAGE};
    told[1][0] = (struct seqlstm_range){1 * PAGE, 3 * PAGE};
    told_count[0] = 2;
    told_count[1] = 1;
    w.calls[1].sizes.workspace_bytes = 10 * PAGE;
    lay_out(&w);
    const int64_t buffers = w.plan.memory.activations_bytes;
    assert_int_equal(w.plan.memory.workspace_bytes, 3 * PAGE);
    assert_int_equal(buffers, (8 - 2 + 6 - 2) * PAGE);
    assert_int_equal(w.plan.memory.peak_bytes, buffers + 3 * PAGE);
    sl_buf_truncate(&asked, 0);
    close_world(&w);
    /* in a loop there is a reserve for each step, all of them touched */
    open_world(&w, "l");
    w.calls[0].sizes.reserve_bytes = 2 * PAGE;
    lay_out(&w);
    assert_int_equal(w.plan.memory.activations_bytes, 6 * 2 * PAGE);
    assert_int_equal(w.plan.memory.peak_bytes, 6 * 2 * PAGE);
    close_world(&w);
}

/* Memory of their own: after the batches of the epoch, of their own side, in order, and those without steps left out.
 * The numbers of all calls are added. */
static void own_memory_follows_from_the_epoch(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    (void)state;
    open_world(&w, "sqelq");
    ok(sl_sizes_profile(&w.graph, &w.profiles, w.calls, w.plan.call_count, &err), &err);
    expect_asked("a, 8 bound: 10 6 16\nc, 8 bound: 8 6 14 8\n");
    assert_int_equal(w.calls[0].own_bytes, 1076);
    assert_int_equal(w.calls[1].own_bytes, 0);
    assert_int_equal(w.calls[2].own_bytes, 8748);
    assert_int_equal(w.calls[3].own_bytes, 0);
    w.calls[1].own_bytes = 50000;
    ok(sl_plan_lay_out(&w.plan, w.calls, 0, &err), &err);
    assert_int_equal(w.plan.memory.backends_bytes, 1076 + 50000 + 8748);
    ok(sl_sizes_profile(&w.graph, NULL, w.calls, w.plan.call_count, &err), &err);
    w.profiles.epoch_count = 0;
    ok(sl_sizes_profile(&w.graph, &w.profiles, w.calls, w.plan.call_count, &err), &err);
    expect_asked(""); /* nothing is known of the batches */
    w.profiles.epoch_count = 4;
    close_world(&w);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static const struct seqlstm_axis some_axis = {.struct_size = sizeof some_axis, .sequences = 1, .steps = 1, .rows = 1};

/* Ranges in order, side by side and up to the end are fine; all others are the backend's fault. */
static void ranges_are_checked(void **state)
{
#define OUTSIDE(first, last, buffer, bytes)                                                                            \
    "backend made-up: it reports bytes " #first " to " #last " of the " buffer                                         \
    " as idle, out of order or outside its " #bytes " bytes"
    static const struct {
        struct seqlstm_range ranges[3];
        uint32_t count;
        int which;
        const char *message;
    } rows[] = {
        {{{0}}, 0, 0, NULL},
        {{{0, 100}}, 1, 0, NULL},
        {{{5, 5}, {5, 9}, {9, 100}}, 3, 0, NULL},
        {{{0, 70}}, 1, 1, NULL},
        {{{0, 101}}, 1, 0, OUTSIDE(0, 101, "workspace", 100)},
        {{{0, 71}}, 1, 1, OUTSIDE(0, 71, "reserve", 70)},
        {{{9, 8}}, 1, 0, OUTSIDE(9, 8, "workspace", 100)},
        {{{5, 9}, {8, 10}}, 2, 0, OUTSIDE(8, 10, "workspace", 100)},
        {{{50, 60}, {10, 20}}, 2, 1, OUTSIDE(10, 20, "reserve", 70)},
        {{{1, 2}, {3, 4}, {3, 5}}, 3, 0, OUTSIDE(3, 5, "workspace", 100)},
    };
    const struct seqlstm_sizes sizes = {.workspace_bytes = 100, .reserve_bytes = 70};
    const struct sl_footprint footprint = {.table = &table, .op = (struct seqlstm_op *)"op", .sizes = &sizes};
    struct seqlstm_idle idle;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    ok(sl_idle_init(&idle, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int which = rows[i].which;
        memcpy(told[which], rows[i].ranges, sizeof rows[i].ranges);
        told_count[which] = rows[i].count;
        told_count[1 - which] = 0;
        const seqlstm_status status = sl_footprint_ask_idle(&footprint, &some_axis, &idle, &err);
        assert_int_equal(status, rows[i].message ? SEQLSTM_INTERNAL : SEQLSTM_OK);
        if (rows[i].message)
            assert_string_equal(err.message, rows[i].message);
        else
            assert_int_equal(which ? idle.reserve.count : idle.workspace.count, rows[i].count);
    }
    told_count[0] = SL_IDLE_ROOM; /* as many as there is room for */
    for (uint32_t k = 0; k < SL_IDLE_ROOM; k++)
        told[0][k] = (struct seqlstm_range){0, 0};
    told_count[1] = 0;
    ok(sl_footprint_ask_idle(&footprint, &some_axis, &idle, &err), &err);
    ok(sl_footprint_ask_idle(&footprint, NULL, &idle, &err), &err); /* it says nothing now: what it said is gone */
    assert_true(idle.workspace.count == 0 && idle.reserve.count == 0);
    told_count[1] = SL_IDLE_ROOM + 1;
    assert_int_equal(sl_footprint_ask_idle(&footprint, &some_axis, &idle, &err), SEQLSTM_INTERNAL);
    char expected[160];
    snprintf(expected, sizeof expected,
             "backend made-up: it reports %d idle parts of the reserve, more than the %d that there is room for",
             SL_IDLE_ROOM + 1, SL_IDLE_ROOM);
    assert_string_equal(err.message, expected);
    sl_idle_deinit(&idle);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(calls_are_asked_about_the_batches_of_their_side),
        TEST(what_stays_idle_takes_no_memory),
        TEST(own_memory_follows_from_the_epoch),
        TEST(ranges_are_checked),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
