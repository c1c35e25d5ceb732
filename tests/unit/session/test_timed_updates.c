/* SPDX-License-Identifier: Apache-2.0 */
/* A few updates for their time: on a trainer that the test makes up, whose step n takes n ms and has 10 n rows. And how
 * many updates a whole training has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "ok.h"
#include "oom.h"
#include "session/record/session_record.h"
#include "session/run/turn.h"
#include "train/recorder.h"
#include "train/trainer/trainer.h"

enum { MS = 1000000 };

/* What the trainer does: the updates that its data allow; the one behind which a signal comes, and behind which the
 * recorder is done (0: none); how it ends. */
static struct fake {
    int64_t available, signal, done;
    seqlstm_status create, run;
} fake;

static struct sl_trainer_request request;
static struct sl_interrupt outer;
static int64_t now, steps, batches;
static int created, destroyed;

int64_t __wrap_sl_clock_ns(void);
int64_t __wrap_sl_batcher_get_batches(const struct sl_batcher *batcher);
const struct sl_data_facts *__wrap_sl_data_state_get_facts(const struct sl_data_state *state);
bool __wrap_sl_recorder_is_done(const struct sl_recorder *recorder);
seqlstm_status __wrap_sl_trainer_create(const struct sl_trainer_request *made, struct sl_trainer **out_trainer,
                                        struct seqlstm_error *err);
seqlstm_status __wrap_sl_trainer_run(struct sl_trainer *trainer, struct sl_train_result *out_result,
                                     struct seqlstm_error *err);
void __wrap_sl_trainer_destroy(struct sl_trainer *trainer);

int64_t __wrap_sl_clock_ns(void)
{
    return now;
}

int64_t __wrap_sl_batcher_get_batches(const struct sl_batcher *batcher)
{
    (void)batcher;
    return batches;
}

const struct sl_data_facts *__wrap_sl_data_state_get_facts(const struct sl_data_state *state)
{
    (void)state;
    return NULL;
}

bool __wrap_sl_recorder_is_done(const struct sl_recorder *recorder)
{
    assert_non_null(recorder);
    return fake.done && steps >= fake.done;
}

seqlstm_status __wrap_sl_trainer_create(const struct sl_trainer_request *made, struct sl_trainer **out_trainer,
                                        struct seqlstm_error *err)
{
    request = *made;
    now += 500 * MS; /* does not count */
    if (fake.create != SEQLSTM_OK)
        return seqlstm_error_set(err, fake.create, "a.c", 1, "no trainer");
    created++;
    *out_trainer = (void *)&request;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_trainer_run(struct sl_trainer *trainer, struct sl_train_result *out_result,
                                     struct seqlstm_error *err)
{
    struct sl_train_report report = {.progress = {.tokens = 0}};
    (void)out_result;
    assert_ptr_equal(trainer, &request);
    for (steps = 0; steps < fake.available && !sl_interrupt_get_stop(request.interrupt);) {
        steps++;
        now += steps * MS;
        report.progress.tokens += 10 * steps;
        if (steps == fake.signal)
            atomic_store(&outer.stop, 1);
        request.observer.on_step(request.observer.context, &report);
    }
    now += 700 * MS; /* neither does this */
    return fake.run == SEQLSTM_OK ? SEQLSTM_OK : seqlstm_error_set(err, fake.run, "a.c", 1, "it ends badly");
}

void __wrap_sl_trainer_destroy(struct sl_trainer *trainer)
{
    assert_ptr_equal(trainer, &request);
    destroyed++;
}

/* A training whose second operation has this type. */
struct training {
    struct sl_model model;
    struct sl_graph graph;
    struct sl_node nodes[2];
    struct sl_call calls[2];
    struct sl_plan plan;
    struct sl_session session;
};

static void make_training(struct training *t, uint32_t dtype)
{
    memset(t, 0, sizeof *t);
    memset(&outer, 0, sizeof outer);
    t->nodes[0].desc.head.dtype_compute = SEQLSTM_DTYPE_FLOAT32;
    t->nodes[1].desc.head.dtype_compute = dtype;
    for (int c = 0; c < 2; c++)
        t->calls[c].node = &t->nodes[c];
    t->plan = (struct sl_plan){.calls = t->calls, .call_count = 2};
    t->session.model = &t->model;
    t->session.train.graph = &t->graph;
    t->session.train.plan = &t->plan;
    t->session.options.interrupt = &outer;
    created = destroyed = 0;
}

static void updates_behind_the_warm_ones_are_timed(void **state)
{
    static char recorder;
    static const struct {
        int64_t available, done, warm, updates;
        int64_t timed, first; /* of those that are timed */
    } rows[] = {
        {100, 0, 0, 1, 1, 1},  {100, 0, 0, 5, 5, 1},  {100, 0, 3, 1, 1, 4},  {100, 0, 3, 4, 4, 4},
        {5, 0, 3, 4, 2, 4},    {3, 0, 3, 4, 0, 4},    {2, 0, 3, 4, 0, 3},    {0, 0, 0, 4, 0, 1},
        {100, 6, 3, 50, 3, 4}, {100, 2, 3, 50, 0, 4}, {100, 60, 3, 5, 5, 4},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct training t;
        struct sl_turn turn = {.updates = -1};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        make_training(&t, SEQLSTM_DTYPE_FLOAT32);
        memset(&fake, 0, sizeof fake);
        fake.available = rows[k].available;
        fake.done = rows[k].done;
        ok(sl_session_take_turn(&t.session, rows[k].done ? (void *)&recorder : NULL, rows[k].warm, rows[k].updates,
                                &turn, &err),
           &err);
        double ms = 0;
        for (int64_t n = rows[k].first; n < rows[k].first + rows[k].timed; n++)
            ms += (double)n;
        if (turn.updates != rows[k].timed || (rows[k].timed && (turn.rows != (int64_t)(10 * ms))))
            fail_msg("row %zu: %lld updates of %lld rows", k, (long long)turn.updates, (long long)turn.rows);
        /* the clock of the first update begins with the turn, of others behind the last warm one */
        const double expected = rows[k].timed ? (ms + (rows[k].warm == 0 ? 500 : 0)) * MS : 0;
        if (turn.ns != expected)
            fail_msg("row %zu: %g ns, not %g", k, turn.ns, expected);
        const int64_t most = rows[k].done && rows[k].done < rows[k].warm + rows[k].updates
                                 ? rows[k].done
                                 : rows[k].warm + rows[k].updates;
        assert_int_equal(steps, rows[k].available < most ? rows[k].available : most);
        assert_true(created == 1 && destroyed == 1);
    }
}

/* The trainer writes nothing, and knows the precision of the products. */
static void the_trainer_is_that_of_the_session(void **state)
{
    static const uint32_t types[] = {SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_BFLOAT16, SEQLSTM_DTYPE_TF32,
                                     SEQLSTM_DTYPE_FLOAT16};
    (void)state;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        struct training t;
        struct sl_turn turn;
        float weights;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        make_training(&t, types[k]);
        memset(&fake, 0, sizeof fake);
        t.graph.output_is_logits = k % 2;
        t.session.class_weights = k < 2 ? &weights : NULL;
        ok(sl_session_take_turn(&t.session, NULL, 0, 1, &turn, &err), &err);
        assert_int_equal(sl_session_scales_loss(&t.session), types[k] == SEQLSTM_DTYPE_FLOAT16);
        assert_int_equal(request.scales_loss, types[k] == SEQLSTM_DTYPE_FLOAT16);
        assert_int_equal(request.is_logits, k % 2);
        assert_int_equal(request.weighted_classes, k < 2);
        assert_true(request.model == &t.model && request.memory == &t.session.memory && !request.recorder);
        assert_true(!request.folder && !request.lock && !request.valid && !request.evaluate && !request.ranks);
    }
}

