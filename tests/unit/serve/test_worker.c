/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a worker: which jobs it takes for which model, whose client it asks for, what it counts, and versions
 * of models that are over. Its runners are the test's: each has room for ROOM sequences and needs two batches for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "ok.h"
#include "serve/compute/worker.h"
#include "story.h"

enum { ROOM = 3 };

#define NOW_NS ((int64_t)9000000000)
#define MS     ((int64_t)1000000)

struct seqlstm_http_request {
    const char *name;
    int64_t waited_ms, count;
    bool gone;
    int32_t status;
};

#define REQUEST(said, waited, sequences)                                                                               \
    {                                                                                                                  \
        .name = said, .waited_ms = waited, .count = sequences                                                          \
    }

static const char *get_path(const struct seqlstm_http_request *request)
{
    (void)request;
    return "/v2/models/any/infer";
}

static int32_t is_gone(const struct seqlstm_http_request *request)
{
    tell("ask for %s\n", request->name);
    return request->gone;
}

static int32_t reply(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err)
{
    (void)headers, (void)err;
    request->status = status;
    tell("%s: %d %.*s", request->name, status, (int)bytes, (const char *)body);
    return SEQLSTM_OK;
}

static const struct seqlstm_http_module http = {
    .struct_size = sizeof http, .get_path = get_path, .is_gone = is_gone, .reply = reply};

int64_t __wrap_sl_clock_ns(void);
seqlstm_status __wrap_sl_runner_init(struct sl_runner *runner, struct sl_serving *serving,
                                     const struct sl_served_model *model, struct seqlstm_error *err);
void __wrap_sl_runner_deinit(struct sl_runner *runner);
void __wrap_sl_runner_look(struct sl_runner *runner, const struct sl_job *job);
void __wrap_sl_runner_choose(struct sl_runner *runner);
bool __wrap_sl_runner_wants(const struct sl_runner *runner, const struct sl_job *job);
bool __wrap_sl_runner_is_busy(const struct sl_runner *runner);
void __wrap_sl_runner_add(struct sl_runner *runner, struct sl_job *job);
void __wrap_sl_runner_run(struct sl_runner *runner);

int64_t __wrap_sl_clock_ns(void)
{
    return NOW_NS;
}

seqlstm_status __wrap_sl_runner_init(struct sl_runner *runner, struct sl_serving *serving,
                                     const struct sl_served_model *model, struct seqlstm_error *err)
{
    *runner = (struct sl_runner){.serving = serving, .model = model};
    if (model->steps < 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "%s has no runner", model->name);
    return SEQLSTM_OK;
}

void __wrap_sl_runner_deinit(struct sl_runner *runner)
{
    tell("close %s\n", runner->model->name);
}

void __wrap_sl_runner_look(struct sl_runner *runner, const struct sl_job *job)
{
    assert_ptr_equal(runner->model, job->model);
    tell("%s sees %s\n", runner->model->name, job->request->name);
    runner->most = -1;
}

void __wrap_sl_runner_choose(struct sl_runner *runner)
{
    runner->most = ROOM;
}

bool __wrap_sl_runner_wants(const struct sl_runner *runner, const struct sl_job *job)
{
    assert_ptr_equal(runner->model, job->model);
    return runner->count + runner->promised < runner->most;
}

bool __wrap_sl_runner_is_busy(const struct sl_runner *runner)
{
    return runner->first != NULL;
}

void __wrap_sl_runner_add(struct sl_runner *runner, struct sl_job *job)
{
    struct sl_job **end = &runner->first;
    while (*end)
        end = &(*end)->next;
    *end = job;
    runner->count += job->count;
    assert_true(job->checked_ns == NOW_NS && job->next == NULL);
    tell("%s gets %s\n", runner->model->name, job->request->name);
}

void __wrap_sl_runner_run(struct sl_runner *runner)
{
    assert_int_equal(runner->serving->counters.busy, 1);
    assert_int_equal(runner->promised, 0);
    tell("%s computes\n", runner->model->name);
    if (++runner->tokens % 2)
        return;
    runner->count = 0;
    for (struct sl_job *job = runner->first, *next; job; job = next) {
        next = job->next;
        job->request->status = 200;
        sl_job_destroy(job);
    }
    runner->first = NULL;
}

/* ---- a worker ------------------------------------------------------------------------------------------------ */

struct scene {
    struct sl_serving serving;
    struct sl_worker worker;
    struct sl_served_uses uses[2];
    struct sl_served_model models[2]; /* A and B */
};

static void open_scene(struct scene *scene)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *scene = (struct scene){.serving = {.http = &http, .workers = 1}};
    sl_job_queue_init(&scene->serving.queue, 20);
    sl_counters_init(&scene->serving.counters);
    sl_worker_init(&scene->worker, &scene->serving);
    story[0] = '\0';
    for (int m = 0; m < 2; m++) {
        atomic_init(&scene->uses[m].count, 1);
        atomic_init(&scene->uses[m].over, false);
        scene->models[m] = (struct sl_served_model){.name = m ? "B" : "A", .uses = &scene->uses[m]};
        ok(sl_worker_add(&scene->worker, &scene->models[m], &err), &err);
        assert_int_equal(atomic_load(&scene->uses[m].count), 2);
    }
}

