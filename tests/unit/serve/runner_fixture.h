/* SPDX-License-Identifier: Apache-2.0 */
/* A runner whose model is the test's: an output is its input plus 100, or of a sequence the sum of its steps. The clock
 * goes on by a millisecond for each step of a batch. Answers are checked and counted. */
#ifndef SL_TESTS_UNIT_SERVE_RUNNER_FIXTURE_H
#define SL_TESTS_UNIT_SERVE_RUNNER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ok.h"
#include "oom.h"
#include "predict/context.h"
#include "predict/stream.h"
#include "predict/whole.h"
#include "serve/compute/batch.h"
#include "serve/compute/runner.h"
#include "serve/job/completion.h"
#include "story.h"

enum { FEATURES = 2, CHUNK = 3, SEQUENCES = 4, ROWS = 20, STREAMS_MOST = 64 };

#define STEP_NS ((int64_t)1000000)

struct seqlstm_http_request {
    int64_t lengths[6];
    int count;
    bool gone;
    bool broken;    /* its stream */
    int looks;      /* whether the client is still there */
    int32_t status; /* 0: it waits */
    char message[60];
};

/* ---- what the runner stands on ------------------------------------------------------------------------------- */

static int64_t now_ns;
static seqlstm_status fails; /* the next batch */
static struct {
    double sum[FEATURES];
    bool used;
} states[STREAMS_MOST];
static int state_count, resets;
static const struct sl_served_model *served;
static int64_t chunks_most; /* of a batch */
static struct {
    int64_t count, steps, rows;
    int times;
} asked; /* of the costs, last */

static int32_t is_gone(const struct seqlstm_http_request *request)
{
    ((struct seqlstm_http_request *)(uintptr_t)request)->looks++;
    return request->gone;
}

static const struct seqlstm_http_module http = {.struct_size = sizeof http, .is_gone = is_gone};

int64_t __wrap_sl_clock_ns(void);
seqlstm_status __wrap_sl_context_open(const struct sl_predictor *predictor, struct sl_context **out,
                                      struct seqlstm_error *err);
void __wrap_sl_context_close(struct sl_context *context);
const struct sl_graph *__wrap_sl_predictor_find_graph(const struct sl_predictor *predictor, enum sl_predictor_use use);
seqlstm_status __wrap_sl_context_predict(struct sl_context *context, const void *x, const int64_t *lengths,
                                         int64_t count, float *y, struct seqlstm_error *err);
seqlstm_status __wrap_sl_streams_advance(struct sl_context *context, const struct sl_chunk *chunks, int64_t count,
                                         struct seqlstm_error *err);
seqlstm_status __wrap_sl_stream_open(const struct sl_predictor *predictor, struct sl_stream **out,
                                     struct seqlstm_error *err);
void __wrap_sl_stream_close(struct sl_stream *stream);
void __wrap_sl_stream_reset(struct sl_stream *stream);
int64_t __wrap_sl_batch_costs_choose(const struct sl_batch_costs *costs, int64_t count, int64_t steps, int64_t rows);
void __wrap_sl_jobs_answer(struct sl_serving *serving, struct sl_job *jobs, double sequence_ns);
void __wrap_sl_job_answer(struct sl_serving *serving, struct sl_job *job);
void __wrap_sl_job_fail(struct sl_serving *serving, struct sl_job *job, int status, const char *message, bool broken);
seqlstm_status __wrap_sl_choice_take(const struct sl_job *job, struct sl_choice *choice, const float *probabilities,
                                     struct sl_sample_candidate *candidates, struct seqlstm_error *err);

int64_t __wrap_sl_clock_ns(void)
{
    return now_ns;
}

seqlstm_status __wrap_sl_context_open(const struct sl_predictor *predictor, struct sl_context **out,
                                      struct seqlstm_error *err)
{
    (void)predictor, (void)err;
    *out = (void *)&http;
    return SEQLSTM_OK;
}

void __wrap_sl_context_close(struct sl_context *context)
{
    assert_ptr_equal(context, &http);
}

const struct sl_graph *__wrap_sl_predictor_find_graph(const struct sl_predictor *predictor, enum sl_predictor_use use)
{
    (void)predictor, (void)use;
    return NULL;
}

