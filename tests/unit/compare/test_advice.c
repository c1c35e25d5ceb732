/* SPDX-License-Identifier: Apache-2.0 */
/* What `profile` tries out, and its end by a signal. */
#include <limits.h>
#include <stdbool.h>
#include <unistd.h>

#include "golden.h"
#include "oom.h"
#include "temporary.h"

#include "base/value/buf.h"
#include "compare/advice.h"
#include "session/record/session_record.h"
#include "session/run/turn.h"

static const char text[] = "seqlstm: 1\n"
                           "seed: 1\n"
                           "data: {type: generator, name: adding_problem, length: [3, 4], train: {size: %d}, "
                           "batch_size: 4}\n"
                           "model: [{type: lstm, units: 2}, {type: dense, units: from_target}]\n"
                           "train: {loss: mse, optimizer: adam, updates: 40}\n"
                           "dispatch: {policy: order}\n"
                           "backends: [reference]\n";

/* Where turns are those of a machine of four cores that the test makes up, on which steps take less time with more
 * threads and in larger batches. NULL: they are real. */
static struct sl_buf *turns;
static int turn_count, turns_of_four = INT_MIN; /* those with four threads, of which the fourth takes long */

struct trials {
    struct sl_interrupt interrupt;
    int records;
    const char *until; /* the trial that is interrupted; NULL: none */
    char last[96];
    int count;
    int largest;  /* batch */
    int threads;  /* 0: one */
    unsigned has; /* of the properties below */
    bool without_time;
    struct sl_buf *list; /* of the changes; NULL: none is wanted */
};

/* What the profiled training may have already, which a trial would change. */
enum { HAS_PINS = 1, IS_MEASURED = 2, IS_FORCED = 4, IS_LOW = 8, HAS_TOKENS = 16, IS_STREAM = 32 };
static struct sl_session *profiled;

static void note_trial(void *context, const char *change)
{
    struct trials *trials = context;
    int batch;
    trials->count++;
    if (trials->list)
        sl_buf_printf(trials->list, "%s; ", change);
    if (turns)
        sl_buf_printf(turns, "\n%s:", change);
    if (sscanf(change, "--set data.batch_size=%d", &batch) == 1 && batch > trials->largest)
        trials->largest = batch;
    snprintf(trials->last, sizeof trials->last, "%s", change);
    if (trials->until && strcmp(trials->until, change) == 0)
        atomic_store(&trials->interrupt.stop, 2);
}

/* ---- turns of the test's own speed --------------------------------------------------------------------------- */

int32_t __wrap_sl_cpu_count(void);
int32_t __real_sl_cpu_count(void);
seqlstm_status __wrap_sl_session_take_turn(struct sl_session *session, struct sl_recorder *recorder, int64_t warm,
                                           int64_t updates, struct sl_turn *out_turn, struct seqlstm_error *err);
seqlstm_status __real_sl_session_take_turn(struct sl_session *session, struct sl_recorder *recorder, int64_t warm,
                                           int64_t updates, struct sl_turn *out_turn, struct seqlstm_error *err);

int32_t __wrap_sl_cpu_count(void)
{
    return turns ? 4 : __real_sl_cpu_count();
}

seqlstm_status __wrap_sl_session_take_turn(struct sl_session *session, struct sl_recorder *recorder, int64_t warm,
                                           int64_t updates, struct sl_turn *out_turn, struct seqlstm_error *err)
{
    if (turns == NULL)
        return __real_sl_session_take_turn(session, recorder, warm, updates, out_turn, err);
    const int threads = sl_pool_get_members(session->pool), batch = (int)session->model->data.batch_size;
    const bool low = session != profiled && session->model->precision != SL_PRECISION_FLOAT32,
               measured = session->model->dispatch.policy == SL_POLICY_MEASURED;
    if (low) /* it fails in the middle */
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no");
    const double speed = threads == 1 ? 0.8 : threads == 2 ? 1 : 1.25;
    const double noise = 1 + 0.01 * (turn_count++ % 4) * (measured ? 1 : 3);
    const bool slow = threads == 4 && turns_of_four++ == 3;
    *out_turn = (struct sl_turn){.updates = updates, .rows = updates * batch * 10};
    out_turn->ns = (double)updates * 1e6 * (1 + 0.5 * batch) * noise / (slow ? 0.1 : speed);
    sl_buf_printf(turns, " %lld+%lld", (long long)warm, (long long)updates);
    return SEQLSTM_OK;
}

