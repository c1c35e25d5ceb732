/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a server takes, which it refuses and how, by address, tokens, types and sizes; how many may wait. The
 * module, the models and the workers are the test's: jobs stay in the queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "ok.h"
#include "serve/compute/replies.h"
#include "serve/compute/worker.h"
#include "serve/server.h"

enum { MODELS = 4 };

struct seqlstm_http_request {
    const char *method, *path, *host, *type, *size, *authorization, *body;
    int answers;
    int32_t status; /* 0: it waits */
    char answer[400];
};

static struct seqlstm_http_options options;
static struct sl_serving *serving;
static int token; /* of the job that came last */

static int32_t open_module(const struct seqlstm_http_options *wanted, struct seqlstm_http **out,
                           struct seqlstm_error *err)
{
    (void)err;
    options = *wanted;
    *out = (void *)&options;
    return SEQLSTM_OK;
}

static void close_module(struct seqlstm_http *http)
{
    assert_ptr_equal(http, &options);
}

static const char *get_method(const struct seqlstm_http_request *request)
{
    return request->method;
}

static const char *get_path(const struct seqlstm_http_request *request)
{
    return request->path;
}

static const char *find_header(const struct seqlstm_http_request *request, const char *name)
{
    const char *const names[] = {"Host", "Content-Type", "Inference-Header-Content-Length", "Authorization"};
    const char *const values[] = {request->host, request->type, request->size, request->authorization};
    for (int k = 0; k < 4; k++)
        if (strcasecmp(names[k], name) == 0)
            return values[k];
    return NULL;
}

static const void *get_body(const struct seqlstm_http_request *request, uint64_t *out_bytes)
{
    *out_bytes = request->body ? strlen(request->body) : 0;
    return request->body;
}

static int32_t reply(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err)
{
    (void)headers, (void)err;
    request->status = status;
    request->answers++;
    snprintf(request->answer, sizeof request->answer, "%.*s", (int)bytes, (const char *)body);
    return SEQLSTM_OK;
}

static const struct seqlstm_http_module http = {.struct_size = sizeof http,
                                                .open = open_module,
                                                .close = close_module,
                                                .get_method = get_method,
                                                .get_path = get_path,
                                                .find_header = find_header,
                                                .get_body = get_body,
                                                .reply = reply};

/* ---- what the server stands on ------------------------------------------------------------------------------- */

seqlstm_status __wrap_sl_http_find(const struct seqlstm_http_module **out_module, struct seqlstm_error *err);
uint64_t __wrap_sl_session_sign_weights(const struct sl_session *session);
seqlstm_status __wrap_sl_served_model_open(struct sl_session *session, const char *name,
                                           const struct sl_predictor_limits *limits, struct sl_served_model *out,
                                           struct seqlstm_error *err);
void __wrap_sl_served_model_close(struct sl_served_model *model);
seqlstm_status __wrap_sl_worker_add(struct sl_worker *worker, const struct sl_served_model *model,
                                    struct seqlstm_error *err);
seqlstm_status __wrap_sl_worker_start(struct sl_worker *worker, struct seqlstm_error *err);
void __wrap_sl_worker_end(struct sl_worker *worker);

seqlstm_status __wrap_sl_http_find(const struct seqlstm_http_module **out_module, struct seqlstm_error *err)
{
    (void)err;
    *out_module = &http;
    return SEQLSTM_OK;
}

uint64_t __wrap_sl_session_sign_weights(const struct sl_session *session)
{
    (void)session;
    return 1;
}

/* Of the last two a row of output takes 256 MiB. */
static const struct sl_served_model models[MODELS] = {
    {.name = "values", .reads_steps = true, .gives_steps = true, .input_features = 2, .output_features = 3, .steps = 4},
    {.name = "rows", .input_features = 1, .output_features = 1, .steps = 4},
    {.name = "wide-steps",
     .reads_steps = true,
     .gives_steps = true,
     .input_features = 1,
     .output_features = 1 << 26,
     .steps = 9},
    {.name = "wide-ends", .reads_steps = true, .input_features = 1, .output_features = 1 << 26, .steps = 9}};

