/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank measures for `plan --ranks`, on a clock that only the work of the test moves: making a batch takes 3
 * ms, a step 7 ms, of which its gradients are complete after 2 ms, and an update 11 ms. */
#include "model_fixture.h"

#include <math.h>

#include "base/system/clock.h"
#include "base/system/file_writer.h"
#include "data/batch/batcher.h"
#include "descriptors.h"
#include "exec/exec.h"
#include "exec/owners.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"
#include "session/scaling/costs.h"
#include "session/session.h"

enum { MS = 1000000 };

static int64_t now, tick;                       /* tick: of each look at the clock */
static int batches, steps, updates, stop_after; /* so many of each; the batch behind which a signal comes, 0: none */
static int64_t step_rest = 5 * MS;              /* of a step, behind its gradients */
static struct sl_interrupt interrupt;

static int32_t cores = 1; /* of the machine */

int32_t __wrap_sl_cpu_count(void);
int64_t __wrap_sl_clock_ns(void);
seqlstm_status __wrap_sl_batcher_next(struct sl_batcher *batcher, struct sl_batch **out_batch,
                                      struct seqlstm_error *err);
seqlstm_status __real_sl_batcher_next(struct sl_batcher *batcher, struct sl_batch **out_batch,
                                      struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  struct sl_exec_result *result, struct seqlstm_error *err);
seqlstm_status __real_sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  struct sl_exec_result *result, struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_update(struct sl_exec *exec, const struct sl_exec_update *update, double *out_squares,
                                     struct seqlstm_error *err);
seqlstm_status __real_sl_exec_update(struct sl_exec *exec, const struct sl_exec_update *update, double *out_squares,
                                     struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *update, const bool *owned,
                                          double *out_squares, struct seqlstm_error *err);
seqlstm_status __real_sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *update, const bool *owned,
                                          double *out_squares, struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                           struct seqlstm_error *err);
seqlstm_status __real_sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                           struct seqlstm_error *err);

int32_t __wrap_sl_cpu_count(void)
{
    return cores;
}

int64_t __wrap_sl_clock_ns(void)
{
    return now += tick;
}

seqlstm_status __wrap_sl_batcher_next(struct sl_batcher *batcher, struct sl_batch **out_batch,
                                      struct seqlstm_error *err)
{
    now += 3 * MS;
    if (++batches == stop_after)
        atomic_store(&interrupt.stop, 1);
    return __real_sl_batcher_next(batcher, out_batch, err);
}

seqlstm_status __wrap_sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  struct sl_exec_result *result, struct seqlstm_error *err)
{
    now += 2 * MS;
    const seqlstm_status status = __real_sl_exec_run(exec, batch, step, result, err);
    now += step_rest;
    steps++;
    return status;
}

seqlstm_status __wrap_sl_exec_update(struct sl_exec *exec, const struct sl_exec_update *update, double *out_squares,
                                     struct seqlstm_error *err)
{
    now += 11 * MS;
    updates++;
    return __real_sl_exec_update(exec, update, out_squares, err);
}

/* ---- updates of stages ------------------------------------------------------------------------------------------- */

enum { STAGES_MOST = 4, TURNS_MOST = 1000 };

static int32_t params; /* of the model that is measured */

seqlstm_status __wrap_sl_owners_init(struct sl_owners *owners, const struct sl_plan *plan, const int32_t *bounds,
                                     int32_t stages, struct seqlstm_error *err);
seqlstm_status __real_sl_owners_init(struct sl_owners *owners, const struct sl_plan *plan, const int32_t *bounds,
                                     int32_t stages, struct seqlstm_error *err);

seqlstm_status __wrap_sl_owners_init(struct sl_owners *owners, const struct sl_plan *plan, const int32_t *bounds,
                                     int32_t stages, struct seqlstm_error *err)
{
    params = plan->graph->param_count;
    assert_true(params < 64);
    return __real_sl_owners_init(owners, plan, bounds, stages, err);
}

/* Whose update ran, one after the other, and what it owned. The update of stage k takes stage_ms[k] ms. */
static struct {
    const struct sl_exec *execs[STAGES_MOST];
    uint64_t owned[STAGES_MOST]; /* a bit for each parameter */
    int32_t count, turns, stages[TURNS_MOST];
} stage_updates;
static double stage_ms[STAGES_MOST];

static uint64_t pack(const bool *owned)
{
    uint64_t bits = 0;
    for (int32_t p = 0; p < params; p++)
        bits |= (uint64_t)owned[p] << p;
    return bits;
}

