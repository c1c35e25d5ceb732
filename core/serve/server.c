/* SPDX-License-Identifier: Apache-2.0 */
/* See server.h. */
#include "serve/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/system/clock.h"
#include "base/system/interrupt.h"
#include "serve/http/access.h"
#include "serve/body/completion_read.h"
#include "serve/body/infer_read.h"
#include "serve/pages.h"
#include "serve/compute/pinning.h"
#include "serve/compute/replies.h"
#include "serve/compute/worker.h"
#include "serve/follow.h"

enum { HEADER_BYTES = 16 << 10, IDLE_SECONDS = 60, PAUSE_NS = 20000000, EXPIRE_PAUSES = 25 };

/* Bytes of an answer, at most: outputs may be far larger than inputs. */
#define ANSWER_MOST ((int64_t)512 << 20)

struct sl_server {
    struct sl_server_request made;
    const struct seqlstm_http_module *module;
    struct seqlstm_http *http;
    struct sl_models models;
    struct sl_follower follower;
    struct sl_serving serving; /* what its workers share */
    struct sl_worker *workers;
    struct sl_pinning pinning; /* of the workers */
    int64_t start_ns;
    bool adds; /* of the loop: jobs that are not announced yet */
    pthread_t guard;
    atomic_bool over; /* the loop has ended */
};

/* ---- requests ---------------------------------------------------------------------------------------------- */

static void fail(struct sl_server *server, struct seqlstm_http_request *request, int status, const char *message)
{
    sl_counters_note_reply(&server->serving.counters, status);
    sl_http_fail(server->module, request, status, message);
}

/* Releases the body. */
static void reply(struct sl_server *server, struct seqlstm_http_request *request, const char *type, struct sl_buf *body)
{
    if (body->failed)
        fail(server, request, 503, "no memory for the answer");
    else {
        sl_counters_note_reply(&server->serving.counters, 200);
        sl_http_reply(server->module, request, type, body->data, body->length_bytes);
    }
    sl_buf_deinit(body);
}

/* Pages of other sites can send texts and forms, but not JSON. Some clients send no type. */
static bool is_json(const char *type)
{
    return type == NULL || strncasecmp(type, "application/json", 16) == 0;
}

/* Reads the job of a request; on failure it has been answered. */
static bool read_job(struct sl_server *server, struct seqlstm_http_request *request, struct sl_job *job)
{
    const struct seqlstm_http_module *http = server->module;
    const char *type = http->find_header(request, "Content-Type");
    const char *size = http->find_header(request, "Inference-Header-Content-Length");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    uint64_t bytes;
    const void *body = http->get_body(request, &bytes);
    char *end = NULL;
    const long long json_bytes = size ? strtoll(size, &end, 10) : -1;
    if (size == NULL && !is_json(type))
        fail(server, request, 415, "the content type is not application/json");
    else if (size && (end == size || *end || json_bytes < 0))
        fail(server, request, 400, "Inference-Header-Content-Length is no number");
    else {
        const seqlstm_status status = sl_infer_read(job, body, bytes, json_bytes, &err);
        const int64_t rows = job->model->gives_steps ? job->rows : job->count;
        if (status != SEQLSTM_OK)
            fail(server, request, status == SEQLSTM_NO_MEMORY ? 503 : 400, err.message);
        else if (rows > ANSWER_MOST / (job->model->output_features * (int64_t)sizeof(float)))
            fail(server, request, 413, "the answer would be too large: send fewer rows");
        else
            return true;
    }
    return false;
}

/* A job that cannot wait for its stream or for a worker is refused. */
static void queue_job(struct sl_server *server, struct sl_job *job)
{
    struct sl_serving *serving = &server->serving;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    bool waits = false;
    seqlstm_status status = SEQLSTM_OK;
    if (job->stream_id)
        status = sl_stream_table_claim(&serving->streams, job, &waits, &err);
    if (status != SEQLSTM_OK)
        sl_job_fail(serving, job,
                    status == SEQLSTM_NO_MEMORY     ? 503
                    : status == SEQLSTM_UNAVAILABLE ? 429
                                                    : 400,
                    err.message, false);
    else if (!waits && !sl_job_queue_add(&serving->queue, job))
        sl_job_fail(serving, job, 429, "too many requests wait", false);
    else
        server->adds = true;
}

/* Takes over one use of the model. */
static void infer(struct sl_server *server, const struct sl_served_model *model, struct seqlstm_http_request *request,
                  int token)
{
    struct sl_job *job = sl_job_create(model, request);
    if (job == NULL) {
        sl_served_model_release(model);
        fail(server, request, 503, "no memory for the request");
        return;
    }
    job->token = token;
    if (!read_job(server, request, job)) {
        sl_job_destroy(job);
        return;
    }
    job->queued_ns = sl_clock_ns();
    queue_job(server, job);
}

static const struct sl_served_model *find_named(void *context, const char *name)
{
    return sl_models_find(context, name);
}

