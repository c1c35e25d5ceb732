/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured of exchanges between ranks, on a clock that only exchanges move: each takes a time of its own, one
 * for each byte, and most of them something more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "ok.h"
#include "oom.h"
#include "session/record/session_record.h"
#include "session/scaling/meter.h"

enum { MS = 1000000, TRIALS = 5 };

static struct {
    int64_t latency, byte_ns, agree, broadcast;
    int each; /* exchanges of a trial */
} rule;

static int64_t now;
static int calls, fails_at; /* exchanges of all kinds; 0: none fails */
static int runs;
static struct seqlstm_exchange seen[32]; /* those of the connection */
static int64_t sent;                     /* bytes of rank 0 */
static struct sl_data_facts facts;
static int64_t batches;

int64_t __wrap_sl_clock_ns(void);
seqlstm_status __wrap_sl_connection_run(struct sl_connection *connection, uint32_t group,
                                        struct seqlstm_exchange exchange, struct seqlstm_error *err);
seqlstm_status __wrap_sl_ranks_agree(struct sl_ranks *ranks, struct seqlstm_error *err);
seqlstm_status __wrap_sl_ranks_broadcast(const struct sl_ranks *ranks, int32_t from, void *bytes, int64_t count,
                                         struct seqlstm_error *err);
seqlstm_status __wrap_sl_ranks_gather(const struct sl_ranks *ranks, const void *own, int64_t bytes, void *all,
                                      struct seqlstm_error *err);
const struct sl_data_facts *__wrap_sl_data_state_get_facts(const struct sl_data_state *state);
int64_t __wrap_sl_batcher_get_batches(const struct sl_batcher *batcher);

int64_t __wrap_sl_clock_ns(void)
{
    return now;
}

static seqlstm_status pass(int64_t ns, struct seqlstm_error *err)
{
    now += ns;
    return ++calls == fails_at ? seqlstm_error_set(err, SEQLSTM_IO, "a.c", 1, "the other rank is gone") : SEQLSTM_OK;
}

seqlstm_status __wrap_sl_connection_run(struct sl_connection *connection, uint32_t group,
                                        struct seqlstm_exchange exchange, struct seqlstm_error *err)
{
    assert_true(connection != NULL && group == 0 && runs < 32);
    seen[runs] = exchange;
    const int64_t late = runs++ / rule.each % TRIALS == 3 ? 0 : MS; /* the fourth trial has nothing in its way */
    return pass(rule.latency + rule.byte_ns * 4 * exchange.elems + late, err);
}

seqlstm_status __wrap_sl_ranks_agree(struct sl_ranks *ranks, struct seqlstm_error *err)
{
    (void)ranks;
    return pass(rule.agree, err);
}

seqlstm_status __wrap_sl_ranks_broadcast(const struct sl_ranks *ranks, int32_t from, void *bytes, int64_t count,
                                         struct seqlstm_error *err)
{
    (void)ranks, (void)bytes;
    assert_int_equal(from, 0);
    sent = count;
    return pass(rule.broadcast, err);
}

/* What the other ranks have measured is 2 ms, and this one's is its own. */
seqlstm_status __wrap_sl_ranks_gather(const struct sl_ranks *ranks, const void *own, int64_t bytes, void *all,
                                      struct seqlstm_error *err)
{
    assert_int_equal(bytes, sizeof(struct sl_scaling_times));
    for (int32_t r = 0; r < ranks->ranks; r++) {
        struct sl_scaling_times times = {.step = 2 * MS};
        memcpy((char *)all + r * bytes, r == ranks->rank ? own : &times, (size_t)bytes);
    }
    return pass(0, err);
}

const struct sl_data_facts *__wrap_sl_data_state_get_facts(const struct sl_data_state *state)
{
    (void)state;
    return &facts;
}

int64_t __wrap_sl_batcher_get_batches(const struct sl_batcher *batcher)
{
    (void)batcher;
    return batches;
}

static void expect(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-6 * fabs(expected)))
        fail_msg("%.9g, not %.9g", got, expected);
}

/* ---- sums ------------------------------------------------------------------------------------------------------- */

static float grads[1 << 19];

