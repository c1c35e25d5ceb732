/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share a predictor compute what one computes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/seqlstm.h>

#include "base/system/clock.h"
#include "ok.h"
#include "scratch.h"

enum { THREADS = 3, STEPS = 40 };

static struct seqlstm_session *train(void)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    static int runs;
    char out[256];
    FILE *file = fopen(scratch_path("m.yaml"), "w");
    assert_non_null(file);
    fputs("seqlstm: 1\nseed: 1\ndata:\n  type: generator\n  name: adding_problem\n  length: [5, 9]\n"
          "  train: {size: 32}\n  batch_size: 8\nmodel:\n  - {type: lstm, units: 20}\n"
          "  - {type: dense, units: from_target}\ntrain: {epochs: 1, loss: mse}\nbackends: [reference]\n"
          "dispatch: {policy: order}\n",
          file);
    fclose(file);
    snprintf(out, sizeof out, "%s%d", scratch_path("run"), runs++);
    options.out_dir = out;
    options.threads = 1;
    ok(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err), &err);
    ok(seqlstm_train(session, NULL, NULL, &err), &err);
    return session;
}

struct worker {
    struct seqlstm_predictor *predictor;
    pthread_t thread;
    float y[STEPS];
    float whole[3];
    bool well;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    struct seqlstm_context *context = NULL;
    struct seqlstm_stream *stream = NULL;
    const int64_t lengths[3] = {5, 2, 4};
    float x[2 * STEPS];
    for (int k = 0; k < 2 * STEPS; k++)
        x[k] = (float)(k % 7) / 7;
    w->well = seqlstm_context_open(w->predictor, &context, NULL) == SEQLSTM_OK &&
              seqlstm_stream_open(w->predictor, &stream, NULL) == SEQLSTM_OK;
    for (int t = 0; w->well && t < STEPS; t++)
        w->well = seqlstm_stream_step(context, stream, x + 2 * t, 1, w->y + t, NULL) == SEQLSTM_OK;
    for (int r = 0; w->well && r < 20; r++)
        w->well = seqlstm_predict(context, x, lengths, 3, w->whole, NULL) == SEQLSTM_OK;
    seqlstm_stream_close(stream);
    seqlstm_context_close(context);
    return NULL;
}

static void share(struct seqlstm_session *session, uint32_t flags)
{
    static struct worker workers[THREADS + 1];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor *predictor = NULL;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    options.flags = flags;
    ok(seqlstm_predictor_open(session, &options, &predictor, &err), &err);
    for (int w = 0; w <= THREADS; w++)
        workers[w].predictor = predictor;
    work(&workers[THREADS]);
    assert_true(workers[THREADS].well);
    for (int w = 0; w < THREADS; w++)
        assert_int_equal(pthread_create(&workers[w].thread, NULL, work, &workers[w]), 0);
    for (int w = 0; w < THREADS; w++) {
        assert_int_equal(pthread_join(workers[w].thread, NULL), 0);
        assert_true(workers[w].well);
        assert_memory_equal(workers[w].y, workers[THREADS].y, sizeof workers[w].y);
        assert_memory_equal(workers[w].whole, workers[THREADS].whole, sizeof workers[w].whole);
    }
    seqlstm_predictor_close(predictor);
}

static void threads_share_a_predictor(void **state)
{
    (void)state;
    struct seqlstm_session *session = train();
    share(session, 0);
    share(session, SEQLSTM_PREDICTOR_SHARED_LOCK);
    seqlstm_close(session);
}

/* After a thread that made its last call, a step of a few microseconds ends 10 us late, once. */
static void calls_end_in_turn(void **state)
{
    (void)state;
    static struct worker other;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_session *session = train();
    struct seqlstm_context *context = NULL;
    struct seqlstm_stream *stream = NULL;
    const float x[2] = {0.5f, 1};
    float y;
    options.flags = SEQLSTM_PREDICTOR_SHARED_LOCK;
    ok(seqlstm_predictor_open(session, &options, &other.predictor, &err), &err);
    ok(seqlstm_context_open(other.predictor, &context, &err), &err);
    ok(seqlstm_stream_open(other.predictor, &stream, &err), &err);
    for (int k = 0; k < 20; k++) {
        assert_int_equal(pthread_create(&other.thread, NULL, work, &other), 0);
        assert_int_equal(pthread_join(other.thread, NULL), 0);
        const int64_t before_ns = sl_clock_ns();
        ok(seqlstm_stream_step(context, stream, x, 1, &y, &err), &err);
        assert_true(sl_clock_ns() - before_ns >= 10000);
    }
    seqlstm_stream_close(stream);
    seqlstm_context_close(context);
    seqlstm_predictor_close(other.predictor);
    seqlstm_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_predictor),
        cmocka_unit_test(calls_end_in_turn),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
