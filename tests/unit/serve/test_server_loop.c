/* SPDX-License-Identifier: Apache-2.0 */
/* What a server does besides choosing whom it answers: the time and the token of each job, statuses of failures, types
 * of its pages, what its workers get, and its loop with what runs beside it. The clock is the test's. */
#include <sched.h>
#include <time.h>

#include "oom.h"
#include "serve/body/completion_read.h"
#include "serve/body/infer_read.h"
#include "serve/follow.h"
#include "server_fixture.h"

enum { BEGAN_S = 50000, LONG_S = 7 };

#define SECOND_NS ((int64_t)1000000000)

static _Atomic int64_t now_ns = BEGAN_S * SECOND_NS;

int64_t __wrap_sl_clock_ns(void);
seqlstm_status __real_sl_infer_read(struct sl_job *job, const char *body, uint64_t bytes, int64_t json_bytes,
                                    struct seqlstm_error *err);
seqlstm_status __wrap_sl_infer_read(struct sl_job *job, const char *body, uint64_t bytes, int64_t json_bytes,
                                    struct seqlstm_error *err);
seqlstm_status __wrap_sl_completion_read(struct sl_job *job, const char *body, uint64_t bytes, sl_find_model_fn *find,
                                         void *context, struct seqlstm_error *err);
seqlstm_status __wrap_sl_stream_table_claim(struct sl_stream_table *table, struct sl_job *job, bool *out_waits,
                                            struct seqlstm_error *err);
void __wrap_sl_stream_table_expire(struct sl_stream_table *table, int64_t at_ns);
void __wrap_sl_job_queue_announce(struct sl_job_queue *queue);
void __wrap_sl_pinning_begin(struct sl_pinning *pinning, int32_t count);
void __wrap_sl_processor_init(struct sl_processor *processor, const struct sl_pinning *pinning, int32_t k);
seqlstm_status __wrap_sl_follower_start(struct sl_follower *follower, struct sl_models *of, struct sl_serving *with,
                                        struct sl_worker *workers, struct seqlstm_error *err);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

int64_t __wrap_sl_clock_ns(void)
{
    return now_ns;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static seqlstm_status read_status, claim_status;
static bool stream_waits;
static int announced;

seqlstm_status __wrap_sl_infer_read(struct sl_job *job, const char *body, uint64_t bytes, int64_t json_bytes,
                                    struct seqlstm_error *err)
{
    if (read_status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, read_status, "reading failed with %d", read_status);
    return __real_sl_infer_read(job, body, bytes, json_bytes, err);
}

/* Any text is a request to the model `rows`. */
seqlstm_status __wrap_sl_completion_read(struct sl_job *job, const char *body, uint64_t bytes, sl_find_model_fn *find,
                                         void *context, struct seqlstm_error *err)
{
    (void)body, (void)bytes;
    if (read_status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, read_status, "reading failed with %d", read_status);
    job->model = find(context, "rows");
    assert_non_null(job->model);
    return SEQLSTM_OK;
}

static struct sl_job *waiting; /* for its stream */

seqlstm_status __wrap_sl_stream_table_claim(struct sl_stream_table *table, struct sl_job *job, bool *out_waits,
                                            struct seqlstm_error *err)
{
    (void)table;
    if (claim_status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, claim_status, "no stream: %d", claim_status);
    *out_waits = stream_waits;
    waiting = stream_waits ? job : NULL;
    return SEQLSTM_OK;
}

void __wrap_sl_job_queue_announce(struct sl_job_queue *queue)
{
    assert_ptr_equal(queue, &serving->queue);
    announced++;
}

#define COMPLETE      POST, .path = "/v1/completions", .body = "{}"
#define STREAM        "\"parameters\":{\"sequence_id\":7},"
#define OF_STREAM_ROW "{" STREAM "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}"

/* The time at which it was read, from which it waits; and who asks for it. */
static void a_job_has_its_time_and_its_token(void **state)
{
    (void)state;
    static const char *const tokens[] = {"first", "second", "third", NULL};
    static const char *const sent[] = {"Bearer first", "Bearer second", "Bearer third"};
    struct sl_server *server = open_server("127.0.0.1", tokens, 4);
    for (int k = 0; k < 6; k++) {
        now_ns += SECOND_NS + k;
        expect(k % 2 ? (struct seqlstm_http_request){COMPLETE, .authorization = sent[k / 2]}
                     : (struct seqlstm_http_request){INFER("values"), .body = ROW, .authorization = sent[k / 2]},
               0, NULL);
        assert_true(queued_ns == now_ns);
        assert_int_equal(token, k / 2);
    }
    sl_server_close(server);
}

/* What cannot be read, and streams that are refused; the message is the reader's. */
static void failures_have_their_status(void **state)
{
    (void)state;
    static const struct {
        seqlstm_status failure;
        int32_t inferring, completing, claiming;
    } cases[] = {{SEQLSTM_NO_MEMORY, 503, 503, 503},
                 {SEQLSTM_INVALID_ARGUMENT, 400, 400, 400},
                 {SEQLSTM_NOT_FOUND, 400, 404, 400},
                 {SEQLSTM_UNAVAILABLE, 400, 400, 429},
                 {SEQLSTM_UNSUPPORTED, 400, 400, 400}};
    struct sl_server *server = open_server("127.0.0.1", NULL, 4);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char why[60];
        snprintf(why, sizeof why, "reading failed with %d\"", cases[k].failure);
        read_status = cases[k].failure;
        expect((struct seqlstm_http_request){INFER("values"), .body = ROW}, cases[k].inferring, why);
        expect((struct seqlstm_http_request){COMPLETE}, cases[k].completing, why);
        read_status = SEQLSTM_OK;
        claim_status = cases[k].failure;
        snprintf(why, sizeof why, "no stream: %d\"", cases[k].failure);
        expect((struct seqlstm_http_request){INFER("values"), .body = OF_STREAM_ROW}, cases[k].claiming, why);
        claim_status = SEQLSTM_OK;
    }
    expect((struct seqlstm_http_request){INFER("values"), .body = OF_STREAM_ROW}, 0, NULL);
    expect((struct seqlstm_http_request){INFER("values"), .body = ROW, .size = "x"}, 400,
           "{\"error\": \"Inference-Header-Content-Length is no number\"}");
    assert_int_equal(serving->counters.answered[4] + serving->counters.answered[5], 17); /* with the one that waited */
    sl_server_close(server);
}