static seqlstm_status find(struct trials *trials, struct sl_timeline_advices *advices)
{
    char path[TEMPORARY_BYTES];
    const int file = mkstemp(temporary_template(path, "advice"));
    assert_true(file >= 0 && dprintf(file, text, trials->records) > 0);
    close(file);
    struct sl_model_request model = {.path = path};
    const struct sl_session_options options = {.model = &model,
                                               .threads = trials->threads ? trials->threads : 1,
                                               .threads_given = true,
                                               .interrupt = &trials->interrupt};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_session *session = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_diagnostics_create(&diagnostics, &err), SEQLSTM_OK);
    if (sl_session_open_model(&options, diagnostics, &session, &err) != SEQLSTM_OK ||
        sl_session_prepare_training(session, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    struct sl_model *own = session->model;
    if (trials->has & HAS_PINS)
        own->dispatch.pin_count = 1;
    if (trials->has & IS_MEASURED)
        own->dispatch.policy = SL_POLICY_MEASURED;
    if (trials->has & IS_FORCED)
        session->options.forced_backend = "reference";
    if (trials->has & IS_LOW)
        own->precision = SL_PRECISION_BFLOAT16;
    if (trials->has & HAS_TOKENS)
        own->data.batching.max_tokens = 50;
    if (trials->has & IS_STREAM)
        own->data.batching.unit = SL_UNIT_STREAM;
    profiled = session;
    const struct sl_advice_request request = {.session = session,
                                              .options = &options,
                                              .update_ns = turns ? 3e6 : 1e9,
                                              .seconds = trials->without_time ? -1 : 1e9,
                                              .on_trial = note_trial,
                                              .context = trials};
    const seqlstm_status status = sl_advice_find(&request, advices, &err);
    sl_session_close(session);
    sl_diagnostics_destroy(diagnostics);
    unlink(path);
    return status;
}

static void test_interrupt(void **state)
{
    (void)state;
    static struct sl_timeline_advices advices;
    struct trials all = {.records = 64};
    assert_int_equal(find(&all, &advices), SEQLSTM_OK);
    assert_true(all.count > 3 && advices.count > 0);
    struct trials last = {.records = 64, .until = all.last};
    assert_int_equal(find(&last, &advices), SEQLSTM_CANCELLED);
    assert_int_equal(last.count, all.count);
}

/* Batches of up to eight times the size are tried, of which the data fill at least two. */
static void test_batches(void **state)
{
    (void)state;
    static const struct {
        int records, largest;
    } cases[] = {{15, 0}, {16, 8}, {31, 8}, {32, 16}, {63, 16}, {64, 32}, {400, 32}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        static struct sl_timeline_advices advices;
        struct trials trials = {.records = cases[k].records};
        assert_int_equal(find(&trials, &advices), SEQLSTM_OK);
        assert_int_equal(trials.largest, cases[k].largest);
    }
}

/* What helps and what does not, as it is told. */
static void add_advices(struct sl_buf *out, const struct sl_timeline_advices *advices)
{
    for (int32_t k = 0; k < advices->count; k++) {
        const struct sl_timeline_advice *a = &advices->items[k];
        sl_buf_printf(out, "%s %s: %.4f [%.4f, %.4f] (%s)\n", a->helps ? "helps" : "does not help", a->change, a->speed,
                      a->low, a->high, a->note);
    }
}

/* What is tried in which order with how many updates, and what of it helps: the fastest first, then what does not. */
static void test_order(void **state)
{
    (void)state;
    static struct sl_timeline_advices advices;
    struct trials trials = {.records = 400, .threads = 2};
    struct sl_buf out = {0};
    turns = &out;
    turn_count = 0;
    assert_int_equal(find(&trials, &advices), SEQLSTM_OK);
    turns = NULL;
    sl_buf_append_char(&out, '\n');
    add_advices(&out, &advices);
    golden_expect("reports/advice.txt", "--", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* What is already so is not tried, nor what other keys decide. */
static void test_what_is_tried(void **state)
{
    (void)state;
    static struct sl_timeline_advices advices;
    static const unsigned rows[] = {
        0,      HAS_PINS,   IS_FORCED, IS_MEASURED,
        IS_LOW, HAS_TOKENS, IS_STREAM, HAS_PINS | IS_FORCED | IS_MEASURED | IS_LOW | HAS_TOKENS | IS_STREAM};
    struct sl_buf out = {0}, unread = {0};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct trials trials = {.records = 16, .threads = 2, .has = rows[k], .list = &out};
        turns = &unread;
        turn_count = 0;
        assert_int_equal(find(&trials, &advices), SEQLSTM_OK);
        turns = NULL;
        sl_buf_append_char(&out, '\n');
    }
    for (int32_t k = 0; k < advices.count; k++) /* of the last row */
        if (strncmp(advices.items[k].change, "--threads", 9) != 0)
            sl_buf_printf(&out, "%s: %s\n", advices.items[k].change, advices.items[k].note);
    assert_string_equal(
        sl_buf_text(&out),
        "--threads 4; --threads 1; --set dispatch.policy=measured; --set data.batch_size=8; --set "
        "precision=bfloat16; \n"
        "--threads 4; --threads 1; --set dispatch.pin=null; --set dispatch.policy=measured; --set data.batch_size=8; "
        "--set precision=bfloat16; \n"
        "--threads 4; --threads 1; --set dispatch.policy=measured; no --backend; --set data.batch_size=8; --set "
        "precision=bfloat16; \n"
        "--threads 4; --threads 1; --set data.batch_size=8; --set precision=bfloat16; \n"
        "--threads 4; --threads 1; --set dispatch.policy=measured; --set data.batch_size=8; \n"
        "--threads 4; --threads 1; --set dispatch.policy=measured; --set precision=bfloat16; \n"
        "--threads 4; --threads 1; --set dispatch.policy=measured; --set precision=bfloat16; \n"
        "--threads 4; --threads 1; --set dispatch.pin=null; no --backend; \n"
        "--set dispatch.pin=null: each layer then runs where it is fastest\n"
        "no --backend: each layer then runs where it is fastest\n");
    sl_buf_deinit(&out);
    sl_buf_deinit(&unread);
}

/* No trial begins after the time. */
static void test_ends(void **state)
{
    (void)state;
    static struct sl_timeline_advices advices = {.count = 3};
    struct trials trials = {.records = 64, .without_time = true};
    assert_int_equal(find(&trials, &advices), SEQLSTM_OK);
    assert_true(trials.count == 0 && advices.count == 0);
}

/* With any number of threads, all others that may be faster are tried. One that was slower once does not help. */
static void test_threads(void **state)
{
    (void)state;
    static struct sl_timeline_advices advices;
    struct sl_buf out = {0}, unread = {0};
    for (int threads = 1; threads <= 4; threads++) {
        struct trials trials = {.records = 4, .threads = threads};
        turns = &unread;
        turn_count = 0;
        turns_of_four = threads == 2 ? 0 : INT_MIN;
        assert_int_equal(find(&trials, &advices), SEQLSTM_OK);
        turns = NULL;
        sl_buf_printf(&out, "of %d:", threads);
        for (int n = 1; n <= 4; n++) {
            char change[20];
            snprintf(change, sizeof change, "--threads %d", n);
            for (int32_t k = 0; k < advices.count; k++)
                if (strcmp(advices.items[k].change, change) == 0)
                    sl_buf_printf(&out, " %d%s", n, advices.items[k].helps ? "!" : "");
        }
        sl_buf_append_char(&out, '\n');
    }
    assert_string_equal(sl_buf_text(&out), "of 1: 2! 4!\nof 2: 1 4\nof 3: 1 4\nof 4: 1 2\n");
    sl_buf_deinit(&out);
    sl_buf_deinit(&unread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_interrupt),     cmocka_unit_test(test_batches),
                                       cmocka_unit_test(test_order),         cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_what_is_tried), cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
