/* SPDX-License-Identifier: Apache-2.0 */
/* Where buffers lie: nothing overlaps that is needed at the same time, for many made-up plans with loops, pieces,
 * branches and frozen beginnings; and what memory is the sum of. */
#include <string.h>

#include "ok.h"
#include "oom.h"

#include "base/memory/alignment.h"
#include "dispatch/memory/layout.h"
#include "registry/watch/fence.h"

enum { CALLS = 8, SLOTS = 4, TENSORS = CALLS + 1 };

const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t device);
const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend);
const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);
bool __wrap_sl_domain_has_captures(const struct seqlstm_backend *table);

/* Device 0 is the host, the others are cards. */
const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t device)
{
    static struct seqlstm_device_info infos[] = {{.domain = "host"}, {.domain = "card:0"}, {.domain = "card:1"}};
    (void)backend;
    return &infos[device];
}

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend)
{
    (void)backend;
    return NULL;
}

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    (void)backend;
    return "made-up";
}

bool __wrap_sl_domain_has_captures(const struct seqlstm_backend *table)
{
    (void)table;
    return true;
}

struct world {
    struct sl_tensor tensors[TENSORS];
    struct sl_node nodes[CALLS];
    int32_t slots[CALLS][SLOTS];
    struct sl_call calls[CALLS];
    struct sl_graph graph;
    struct sl_arena arena;
    struct sl_plan plan;
};

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* Call c reads tensor c and perhaps one or two before it, and writes tensor c + 1. */
static void make(struct world *w, uint32_t *random)
{
    const int32_t frozen = (int32_t)draw(random, CALLS / 2);
    *w = (struct world){.graph = {.tensors = w->tensors, .tensor_count = TENSORS, .nodes = w->nodes, .output = CALLS}};
    w->graph.node_count = CALLS;
    w->graph.pieces = draw(random, 2) ? 3 : 0;
    w->graph.facts.envelope = (struct sl_envelope){.sequences = 2, .steps = 5, .rows = 9};
    if (draw(random, 2))
        w->graph.loop = (struct sl_loop){.first = (int32_t)draw(random, 4), .count = 2 + (int32_t)draw(random, 3)};
    for (int32_t t = 0; t < TENSORS; t++) {
        static const enum sl_tensor_role roles[] = {SL_TENSOR_ACTIVATION, SL_TENSOR_ACTIVATION, SL_TENSOR_ACTIVATION,
                                                    SL_TENSOR_STATE_OUT, SL_TENSOR_MEMORY_OUT};
        w->tensors[t] = (struct sl_tensor){.name = "t", .axis = SL_AXIS_STEPS, .features = 1 + draw(random, 40)};
        w->tensors[t].role = t == 0 ? SL_TENSOR_INPUT : roles[draw(random, 5)];
        w->tensors[t].needs_grad = t > frozen;
    }
    w->graph.output = (int32_t)(1 + draw(random, CALLS));
    for (int32_t c = 0; c < CALLS; c++) {
        w->slots[c][0] = c;
        w->slots[c][1] = c + 1;
        for (int s = 2; s < SLOTS; s++)
            w->slots[c][s] = draw(random, 3) == 0 ? (int32_t)draw(random, (uint32_t)c + 1) : -1;
        w->nodes[c] = (struct sl_node){.name = "n", .layer = c, .slots = w->slots[c], .slot_count = SLOTS};
        w->nodes[c].needs_backward = c >= frozen;
        w->nodes[c].desc.head.op = draw(random, 4) == 0 ? SEQLSTM_OP_POOL : SEQLSTM_OP_ACTIVATION;
        w->calls[c] = (struct sl_call){.node = &w->nodes[c], .node_first = c, .node_count = 1};
        w->calls[c].variant = "v";
        w->calls[c].sizes.reserve_bytes = draw(random, 3) * 50;
        w->calls[c].sizes.packed_bytes = draw(random, 3) * 70;
    }
    sl_arena_init(&w->arena);
    w->plan = (struct sl_plan){.arena = &w->arena, .graph = &w->graph, .calls = w->calls, .call_count = CALLS};
}