/* A sum of one number tells the latency, one of up to a MiB the rate. */
static void test_a_link(void **state)
{
    static const struct {
        int64_t elems, latency, byte_ns;
        enum sl_reduce_kind how;
        int64_t measured; /* elements */
    } rows[] = {{1000, 50000, 3, SL_REDUCE_ALL, 1000},
                {256 << 10, 50000, 3, SL_REDUCE_ALL, 256 << 10},
                {1 << 19, 50000, 1, SL_REDUCE_ALL, 256 << 10},
                {1 << 19, 2 * MS, 2, SL_REDUCE_CENTRAL, 256 << 10},
                {1000, 50000, 0, SL_REDUCE_ALL, 1000}, /* no rate can be told */
                {1, 50000, 7, SL_REDUCE_CENTRAL, 1}};
    (void)state;
    rule.each = 1;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        static struct sl_scaling_costs costs;
        const struct sl_reduce_config reduce = {.how = rows[k].how};
        struct sl_params params = {.grads = grads, .values = grads, .trainable_elems = rows[k].elems};
        struct sl_session session = {
            .params = &params, .connection = (void *)&params, .ranks = {.ranks = 2, .reduce = &reduce}};
        struct sl_scaling_meter m = {.session = &session, .costs = &costs};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        rule.latency = rows[k].latency;
        rule.byte_ns = rows[k].byte_ns;
        rule.agree = 30000;
        rule.broadcast = 70000;
        for (fails_at = 0;; fails_at++) {
            memset(&costs, 0, sizeof costs);
            calls = runs = 0;
            sent = -1;
            const seqlstm_status status = sl_scaling_time_exchanges(&m, &err);
            if (fails_at > 0 && calls < fails_at)
                break;
            assert_int_equal(status, fails_at ? SEQLSTM_IO : SEQLSTM_OK);
            if (fails_at) { /* whichever fails, nothing follows */
                assert_int_equal(calls, fails_at);
                continue;
            }
            const double bytes = 4 * (double)(rows[k].measured - 1) * (double)rule.byte_ns;
            expect(costs.measured.latency_s, 1e-9 * (double)(rule.latency + 4 * rule.byte_ns));
            expect(costs.measured.bytes_per_s, 4e9 * (double)rows[k].measured / (bytes > 1 ? bytes : 1));
            expect(costs.agree_ns, (double)rule.agree);
            expect(costs.weights_ns, rows[k].how == SL_REDUCE_CENTRAL ? (double)rule.broadcast : 0);
            assert_int_equal(sent, rows[k].how == SL_REDUCE_CENTRAL ? 4 * rows[k].elems : -1);
            assert_int_equal(runs, 2 * TRIALS);
            for (int r = 0; r < runs; r++) {
                assert_true(seen[r].kind == SEQLSTM_COLLECTIVE_ALL_REDUCE && seen[r].dtype == SEQLSTM_DTYPE_FLOAT32);
                assert_true(seen[r].reduction == SEQLSTM_REDUCE_SUM && seen[r].from == grads && seen[r].to == grads);
                assert_int_equal(seen[r].elems, r < TRIALS ? 1 : rows[k].measured);
            }
        }
    }
}

/* ---- pieces ----------------------------------------------------------------------------------------------------- */

/* Three layers, each a stage of its own. Between the first two there are 3 numbers of a step, between the others 5 and
 * what the first layer gives to the last; weights, and what each sequence has once, are not passed. */
enum { WIDE = 5 + 2 };
static const int32_t first[] = {0, 1, 4, 5, 3}, second[] = {1, 2}, last[] = {2, 3, 4, 5};
static struct sl_node nodes[] = {{.name = "a", .slots = first, .slot_count = 5},
                                 {.name = "b", .slots = second, .slot_count = 2},
                                 {.name = "c", .slots = last, .slot_count = 4}};
static struct sl_tensor tensors[] = {{.role = SL_TENSOR_ACTIVATION, .axis = SL_AXIS_STEPS, .features = 9},
                                     {.role = SL_TENSOR_ACTIVATION, .axis = SL_AXIS_STEPS, .features = 3},
                                     {.role = SL_TENSOR_ACTIVATION, .axis = SL_AXIS_STEPS, .features = 5},
                                     {.role = SL_TENSOR_PARAM, .axis = SL_AXIS_FREE, .features = 100},
                                     {.role = SL_TENSOR_ACTIVATION, .axis = SL_AXIS_STEPS, .features = 2},
                                     {.role = SL_TENSOR_ACTIVATION, .axis = SL_AXIS_SEQUENCES, .features = 50}};

