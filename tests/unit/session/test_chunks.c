/* SPDX-License-Identifier: Apache-2.0 */
/* The next steps of several streams as one batch: in any order, of different numbers of steps, of some of them the last
 * row alone and of some nothing. Each stream has what it has by itself. */
#include "served_fixture.h"

#include <math.h>

#include <seqlstm/philox.h>

#include "oom.h"
#include "predict/context.h"
#include "predict/stream.h"
#include "predict/whole.h"
#include "session/predict/predictor.h"

enum { STREAMS = 5, STEPS_MOST = 3, FEATURES = 2, OUTPUTS = 3, ROUNDS = 200 };

struct world {
    struct sl_diagnostics *diagnostics;
    struct sl_session *session;
    struct sl_predictor *predictor;
    struct sl_context *context;
    struct sl_stream *together[STREAMS], *alone[STREAMS];
};

static void open_model(struct world *w, const char *layers)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char text[1024];
    snprintf(text, sizeof text,
             "seqlstm: 1\nseed: 1\ndata:\n  type: csv\n  group: id\n  inputs: [a, b]\n  targets: [x, y, z]\n"
             "  scale: standard\n  train: {file: train.csv}\n  batch_size: 4\nmodel:\n%s"
             "  - {type: dense, units: from_target}\ntrain: {epochs: 1, loss: mse}\nbackends: [reference]\n",
             layers);
    train_session(text, NULL, &w->diagnostics, &w->session);
    const struct sl_predictor_limits limits = {
        .sequences = STREAMS, .steps = 8, .streams = STREAMS, .stream_steps = STEPS_MOST, .chunk_steps = STEPS_MOST};
    ok(sl_session_open_predictor(w->session, &limits, &w->predictor, &err), &err);
    ok(sl_context_open(w->predictor, &w->context, &err), &err);
    for (int k = 0; k < STREAMS; k++) {
        ok(sl_stream_open(w->predictor, &w->together[k], &err), &err);
        ok(sl_stream_open(w->predictor, &w->alone[k], &err), &err);
    }
}

static int open_world(void **state)
{
    static struct world w;
    assert_int_equal(scratch_make(state), 0);
    FILE *file = fopen(scratch_path("train.csv"), "w");
    assert_non_null(file);
    fprintf(file, "id,a,b,x,y,z\n");
    for (int r = 0; r < 24; r++)
        fprintf(file, "%d,%.3f,%.3f,%.3f,%d,%.3f\n", r / 4, sin(r), 40 + 3 * cos(r), sin(r + 1) * 100, r % 5, cos(r));
    fclose(file);
    open_model(&w, "  - {type: lstm, units: 5, return_sequences: true}\n"
                   "  - {type: gru, units: 3, return_sequences: true}\n"
                   "  - {type: lstm, units: 4, return_sequences: true}\n");
    *state = &w;
    return 0;
}

static void close_model(struct world *w)
{
    for (int k = 0; k < STREAMS; k++) {
        sl_stream_close(w->together[k]);
        sl_stream_close(w->alone[k]);
    }
    sl_context_close(w->context);
    sl_predictor_destroy(w->predictor);
    sl_session_close(w->session);
    sl_diagnostics_destroy(w->diagnostics);
}

static int close_world(void **state)
{
    close_model(*state);
    return scratch_remove(state);
}

static uint32_t draw(uint32_t below)
{
    static uint64_t next;
    return (uint32_t)(seqlstm_uniform(7, next++, 0, 0) * (float)below) % below;
}

static void is_near(const float *got, const float *expected, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (!(fabsf(got[k] - expected[k]) <= 1e-4f * (1 + fabsf(expected[k]))))
            fail_msg("value %lld is %.7g, expected %.7g", (long long)k, (double)got[k], (double)expected[k]);
}

/* The streams of one round: some of them, in any order. */
static int choose(int *out_which)
{
    int all[STREAMS], count = 1 + (int)draw(STREAMS);
    for (int k = 0; k < STREAMS; k++)
        all[k] = k;
    for (int k = 0; k < count; k++) {
        const int other = k + (int)draw((uint32_t)(STREAMS - k)), held = all[other];
        all[other] = all[k];
        out_which[k] = all[k] = held;
    }
    return count;
}