static seqlstm_status end_batch(int64_t longest, struct seqlstm_error *err)
{
    const seqlstm_status status = fails;
    now_ns += longest * STEP_NS;
    fails = SEQLSTM_OK;
    if (status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, status, "the batch failed");
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_context_predict(struct sl_context *context, const void *x, const int64_t *lengths,
                                         int64_t count, float *y, struct seqlstm_error *err)
{
    const float *from = x;
    int64_t rows = 0, longest = 1;
    (void)context;
    assert_int_equal(lengths != NULL, served->reads_steps);
    tell("whole");
    for (int64_t k = 0; k < count; k++) {
        const int64_t steps = lengths ? lengths[k] : 1;
        tell(" %lld", (long long)steps);
        rows += steps;
        longest = steps > longest ? steps : longest;
        for (int f = 0; f < FEATURES && !served->gives_steps; f++)
            y[f] = 0;
        for (int64_t t = 0; t < steps; t++, from += FEATURES)
            for (int f = 0; f < FEATURES; f++)
                if (served->gives_steps)
                    y[t * FEATURES + f] = from[f] + 100;
                else
                    y[f] += from[f];
        y += (served->gives_steps ? steps : 1) * FEATURES;
    }
    tell("\n");
    return end_batch(longest, err);
}

seqlstm_status __wrap_sl_streams_advance(struct sl_context *context, const struct sl_chunk *chunks, int64_t count,
                                         struct seqlstm_error *err)
{
    int64_t longest = 1;
    (void)context;
    tell("chunks");
    assert_in_range(count, 1, chunks_most);
    for (int64_t k = 0; k < count; k++) {
        const int s = (int)((const char *)chunks[k].stream - (const char *)states) - 1;
        const float *from = chunks[k].x;
        assert_in_range(chunks[k].steps, 1, CHUNK);
        longest = chunks[k].steps > longest ? chunks[k].steps : longest;
        for (int64_t before = 0; before < k; before++)
            assert_ptr_not_equal(chunks[before].stream, chunks[k].stream);
        tell(" %lld%s", (long long)chunks[k].steps, chunks[k].last ? " last" : "");
        for (int64_t t = 0; t < chunks[k].steps; t++)
            for (int f = 0; f < FEATURES; f++) {
                states[s].sum[f] += (double)from[t * FEATURES + f];
                if (chunks[k].y && !chunks[k].last)
                    chunks[k].y[(served->gives_steps ? t : 0) * FEATURES + f] =
                        served->gives_steps ? from[t * FEATURES + f] + 100 : (float)states[s].sum[f];
            }
    }
    tell("\n");
    return end_batch(longest, err);
}

seqlstm_status __wrap_sl_stream_open(const struct sl_predictor *predictor, struct sl_stream **out,
                                     struct seqlstm_error *err)
{
    (void)predictor, (void)err;
    assert_true(state_count < STREAMS_MOST);
    memset(&states[state_count], 0, sizeof *states);
    *out = (void *)((char *)states + ++state_count); /* a name */
    return SEQLSTM_OK;
}

void __wrap_sl_stream_close(struct sl_stream *stream)
{
    (void)stream;
    state_count--;
}

void __wrap_sl_stream_reset(struct sl_stream *stream)
{
    memset(&states[(const char *)stream - (const char *)states - 1], 0, sizeof *states);
    resets++;
}

int64_t __wrap_sl_batch_costs_choose(const struct sl_batch_costs *costs, int64_t count, int64_t steps, int64_t rows)
{
    (void)costs;
    asked.count = count;
    asked.steps = steps;
    asked.rows = rows;
    asked.times++;
    return count;
}

/* The input of row `row` of a job of this many sequences. */
static float make_x(int count, int64_t row, int f)
{
    return (float)(10 * count + 3 * row + f);
}

static void (*on_answer)(const struct sl_job *job); /* NULL: nothing more is looked at */

static void check_answer(const struct sl_job *job)
{
    int64_t row = 0, out = 0;
    for (int64_t k = 0; k < job->count && job->x; k++) {
        const int64_t steps = job->lengths ? job->lengths[k] : 1;
        float sum[FEATURES] = {0};
        for (int64_t t = 0; t < steps; t++, row++)
            for (int f = 0; f < FEATURES; f++) {
                sum[f] += make_x((int)job->count, row, f);
                if (served->gives_steps)
                    assert_true(job->y[row * FEATURES + f] == make_x((int)job->count, row, f) + 100);
            }
        for (int f = 0; f < FEATURES && !served->gives_steps; f++)
            assert_true(job->y[out * FEATURES + f] == sum[f]);
        out++;
    }
    job->request->status = 200;
    if (on_answer)
        on_answer(job);
}

void __wrap_sl_jobs_answer(struct sl_serving *serving, struct sl_job *jobs, double sequence_ns)
{
    (void)serving, (void)sequence_ns;
    for (struct sl_job *next; jobs; jobs = next) {
        next = jobs->next;
        tell("answer of %d\n", jobs->request->count);
        check_answer(jobs);
        sl_job_destroy(jobs);
    }
}

void __wrap_sl_job_answer(struct sl_serving *serving, struct sl_job *job)
{
    (void)serving;
    job->request->status = 200;
    sl_job_destroy(job);
}

void __wrap_sl_job_fail(struct sl_serving *serving, struct sl_job *job, int status, const char *message, bool broken)
{
    (void)serving;
    job->request->broken = broken;
    job->request->status = status;
    snprintf(job->request->message, sizeof job->request->message, "%s", message);
    sl_job_destroy(job);
}

/* A choice draws as many tokens as its key says, and fails then if it is to. */
static seqlstm_status take_fails[8];

seqlstm_status __wrap_sl_choice_take(const struct sl_job *job, struct sl_choice *choice, const float *probabilities,
                                     struct sl_sample_candidate *candidates, struct seqlstm_error *err)
{
    (void)probabilities, (void)candidates;
    const int64_t k = choice - job->completion->choices;
    choice->token = 7;
    if (++choice->drawn < (int64_t)choice->key)
        return SEQLSTM_OK;
    if (take_fails[job->request->count] != SEQLSTM_OK)
        SEQLSTM_FAIL(err, take_fails[job->request->count], "job %d, choice %d", job->request->count, (int)k);
    choice->finish = "stop";
    return SEQLSTM_OK;
}

/* ---- a runner ------------------------------------------------------------------------------------------------ */

struct scene {
    struct sl_serving serving;
    struct sl_served_model model;
    struct sl_runner runner;
    struct sl_history history;
};

static void begin(struct scene *scene, struct sl_served_model model, enum sl_serve_batching batching, bool reproducible)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *scene = (struct scene){
        .serving = {.http = &http, .workers = 1, .batching = batching, .reproducible = reproducible}, .model = model};
    scene->model.name = "m";
    scene->model.input_features = scene->model.output_features = model.decodes ? 1 : FEATURES;
    scene->model.sequences = SEQUENCES;
    scene->model.rows = ROWS;
    scene->model.steps = 12;
    scene->model.chunk_steps = scene->model.streams ? CHUNK : 0;
    served = &scene->model;
    chunks_most = batching == SL_BATCHING_PADDED ? 2 * SEQUENCES : SEQUENCES;
    sl_counters_init(&scene->serving.counters);
    sl_history_init(&scene->history);
    scene->serving.history = &scene->history;
    state_count = resets = 0;
    now_ns = 50 * 1000 * STEP_NS;
    ok(sl_runner_init(&scene->runner, &scene->serving, &scene->model, &err), &err);
    story[0] = '\0';
}