static void test_pieces_between_stages(void **state)
{
    static const struct {
        int32_t stages, rank;
        struct sl_scaling_link link; /* given */
        double expected;
    } rows[] = {
        {3, 0, {1e6, 0.25}, 1e9 * (0.25 + 4 * WIDE * 30 / 4.0 / 1e6)}, /* 300 rows, 5 batches of 2 shards, 4 pieces */
        {3, 0, {0, 0}, 4 * MS + 100 * 4 * (WIDE * 30 / 4 + 1)},
        {3, 1, {0, 0}, 4 * MS + 100 * 4 * (WIDE * 30 / 4 + 1)},
        {3, 2, {0, 0}, 2 * MS}, /* as the others say */
        {1, 0, {0, 0}, 0},
        {0, 0, {0, 0}, 0},
    };
    struct sl_call layers[3];
    const struct sl_graph graph = {.tensors = tensors, .tensor_count = 6};
    struct sl_plan plan = {.graph = &graph, .calls = layers, .call_count = 3};
    struct sl_model model = {.parallel = {.data = 2, .pipeline = 3}};
    (void)state;
    memset(layers, 0, sizeof layers);
    for (int c = 0; c < 3; c++)
        layers[c].node = &nodes[c];
    facts.rows = 300;
    batches = 5;
    rule.latency = 4 * MS;
    rule.byte_ns = 100;
    rule.each = 2;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct sl_scaling_setup setup = {.piece_exchange_bytes_per_s = rows[k].link.bytes_per_s,
                                               .piece_exchange_latency_s = rows[k].link.latency_s};
        struct sl_session session = {.model = &model,
                                     .connection = (void *)&model,
                                     .train.plan = &plan,
                                     .pipeline = {.stages = rows[k].stages, .pieces = 4, .bounds = {0, 1, 2, 3}},
                                     .ranks = {.rank = rows[k].rank, .ranks = 3}};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        for (fails_at = 0;; fails_at++) {
            struct sl_scaling_meter m = {.setup = &setup, .session = &session};
            calls = runs = 0;
            const seqlstm_status status = sl_scaling_price_pieces(&m, &err);
            if (fails_at > 0 && calls < fails_at)
                break;
            assert_int_equal(status, fails_at ? SEQLSTM_IO : SEQLSTM_OK);
            if (fails_at) {
                assert_int_equal(calls, fails_at);
                continue;
            }
            expect(m.piece_ns, rows[k].expected);
            const bool passes = rows[k].stages > 1 && rows[k].link.bytes_per_s == 0 && rows[k].rank < 2;
            assert_int_equal(runs, passes ? 2 * TRIALS : 0);
            for (int r = 0; r < runs; r++) { /* rank 0 sends first */
                const bool sends = r % 2 == rows[k].rank;
                assert_int_equal(seen[r].kind, sends ? SEQLSTM_COLLECTIVE_SEND : SEQLSTM_COLLECTIVE_RECEIVE);
                assert_int_equal(seen[r].peer, 1 - rows[k].rank);
                assert_true((seen[r].from != NULL) == sends && (seen[r].to != NULL) == !sends);
            }
        }
        for (int n = 1;; n++) {
            struct sl_scaling_meter m = {.setup = &setup, .session = &session};
            calls = runs = fails_at = 0;
            oom_fail_at(n);
            const seqlstm_status status = sl_scaling_price_pieces(&m, &err);
            if (!oom_disarm())
                break;
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
        }
    }
}

/* ---- stages ----------------------------------------------------------------------------------------------------- */

enum { STAGES = 5, PARAMS = 7 };
static struct sl_exec_stage opened[STAGES]; /* those of this rank, in the order of its turns */
static int opened_count, live;
static uint32_t owned_by[STAGES]; /* a bit for each parameter, of each update in turn */
static int update_count;

seqlstm_status __wrap_sl_exec_create(const struct sl_exec_request *request, struct sl_exec **out_exec,
                                     struct seqlstm_error *err);
void __wrap_sl_exec_destroy(struct sl_exec *exec);
seqlstm_status __wrap_sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *update, const bool *owned,
                                          double *out_squares, struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                           struct seqlstm_error *err);

seqlstm_status __wrap_sl_exec_create(const struct sl_exec_request *request, struct sl_exec **out_exec,
                                     struct seqlstm_error *err)
{
    SEQLSTM_TRY(pass(0, err));
    assert_true(opened_count < STAGES && request->pieces == 4);
    live++;
    opened[opened_count] = request->stage;
    *out_exec = (struct sl_exec *)(void *)&opened[opened_count++];
    return SEQLSTM_OK;
}