static void complete(struct sl_server *server, struct seqlstm_http_request *request, int token)
{
    const char *type = server->module->find_header(request, "Content-Type");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_job *job = sl_job_create(NULL, request);
    uint64_t bytes;
    const char *body = server->module->get_body(request, &bytes);
    if (job == NULL) {
        fail(server, request, 503, "no memory for the request");
        return;
    }
    if (!is_json(type)) {
        sl_job_fail(&server->serving, job, 415, "the content type is not application/json", false);
        return;
    }
    const seqlstm_status status = sl_completion_read(job, body, bytes, find_named, &server->models, &err);
    job->token = token;
    job->queued_ns = sl_clock_ns();
    if (status == SEQLSTM_OK)
        queue_job(server, job);
    else
        sl_job_fail(&server->serving, job,
                    status == SEQLSTM_NO_MEMORY   ? 503
                    : status == SEQLSTM_NOT_FOUND ? 404
                                                  : 400,
                    err.message, false);
}

/* ---- paths ------------------------------------------------------------------------------------------------- */

static void write_models(struct sl_server *server, const struct sl_counter_gauges *gauges, struct sl_buf *body)
{
    const struct sl_served_model *const *newest = sl_models_lock(&server->models);
    if (gauges)
        sl_pages_write_status(newest, server->made.count, &server->serving.counters, gauges,
                              (double)(sl_clock_ns() - server->start_ns) * 1e-9, body);
    else
        sl_pages_write_list(newest, server->made.count, body);
    sl_models_unlock(&server->models);
}

/* `model` and `rest`: of a path below /v2/models/. */
static void on_get(struct sl_server *server, struct seqlstm_http_request *request, const char *path,
                   const struct sl_served_model *model, const char *rest)
{
    const char *type = "application/json";
    const struct sl_served_model *named = NULL;
    struct sl_counter_gauges gauges = {.waiting = sl_job_queue_count(&server->serving.queue)};
    struct sl_buf body = {0};
    gauges.streams = sl_stream_table_count(&server->serving.streams, &gauges.expired);
    if (model && (*rest == '\0' || strcmp(rest, "/ready") == 0)) {
        if (*rest == '\0')
            sl_pages_write_model(model, &body);
        else
            sl_buf_append_text(&body, "{\"ready\": true}\n");
    } else if (strcmp(path, "/v1/models") == 0)
        write_models(server, NULL, &body);
    else if (strncmp(path, "/v1/models/", 11) == 0 && (named = sl_models_find(&server->models, path + 11)) != NULL)
        sl_pages_write_entry(named, &body);
    else if (strcmp(path, "/v2") == 0)
        sl_pages_write_server(&body);
    else if (strcmp(path, "/metrics") == 0) {
        type = "text/plain; version=0.0.4";
        sl_counters_write(&server->serving.counters, &gauges, &body);
    } else if (strcmp(path, "/") == 0) {
        type = "text/html; charset=utf-8";
        write_models(server, &gauges, &body);
    } else {
        fail(server, request, 404, "there is nothing at this path: /v2/models/NAME/infer predicts");
        return;
    }
    sl_served_model_release(named);
    reply(server, request, type, &body);
}

/* *out_token: the number of its token. */
static bool may_ask(struct sl_server *server, struct seqlstm_http_request *request, int *out_token)
{
    const struct sl_server_request *made = &server->made;
    *out_token = 0;
    if (made->tokens) {
        *out_token = sl_access_find_token(server->module, request, made->tokens);
        if (*out_token >= 0)
            return true;
        fail(server, request, 401, "a token is missing or wrong: Authorization: Bearer TOKEN");
        return false;
    }
    if (!sl_access_is_loopback(made->address) || sl_access_names_loopback(server->module, request))
        return true;
    fail(server, request, 403, "the Host of the request is not this machine");
    return false;
}

static void on_request(void *context, struct seqlstm_http_request *request)
{
    struct sl_server *server = context;
    const char *path = server->module->get_path(request), *rest = "";
    const bool post = strcmp(server->module->get_method(request), "POST") == 0;
    if (!post && (strcmp(path, "/v2/health/live") == 0 || strcmp(path, "/v2/health/ready") == 0)) {
        struct sl_buf body = {0}; /* of use to supervisors, which have no token */
        sl_buf_append_text(&body, "{\"ready\": true}\n");
        reply(server, request, "application/json", &body);
        return;
    }
    int token;
    if (!may_ask(server, request, &token))
        return;
    if (post && strcmp(path, "/v1/completions") == 0) {
        complete(server, request, token);
        return;
    }
    const struct sl_served_model *model = sl_models_find_path(&server->models, path, &rest);
    if (post && model && strcmp(rest, "/infer") == 0) {
        infer(server, model, request, token);
        return;
    }
    if (post)
        fail(server, request, 404, "there is nothing at this path: /v2/models/NAME/infer predicts");
    else
        on_get(server, request, path, model, rest);
    sl_served_model_release(model);
}

static void on_pass(void *context)
{
    struct sl_server *server = context;
    if (server->adds)
        sl_job_queue_announce(&server->serving.queue);
    server->adds = false;
    sl_jobs_answer_finished(&server->serving);
    sl_job_destroy_retired(&server->serving.retired);
}

