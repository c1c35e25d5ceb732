/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a server takes, which it refuses and how, by address, tokens, types and sizes; how many may wait. The
 * module, the models and the workers are the test's: jobs stay in the queue. */
#include "oom.h"
#include "server_fixture.h"

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

/* Whatever does not begin, no server does, and nothing of it is left. */
static void a_server_begins_as_a_whole(void **state)
{
    static const struct {
        seqlstm_status status;
        const char *message;
    } steps[] = {{SEQLSTM_UNSUPPORTED, "the model is not to be served"},
                 {SEQLSTM_UNSUPPORTED, "the model is not to be served"},
                 {SEQLSTM_UNSUPPORTED, "the model is not to be served"},
                 {SEQLSTM_UNSUPPORTED, "the model is not to be served"},
                 {SEQLSTM_IO, "the address is in use"},
                 {SEQLSTM_NO_MEMORY, "no memory for a worker"},
                 {SEQLSTM_NO_MEMORY, "no memory for a worker"},
                 {SEQLSTM_NO_MEMORY, "no memory for a worker"},
                 {SEQLSTM_NO_MEMORY, "no memory for a worker"},
                 {SEQLSTM_UNAVAILABLE, "a thread cannot be started"}};
    struct sl_server_request request = make_server_request("127.0.0.1", NULL, 3);
    (void)state;
    for (int k = 0; k < 10; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_server *server = NULL;
        serving = NULL;
        closed = 0;
        fails_at = k + 1;
        assert_int_equal(sl_server_open(&request, &server, &err), steps[k].status);
        assert_int_equal(fails_at, 0);
        assert_string_equal(err.message, steps[k].message);
        assert_null(server);
        assert_int_equal(closed, k > 4);
    }
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_server *server = NULL;
        serving = NULL;
        oom_fail_at(n);
        const seqlstm_status status = sl_server_open(&request, &server, &err);
        const bool failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        if (!failed) {
            sl_server_close(server);
            return;
        }
        assert_null(server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_ask),
        cmocka_unit_test(types_and_headers),
        cmocka_unit_test(answers_that_would_be_too_large),
        cmocka_unit_test(few_may_wait),
        cmocka_unit_test(a_server_begins_as_a_whole),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