seqlstm_status __wrap_sl_exec_begin_owned(struct sl_exec *exec, const struct sl_exec_update *update, const bool *owned,
                                          double *out_squares, struct seqlstm_error *err)
{
    int32_t k = 0;
    while (k < stage_updates.count && stage_updates.execs[k] != exec)
        k++;
    assert_true(k < STAGES_MOST && stage_updates.turns < TURNS_MOST);
    if (k == stage_updates.count) {
        stage_updates.execs[stage_updates.count++] = exec;
        stage_updates.owned[k] = pack(owned);
    }
    assert_true(stage_updates.owned[k] == pack(owned)); /* each time the same */
    stage_updates.stages[stage_updates.turns++] = k;
    now += (int64_t)(stage_ms[k] / 2 * MS);
    return __real_sl_exec_begin_owned(exec, update, owned, out_squares, err);
}

seqlstm_status __wrap_sl_exec_finish_owned(struct sl_exec *exec, const bool *owned, double squares, double *out_squares,
                                           struct seqlstm_error *err)
{
    const int32_t k = stage_updates.stages[stage_updates.turns - 1];
    assert_ptr_equal(exec, stage_updates.execs[k]);
    assert_true(stage_updates.owned[k] == pack(owned));
    now += (int64_t)(stage_ms[k] / 2 * MS);
    return __real_sl_exec_finish_owned(exec, owned, squares, out_squares, err);
}

static bool lacks_memory; /* a next allocation fails */

/* So many records of 5 steps, in batches of 8. `link`: between stages. */
static seqlstm_status measure_linked(int records, const char *layers, const char *train,
                                     const struct sl_parallel_config *parallel, int64_t batch_factor,
                                     struct sl_scaling_link link, struct sl_scaling_costs *costs,
                                     struct seqlstm_error *err)
{
    char path[256], text[512];
    snprintf(path, sizeof path, "%s", scratch_path("m.yaml"));
    snprintf(text, sizeof text,
             "seqlstm: 1\nname: m\n"
             "data: {type: generator, name: adding_problem, length: 5, train: {size: %d}, batch_size: 8}\n"
             "model:\n%s  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"
             "train: {loss: mse, optimizer: adam, epochs: 1%s}\ndispatch: {policy: order}\nbackends: [reference]\n",
             records, layers, train);
    ok(sl_file_write(path, text, strlen(text), err), err);
    const struct sl_model_request model = {.path = path};
    const struct sl_session_options options = {
        .model = &model, .threads = 1, .threads_given = true, .interrupt = &interrupt};
    const struct sl_scaling_setup setup = {.options = &options,
                                           .parallel = *parallel,
                                           .local = 1,
                                           .batch_factor = batch_factor,
                                           .piece_exchange_bytes_per_s = link.bytes_per_s,
                                           .piece_exchange_latency_s = link.latency_s};
    interrupt = (struct sl_interrupt){0};
    batches = steps = updates = 0;
    memset(&stage_updates, 0, sizeof stage_updates);
    if (lacks_memory)
        oom_fail_anew(6);
    return sl_scaling_measure(&setup, costs, err);
}

static seqlstm_status measure(int records, const char *train, const struct sl_parallel_config *parallel,
                              int64_t batch_factor, struct sl_scaling_costs *costs, struct seqlstm_error *err)
{
    const struct sl_scaling_link link = {0, 0};
    return measure_linked(records, "", train, parallel, batch_factor, link, costs, err);
}

#define ASSERT_NS(got, ms)                                                                                             \
    do {                                                                                                               \
        const double got_ = (got), want_ = (ms)*MS;                                                                    \
        if (!(got_ >= want_ * (1 - 1e-9) && got_ <= want_ * (1 + 1e-9)))                                               \
            fail_msg("line %d: %.9g ns, not %.9g", __LINE__, got_, want_);                                             \
    } while (0)

static const struct sl_parallel_config alone = {.data = 1, .pipeline = 1};

static void test_a_mean_update(void **state)
{
    static struct sl_scaling_costs costs;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    ok(measure(80, "", &alone, 0, &costs, &err), &err);
    assert_true(costs.rows == 8 * 5 && costs.batches == 1 && costs.shards == 0 && costs.sequences == 8);
    assert_true(costs.stages == 1 && costs.threads == 1 && costs.devices == 0);
    ASSERT_NS(costs.step_ns, 7);
    ASSERT_NS(costs.together_ns, 7); /* nothing is exchanged */
    ASSERT_NS(costs.exchange_ns, 0);
    ASSERT_NS(costs.update_ns, 11);
    ASSERT_NS(costs.prepare_ns, 3 * 0.9); /* the first batch of an epoch begins it */
    assert_true(costs.note_count >= 1 && costs.notes[costs.note_count - 1].from == 0);
    for (int32_t k = 0; k < costs.note_count; k++) {
        ASSERT_NS(costs.notes[k].ns, 2);
        assert_true(k == 0 || costs.notes[k].from < costs.notes[k - 1].from);
    }
    /* LSTM: 4 * 3 rows of 2 inputs, 3 states and a bias; dense: 3 weights and a bias; with gaps between them */
    assert_true(costs.elems >= 12 * (2 + 3 + 1) + 3 + 1 && costs.elems < 200);
    assert_int_equal(costs.matrix_count, 0);
    assert_true(costs.memory_bytes > 0);
    assert_true(steps == 3 + 10 && updates == steps); /* three to warm up, then the epoch */
    cores = 4;                                        /* batches are made while steps run */
    ok(measure(80, "", &alone, 0, &costs, &err), &err);
    ASSERT_NS(costs.prepare_ns, 0);
    ASSERT_NS(costs.step_ns, 7);
    cores = 1;
}

