/* SPDX-License-Identifier: Apache-2.0 */
/* What is computed without a server: each request once in a round, in batches of sequences of similar length, the
 * longest first. The model and its computations are the test's, which keep what they are given. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/interrupt.h"
#include "ok.h"
#include "oom.h"
#include "predict/batches.h"
#include "predict/whole.h"
#include "serve/compute/offline.h"
#include "serve/job/served_model.h"
#include "serve/load/bodies.h"
#include "session/session.h"

enum { REQUESTS = 7, SEQUENCES = 3, FEATURES = 2, LOG_BYTES = 4096, BATCH_NS = 250000000 };

static struct {
    struct sl_served_model model;
    struct sl_served_uses *uses;
    char log[LOG_BYTES]; /* of the first round */
    size_t bytes;
    int64_t computed; /* requests */
    int fails_at;     /* the batch, from 1; 0: none */
    int batches;
    int64_t now_ns; /* a batch takes BATCH_NS */
    struct sl_interrupt interrupt;
    int64_t stops_at; /* when so many requests are computed; 0: never */
} world;

static struct sl_model named = {.name = "m"};

static void say(const char *text)
{
    if (world.computed < REQUESTS)
        world.bytes += (size_t)snprintf(world.log + world.bytes, LOG_BYTES - world.bytes, "%s", text);
}

static void stop_if_wanted(void)
{
    if (world.stops_at > 0 && world.computed >= world.stops_at)
        atomic_store(&world.interrupt.stop, 15);
}

int64_t __wrap_sl_clock_ns(void);
const struct sl_model *__wrap_sl_session_get_model(const struct sl_session *session);
seqlstm_status __wrap_sl_served_model_open(struct sl_session *session, const char *name,
                                           const struct sl_predictor_limits *limits, struct sl_served_model *out,
                                           struct seqlstm_error *err);
void __wrap_sl_served_model_close(struct sl_served_model *model);
seqlstm_status __wrap_sl_context_open(const struct sl_predictor *predictor, struct sl_context **out_context,
                                      struct seqlstm_error *err);
void __wrap_sl_context_close(struct sl_context *context);
seqlstm_status __wrap_sl_context_predict(struct sl_context *context, const void *x, const int64_t *lengths,
                                         int64_t count, float *y, struct seqlstm_error *err);
seqlstm_status __wrap_sl_context_predict_texts(struct sl_context *context, const char *const *texts,
                                               const size_t *bytes, int64_t count, sl_prediction_fn *write,
                                               void *write_context, struct seqlstm_error *err);

int64_t __wrap_sl_clock_ns(void)
{
    return world.now_ns;
}

const struct sl_model *__wrap_sl_session_get_model(const struct sl_session *session)
{
    (void)session;
    return &named;
}

seqlstm_status __wrap_sl_served_model_open(struct sl_session *session, const char *name,
                                           const struct sl_predictor_limits *limits, struct sl_served_model *out,
                                           struct seqlstm_error *err)
{
    (void)session, (void)err;
    assert_string_equal(name, "m");
    assert_int_equal(limits->threads, 1);
    *out = world.model;
    out->name = name;
    return SEQLSTM_OK;
}

void __wrap_sl_served_model_close(struct sl_served_model *model)
{
    assert_string_equal(model->name, "m");
    say("close\n");
}

seqlstm_status __wrap_sl_context_open(const struct sl_predictor *predictor, struct sl_context **out_context,
                                      struct seqlstm_error *err)
{
    (void)predictor, (void)err;
    *out_context = (void *)&world;
    return SEQLSTM_OK;
}

void __wrap_sl_context_close(struct sl_context *context)
{
    assert_ptr_equal(context, &world);
}