/* Workers that sleep are woken once for all jobs of a pass, and for none that is refused. A job whose stream is busy is
 * not in the queue. */
static void workers_are_told_once(void **state)
{
    (void)state;
    struct seqlstm_http_request asked[5];
    struct sl_server *server = open_server("127.0.0.1", NULL, 3);
    announced = 0;
    for (int k = 0; k < 3; k++) {
        asked[k] = k == 1 ? (struct seqlstm_http_request){COMPLETE}
                          : (struct seqlstm_http_request){INFER("values"), .body = k ? OF_STREAM_ROW : ROW};
        options.on_request(options.context, &asked[k]);
    }
    assert_int_equal(announced, 0);
    options.on_pass(options.context);
    assert_int_equal(announced, 1);
    options.on_pass(options.context);
    asked[3] = (struct seqlstm_http_request){INFER("values"), .body = ROW};
    ask(&asked[3]);
    assert_int_equal(asked[3].status, 429);
    assert_int_equal(announced, 1);
    stream_waits = true;
    asked[4] = (struct seqlstm_http_request){INFER("values"), .body = OF_STREAM_ROW};
    ask(&asked[4]);
    assert_true(asked[4].status == 0 && waiting && sl_job_queue_count(&serving->queue) == 3);
    stream_waits = false;
    sl_job_fail(serving, waiting, 500, "not computed", false);
    sl_server_close(server);
    for (int k = 0; k < 5; k++)
        assert_true(asked[k].answers == 1 && asked[k].status == (k == 3 ? 429 : 500));
}

/* Jobs that workers leave to the loop are answered in its next pass, in their order. */
static void finished_jobs_are_answered_by_the_loop(void **state)
{
    (void)state;
    struct seqlstm_http_request asked[2];
    struct sl_server *server = open_server("127.0.0.1", NULL, 3);
    for (int k = 0; k < 2; k++) {
        asked[k] = (struct seqlstm_http_request){INFER("values"), .body = ROW};
        ask(&asked[k]);
    }
    struct sl_job *first = serving->queue.first, *second = first->next;
    serving->queue = (struct sl_job_queue){.most = 3};
    sl_job_pile_add(&serving->finished, first);
    sl_job_pile_add(&serving->finished, second);
    options.on_pass(options.context);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(asked[k].status, 200);
        assert_non_null(strstr(asked[k].answer, "{\"model_name\":\"values\",\"model_version\":\"1\",\"outputs\":[{"));
    }
    sl_server_close(server);
}

/* ---- pages --------------------------------------------------------------------------------------------------- */