/* A range of bytes, and from when to when it is needed; begin > end: never. */
struct block {
    int64_t at, bytes;
    int32_t begin, end;
};

static void need(struct block *block, int32_t time)
{
    if (block->begin > block->end)
        block->begin = block->end = time;
    block->begin = time < block->begin ? time : block->begin;
    block->end = time > block->end ? time : block->end;
}

/* What each unit needs, forward at the number of its first call, and backward likewise from the end. */
static int32_t list_blocks(const struct world *w, struct block blocks[2 * TENSORS + 1])
{
    int32_t count = 0;
    for (int32_t t = 0; t < TENSORS; t++) {
        const struct sl_tensor *tensor = &w->tensors[t];
        struct block value = {w->plan.tensor_offsets[t], 0, 1, 0}, grad = {w->plan.grad_offsets[t], 0, 1, 0};
        value.bytes = grad.bytes = sl_plan_get_tensor_bytes(&w->plan, t) + SL_FENCE_BYTES;
        for (int32_t c = 0; c < CALLS && tensor->role != SL_TENSOR_INPUT; c++) {
            const int32_t forward = sl_plan_find_unit(&w->graph, w->calls, CALLS, c).first,
                          backward = 2 * CALLS - 1 - forward;
            if (!sl_node_uses(&w->nodes[c], t))
                continue;
            need(&value, forward);
            if (w->nodes[c].needs_backward) {
                need(&value, backward);
                if (tensor->needs_grad)
                    need(&grad, backward);
            }
            if (t == w->graph.output || tensor->role != SL_TENSOR_ACTIVATION) /* the caller reads it afterwards */
                need(&value, 2 * CALLS);
        }
        assert_true((value.begin <= value.end) == (value.at >= 0));
        assert_true((grad.begin <= grad.end) == (grad.at >= 0));
        blocks[count++] = value;
        blocks[count++] = grad;
    }
    if (w->plan.scratch_grad_bytes > 0)
        blocks[count++] = (struct block){w->plan.scratch_grad_offset, w->plan.scratch_grad_bytes, CALLS, 2 * CALLS};
    return count;
}

static bool are_apart(const struct block *a, const struct block *b)
{
    return a->begin > a->end || b->begin > b->end || a->end < b->begin || b->end < a->begin ||
           a->at + a->bytes <= b->at || b->at + b->bytes <= a->at;
}

static void nothing_lies_upon_what_is_still_needed(void **state)
{
    uint32_t random = 1;
    (void)state;
    for (int round = 0; round < 400; round++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct block blocks[2 * TENSORS + 1];
        struct world w;
        make(&w, &random);
        ok(sl_plan_lay_out(&w.plan, w.calls, 0, &err), &err);
        const int32_t count = list_blocks(&w, blocks);
        for (int32_t a = 0; a < count; a++) {
            assert_true(blocks[a].begin > blocks[a].end || blocks[a].at + blocks[a].bytes <= w.plan.activation_bytes);
            for (int32_t b = 0; b < a; b++)
                if (!are_apart(&blocks[a], &blocks[b]))
                    fail_msg("round %d: %d+%d and %d+%d", round, (int)blocks[a].at, (int)blocks[a].bytes,
                             (int)blocks[b].at, (int)blocks[b].bytes);
        }
        sl_arena_deinit(&w.arena);
    }
}

/* How many calls and slots read a tensor. */
static int count_readers(const struct world *w, int32_t t)
{
    int readers = 0;
    for (int32_t c = 0; c < CALLS; c++)
        for (int s = 0; s < SLOTS; s++)
            readers += w->slots[c][s] == t && s != 1;
    return readers;
}

/* Where a gradient is a sum, a call makes its own part in the scratch buffer, for all of its inputs at once: those that
 * others read, too, and all within a loop. */
