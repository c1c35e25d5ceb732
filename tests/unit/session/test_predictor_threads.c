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

#include "ok.h"
#include "scratch.h"

enum { THREADS = 3, STEPS = 40 };

static struct seqlstm_session *train(void)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    char out[256];
    FILE *file = fopen(scratch_path("m.yaml"), "w");
    assert_non_null(file);
    fputs("seqlstm: 1\nseed: 1\ndata:\n  type: generator\n  name: adding_problem\n  length: [5, 9]\n"
          "  train: {size: 32}\n  batch_size: 8\nmodel:\n  - {type: lstm, units: 20}\n"
          "  - {type: dense, units: from_target}\ntrain: {epochs: 1, loss: mse}\nbackends: [reference]\n"
          "dispatch: {policy: order}\n",
          file);
    fclose(file);
    snprintf(out, sizeof out, "%s", scratch_path("run"));
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

static void threads_share_a_predictor(void **state)
{
    (void)state;
    static struct worker workers[THREADS + 1];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor *predictor = NULL;
    struct seqlstm_session *session = train();
    ok(seqlstm_predictor_open(session, NULL, &predictor, &err), &err);
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
    seqlstm_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_predictor),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