/* Several batches for each update; fewer batches than that make one all the same. */
static void test_accumulated_updates(void **state)
{
    static struct sl_scaling_costs costs;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    ok(measure(80, ", accumulate: 4", &alone, 0, &costs, &err), &err);
    assert_true(costs.batches == 4 && costs.rows == 40);
    ASSERT_NS(costs.step_ns, 7);
    ASSERT_NS(costs.update_ns, 11);
    assert_true(steps == 13 && updates == 2); /* of ten batches; the three before have none */
    ok(measure(16, ", accumulate: 4", &alone, 0, &costs, &err), &err);
    ASSERT_NS(costs.update_ns, 11);
    assert_true(steps == 2 + 2 && updates == 1);
}

/* Long epochs are cut off, small ones are run as they are; larger batches have more rows. */
static void test_how_many_batches_run(void **state)
{
    static struct sl_scaling_costs costs;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    ok(measure(8 * 199, "", &alone, 0, &costs, &err), &err);
    assert_int_equal(steps, 3 + 199);
    ok(measure(8 * 230, "", &alone, 0, &costs, &err), &err);
    assert_int_equal(steps, 3 + 200);
    ASSERT_NS(costs.step_ns, 7);
    assert_true(costs.rows == 40);
    ok(measure(4, "", &alone, 0, &costs, &err), &err);
    assert_int_equal(steps, 1 + 1);
    assert_true(costs.rows == 20 && costs.sequences == 4);
    ASSERT_NS(costs.step_ns, 7);
    ok(measure(80, "", &alone, 4, &costs, &err), &err);
    assert_true(costs.sequences == 32 && steps == 3 + 3);
    assert_true(costs.rows > 133 && costs.rows < 134); /* of 400 steps in three batches */
    step_rest = 1998 * (int64_t)MS;                    /* the first one alone takes longer than all may */
    ok(measure(80, "", &alone, 0, &costs, &err), &err);
    step_rest = 5 * MS;
    assert_int_equal(steps, 3 + 3);
    ASSERT_NS(costs.step_ns, 2000);
}

/* A rank alone computes all shards of a batch, one after the other. */
static void test_shards(void **state)
{
    static struct sl_scaling_costs costs;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    ok(measure(80, "", &(struct sl_parallel_config){.data = 1, .pipeline = 1, .shards = 4}, 0, &costs, &err), &err);
    assert_true(costs.shards == 4 && costs.rows == 40);
    ASSERT_NS(costs.step_ns, 7); /* of one of them */
    assert_int_equal(steps, 13);
    ok(measure(80, "", &(struct sl_parallel_config){.data = 3, .pipeline = 1, .shards = 4}, 0, &costs, &err), &err);
    assert_int_equal(costs.shards, 2); /* of the rank that has most of them */
}

/* Stages in pieces take turns on one rank. Several at a time would be faster, unless passing pieces takes long: what a
 * piece of the 40 rows has at the border is sent. */
static void test_stages(void **state)
{
    static const char deep[] = "  - {type: lstm, units: 3, return_sequences: true}\n"
                               "  - {type: lstm, units: 3, return_sequences: true}\n";
    static const struct sl_parallel_config staged = {.data = 1, .pipeline = 2, .pieces = 4};
    static const struct sl_scaling_link links[] = {{1e30, 0}, {1e30, 1}, {4 * 3 * 40 / 4, 0}, {1e30, 2}};
    static struct sl_scaling_costs costs[4];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    tick = 1000;
    for (int k = 0; k < 4; k++) {
        ok(measure_linked(80, deep, "", &staged, 0, links[k], &costs[k], &err), &err);
        assert_true(costs[k].stages == 2 && costs[k].pieces == 4 && costs[k].rows == 40);
        assert_true(steps >= 2 * 13); /* and those by which the layers are divided */
        assert_true(costs[k].step_ns >= 14 * MS && costs[k].step_ns < 15 * MS);
        assert_true(costs[k].alone_ns > 0 && costs[k].update_ns > 0 && costs[k].update_ns < MS);
    }
    tick = 0;
    assert_true(costs[0].stages_ns > costs[0].alone_ns / 2 && costs[0].stages_ns < costs[0].alone_ns);
    assert_true(costs[1].stages_ns > 1e9);
    assert_true(fabs(costs[2].stages_ns - costs[1].stages_ns) < 1e6);
    assert_true(fabs(costs[3].stages_ns - 2 * costs[1].stages_ns) < 1e7);
}