void __wrap_sl_exec_destroy(struct sl_exec *exec)
{
    live -= exec != NULL;
}

seqlstm_status __wrap_sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *update, const bool *owned,
                                          double *out_squares, struct seqlstm_error *err)
{
    (void)out_squares;
    assert_true(update->learning_rate == 0 && update_count < STAGES);
    assert_ptr_equal(exec, &opened[update_count]);
    owned_by[update_count] = 0;
    for (int p = 0; p < PARAMS; p++)
        owned_by[update_count] |= (uint32_t)owned[p] << p;
    return pass((update_count++ % 2 ? 5 : 3) * MS, err);
}

seqlstm_status __wrap_sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                           struct seqlstm_error *err)
{
    (void)exec, (void)owned, (void)squares, (void)out_squares;
    return pass(MS, err);
}

/* Ranks that are fewer than the stages take them in turns, those beside each other at the same time; each turn updates
 * what its own stage owns. */
static void expect_stages(struct sl_session *session, int32_t stages, int32_t ranks, int32_t rank)
{
    struct sl_scaling_meter m = {.session = session};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int32_t abreast = ranks < stages ? ranks : stages;
    double ns = -1;
    int count = 0;
    opened_count = update_count = calls = fails_at = 0;
    session->ranks = (struct sl_ranks){.rank = rank, .ranks = ranks};
    session->pipeline.stages = stages;
    ok(sl_scaling_open_stages(&m, &err), &err);
    assert_int_equal(m.turns, (stages + abreast - 1) / abreast);
    assert_int_equal(sl_scaling_find_slice(&m), rank / abreast);
    ok(sl_scaling_update_stages(&m, &ns, &err), &err);
    for (int32_t stage = rank % abreast; stage < stages; stage += abreast, count++) {
        uint32_t owned = 0;
        for (int p = 0; p < PARAMS; p++)
            owned |= (uint32_t)(session->owners.params[p] == stage) << p;
        if (opened[count].first != 3 * stage || opened[count].end != 3 * stage + 3 || owned_by[count] != owned)
            fail_msg("%d stages, rank %d of %d, turn %d: calls %d to %d, parameters %#x", stages, rank, ranks, count,
                     opened[count].first, opened[count].end, owned_by[count]);
    }
    assert_true(opened_count == count && update_count == count && m.updates == 1);
    expect(ns, count == 0 ? 0 : count > 1 ? 6 * MS : 4 * MS); /* the slowest */
    sl_scaling_close_stages(&m);
    assert_true(live == 0 && m.stages == NULL);
}

static void test_stages_of_ranks(void **state)
{
    static int32_t owners[PARAMS] = {4, 0, 3, 1, 2, 0, 4};
    struct sl_params params = {.view_count = PARAMS};
    struct sl_model model = {.seed = 3};
    struct sl_session session = {.model = &model,
                                 .params = &params,
                                 .owners = {.params = owners},
                                 .pipeline = {.pieces = 4, .bounds = {0, 3, 6, 9, 12, 15}}};
    (void)state;
    for (int32_t stages = 2; stages <= STAGES; stages++)
        for (int32_t ranks = 1; ranks <= 2 * STAGES; ranks++)
            for (int32_t rank = 0; rank < ranks; rank++)
                expect_stages(&session, stages, ranks, rank);
    session.ranks = (struct sl_ranks){.rank = 1, .ranks = 2};
    for (int n = 1;; n++) { /* whatever fails, nothing is left */
        struct sl_scaling_meter m = {.session = &session};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        double ns;
        opened_count = update_count = calls = 0;
        fails_at = n < 16 ? n : 0;
        if (n >= 16)
            oom_fail_at(n - 15);
        seqlstm_status status = sl_scaling_open_stages(&m, &err);
        if (status == SEQLSTM_OK)
            status = sl_scaling_update_stages(&m, &ns, &err);
        const bool failed = n < 16 ? calls >= fails_at : oom_disarm();
        assert_int_equal(status, !failed ? SEQLSTM_OK : n < 16 ? SEQLSTM_IO : SEQLSTM_NO_MEMORY);
        sl_scaling_close_stages(&m);
        assert_int_equal(live, 0);
        if (n >= 16 && !failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_link),
        cmocka_unit_test(test_pieces_between_stages),
        cmocka_unit_test(test_stages_of_ranks),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