#define ENTRY(name) "{\"id\":\"" name "\",\"object\":\"model\",\"created\":0,\"owned_by\":\"seqlstm\"}"

static void each_path_has_its_page(void **state)
{
    (void)state;
    static const char json[] = "application/json", ready[] = "{\"ready\": true}\n";
    static const struct {
        const char *path;
        int32_t status;
        const char *type, *begin; /* of the answer */
    } pages[] = {{"/v1/models", 200, json,
                  "{\"object\":\"list\",\"data\":[" ENTRY("values") "," ENTRY("rows") "," ENTRY("wide-steps") "," ENTRY(
                      "wide-ends") "]}\n"},
                 {"/v1/models/rows", 200, json, ENTRY("rows")},
                 {"/v1/models/row", 404, json, "{\"error\": {\"message\": \"there is nothing at this path"},
                 {"/v1/models/rows2", 404, json, "{\"error\": {\"message\": \"there is nothing at this path"},
                 {"/v2", 200, json, "{\"name\":\"seqlstm\",\"version\":\""},
                 {"/v2/", 404, json, "{\"error\": \"there is nothing at this path"},
                 {"/v2/models/rows", 200, json, "{\"name\":\"rows\",\"versions\":[\"1\"]"},
                 {"/v2/models/rows/versions/1", 200, json, "{\"name\":\"rows\",\"versions\":[\"1\"]"},
                 {"/v2/models/rows/ready", 200, json, ready},
                 {"/v2/models/rows/versions/1/ready", 200, json, ready},
                 {"/v2/models/rows/ready2", 404, json, NULL},
                 {"/v2/models/rows/read", 404, json, NULL},
                 {"/v2/models/row/ready", 404, json, NULL},
                 {"/v2/models/rows2", 404, json, NULL},
                 {"/v2/models/rows2/ready", 404, json, NULL},
                 {"/v2/models/rows/versions/2", 404, json, NULL},
                 {"/v2/health/ready", 200, json, ready},
                 {"/metrics", 200, "text/plain; version=0.0.4", "# HELP seqlstm_replies_total "},
                 {"/", 200, "text/html; charset=utf-8", "<!doctype html>"}};
    struct sl_server *server = open_server("127.0.0.1", NULL, 3);
    for (size_t k = 0; k < sizeof pages / sizeof *pages; k++) {
        struct seqlstm_http_request request = {.method = "GET", .host = "localhost", .path = pages[k].path};
        const char *begin = pages[k].begin;
        ask(&request);
        if (request.status != pages[k].status || strcmp(request.answer_type, pages[k].type) != 0 ||
            (begin && strncasecmp(request.answer, begin, strlen(begin)) != 0))
            fail_msg("%s: %d %s: %s", request.path, (int)request.status, request.answer_type, request.answer);
        request = (struct seqlstm_http_request){.method = "POST", .host = "localhost", .path = pages[k].path};
        ask(&request);
        assert_int_equal(request.status, 404); /* none of them can be posted to */
    }
    sl_server_close(server);
}

/* ---- workers ------------------------------------------------------------------------------------------------- */

static int pinned, processors[8], processor_count;

void __wrap_sl_pinning_begin(struct sl_pinning *pinning, int32_t count)
{
    pinning->used = false;
    pinned = count;
}

void __wrap_sl_processor_init(struct sl_processor *processor, const struct sl_pinning *pinning, int32_t k)
{
    (void)processor, (void)pinning;
    processors[processor_count++] = k;
}