seqlstm_status __wrap_sl_served_model_open(struct sl_session *session, const char *name,
                                           const struct sl_predictor_limits *limits, struct sl_served_model *out,
                                           struct seqlstm_error *err)
{
    (void)session, (void)limits, (void)err;
    int m = 0;
    while (strcmp(models[m].name, name) != 0)
        m++;
    *out = models[m];
    out->uses = malloc(sizeof *out->uses);
    assert_non_null(out->uses);
    atomic_init(&out->uses->count, 1);
    atomic_init(&out->uses->over, false);
    return SEQLSTM_OK;
}

void __wrap_sl_served_model_close(struct sl_served_model *model)
{
    assert_int_equal(atomic_load(&model->uses->count), 1); /* no request has kept it */
    free(model->uses);
}

seqlstm_status __wrap_sl_worker_add(struct sl_worker *worker, const struct sl_served_model *model,
                                    struct seqlstm_error *err)
{
    (void)model, (void)err;
    serving = worker->serving;
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_worker_start(struct sl_worker *worker, struct seqlstm_error *err)
{
    (void)worker, (void)err;
    return SEQLSTM_OK;
}

/* What waits is answered as if it were computed in vain. */
void __wrap_sl_worker_end(struct sl_worker *worker)
{
    (void)worker;
    for (struct sl_job *job = serving->queue.first, *next; job; job = next) {
        next = job->next;
        sl_job_fail(serving, job, 500, "not computed", false);
    }
    serving->queue.first = NULL;
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static struct sl_server *open_server(const char *address, const char *const *tokens, int64_t queue)
{
    static const char *const names[MODELS] = {"values", "rows", "wide-steps", "wide-ends"};
    static struct sl_session *const sessions[MODELS];
    static struct sl_server_request request;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_server *server = NULL;
    request = (struct sl_server_request){.sessions = sessions,
                                         .names = names,
                                         .count = MODELS,
                                         .address = address,
                                         .port = 8080,
                                         .tokens = tokens,
                                         .workers = 1,
                                         .threads = 1,
                                         .roams = true,
                                         .queue = queue,
                                         .streams = 31,
                                         .stream_idle_ns = 32,
                                         .target_ns = 33,
                                         .reproducible = true,
                                         .body_bytes = 5000};
    ok(sl_server_open(&request, &server, &err), &err);
    assert_string_equal(options.address, address);
    assert_int_equal(options.port, 8080);
    assert_int_equal(options.body_bytes, 5000);
    assert_int_equal(serving->queue.most, queue);
    assert_int_equal(serving->streams.most, 31);
    assert_int_equal(serving->streams.most_waiting, queue);
    assert_int_equal(serving->streams.idle_ns, 32);
    assert_int_equal(serving->target_ns, 33);
    assert_int_equal(serving->workers, 1);
    assert_true(serving->reproducible && serving->batching == SL_BATCHING_STEPS);
    return server;
}

static void ask(struct seqlstm_http_request *request)
{
    options.on_request(options.context, request);
    options.on_pass(options.context);
    assert_int_equal(request->answers, request->status != 0);
}

/* `error`: a part of the answer; NULL: the request waits. */
static void expect(struct seqlstm_http_request request, int32_t status, const char *part)
{
    struct seqlstm_http_request *asked = malloc(sizeof *asked); /* it may wait until the server is closed */
    assert_non_null(asked);
    *asked = request;
    ask(asked);
    if (asked->status != status || (part && !strstr(asked->answer, part)))
        fail_msg("%s %s: %d %s", asked->method, asked->path, (int)asked->status, asked->answer);
    if (status != 0) {
        free(asked);
        return;
    }
    struct sl_job *job = serving->queue.last;
    token = job->token;
    serving->queue = (struct sl_job_queue){.most = serving->queue.most};
    sl_job_fail(serving, job, 500, "not computed", false);
    assert_int_equal(asked->status, 500);
    free(asked);
}

#define POST          .method = "POST", .host = "localhost"
#define INFER(m)      POST, .path = "/v2/models/" m "/infer"
#define ROW           "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}"
#define ONES(n, data) "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[" n ",1],\"data\":[" data "]}]}"

/* ---- tests --------------------------------------------------------------------------------------------------- */

/* A server that others can reach answers to any name; one that they cannot is not to be reached by the name of a page
 * that a browser shows. With tokens the name does not matter. Supervisors need neither. */
static void who_may_ask(void **state)
{
    (void)state;
    static const char *const secrets[] = {"first", "second", NULL};
    static const struct {
        const char *address;
        const char *const *tokens;
        const char *host, *authorization;
        int32_t status;
    } cases[] = {
        {"127.0.0.1", NULL, "localhost:8080", NULL, 200},
        {"127.0.0.1", NULL, "example.com", NULL, 403},
        {"127.0.0.1", NULL, NULL, NULL, 403},
        {"::1", NULL, "[::1]:8080", NULL, 200},
        {"::1", NULL, "example.com", NULL, 403},
        {"localhost", NULL, "example.com", NULL, 403},
        {"0.0.0.0", NULL, "example.com", NULL, 200},
        {"0.0.0.0", NULL, NULL, NULL, 200},
        {"10.0.0.1", NULL, "localhost", NULL, 200},
        {"127.0.0.1", secrets, "example.com", "Bearer second", 200},
        {"127.0.0.1", secrets, "localhost", NULL, 401},
        {"0.0.0.0", secrets, "example.com", "Bearer third", 401},
        {"0.0.0.0", secrets, NULL, "Bearer first", 200},
        {"0.0.0.0", secrets, NULL, "first", 401},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sl_server *server = open_server(cases[k].address, cases[k].tokens, 4);
        const char *const why = cases[k].status == 401   ? "a token is missing or wrong"
                                : cases[k].status == 403 ? "the Host of the request is not this machine"
                                                         : NULL;
        struct seqlstm_http_request request = {.host = cases[k].host, .authorization = cases[k].authorization};
        request.method = "GET";
        request.path = "/v1/models";
        expect(request, cases[k].status, why ? why : "\"id\":\"wide-ends\"");
        request.path = "/v2/models/rows/ready";
        expect(request, cases[k].status, why ? why : "{\"ready\": true}");
        request.path = "/v2/nothing";
        expect(request, why ? cases[k].status : 404, why ? why : "there is nothing at this path");
        request.path = "/v2/health/live";
        expect(request, 200, "{\"ready\": true}");
        request.path = "/v2/health/ready";
        expect(request, 200, "{\"ready\": true}");
        request.method = "POST";
        expect(request, why ? cases[k].status : 404, why ? why : "there is nothing at this path");
        request.path = "/v2/models/values/infer";
        request.body = ROW;
        expect(request, why ? cases[k].status : 0, why);
        if (!why)
            assert_int_equal(token, cases[k].authorization && strstr(cases[k].authorization, "second") ? 1 : 0);
        request.path = "/v1/completions";
        request.body = "{\"model\":\"values\"}";
        expect(request, why ? cases[k].status : 400, why ? why : "`values` is no language model");
        sl_server_close(server);
    }
}

/* Pages of other sites can send any other type, and binary tensors only with a header that they cannot send. */
static void types_and_headers(void **state)
{
    (void)state;
    struct sl_server *server = open_server("127.0.0.1", NULL, 4);
    expect((struct seqlstm_http_request){INFER("values"), .body = ROW}, 0, NULL);
    expect((struct seqlstm_http_request){INFER("values"), .type = "application/json", .body = ROW}, 0, NULL);
    expect((struct seqlstm_http_request){INFER("values"), .type = "Application/JSON; charset=utf-8", .body = ROW}, 0,
           NULL);
    expect((struct seqlstm_http_request){INFER("values"), .type = "text/plain", .body = ROW}, 415,
           "the content type is not application/json");
    expect((struct seqlstm_http_request){INFER("values"), .type = "", .body = ROW}, 415, "content type");
    expect((struct seqlstm_http_request){INFER("values"), .type = "application/xml", .body = ROW}, 415, "content type");
    expect((struct seqlstm_http_request){INFER("values"), .type = "application/jso", .body = ROW}, 415, "content type");
    expect((struct seqlstm_http_request){POST, .path = "/v1/completions", .type = "text/plain", .body = "{}"}, 415,
           "\"invalid_request_error\"");
    static const struct {
        const char *size;
        int32_t status;
        const char *why;
    } sizes[] = {{"70", 0, NULL},
                 {"69", 400, "the body is no JSON object"},
                 {"71", 400, "larger than the body"},
                 {"-1", 400, "is no number"},
                 {"70x", 400, "is no number"},
                 {"70 ", 400, "is no number"},
                 {"", 400, "is no number"},
                 {"x", 400, "is no number"},
                 {"99999999999999999999", 400, "larger than the body"}};
    assert_int_equal(strlen(ROW), 70);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int typed = 0; typed < 2; typed++)
            expect((struct seqlstm_http_request){INFER("values"), .size = sizes[k].size, .body = ROW,
                                                 .type = typed ? "application/octet-stream" : NULL},
                   sizes[k].status, sizes[k].why);
    expect((struct seqlstm_http_request){INFER("none"), .body = ROW}, 404, "there is nothing at this path");
    expect((struct seqlstm_http_request){.method = "GET", .host = "localhost", .path = "/v2/models/values/infer"}, 404,
           "there is nothing at this path");
    expect((struct seqlstm_http_request){POST, .path = "/v1/completions", .body = "{\"model\":\"none\"}"}, 404,
           "there is no model `none`");
    sl_server_close(server);
}

/* At most 512 MiB: of a row for each step, or for each sequence. */
static void answers_that_would_be_too_large(void **state)
{
    (void)state;
    static const char why[] = "the answer would be too large: send fewer rows";
    struct sl_server *server = open_server("127.0.0.1", NULL, 4);
    expect((struct seqlstm_http_request){INFER("wide-steps"), .body = ONES("2", "1,2")}, 0, NULL);
    expect((struct seqlstm_http_request){INFER("wide-steps"), .body = ONES("3", "1,2,3")}, 413, why);
    expect((struct seqlstm_http_request){INFER("wide-ends"), .body = ONES("3", "1,2,3")}, 0, NULL);
    expect(
        (struct seqlstm_http_request){
            INFER("wide-ends"), .body = "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[3,1],\"data\":"
                                        "[1,2,3]},{\"name\":\"lengths\",\"datatype\":\"INT32\",\"shape\":[3],"
                                        "\"data\":[1,1,1]}]}"},
        413, why);
    sl_server_close(server);
}

/* What is refused leaves its place to others. */
static void few_may_wait(void **state)
{
    (void)state;
    struct sl_server *server = open_server("127.0.0.1", NULL, 2);
    struct seqlstm_http_request waiting[2];
    for (int k = 0; k < 2; k++) {
        waiting[k] = (struct seqlstm_http_request){INFER("values"), .body = ROW};
        ask(&waiting[k]);
        assert_int_equal(waiting[k].status, 0);
    }
    for (int k = 0; k < 2; k++)
        expect((struct seqlstm_http_request){INFER("rows"), .body = ONES("1", "1")}, 429, "too many requests wait");
    struct seqlstm_http_request metrics = {.method = "GET", .host = "localhost", .path = "/metrics"};
    ask(&metrics);
    assert_int_equal(metrics.status, 200);
    assert_int_equal(sl_job_queue_count(&serving->queue), 2);
    assert_int_equal(serving->counters.answered[4], 2);
    assert_int_equal(serving->counters.answered[2], 1);
    sl_server_close(server);
    for (int k = 0; k < 2; k++)
        assert_true(waiting[k].answers == 1 && waiting[k].status == 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_ask),
        cmocka_unit_test(types_and_headers),
        cmocka_unit_test(answers_that_would_be_too_large),
        cmocka_unit_test(few_may_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