/* ---- life -------------------------------------------------------------------------------------------------- */

/* The signs of the weights come first: newer ones that come meanwhile are then found. */
static seqlstm_status open_models(struct sl_server *server, struct seqlstm_error *err)
{
    const struct sl_server_request *made = &server->made;
    server->workers = calloc((size_t)made->workers, sizeof *server->workers);
    if (server->workers == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a server");
    SEQLSTM_TRY(sl_follower_init(&server->follower, made, err));
    return sl_models_init(&server->models, made, err);
}

static seqlstm_status bind_address(struct sl_server *server, struct seqlstm_error *err)
{
    const struct sl_server_request *made = &server->made;
    const struct seqlstm_http_options options = {.struct_size = sizeof options,
                                                 .port = made->port,
                                                 .idle_seconds = IDLE_SECONDS,
                                                 .address = made->address,
                                                 .body_bytes = (uint64_t)made->body_bytes,
                                                 .header_bytes = HEADER_BYTES,
                                                 .on_request = on_request,
                                                 .on_pass = on_pass,
                                                 .context = server};
    return server->module->open(&options, &server->http, err);
}

static seqlstm_status start_workers(struct sl_server *server, struct seqlstm_error *err)
{
    const struct sl_server_request *made = &server->made;
    for (int w = 0; w < made->workers; w++) {
        sl_worker_init(&server->workers[w], &server->serving);
        for (int m = 0; m < made->count; m++) /* before any is replaced */
            SEQLSTM_TRY(sl_worker_add(&server->workers[w], server->models.newest[m], err));
    }
    if (made->threads == 1 && !made->roams)
        sl_pinning_begin(&server->pinning, made->workers);
    for (int w = 0; w < made->workers; w++) {
        sl_processor_init(&server->workers[w].processor, &server->pinning, w);
        SEQLSTM_TRY(sl_worker_start(&server->workers[w], err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_server_open(const struct sl_server_request *request, struct sl_server **out_server,
                              struct seqlstm_error *err)
{
    const struct seqlstm_http_module *module = NULL;
    SEQLSTM_TRY(sl_http_find(&module, err));
    struct sl_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a server");
    server->made = *request;
    server->module = module;
    server->serving.http = module;
    server->serving.target_ns = request->target_ns;
    server->serving.batching = request->batching;
    server->serving.history = request->history;
    server->serving.reproducible = request->reproducible;
    server->serving.workers = request->workers;
    sl_job_queue_init(&server->serving.queue, request->queue);
    sl_counters_init(&server->serving.counters);
    sl_stream_table_init(&server->serving.streams, request->streams, request->queue, request->stream_idle_ns);
    seqlstm_status status = open_models(server, err);
    if (status == SEQLSTM_OK)
        status = bind_address(server, err);
    if (status == SEQLSTM_OK)
        status = start_workers(server, err);
    if (status == SEQLSTM_OK)
        *out_server = server;
    else
        sl_server_close(server);
    return status;
}

uint16_t sl_server_get_port(const struct sl_server *server)
{
    return server->module->get_port(server->http);
}

/* Waits for the end that the user asks for, and ends streams that are not used. */
static void *guard(void *context)
{
    struct sl_server *server = context;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int64_t n = 1; !sl_interrupt_get_stop(server->made.interrupt) && !atomic_load(&server->over); n++) {
        nanosleep(&pause, NULL);
        if (n % EXPIRE_PAUSES == 0)
            sl_stream_table_expire(&server->serving.streams, sl_clock_ns());
    }
    server->module->stop(server->http);
    return NULL;
}

seqlstm_status sl_server_run(struct sl_server *server, struct seqlstm_error *err)
{
    const struct sl_server_request *made = &server->made;
    if (made->reopen)
        SEQLSTM_TRY(sl_follower_start(&server->follower, &server->models, &server->serving, server->workers, err));
    if (pthread_create(&server->guard, NULL, guard, server) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "a thread cannot be started");
    server->start_ns = sl_clock_ns();
    const seqlstm_status status = server->module->run(server->http, err);
    atomic_store(&server->over, true);
    pthread_join(server->guard, NULL);
    return status;
}

void sl_server_close(struct sl_server *server)
{
    if (server == NULL)
        return;
    sl_follower_end(&server->follower);
    sl_job_queue_close(&server->serving.queue);
    for (int w = 0; server->workers && w < server->made.workers; w++)
        sl_worker_end(&server->workers[w]);
    sl_pinning_end(&server->pinning);
    if (server->http)
        server->module->close(server->http);
    sl_stream_table_deinit(&server->serving.streams);
    sl_job_destroy_retired(&server->serving.finished);
    sl_job_destroy_retired(&server->serving.retired);
    sl_models_deinit(&server->models);
    sl_follower_deinit(&server->follower);
    sl_job_queue_deinit(&server->serving.queue);
    sl_counters_deinit(&server->serving.counters);
    free(server->workers);
    free(server);
}