static void end(struct scene *scene)
{
    assert_false(sl_runner_is_busy(&scene->runner));
    assert_int_equal(state_count, scene->runner.spare_count);
    sl_runner_deinit(&scene->runner);
    assert_int_equal(state_count, 0);
    sl_history_deinit(&scene->history);
    sl_counters_deinit(&scene->serving.counters);
}

/* The same after what is left has been computed. */
static inline void end_with(struct scene *scene)
{
    while (sl_runner_is_busy(&scene->runner))
        sl_runner_run(&scene->runner);
    end(scene);
}

static struct sl_job *make_job(struct scene *scene, struct seqlstm_http_request *request)
{
    struct sl_job *job = sl_job_create(&scene->model, request);
    assert_non_null(job);
    job->count = request->count;
    job->checked_ns = now_ns;
    for (int k = 0; k < request->count; k++)
        job->rows += scene->model.reads_steps ? request->lengths[k] : 1;
    float *x = malloc((size_t)(job->rows * FEATURES) * sizeof *x + 1);
    assert_non_null(x);
    for (int64_t row = 0; row < job->rows; row++)
        for (int f = 0; f < FEATURES; f++)
            x[row * FEATURES + f] = make_x(request->count, row, f);
    job->x = x;
    if (scene->model.reads_steps) {
        job->lengths = malloc((size_t)request->count * sizeof *job->lengths + 1);
        assert_non_null(job->lengths);
        memcpy(job->lengths, request->lengths, (size_t)request->count * sizeof *job->lengths);
    }
    return job;
}

static inline void expect_story(const char *expected)
{
    assert_string_equal(story, expected);
    story[0] = '\0';
}

/* The batches so far, as sequences x steps = rows. */
static inline void expect_history(const struct scene *scene, const char *expected)
{
    char got[400] = "";
    for (int64_t k = 0; k < scene->history.count; k++) {
        const struct sl_history_event *e = &scene->history.events[k];
        const size_t at = strlen(got);
        assert_int_equal(e->number, -1);
        snprintf(got + at, sizeof got - at, "%lldx%lld=%lld ", (long long)e->sequences, (long long)e->steps,
                 (long long)e->rows);
    }
    assert_string_equal(got, expected);
}

#define JOB(...)                                                                                                       \
    {                                                                                                                  \
        .lengths = {__VA_ARGS__}, .count = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))                   \
    }

static const struct sl_served_model kinds[] = {{.reads_steps = true, .gives_steps = true, .streams = true},
                                               {.reads_steps = true, .streams = true},
                                               {.reads_steps = true, .gives_steps = true},
                                               {.reads_steps = true},
                                               {.gives_steps = false}};

#endif