/* Each has all models before any of them starts; they keep processors where each computes with one thread. */
static void every_worker_has_every_model(void **state)
{
    (void)state;
    static const struct {
        int32_t threads;
        bool roams;
        int pinned;
    } cases[] = {{1, false, 3}, {1, true, 0}, {2, false, 0}, {2, true, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_server *server = NULL;
        struct sl_history history;
        sl_history_init(&history);
        struct sl_server_request request = make_server_request("127.0.0.1", NULL, 3);
        request.workers = 3;
        request.threads = cases[k].threads;
        request.roams = cases[k].roams;
        request.history = &history;
        first_worker = NULL;
        given[0] = '\0';
        pinned = processor_count = 0;
        ok(sl_server_open(&request, &server, &err), &err);
        assert_string_equal(given, "add 0 values\nadd 0 rows\nadd 0 wide-steps\nadd 0 wide-ends\n"
                                   "add 1 values\nadd 1 rows\nadd 1 wide-steps\nadd 1 wide-ends\n"
                                   "add 2 values\nadd 2 rows\nadd 2 wide-steps\nadd 2 wide-ends\n"
                                   "start 0\nstart 1\nstart 2\n");
        assert_int_equal(pinned, cases[k].pinned);
        assert_true(processor_count == 3 && processors[0] == 0 && processors[1] == 1 && processors[2] == 2);
        assert_ptr_equal(serving->history, &history);
        assert_int_equal(serving->workers, 3);
        assert_int_equal(options.header_bytes, 16 << 10);
        assert_int_equal(options.idle_seconds, 60);
        sl_server_close(server);
        sl_history_deinit(&history);
    }
}

/* ---- the loop ------------------------------------------------------------------------------------------------ */

static struct sl_server *running;
enum { EXPIRATIONS = 3 }; /* streams are looked at again and again */

static _Atomic int naps, expirations, expired_at_nap, stops;
static int runs, followed;
static seqlstm_status follow_status;
static struct sl_interrupt interrupt;

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    assert_true(wanted->tv_sec == 0 && wanted->tv_nsec == 20000000);
    naps++;
    sched_yield();
    return 0;
}

void __wrap_sl_stream_table_expire(struct sl_stream_table *table, int64_t at_ns)
{
    assert_ptr_equal(table, &serving->streams);
    assert_true(at_ns == now_ns);
    if (++expirations == EXPIRATIONS)
        expired_at_nap = naps;
}

seqlstm_status __wrap_sl_follower_start(struct sl_follower *follower, struct sl_models *of, struct sl_serving *with,
                                        struct sl_worker *workers, struct seqlstm_error *err)
{
    (void)follower, (void)of, (void)workers;
    assert_ptr_equal(with, serving);
    followed++;
    if (follow_status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, follow_status, "it does not follow");
    return SEQLSTM_OK;
}

/* Streams have been looked at once; then the page is asked for, and the user ends the server. */
static int32_t run_module(struct seqlstm_http *of, struct seqlstm_error *err)
{
    (void)err;
    assert_ptr_equal(of, &options);
    runs++;
    while (expired_at_nap == 0)
        sched_yield();
    now_ns += LONG_S * SECOND_NS;
    struct seqlstm_http_request request = {.method = "GET", .host = "localhost", .path = "/"};
    ask(&request);
    assert_non_null(strstr(request.answer, "<tr><td>seconds</td><td>7</td></tr>"));
    atomic_store(&interrupt.stop, 15);
    while (stops == 0)
        sched_yield();
    return SEQLSTM_IO;
}

static void stop_module(struct seqlstm_http *of)
{
    assert_ptr_equal(of, &options);
    stops++;
}

static seqlstm_status reopen(void *context, const struct sl_session *session, struct sl_session **out_session,
                             struct seqlstm_error *err)
{
    (void)context, (void)session, (void)out_session, (void)err;
    return SEQLSTM_INTERNAL;
}

/* Streams that are not used are looked for each half second; the server counts its time, and ends when it is asked to.
 * Weights are followed where they can be opened again; what fails there ends it before it has begun. */
static void the_loop_and_what_runs_beside_it(void **state)
{
    (void)state;
    http.run = run_module;
    http.stop = stop_module;
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_server_request request = make_server_request("127.0.0.1", NULL, 3);
        request.interrupt = &interrupt;
        request.reopen = k > 0 ? reopen : NULL;
        follow_status = k == 2 ? SEQLSTM_UNAVAILABLE : SEQLSTM_OK;
        interrupt = (struct sl_interrupt){.stop = 0};
        naps = expired_at_nap = expirations = stops = 0;
        runs = followed = 0;
        ok(sl_server_open(&request, &running, &err), &err);
        assert_int_equal(sl_server_run(running, &err), k == 2 ? SEQLSTM_UNAVAILABLE : SEQLSTM_IO);
        assert_int_equal(followed, k > 0);
        assert_int_equal(runs, k < 2);
        assert_int_equal(expired_at_nap, k < 2 ? EXPIRATIONS * 25 : 0);
        assert_int_equal(stops, k < 2);
        sl_server_close(running);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_has_its_time_and_its_token),
        cmocka_unit_test(failures_have_their_status),
        cmocka_unit_test(workers_are_told_once),
        cmocka_unit_test(finished_jobs_are_answered_by_the_loop),
        cmocka_unit_test(each_path_has_its_page),
        cmocka_unit_test(every_worker_has_every_model),
        cmocka_unit_test(the_loop_and_what_runs_beside_it),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