static void there_is_room_for_the_parts_of_sums(void **state)
{
    uint32_t random = 5;
    int sums = 0;
    (void)state;
    for (int round = 0; round < 400; round++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct world w;
        int64_t most = 0;
        make(&w, &random);
        ok(sl_plan_lay_out(&w.plan, w.calls, 0, &err), &err);
        for (int32_t c = 0; c < CALLS; c++) {
            int64_t bytes = 0;
            for (int s = 0; s < SLOTS; s++) {
                const int32_t t = w.slots[c][s];
                const bool loops = c >= w.graph.loop.first && c < w.graph.loop.first + w.graph.loop.count;
                if (t >= 0 && s != 1 && w.plan.grad_offsets[t] >= 0 && (loops || count_readers(&w, t) > 1))
                    bytes += sl_plan_get_tensor_bytes(&w.plan, t);
            }
            most = bytes > most ? bytes : most;
        }
        if (w.plan.scratch_grad_bytes < most)
            fail_msg("round %d: %d bytes, of which %d are needed", round, (int)w.plan.scratch_grad_bytes, (int)most);
        sums += most > 0;
        sl_arena_deinit(&w.arena);
    }
    assert_true(sums > 200);
}

/* Reserves and packed weights follow each other: a reserve for each step of a loop and for each piece. */
static void reserves_and_packed_weights_lie_side_by_side(void **state)
{
    uint32_t random = 9;
    (void)state;
    for (int round = 0; round < 100; round++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct world w;
        int64_t reserve = 0, packed = 0;
        make(&w, &random);
        ok(sl_plan_lay_out(&w.plan, w.calls, 0, &err), &err);
        for (int32_t c = 0; c < CALLS; c++) {
            const struct sl_call *call = &w.calls[c];
            const bool loops = c >= w.graph.loop.first && c < w.graph.loop.first + w.graph.loop.count;
            const bool pieced = w.graph.pieces > 0 && w.nodes[c].desc.head.op != SEQLSTM_OP_POOL;
            assert_int_equal(call->reserve_offset, call->sizes.reserve_bytes ? reserve : -1);
            assert_int_equal(call->packed_offset, call->sizes.packed_bytes ? packed : -1);
            reserve += sl_align((int64_t)call->sizes.reserve_bytes) * (loops ? 5 : pieced ? 3 : 1);
            packed += sl_align((int64_t)call->sizes.packed_bytes);
        }
        assert_int_equal(w.plan.reserve_bytes, reserve);
        assert_int_equal(w.plan.packed_bytes, packed);
        sl_arena_deinit(&w.arena);
    }
}

/* ---- sums ----------------------------------------------------------------------------------------------------------
 */

/* Weights in training have gradients, states of the optimizer and a copy in checkpoints; states that are carried and
 * memories that are given count as activations. */
static void memory_is_the_sum_of_its_parts(void **state)
{
    static const struct sl_param params[] = {{.rows = 3, .columns = 7}, {.rows = 1, .columns = 1}};
    static const struct sl_state states[] = {{.features = 100}, {.features = 9}};
    static const struct sl_memory_pair memories[] = {{.tensor_in = -1}, {.tensor_in = 3}, {.tensor_in = 5}};
    (void)state;
    for (int32_t kept = 0; kept < 4; kept++)
        for (int training = 0; training < 2; training++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct world w;
            uint32_t random = 4;
            make(&w, &random);
            w.graph.phase = training ? SL_PHASE_TRAIN : SL_PHASE_EVALUATE;
            w.graph.params = params;
            w.graph.param_count = 2;
            w.graph.states = states;
            w.graph.state_count = 2;
            w.graph.memories = memories;
            w.graph.memory_count = 3;
            w.calls[2].own_bytes = 77;
            w.calls[6].own_bytes = 1000;
            w.calls[4].sizes.workspace_bytes = 333;
            w.calls[1].sizes.workspace_bytes = 555;
            ok(sl_plan_lay_out(&w.plan, w.calls, kept, &err), &err);
            const struct sl_plan_memory *m = &w.plan.memory;
            const int64_t weights = sl_align(84) + sl_align(4);
            const int64_t given = sl_plan_get_tensor_bytes(&w.plan, 3) + sl_plan_get_tensor_bytes(&w.plan, 5);
            assert_int_equal(m->weights_bytes, weights);
            assert_int_equal(m->gradients_bytes, training * weights);
            assert_int_equal(m->optimizer_bytes, training * kept * weights);
            assert_int_equal(m->checkpoint_bytes, training * (1 + kept) * weights);
            assert_int_equal(m->activations_bytes,
                             w.plan.activation_bytes + w.plan.reserve_bytes + sl_align(800) + sl_align(72) + given);
            assert_int_equal(m->workspace_bytes, sl_align(555) + w.plan.packed_bytes);
            assert_int_equal(m->backends_bytes, 1077);
            assert_int_equal(m->batches_bytes, 0);
            assert_int_equal(m->peak_bytes, m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                                                m->checkpoint_bytes + m->activations_bytes + m->workspace_bytes + 1077);
            sl_arena_deinit(&w.arena);
        }
}