/* Each stage makes its own update, of parameters that no other stage has; the slowest one counts, wherever it is. */
static void test_updates_of_stages(void **state)
{
    static const char deep[] = "  - {type: lstm, units: 3, return_sequences: true}\n"
                               "  - {type: lstm, units: 3, return_sequences: true}\n";
    static const struct sl_parallel_config staged = {.data = 1, .pipeline = 3, .pieces = 2};
    static const double times[][3] = {{4, 6, 8}, {8, 4, 6}, {2, 8, 4}};
    static const struct {
        int records;
        const char *train;
        int turns; /* of updates */
    } rows[] = {{80, "", 3 + 10}, {80, ", accumulate: 4", 2}, {16, ", accumulate: 4", 1}};
    static struct sl_scaling_costs costs;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    tick = 1000;
    for (size_t k = 0; k < 3 * sizeof rows / sizeof *rows; k++) {
        const struct sl_scaling_link link = {1e30, 0};
        memcpy(stage_ms, times[k / 3], sizeof times[0]);
        ok(measure_linked(rows[k % 3].records, deep, rows[k % 3].train, &staged, 0, link, &costs, &err), &err);
        assert_int_equal(costs.stages, 3);
        assert_true(costs.update_ns >= 8 * MS && costs.update_ns < 8.1 * MS);
        assert_true(stage_updates.count == 3 && stage_updates.turns == 3 * rows[k % 3].turns);
        for (int32_t t = 0; t < stage_updates.turns; t++)
            assert_int_equal(stage_updates.stages[t], t % 3);
        uint64_t all = 0;
        for (int32_t stage = 0; stage < 3; stage++) {
            assert_true(stage_updates.owned[stage] != 0 && (stage_updates.owned[stage] & all) == 0);
            all |= stage_updates.owned[stage];
        }
        assert_true(all == (UINT64_C(1) << params) - 1);
    }
    tick = 0;
    memset(stage_ms, 0, sizeof stage_ms);
    assert_int_equal(updates, 0); /* of the whole model */
}

static void test_signals_end_it(void **state)
{
    static struct sl_scaling_costs costs;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    for (stop_after = 1; stop_after <= 6; stop_after++) {
        assert_int_equal(measure(80, "", &alone, 0, &costs, &err), SEQLSTM_CANCELLED);
        assert_int_equal(batches, stop_after);
    }
    stop_after = 0;
}

/* Whatever finds no memory, the costs are whole or there are none, and nothing stays behind. */
static void test_costs_without_memory(void **state)
{
    static const struct {
        const char *layers, *train;
        struct sl_parallel_config parallel;
    } rows[] = {{"", "", {.data = 1, .pipeline = 1, .compress = {.kind = SL_COMPRESS_POWERSGD, .rank = 1}}},
                {"", ", accumulate: 2", {.data = 1, .pipeline = 1}},
                {"", "", {.data = 1, .pipeline = 1, .shards = 2}},
                {"  - {type: lstm, units: 3, return_sequences: true}\n", "", {.data = 1, .pipeline = 2, .pieces = 2}}};
    const struct sl_scaling_link link = {1e30, 0};
    int failures = 0;
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        static struct sl_scaling_costs whole, costs;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        ok(measure_linked(24, rows[k].layers, rows[k].train, &rows[k].parallel, 0, link, &whole, &err), &err);
        assert_int_equal(whole.matrix_count > 0, rows[k].parallel.compress.kind != SL_COMPRESS_NONE);
        for (bool failed = true; failed; failures += failed) {
            const int descriptors = descriptors_count();
            lacks_memory = true;
            const seqlstm_status status =
                measure_linked(24, rows[k].layers, rows[k].train, &rows[k].parallel, 0, link, &costs, &err);
            failed = oom_disarm();
            lacks_memory = false;
            assert_int_equal(descriptors_count(), descriptors);
            if (status != SEQLSTM_OK) {
                if (!failed || status != SEQLSTM_NO_MEMORY)
                    fail_msg("%zu: status %d: %s", k, (int)status, err.message);
                continue;
            }
            assert_true(costs.memory_bytes > 0);
            costs.memory_bytes = whole.memory_bytes; /* the program's own memory grows */
            assert_memory_equal(&costs, &whole, sizeof costs);
        }
    }
    assert_true(failures > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mean_update),
        cmocka_unit_test(test_accumulated_updates),
        cmocka_unit_test(test_how_many_batches_run),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_updates_of_stages),
        cmocka_unit_test(test_signals_end_it),
        cmocka_unit_test(test_costs_without_memory),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