static void each_stream_has_what_it_has_alone(void **state)
{
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int round = 0; round < ROUNDS; round++) {
        static float x[STREAMS][STEPS_MOST][FEATURES], got[STREAMS][STEPS_MOST][OUTPUTS], want[STEPS_MOST][OUTPUTS];
        struct sl_chunk chunks[STREAMS];
        int which[STREAMS], count = choose(which);
        memset(got, 0, sizeof got);
        for (int k = 0; k < count; k++) {
            const int64_t steps = 1 + draw(STEPS_MOST);
            for (int64_t t = 0; t < steps; t++)
                for (int f = 0; f < FEATURES; f++)
                    x[k][t][f] = (float)draw(1000) / 500 - 1 + (f ? 40 : 0);
            chunks[k] = (struct sl_chunk){.stream = w->together[which[k]],
                                          .x = x[k],
                                          .steps = steps,
                                          .y = draw(4) == 0 ? NULL : got[k][0],
                                          .last = draw(2) == 0};
        }
        ok(sl_streams_advance(w->context, chunks, count, &err), &err);
        for (int k = 0; k < count; k++) {
            const int64_t steps = chunks[k].steps, rows = chunks[k].last ? 1 : steps;
            const float *values = (const float *)got[k];
            ok(sl_stream_step(w->context, w->alone[which[k]], x[k], steps, want[0], &err), &err);
            if (chunks[k].y)
                is_near(values, want[chunks[k].last ? steps - 1 : 0], rows * OUTPUTS);
            for (int64_t e = chunks[k].y ? rows * OUTPUTS : 0; e < STEPS_MOST * OUTPUTS; e++)
                assert_true(values[e] == 0); /* nothing behind */
            assert_int_equal(sl_stream_get_position(w->together[which[k]]), sl_stream_get_position(w->alone[which[k]]));
        }
    }
}

static void limits_are_kept(void **state)
{
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float x[STEPS_MOST + 1][FEATURES] = {{0}}, y[STEPS_MOST + 1][OUTPUTS];
    struct sl_chunk chunks[STREAMS + 1];
    for (int k = 0; k <= STREAMS; k++)
        chunks[k] = (struct sl_chunk){.stream = w->together[k % STREAMS], .x = x, .steps = 1, .y = y[0]};
    char expected[96];
    for (int count = 0; count <= STREAMS + 1; count += STREAMS + 1) {
        assert_int_equal(sl_streams_advance(w->context, chunks, count, &err), SEQLSTM_INVALID_ARGUMENT);
        snprintf(expected, sizeof expected, "%d streams, expected 1 to %d", count, STREAMS);
        assert_string_equal(err.message, expected);
    }
    for (int64_t steps = 0; steps <= STEPS_MOST + 1; steps += STEPS_MOST + 1) {
        chunks[1].steps = steps;
        assert_int_equal(sl_streams_advance(w->context, chunks, 3, &err), SEQLSTM_INVALID_ARGUMENT);
        snprintf(expected, sizeof expected, "%d steps of stream 1, expected 1 to %d", (int)steps, STEPS_MOST);
        assert_string_equal(err.message, expected);
    }
    chunks[1].steps = STEPS_MOST;
    ok(sl_streams_advance(w->context, chunks, 1, &err), &err);
}