/* Fields of the batch on each card once; in training four times those that a call there reads, if they are staged; and
 * all of them four times more where steps are captured. */
static void batches_are_held_on_each_card(void **state)
{
    static const enum sl_tensor_role roles[] = {SL_TENSOR_INPUT, SL_TENSOR_TARGET, SL_TENSOR_SOURCE, SL_TENSOR_PLACE};
    static const struct {
        const char *devices; /* of the calls */
        bool captured;
        int copies[4]; /* in training: of each field that call k + 1 reads; place k */
        int cards;
    } rows[] = {{"000000", true, {0, 0, 0, 0}, 0},
                {"111111", false, {4, 4, 4, 1}, 1},
                {"111111", true, {8, 8, 8, 5}, 1},
                {"010000", true, {4, 1, 1, 1}, 1},
                {"000100", false, {1, 1, 4, 1}, 1},
                {"012120", true, {4 + 1, 1 + 4, 4 + 1, 1 + 1}, 2},
                {"010200", false, {4 + 1, 1 + 1, 1 + 4, 1 + 1}, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int training = 0; training < 2; training++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct world w;
            uint32_t random = 4;
            int64_t expected = 0;
            make(&w, &random);
            w.graph.phase = training ? SL_PHASE_TRAIN : SL_PHASE_EVALUATE;
            w.plan.call_count = 6;
            for (int32_t t = 0; t < TENSORS; t++)
                w.tensors[t].role = SL_TENSOR_PARAM;
            for (int32_t c = 0; c < 6; c++) {
                memset(w.slots[c] + 1, -1, (SLOTS - 1) * sizeof *w.slots[c]);
                w.calls[c].device = (uint32_t)(rows[i].devices[c] - '0');
                w.calls[c].sizes.capture = rows[i].captured ? SEQLSTM_CAPTURE_ANY_SHAPE : SEQLSTM_CAPTURE_NONE;
            }
            for (int k = 0; k < 4; k++) {
                w.tensors[k + 1].role = roles[k];
                expected += sl_plan_get_tensor_bytes(&w.plan, k + 1) * (training ? rows[i].copies[k] : rows[i].cards);
            }
            ok(sl_plan_lay_out(&w.plan, w.calls, 0, &err), &err);
            if (w.plan.memory.batches_bytes != expected)
                fail_msg("%s: %d, not %d", rows[i].devices, (int)w.plan.memory.batches_bytes, (int)expected);
            sl_arena_deinit(&w.arena);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_lies_upon_what_is_still_needed),
        cmocka_unit_test(there_is_room_for_the_parts_of_sums),
        cmocka_unit_test(reserves_and_packed_weights_lie_side_by_side),
        cmocka_unit_test(memory_is_the_sum_of_its_parts),
        cmocka_unit_test(batches_are_held_on_each_card),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
