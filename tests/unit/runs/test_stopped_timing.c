/* SPDX-License-Identifier: Apache-2.0 */
/* What the user stops while backends or whole steps are timed: it ends at once and says so, and all that was opened is
 * closed, without a measurement that is kept. */
#include "failing_acts.h"

#define MEASURED                                                                                                       \
    "seqlstm: 1\nname: m\nseed: 3\ndata:\n  type: csv\n  group: id\n  inputs: [a, b]\n  targets: [y]\n"                \
    "  train: {file: table.csv}\n  batch_size: 2\nmodel:\n"                                                            \
    "  - {type: lstm, units: 3, return_sequences: true}\n  - {type: dense, units: from_target}\n"                      \
    "train: {updates: 2, loss: mse}\nbackends: [reference]\ndispatch: {policy: measured}\n"

static int clock_calls, stops_at; /* the call of the clock at which the user stops it; 0: never */

int64_t __real_sl_clock_ns(void);
int64_t __wrap_sl_clock_ns(void);
int64_t __wrap_sl_clock_ns(void)
{
    if (++clock_calls == stops_at && performing)
        atomic_store(&performing->interrupt.stop, 2);
    return __real_sl_clock_ns();
}

static void forget_costs(void)
{
    assert_int_equal(scratch_remove_folder("cache"), 0);
}

static seqlstm_status make_plan(struct opened_run *run, double *out)
{
    const struct sl_plan *made;
    open_text(run, "new", MEASURED);
    arm();
    SEQLSTM_TRY(sl_session_make_plan(run->session, &made, &run->err));
    *out = 1;
    return SEQLSTM_OK;
}

static seqlstm_status train(struct opened_run *run, double *out)
{
    struct sl_run_result result;
    assert_int_equal(scratch_remove_folder("new"), 0);
    open_text(run, "new", MEASURED);
    arm();
    SEQLSTM_TRY(train_run(run, &result));
    *out = result.train.end == SL_END_UPDATES;
    return SEQLSTM_OK;
}

static seqlstm_status open_predictor(struct opened_run *run, double *out)
{
    const struct sl_predictor_limits limits = {.sequences = 4, .steps = 5, .measures = true};
    struct sl_predictor *predictor = NULL;
    open_to_read(run, "measured");
    arm();
    const seqlstm_status status = sl_session_open_predictor(run->session, &limits, &predictor, &run->err);
    sl_predictor_destroy(predictor);
    *out = 1;
    return status;
}

static const struct act timed_acts[] = {
    {"plan", make_plan, false}, {"training", train, false}, {"predictor", open_predictor, false}};

static void stop_later(int n)
{
    clock_calls = 0;
    stops_at = n;
}

static bool disarm(void)
{
    stops_at = 0;
    return true;
}

/* At once, while the first candidate is timed, and much later, where a machine may need no more times. */
static void timing_is_stopped(void **state)
{
    enum { LATE = 2000, CALLS_MOST = 300 }; /* of the clock, after that */
    static const int moments[] = {1, 50, LATE};
    static const struct failing kind = {stop_later, disarm, NULL};
    (void)state;
    setenv("SEQLSTM_CACHE", scratch_path("cache"), 1);
    failing = &kind;
    for (size_t a = 0; a < sizeof timed_acts / sizeof *timed_acts; a++)
        for (size_t k = 0; k < sizeof moments / sizeof *moments; k++) {
            struct seqlstm_error err;
            seqlstm_status status;
            double result;
            forget_costs();
            failing_call = moments[k];
            perform(&timed_acts[a], &status, &result, &err);
            const bool told = strcmp(err.message, "interrupted while backends were timed") == 0 ||
                              strcmp(err.message, "interrupted while plans were timed") == 0;
            if (clock_calls > moments[k] + CALLS_MOST)
                fail_msg("%s, stopped at %d: it goes on for %d", timed_acts[a].name, moments[k], clock_calls);
            if (status == SEQLSTM_OK && moments[k] == LATE)
                continue;
            if (status != SEQLSTM_CANCELLED || err.code != status || !told)
                fail_msg("%s, stopped at %d: status %d, code %d: %s", timed_acts[a].name, moments[k], (int)status,
                         (int)err.code, err.message);
            assert_false(sl_file_exists(scratch_path("cache")));
        }
}

static void let_memory_fail(int n)
{
    (void)n;
    oom_fail_anew(4);
}

static bool is_of_memory(const struct seqlstm_error *err)
{
    return err->code == SEQLSTM_NO_MEMORY;
}

/* With times that are known, as far as there is memory to find them. */
static void timing_without_memory(void **state)
{
    static const struct failing memory = {let_memory_fail, oom_disarm, is_of_memory};
    (void)state;
    setenv("SEQLSTM_CACHE", scratch_path("known"), 1);
    for (size_t a = 0; a < sizeof timed_acts / sizeof *timed_acts; a++)
        if (timed_acts[a].run != train) /* which plans as a plan does, and takes long */
            expect_failures(&timed_acts[a], &memory);
}

static int make_runs(void **state)
{
    if (setup(state) != 0)
        return -1;
    train_as("measured", MEASURED);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timing_is_stopped),
        cmocka_unit_test(timing_without_memory),
    };
    return cmocka_run_group_tests(tests, make_runs, scratch_remove);
}
