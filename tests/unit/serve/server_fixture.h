/* SPDX-License-Identifier: Apache-2.0 */
/* A server whose module, models and workers are the test's: jobs stay in its queue. */
#ifndef SL_TESTS_UNIT_SERVE_SERVER_FIXTURE_H
#define SL_TESTS_UNIT_SERVE_SERVER_FIXTURE_H

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
    char answer[4000], answer_type[60];
};

static struct seqlstm_http_options options;
static struct sl_serving *serving;
static int fails_at; /* which call of what follows fails from now on; 0: none */
static int closed;   /* modules */

static inline bool fails_now(void)
{
    return fails_at > 0 && --fails_at == 0;
}

static int token;         /* of the job that came last, */
static int64_t queued_ns; /* and its time */

/* What the workers were given, in this order: `add WORKER MODEL`, `start WORKER`. */
static char given[1000];
static const struct sl_worker *first_worker;

static int32_t open_module(const struct seqlstm_http_options *wanted, struct seqlstm_http **out,
                           struct seqlstm_error *err)
{
    options = *wanted;
    if (fails_now())
        SEQLSTM_FAIL(err, SEQLSTM_IO, "the address is in use");
    *out = (void *)&options;
    return SEQLSTM_OK;
}

static void close_module(struct seqlstm_http *http)
{
    assert_ptr_equal(http, &options);
    closed++;
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
    (void)err;
    for (const struct seqlstm_http_header *h = headers; h->name; h++)
        if (strcmp(h->name, "Content-Type") == 0)
            snprintf(request->answer_type, sizeof request->answer_type, "%s", h->value);
    request->status = status;
    request->answers++;
    snprintf(request->answer, sizeof request->answer, "%.*s", (int)bytes, (const char *)body);
    return SEQLSTM_OK;
}

static struct seqlstm_http_module http = {.struct_size = sizeof http,
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
    (void)session, (void)limits;
    int m = 0;
    while (strcmp(models[m].name, name) != 0)
        m++;
    *out = models[m];
    if (fails_now())
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model is not to be served");
    out->uses = malloc(sizeof *out->uses);
    if (out->uses == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for its uses");
    atomic_init(&out->uses->count, 1);
    atomic_init(&out->uses->over, false);
    return SEQLSTM_OK;
}

void __wrap_sl_served_model_close(struct sl_served_model *model)
{
    if (model->uses)                                           /* it was opened */
        assert_int_equal(atomic_load(&model->uses->count), 1); /* no request has kept it */
    free(model->uses);
}

seqlstm_status __wrap_sl_worker_add(struct sl_worker *worker, const struct sl_served_model *model,
                                    struct seqlstm_error *err)
{
    const size_t at = strlen(given);
    serving = worker->serving;
    if (fails_now())
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a worker");
    first_worker = first_worker ? first_worker : worker;
    snprintf(given + at, sizeof given - at, "add %td %s\n", worker - first_worker, model->name);
    return SEQLSTM_OK;
}

seqlstm_status __wrap_sl_worker_start(struct sl_worker *worker, struct seqlstm_error *err)
{
    const size_t at = strlen(given);
    if (fails_now())
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "a thread cannot be started");
    snprintf(given + at, sizeof given - at, "start %td\n", worker - first_worker);
    return SEQLSTM_OK;
}

/* What waits is answered as if it were computed in vain. */
void __wrap_sl_worker_end(struct sl_worker *worker)
{
    (void)worker;
    for (struct sl_job *job = serving ? serving->queue.first : NULL, *next; job; job = next) {
        next = job->next;
        sl_job_fail(serving, job, 500, "not computed", false);
    }
    if (serving)
        serving->queue.first = NULL;
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static struct sl_server_request make_server_request(const char *address, const char *const *tokens, int64_t queue)
{
    static const char *const names[MODELS] = {"values", "rows", "wide-steps", "wide-ends"};
    static struct sl_session *const sessions[MODELS];
    return (struct sl_server_request){.sessions = sessions,
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
}

static struct sl_server *open_server(const char *address, const char *const *tokens, int64_t queue)
{
    static struct sl_server_request request;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_server *server = NULL;
    request = make_server_request(address, tokens, queue);
    first_worker = NULL;
    serving = NULL;
    given[0] = '\0';
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
    queued_ns = job->queued_ns;
    serving->queue = (struct sl_job_queue){.most = serving->queue.most};
    sl_job_fail(serving, job, 500, "not computed", false);
    assert_int_equal(asked->status, 500);
    free(asked);
}

#define POST          .method = "POST", .host = "localhost"
#define INFER(m)      POST, .path = "/v2/models/" m "/infer"
#define ROW           "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1,2]}]}"
#define ONES(n, data) "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[" n ",1],\"data\":[" data "]}]}"

#endif