/* A model with one output for each sequence: that of a chunk is the one behind its last step. */
static void one_row_for_each_sequence(void **state)
{
    enum { COUNT = 3 };
    struct world w = {.context = NULL}, *of_steps = *state;
    static const int64_t steps[COUNT] = {2, 3, 1};
    float x[STREAMS][STEPS_MOST][FEATURES], y[STREAMS][STEPS_MOST][OUTPUTS], want[OUTPUTS];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_chunk chunks[COUNT];
    open_model(&w, "  - {type: lstm, units: 4}\n");
    for (int round = 0; round < 4; round++) {
        for (int k = 0; k < COUNT; k++) {
            const int s = (k + round) % COUNT;
            for (int v = 0; v < STEPS_MOST * FEATURES; v++)
                x[k][v / FEATURES][v % FEATURES] = (float)draw(100) - 50;
            for (int v = 0; v < STEPS_MOST * OUTPUTS; v++)
                y[k][v / OUTPUTS][v % OUTPUTS] = -7;
            chunks[k] = (struct sl_chunk){w.together[s], x[k], steps[k], y[k][0], round % 2 == 1};
        }
        ok(sl_streams_advance(w.context, chunks, round < 3 ? COUNT : 1, &err), &err);
        for (int k = 0; k < (round < 3 ? COUNT : 1); k++) {
            ok(sl_stream_step(w.context, w.alone[(k + round) % COUNT], x[k], steps[k], want, &err), &err);
            is_near(y[k][0], want, OUTPUTS);
            for (int v = 0; v < OUTPUTS; v++)
                assert_true(y[k][1][v] == -7);
        }
    }
    chunks[1].stream = of_steps->together[0];
    assert_int_equal(sl_streams_advance(w.context, chunks, COUNT, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "stream 1 and the context are of different predictors");
    /* without output the streams go on all the same */
    ok(sl_streams_step(w.context, w.together, COUNT, x, NULL, &err), &err);
    ok(sl_streams_step(w.context, w.alone, COUNT, x, y[0][0], &err), &err);
    ok(sl_streams_step(w.context, w.together, COUNT, x, y[0][0], &err), &err);
    ok(sl_streams_step(w.context, w.alone, COUNT, x, y[2][0], &err), &err);
    is_near(y[0][0], y[2][0], COUNT * OUTPUTS);
    close_model(&w);
}

/* Whole sequences: what is wrong with a call is told, with the place of the sequence; nothing is no mistake. */
static void wrong_calls_are_told(void **state)
{
    struct world *w = *state;
    static const struct {
        int64_t lengths[4], count;
        const char *message;
    } cases[] = {
        {{1, 2, 9, 1}, 4, "sequence 2 has 9 steps, expected 0 to 8, the limit `steps` of the predictor"},
        {{1, -1, 8, 1}, 4, "sequence 1 has -1 steps, expected 0 to 8, the limit `steps` of the predictor"},
        {{1, 2, 3, 1}, -1, "there are -1 sequences, expected at least 0"},
    };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static float x[40][FEATURES], y[40][OUTPUTS];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(sl_context_predict(w->context, x, cases[k].lengths, cases[k].count, y[0], &err),
                         SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, cases[k].message);
    }
    assert_int_equal(sl_context_predict(w->context, x, NULL, 1, y[0], &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the model reads sequences, and `lengths` is NULL");
    ok(sl_context_predict(w->context, x, cases[0].lengths, 0, y[0], &err), &err);
    ok(sl_context_predict(w->context, x, cases[0].lengths, 2, y[0], &err), &err);
    float none[OUTPUTS] = {0};
    assert_int_equal(sl_stream_step(w->context, w->alone[0], x, 0, none, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "a call of 0 steps, expected at least 1");
}

/* Whatever finds no memory while contexts and streams are opened, and in their first calls: nothing is left behind, and
 * the next call works. */
static void without_memory_nothing_is_left(void **state)
{
    struct world *w = *state;
    static const int64_t lengths[3] = {2, 1, 5};
    static float x[8][FEATURES], want[8][OUTPUTS], y[8][OUTPUTS];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int failures = 0;
    for (int k = 0; k < 8; k++)
        x[k][0] = x[k][1] = (float)k;
    ok(sl_context_predict(w->context, x, lengths, 3, want[0], &err), &err);
    for (bool failed = true; failed; failures++) {
        struct sl_context *context = NULL;
        oom_fail_at(failures + 1);
        const seqlstm_status status = sl_context_open(w->predictor, &context, &err);
        failed = oom_disarm();
        assert_true((context != NULL) == (status == SEQLSTM_OK));
        assert_true(status == SEQLSTM_OK || (failed && status == SEQLSTM_NO_MEMORY));
        sl_context_close(context);
    }
    assert_true(failures > 30);
    int n = 0;
    for (bool failed = true; failed;) {
        struct sl_stream *stream = NULL;
        oom_fail_at(++n);
        const seqlstm_status status = sl_stream_open(w->predictor, &stream, &err);
        failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        sl_stream_close(stream);
    }
    assert_int_equal(n, 3); /* the stream and its states */
    n = 0;
    for (bool failed = true; failed;) {
        struct sl_context *context = NULL;
        ok(sl_context_open(w->predictor, &context, &err), &err);
        oom_fail_at(++n);
        seqlstm_status status = sl_context_predict(context, x, lengths, 3, y[0], &err);
        failed = oom_disarm();
        if (status != SEQLSTM_OK) {
            assert_true(failed && status == SEQLSTM_NO_MEMORY);
            ok(sl_context_predict(context, x, lengths, 3, y[0], &err), &err);
        }
        assert_memory_equal(y, want, sizeof y);
        sl_context_close(context);
    }
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stream_has_what_it_has_alone), cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(one_row_for_each_sequence),         cmocka_unit_test(wrong_calls_are_told),
        cmocka_unit_test(without_memory_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
