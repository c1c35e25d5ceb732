/* SPDX-License-Identifier: Apache-2.0 */
/* What a call costs with a prepared predictor, for an LSTM with a dense layer behind it on the adding problem.
 *
 *   bench_predictor step  UNITS CALLS           one stream, one step a call: median, 99.9th percentile, page faults
 *   bench_predictor many  UNITS STREAMS WIDTH   all streams, one step each, in batches of WIDTH: time of a stream-step
 *   bench_predictor whole UNITS STEPS SEQUENCES THREADS [MS]    whole sequences, for so many ms
 *
 * Run in the root of the repository; SEQLSTM_BACKEND_PATH names the plugins. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <seqlstm/seqlstm.h>

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static long count_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static void need(seqlstm_status status, const struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK)
        return;
    fprintf(stderr, "bench_predictor: %s\n", err->message);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A model with so many units after one update, which costs as much as a trained one. */
static struct seqlstm_session *train(int units, struct seqlstm_error *err)
{
    char text[64], folder[] = "/tmp/seqlstm-bench-XXXXXX", out[64];
    const char *overrides[] = {text, "train.updates=1", "data.train.size=32", "data.valid.size=32",
                               "data.test.size=32"};
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    snprintf(text, sizeof text, "model[0].units=%d", units);
    if (mkdtemp(folder) == NULL)
        exit(1);
    snprintf(out, sizeof out, "%s/run", folder);
    options.overrides = overrides;
    options.override_count = sizeof overrides / sizeof *overrides;
    options.out_dir = out;
    options.threads = 1;
    need(seqlstm_open_model("configs/adding-problem.yaml", &options, &session, err), err);
    need(seqlstm_train(session, NULL, NULL, err), err);
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0)
        exit(1);
    return session;
}

static void show(const char *what, int64_t *times, int64_t count, long faults)
{
    qsort(times, (size_t)count, sizeof *times, by_value);
    printf("%s: min %.3f p50 %.3f p99 %.3f p99.9 %.3f us, %ld page faults in %lld calls\n", what,
           (double)times[0] * 1e-3, (double)times[count / 2] * 1e-3, (double)times[count * 99 / 100] * 1e-3,
           (double)times[count * 999 / 1000] * 1e-3, faults, (long long)count);
}

static void step(struct seqlstm_predictor *p, struct seqlstm_context *k, int64_t calls, struct seqlstm_error *err)
{
    struct seqlstm_stream *s = NULL;
    const float x[2] = {0.25f, 1};
    float y[1];
    int64_t *times = malloc((size_t)calls * sizeof *times);
    if (times == NULL)
        exit(1);
    memset(times, 1, (size_t)calls * sizeof *times); /* its pages */
    need(seqlstm_stream_open(p, &s, err), err);
    need(seqlstm_stream_step(k, s, x, 1, y, err), err);
    const long faults = count_faults();
    for (int64_t c = 0; c < calls; c++) {
        const int64_t begin = now_ns();
        need(seqlstm_stream_step(k, s, x, 1, y, err), err);
        times[c] = now_ns() - begin;
    }
    show("step", times, calls, count_faults() - faults);
    seqlstm_stream_close(s);
    free(times);
}

static void many(struct seqlstm_predictor *p, struct seqlstm_context *k, int64_t count, struct seqlstm_error *err)
{
    enum { ROUNDS = 101 };
    struct seqlstm_stream **streams = malloc((size_t)count * sizeof *streams);
    float *x = calloc((size_t)count, 2 * sizeof *x), *y = calloc((size_t)count, sizeof *y);
    int64_t times[ROUNDS];
    if (streams == NULL || x == NULL || y == NULL)
        exit(1);
    for (int64_t s = 0; s < count; s++) {
        x[2 * s] = (float)(s % 100) / 100;
        need(seqlstm_stream_open(p, &streams[s], err), err);
    }
    need(seqlstm_streams_step(k, streams, count, x, y, err), err);
    const long faults = count_faults();
    for (int r = 0; r < ROUNDS; r++) {
        const int64_t begin = now_ns();
        need(seqlstm_streams_step(k, streams, count, x, y, err), err);
        times[r] = (now_ns() - begin) / count;
    }
    show("stream-step", times, ROUNDS, count_faults() - faults);
    for (int64_t s = 0; s < count; s++)
        seqlstm_stream_close(streams[s]);
    free(streams);
    free(x);
    free(y);
}

static void whole(struct seqlstm_context *k, int64_t steps, int64_t sequences, int64_t ms, struct seqlstm_error *err)
{
    enum { MOST = 100000 };
    float *x = calloc((size_t)(steps * sequences), 2 * sizeof *x), *y = calloc((size_t)sequences, sizeof *y);
    int64_t *lengths = calloc((size_t)sequences, sizeof *lengths), *times = calloc(MOST, sizeof *times), count = 0;
    if (x == NULL || y == NULL || lengths == NULL || times == NULL)
        exit(1);
    for (int64_t s = 0; s < sequences; s++)
        lengths[s] = steps;
    for (int64_t r = 0; r < steps * sequences; r++)
        x[2 * r] = (float)(r % 100) / 100;
    for (int r = 0; r < 3; r++)
        need(seqlstm_predict(k, x, lengths, sequences, y, err), err);
    const long faults = count_faults();
    const int64_t start = now_ns();
    while (count < 5 || (count < MOST && now_ns() - start < ms * 1000000)) {
        const int64_t begin = now_ns();
        need(seqlstm_predict(k, x, lengths, sequences, y, err), err);
        times[count++] = now_ns() - begin;
    }
    show("whole", times, count, count_faults() - faults);
    free(x);
    free(y);
    free(lengths);
    free(times);
}

int main(int argc, char **argv)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_predictor *p = NULL;
    struct seqlstm_context *k = NULL;
    int64_t number[5] = {0};
    if (argc < 4) {
        fprintf(stderr, "usage: bench_predictor step UNITS CALLS | many UNITS STREAMS WIDTH | whole UNITS STEPS "
                        "SEQUENCES THREADS [MS]\n");
        return 2;
    }
    for (int a = 2; a < argc && a < 7; a++)
        number[a - 2] = atoll(argv[a]);
    const bool wholes = strcmp(argv[1], "whole") == 0, manys = strcmp(argv[1], "many") == 0;
    options.streams = manys ? number[2] : 1;
    options.steps = wholes ? number[1] : 0;
    options.sequences = wholes ? number[2] : 0;
    options.rows = wholes ? number[1] * number[2] : 0;
    options.threads = wholes ? (int32_t)number[3] : 1;
    struct seqlstm_session *session = train((int)number[0], &err);
    need(seqlstm_predictor_open(session, &options, &p, &err), &err);
    need(seqlstm_context_open(p, &k, &err), &err);
    if (wholes)
        whole(k, number[1], number[2], number[4] ? number[4] : 300, &err);
    else if (manys)
        many(p, k, number[1], &err);
    else
        step(p, k, number[1], &err);
    seqlstm_context_close(k);
    seqlstm_predictor_close(p);
    seqlstm_close(session);
    return 0;
}