seqlstm_status __wrap_sl_context_predict(struct sl_context *context, const void *x, const int64_t *lengths,
                                         int64_t count, float *y, struct seqlstm_error *err)
{
    const float *row = x;
    char text[64];
    assert_ptr_equal(context, &world);
    assert_int_equal(lengths != NULL, world.model.reads_steps);
    for (int64_t k = 0; k < count; k++) {
        for (int64_t t = 0; t < (lengths ? lengths[k] : 1); t++, row += FEATURES) {
            snprintf(text, sizeof text, "%s%g %g", t ? ", " : "", (double)row[0], (double)row[1]);
            say(text);
            y[0] = row[0]; /* there is room */
        }
        say("; ");
    }
    say("\n");
    world.now_ns += BATCH_NS;
    if (++world.batches == world.fails_at)
        SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "batch %d fails", world.batches);
    world.computed += count;
    stop_if_wanted();
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_context_predict_texts(struct sl_context *context, const char *const *texts,
                                               const size_t *bytes, int64_t count, sl_prediction_fn *write,
                                               void *write_context, struct seqlstm_error *err)
{
    const struct sl_prediction prediction = {.record = 0};
    char text[64];
    assert_ptr_equal(context, &world);
    for (int64_t k = 0; k < count; k++) {
        snprintf(text, sizeof text, "'%.*s' ", (int)bytes[k], texts[k]);
        say(text);
        ok(write(write_context, &prediction, err), err);
    }
    world.now_ns += BATCH_NS;
    world.computed += count;
    return SEQLSTM_OK;
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static void add_request(struct sl_buf *out, const char *body)
{
    sl_buf_printf(out, "POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
                  body);
}

/* A request of so many steps, whose values say which one it is, and which step. */
static void add_values(struct sl_buf *out, int number, int64_t steps)
{
    struct sl_buf body = {0};
    sl_buf_printf(&body, "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[%lld,2],\"data\":[",
                  (long long)steps);
    for (int64_t t = 0; t < steps; t++)
        sl_buf_printf(&body, "%s%d,%lld", t ? "," : "", number, (long long)t);
    sl_buf_append_text(&body, "]}]}");
    add_request(out, sl_buf_text(&body));
    sl_buf_deinit(&body);
}

static void reset(struct sl_served_model model)
{
    memset(&world, 0, sizeof world);
    world.model = model;
    world.model.sequences = SEQUENCES;
    world.model.input_features = FEATURES;
    world.model.output_features = 1;
    world.model.steps = 9;
    world.model.rows = 99;
}

enum { ROUNDS = 3 };

/* For so long that there are ROUNDS rounds, each of so many batches. */
static seqlstm_status measure(struct sl_load_bodies *bodies, int batches, double *out_rate, struct seqlstm_error *err)
{
    const double seconds = 1e-9 * BATCH_NS * batches * (ROUNDS - 0.5);
    const seqlstm_status status = sl_offline_measure((void *)&world, bodies, seconds, &world.interrupt, out_rate, err);
    sl_load_bodies_deinit(bodies);
    return status;
}

static struct sl_load_bodies make_bodies(void)
{
    struct sl_load_bodies bodies = {.count = REQUESTS,
                                    .requests = calloc(REQUESTS, sizeof *bodies.requests),
                                    .lengths = calloc(REQUESTS, sizeof *bodies.lengths)};
    assert_true(bodies.requests && bodies.lengths);
    return bodies;
}

/* Requests per second of the rounds that count; the one before them finds everything ready. */
static void expect_rate(double rate, int batches)
{
    assert_int_equal(world.computed, (1 + ROUNDS) * REQUESTS);
    assert_true(fabs(rate - REQUESTS / (1e-9 * BATCH_NS * batches)) < 1e-6);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

static void sequences_are_computed_in_batches_of_similar_length(void **state)
{
    (void)state;
    static const int64_t lengths[REQUESTS] = {2, 5, 1, 3, 6, 4, 7};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double rate = 0;
    reset((struct sl_served_model){.reads_steps = true});
    struct sl_load_bodies bodies = make_bodies();
    for (int k = 0; k < REQUESTS; k++)
        add_values(&bodies.requests[k], k, lengths[k]);
    ok(measure(&bodies, 3, &rate, &err), &err);
    assert_string_equal(world.log, "6 0, 6 1, 6 2, 6 3, 6 4, 6 5, 6 6; 4 0, 4 1, 4 2, 4 3, 4 4, 4 5; "
                                   "1 0, 1 1, 1 2, 1 3, 1 4; \n"
                                   "5 0, 5 1, 5 2, 5 3; 3 0, 3 1, 3 2; 0 0, 0 1; \n"
                                   "2 0; \n");
    expect_rate(rate, 3);
}

static void rows_without_steps_are_computed_in_batches(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double rate = 0;
    bool seen[REQUESTS] = {false};
    reset((struct sl_served_model){.reads_steps = false});
    struct sl_load_bodies bodies = make_bodies();
    for (int k = 0; k < REQUESTS; k++)
        add_values(&bodies.requests[k], k, 1);
    ok(measure(&bodies, 3, &rate, &err), &err);
    expect_rate(rate, 3);
    for (const char *at = world.log; *at; at += *at == '\n') { /* in any order */
        assert_true(at[0] >= '0' && at[0] < '0' + REQUESTS && !seen[at[0] - '0']);
        seen[at[0] - '0'] = true;
        at += strlen("0 0; ");
    }
    for (int k = 0; k < REQUESTS; k++)
        assert_true(seen[k]);
}

static void texts_are_computed_as_they_are(void **state)
{
    (void)state;
    static const char *const texts[REQUESTS] = {"b", "ccc", "", "aa", "d d", "e", "ff"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double rate = 0;
    char body[200];
    reset((struct sl_served_model){.decodes = true, .reads_text = true});
    struct sl_load_bodies bodies = make_bodies();
    for (int k = 0; k < REQUESTS; k++) {
        snprintf(body, sizeof body,
                 "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"%s\"]}]}", texts[k]);
        add_request(&bodies.requests[k], body);
    }
    ok(measure(&bodies, 1, &rate, &err), &err);
    assert_string_equal(world.log, "'b' 'ccc' '' 'aa' 'd d' 'e' 'ff' ");
    expect_rate(rate, 1);
}

/* A batch that fails ends it; so does a request that is none. Everything is closed then. */
static void what_fails_ends_it(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double rate = 7;
    for (int wrong = 0; wrong < 2; wrong++) {
        reset((struct sl_served_model){.reads_steps = true});
        world.fails_at = 2;
        struct sl_load_bodies bodies = make_bodies();
        for (int k = 0; k < REQUESTS; k++)
            add_values(&bodies.requests[k], k, wrong && k == 4 ? 10 : 1);
        assert_int_equal(measure(&bodies, 3, &rate, &err), wrong ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_NUMERIC);
        assert_string_equal(err.message, wrong ? "`x` is one sequence of 10 steps, the limit is 9; `lengths` divides it"
                                               : "batch 2 fails");
        assert_non_null(strstr(world.log, "close\n"));
        assert_int_equal(world.batches, wrong ? 0 : 2);
    }
}

/* Without memory in whatever place nothing is said to be measured, and all is closed. */
static void without_memory_nothing_is_measured(void **state)
{
    (void)state;
    static const char text[] =
        "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"b\"]}]}";
    for (int texts = 0; texts < 2; texts++)
        for (int n = 1;; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            double rate = -1;
            reset((struct sl_served_model){.decodes = texts, .reads_text = texts, .reads_steps = !texts});
            struct sl_load_bodies bodies = make_bodies();
            for (int k = 0; k < REQUESTS; k++)
                if (texts)
                    add_request(&bodies.requests[k], text);
                else
                    add_values(&bodies.requests[k], k, 1 + k % 3);
            oom_fail_at(n);
            const seqlstm_status status = measure(&bodies, 3, &rate, &err);
            if (!oom_disarm()) {
                ok(status, &err);
                assert_true(n > 7); /* five lists, the inputs, the outputs */
                break;
            }
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
            assert_memory_equal(err.message, "no memory for ", strlen("no memory for "));
            assert_true(rate == -1 && world.batches == 0);
            assert_non_null(strstr(world.log, "close\n"));
        }
}

/* A signal is seen between two rounds: what has been computed gives no rate, and the model is closed. */
static void a_signal_ends_it(void **state)
{
    (void)state;
    for (int round = 1; round <= ROUNDS; round++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        double rate = -1;
        reset((struct sl_served_model){.reads_steps = false});
        world.stops_at = round * REQUESTS;
        struct sl_load_bodies bodies = make_bodies();
        for (int k = 0; k < REQUESTS; k++)
            add_values(&bodies.requests[k], k, 1);
        assert_int_equal(measure(&bodies, 3, &rate, &err), SEQLSTM_CANCELLED);
        assert_string_equal(err.message, "interrupted");
        assert_int_equal(world.computed, round * REQUESTS);
        assert_true(rate == -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_are_computed_in_batches_of_similar_length),
        cmocka_unit_test(rows_without_steps_are_computed_in_batches),
        cmocka_unit_test(texts_are_computed_as_they_are),
        cmocka_unit_test(what_fails_ends_it),
        cmocka_unit_test(a_signal_ends_it),
        cmocka_unit_test(without_memory_nothing_is_measured),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