static void turns_that_fail(void **state)
{
    struct training t;
    struct sl_turn turn;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    memset(&fake, 0, sizeof fake);
    make_training(&t, SEQLSTM_DTYPE_FLOAT32);
    fake.create = SEQLSTM_NO_MEMORY;
    assert_int_equal(sl_session_take_turn(&t.session, NULL, 0, 1, &turn, &err), SEQLSTM_NO_MEMORY);
    assert_true(created == 0 && destroyed == 0);
    fake = (struct fake){.available = 9, .run = SEQLSTM_NUMERIC};
    assert_int_equal(sl_session_take_turn(&t.session, NULL, 0, 1, &turn, &err), SEQLSTM_NUMERIC);
    assert_string_equal(err.message, "it ends badly");
    assert_true(created == 1 && destroyed == 1);
    fake = (struct fake){.available = 9, .signal = 2};
    assert_int_equal(sl_session_take_turn(&t.session, NULL, 3, 4, &turn, &err), SEQLSTM_CANCELLED);
    assert_true(steps == 2 && created == 2 && destroyed == 2); /* at once */
    make_training(&t, SEQLSTM_DTYPE_FLOAT32);
    t.model.parallel.shards = 2;
    assert_int_equal(sl_session_take_turn(&t.session, NULL, 0, 1, &turn, &err), SEQLSTM_INVALID_CONFIG);
    assert_true(created == 0 && strstr(err.message, "`--set parallel=none`"));
}

static void updates_of_a_whole_training(void **state)
{
    static const struct {
        int64_t epochs, updates, accumulate, batches, expected;
    } rows[] = {
        {3, 0, 1, 7, 21},
        {3, 0, 0, 7, 21},
        {3, 0, 2, 7, 9},
        {3, 0, 7, 7, 3},
        {3, 0, 8, 7, 3},
        {3, 0, 1, 0, 3},
        {0, 5, 1, 7, 5},
        {3, 20, 1, 7, 20},
        {3, 21, 1, 7, 21},
        {3, 22, 1, 7, 21},
        {3, 100, 2, 7, 9},
        {0, 0, 1, 7, INT64_MAX},
        {INT64_MAX / 7, 0, 1, 7, INT64_MAX},
        {INT64_MAX / 7 - 1, 0, 1, 7, INT64_MAX / 7 * 7 - 7},
        {INT64_MAX / 2, 4, 1, 7, 4},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_model model = {.train = {.epochs = rows[k].epochs, .updates = rows[k].updates}};
        const struct sl_session session = {.model = &model};
        model.train.accumulate = rows[k].accumulate;
        batches = rows[k].batches;
        const int64_t got = sl_session_count_updates(&session);
        if (got != rows[k].expected)
            fail_msg("row %zu: %lld, not %lld", k, (long long)got, (long long)rows[k].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_behind_the_warm_ones_are_timed),
        cmocka_unit_test(the_trainer_is_that_of_the_session),
        cmocka_unit_test(turns_that_fail),
        cmocka_unit_test(updates_of_a_whole_training),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