static void queue(struct scene *scene, int m, struct seqlstm_http_request *request)
{
    struct sl_job *job = sl_job_create(&scene->models[m], request);
    assert_non_null(job);
    sl_served_model_hold(job->model);
    job->count = request->count;
    job->queued_ns = NOW_NS - request->waited_ms * MS;
    assert_true(sl_job_queue_add(&scene->serving.queue, job));
}

/* The thread takes all that there is, and ends. */
static void run_and_close(struct scene *scene)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_job_queue_close(&scene->serving.queue);
    ok(sl_worker_start(&scene->worker, &err), &err);
    sl_worker_end(&scene->worker);
    sl_job_destroy_retired(&scene->serving.retired);
    assert_int_equal(scene->serving.counters.busy, 0);
    for (int m = 0; m < 2; m++) /* neither jobs nor the worker use it any more */
        assert_int_equal(atomic_load(&scene->uses[m].count), 1);
    sl_counters_deinit(&scene->serving.counters);
    sl_job_queue_deinit(&scene->serving.queue);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

/* Jobs of the same model are taken in their order, as far as there is room for their sequences; those of others pass by
 * them. What has no room is seen and wanted again when there is some. */
static void each_model_gets_what_it_has_room_for(void **state)
{
    (void)state;
    struct seqlstm_http_request a[] = {REQUEST("a0", 0, 1), REQUEST("a1", 0, 2), REQUEST("a2", 0, 1),
                                       REQUEST("a3", 0, 5)};
    struct seqlstm_http_request b[] = {REQUEST("b0", 0, 3), REQUEST("b1", 0, 1)};
    struct scene scene;
    open_scene(&scene);
    queue(&scene, 0, &a[0]);
    queue(&scene, 1, &b[0]);
    queue(&scene, 0, &a[1]);
    queue(&scene, 0, &a[2]);
    queue(&scene, 1, &b[1]);
    queue(&scene, 0, &a[3]);
    run_and_close(&scene);
    assert_string_equal(story,
                        "A sees a0\nB sees b0\nA sees a1\nA sees a2\nB sees b1\nA sees a3\n"
                        "A gets a0\nB gets b0\nA gets a1\nA computes\nB computes\n"
                        "A sees a2\nB sees b1\nA sees a3\nA computes\nB computes\n"
                        "A sees a2\nB sees b1\nA sees a3\nA gets a2\nB gets b1\nA gets a3\nA computes\nB computes\n"
                        "A computes\nB computes\nclose A\nclose B\n");
    for (int k = 0; k < 4; k++)
        assert_true(a[k].status == 200 && (k > 1 || b[k].status == 200));
}

/* Only clients that have waited for more than 50 ms are asked for; those that have left get no place. */
static void clients_that_have_left_are_not_computed(void **state)
{
    (void)state;
    struct seqlstm_http_request all[] = {REQUEST("short", 49, 1), REQUEST("limit", 50, 1), REQUEST("left", 51, 1),
                                         REQUEST("long", 3000, 1), REQUEST("gone", 90, 1)};
    struct scene scene;
    open_scene(&scene);
    for (int k = 0; k < 5; k++) {
        all[k].gone = k != 3;
        queue(&scene, k == 4 ? 1 : 0, &all[k]);
    }
    run_and_close(&scene);
    assert_string_equal(story, "A sees short\nA sees limit\nA sees left\nA sees long\nB sees gone\n"
                               "A gets short\nA gets limit\n"
                               "ask for left\nleft: 499 {\"error\": \"the client has left\"}\n"
                               "ask for gone\ngone: 499 {\"error\": \"the client has left\"}\n"
                               "A computes\nA sees long\nask for long\nA gets long\nA computes\nclose A\nclose B\n");
    assert_int_equal(scene.serving.counters.gone, 2);
    assert_int_equal(scene.serving.counters.answered[4], 2);
    assert_true(scene.serving.counters.queued_s.sum > 3.0989 && scene.serving.counters.queued_s.sum < 3.0991);
}

/* A version that is over is let go after the next batches, with what it holds; the others stay to the end. */
static void versions_that_are_over_are_let_go(void **state)
{
    (void)state;
    struct seqlstm_http_request b[] = {REQUEST("b0", 0, 3), REQUEST("b1", 0, 3)};
    struct scene scene;
    open_scene(&scene);
    queue(&scene, 1, &b[0]);
    queue(&scene, 1, &b[1]);
    atomic_store(&scene.uses[0].over, true);
    run_and_close(&scene);
    assert_string_equal(story, "B sees b0\nB sees b1\nB gets b0\nB computes\nclose A\nB sees b1\nB computes\n"
                               "B sees b1\nB gets b1\nB computes\nB computes\nclose B\n");
}

/* One that cannot be opened is not kept, and its model is not used by it. */
static void a_runner_that_cannot_be_opened(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct scene scene;
    open_scene(&scene);
    scene.models[0].steps = -1;
    assert_int_equal(sl_worker_add(&scene.worker, &scene.models[0], &err), SEQLSTM_UNSUPPORTED);
    assert_string_equal(err.message, "A has no runner");
    assert_int_equal(atomic_load(&scene.uses[0].count), 2);
    run_and_close(&scene);
    assert_string_equal(story, "close A\nclose A\nclose B\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_model_gets_what_it_has_room_for),
        cmocka_unit_test(clients_that_have_left_are_not_computed),
        cmocka_unit_test(versions_that_are_over_are_let_go),
        cmocka_unit_test(a_runner_that_cannot_be_opened),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
