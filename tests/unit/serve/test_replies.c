/* SPDX-License-Identifier: Apache-2.0 */
/* Which answers a worker writes, and which it leaves to the thread of the server; how jobs end that fail, that are
 * written in parts, or whose stream others wait for. What becomes of a stream is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "serve/compute/replies.h"
#include "serve/job/completion.h"

enum { JOBS = 5 };

struct seqlstm_http_request {
    int answers;
    const char *path;
    uint64_t unread;
};

static struct sl_buf story; /* all that happens, a line for each call */

static int32_t reply(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err)
{
    (void)err;
    assert_true(bytes > 0);
    request->answers++;
    sl_buf_printf(&story, "%d", (int)status);
    for (; headers->name; headers++)
        sl_buf_printf(&story, " %s=%s", headers->name, headers->value);
    sl_buf_printf(&story, " %.*s", (int)bytes, (const char *)body);
    return SEQLSTM_OK;
}

static int32_t begin(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     struct seqlstm_error *err)
{
    (void)request, (void)err;
    sl_buf_printf(&story, "begin %d", (int)status);
    for (; headers->name; headers++)
        sl_buf_printf(&story, " %s=%s", headers->name, headers->value);
    sl_buf_append_char(&story, '\n');
    return SEQLSTM_OK;
}

static int32_t add(struct seqlstm_http_request *request, const void *part, uint64_t bytes, struct seqlstm_error *err)
{
    (void)request, (void)err;
    sl_buf_printf(&story, "add %.*s", (int)bytes, (const char *)part);
    return SEQLSTM_OK;
}

static void end(struct seqlstm_http_request *request)
{
    request->answers++;
    sl_buf_append_text(&story, "end\n");
}

static const char *get_path(const struct seqlstm_http_request *request)
{
    return request->path;
}

static uint64_t count_unread(const struct seqlstm_http_request *request)
{
    return request->unread;
}

static const struct seqlstm_http_module http = {.struct_size = sizeof http,
                                                .reply = reply,
                                                .begin = begin,
                                                .add = add,
                                                .end = end,
                                                .get_path = get_path,
                                                .count_unread = count_unread};
static const struct sl_served_model model = {.name = "m", .output_features = 2};

static struct sl_job *make_job(struct seqlstm_http_request *client, int64_t rows, struct sl_job *next)
{
    struct sl_job *job = sl_job_create(&model, client);
    assert_non_null(job);
    job->y = calloc((size_t)(rows * model.output_features), sizeof *job->y);
    assert_non_null(job->y);
    job->out_rows = rows;
    job->wants_y = true;
    job->next = next;
    return job;
}

static struct sl_job *next_of_stream, *orphans_of_stream;

void __wrap_sl_stream_table_release(struct sl_stream_table *table, struct sl_job *job, bool ran, bool broken,
                                    struct sl_job **out_next, struct sl_job **out_orphans);

void __wrap_sl_stream_table_release(struct sl_stream_table *table, struct sl_job *job, bool ran, bool broken,
                                    struct sl_job **out_next, struct sl_job **out_orphans)
{
    (void)table;
    sl_buf_printf(&story, "release%s%s\n", ran ? ", it ran" : "", broken ? ", broken" : "");
    job->stream = NULL;
    *out_next = next_of_stream;
    *out_orphans = orphans_of_stream;
    next_of_stream = orphans_of_stream = NULL;
}

static void open_serving(struct sl_serving *serving)
{
    *serving = (struct sl_serving){.http = &http, .workers = 1};
    sl_job_queue_init(&serving->queue, 8);
    sl_counters_init(&serving->counters);
    sl_buf_deinit(&story);
    story = (struct sl_buf){0};
}

static void close_serving(struct sl_serving *serving)
{
    sl_job_destroy_retired(&serving->retired);
    sl_counters_deinit(&serving->counters);
    sl_job_queue_deinit(&serving->queue);
    sl_buf_deinit(&story);
    story = (struct sl_buf){0};
}

static void expect_story(const char *expected)
{
    assert_string_equal(sl_buf_text(&story), expected);
    sl_buf_deinit(&story);
    story = (struct sl_buf){0};
}

/* How many of JOBS answers of so many rows are left when workers compute for so long for each. */
static int count_left(int workers, int64_t waiting, int64_t rows, double sequence_ns, bool wants_y, bool binary)
{
    struct sl_serving serving = {.http = &http, .workers = workers};
    struct seqlstm_http_request clients[JOBS] = {{0}}, waiter = {0};
    struct sl_job *jobs = NULL;
    int left = 0;
    sl_job_queue_init(&serving.queue, 8);
    sl_counters_init(&serving.counters);
    for (int64_t k = 0; k < waiting; k++)
        assert_true(sl_job_queue_add(&serving.queue, make_job(&waiter, 1, NULL)));
    for (int k = JOBS - 1; k >= 0; k--)
        jobs = make_job(&clients[k], rows, jobs);
    for (struct sl_job *job = jobs; job; job = job->next) {
        job->wants_y = wants_y;
        job->binary_y = binary;
    }
    sl_jobs_answer(&serving, jobs, sequence_ns);
    assert_int_equal(clients[JOBS - 1].answers, 1); /* it wakes the thread of the server */
    for (int k = 0; k < JOBS; k++)
        left += clients[k].answers == 0;
    sl_jobs_answer_finished(&serving);
    for (int k = 0; k < JOBS; k++)
        assert_int_equal(clients[k].answers, 1);
    sl_job_destroy_retired(&serving.retired);
    for (struct sl_job *job = serving.queue.first, *next; job; job = next) {
        next = job->next;
        sl_job_destroy(job);
    }
    sl_counters_deinit(&serving.counters);
    sl_job_queue_deinit(&serving.queue);
    return left;
}

static void long_answers_are_left_while_others_wait(void **state)
{
    (void)state;
    assert_int_equal(count_left(1, 1, 16, 0, true, false), JOBS - 1);
    assert_int_equal(count_left(1, 1, 15, 0, true, false), 0);
    assert_int_equal(count_left(1, 0, 16, 0, true, false), 0);
    assert_int_equal(count_left(1, 1, 16, 0, true, true), 0); /* numbers in binary are only copied */
    assert_int_equal(count_left(1, 1, 16, 0, false, false), 0);
    assert_int_equal(count_left(1, 1, 16, 0, false, true), 0);
}

/* The thread of the server takes 30 microseconds for a request: it has time if all workers together take longer. */
static void all_are_left_where_workers_are_slower_than_the_server(void **state)
{
    (void)state;
    assert_int_equal(count_left(1, 1, 1, 31000, true, false), JOBS - 1);
    assert_int_equal(count_left(1, 1, 1, 29000, true, false), 0);
    assert_int_equal(count_left(3, 1, 1, 91000, true, false), JOBS - 1);
    assert_int_equal(count_left(3, 1, 1, 89000, true, false), 0);
    assert_int_equal(count_left(1, 0, 1, 31000, true, false), 0);
    assert_int_equal(count_left(1, 1, 1, 31000, true, true), JOBS - 1);
}

/* ---- how jobs end -------------------------------------------------------------------------------------------- */

#define JSON "Content-Type=application/json"
#define Y                                                                                                              \
    "{\"model_name\":\"m\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1,2]" \
    ","

/* What is refused says so in the form of its path; only where too many wait it is worth asking again. */
static void refusals_have_the_form_of_their_path(void **state)
{
    (void)state;
    struct sl_serving serving;
    struct seqlstm_http_request plain = {.path = "/v2/models/m/infer"}, openai = {.path = "/v1/completions"};
    open_serving(&serving);
    sl_job_fail(&serving, make_job(&plain, 1, NULL), 400, "a \"b\"", false);
    expect_story("400 " JSON " {\"error\": \"a \\\"b\\\"\"}\n");
    sl_job_fail(&serving, make_job(&plain, 1, NULL), 429, "too many", false);
    expect_story("429 " JSON " Retry-After=1 {\"error\": \"too many\"}\n");
    sl_job_fail(&serving, make_job(&plain, 1, NULL), 503, "no memory", false);
    expect_story("503 " JSON " {\"error\": \"no memory\"}\n");
    sl_job_fail(&serving, make_job(&openai, 1, NULL), 499, "it left", false);
    expect_story("499 " JSON " {\"error\": {\"message\": \"it left\", \"type\": \"invalid_request_error\", "
                 "\"param\": null, \"code\": null}}\n");
    sl_job_fail(&serving, make_job(&openai, 1, NULL), 500, "it broke", false);
    expect_story("500 " JSON " {\"error\": {\"message\": \"it broke\", \"type\": \"server_error\", "
                 "\"param\": null, \"code\": null}}\n");
    assert_int_equal(serving.counters.answered[4], 3);
    assert_int_equal(serving.counters.answered[5], 2);
    assert_int_equal(plain.answers, 3);
    assert_int_equal(openai.answers, 2);
    close_serving(&serving);
}

/* A job gives its stream back before its client hears of it, and says what it has done to it. */
static void streams_are_given_back_before_the_answer(void **state)
{
    (void)state;
    struct sl_served_stream stream = {.busy = true};
    struct sl_serving serving;
    struct seqlstm_http_request client = {.path = "/v2/models/m/infer"}, other = client, last[2] = {client, client};
    open_serving(&serving);
    struct sl_job *job = make_job(&client, 1, NULL), *next = make_job(&other, 1, NULL);
    job->stream = &stream;
    job->id = strdup("x");
    next_of_stream = next;
    sl_job_answer(&serving, job);
    expect_story(
        "release, it ran\n200 " JSON
        " {\"model_name\":\"m\",\"model_version\":\"1\",\"id\":\"x\",\"outputs\":[{\"name\":\"y\",\"datatype\":"
        "\"FP32\",\"shape\":[1,2],\"data\":[0,0]}]}");
    assert_ptr_equal(serving.queue.first, next); /* its turn has come */
    assert_int_equal(sl_job_queue_count(&serving.queue), 1);
    serving.queue = (struct sl_job_queue){.most = 8};
    for (int broken = 0; broken < 2; broken++) {
        job = make_job(&client, 1, NULL);
        job->stream = &stream;
        sl_job_fail(&serving, job, 500, "it broke", broken);
        expect_story(broken ? "release, it ran, broken\n500 " JSON " {\"error\": \"it broke\"}\n"
                            : "release\n500 " JSON " {\"error\": \"it broke\"}\n");
    }
    job = make_job(&client, 1, NULL);
    job->stream = &stream;
    orphans_of_stream = make_job(&last[0], 1, make_job(&last[1], 1, NULL));
    sl_job_fail(&serving, job, 500, "it broke", true);
    expect_story("release, it ran, broken\n"
                 "400 " JSON " {\"error\": \"the stream has ended while the request waited for it\"}\n"
                 "400 " JSON " {\"error\": \"the stream has ended while the request waited for it\"}\n"
                 "500 " JSON " {\"error\": \"it broke\"}\n");
    assert_true(last[0].answers == 1 && last[1].answers == 1);
    assert_int_equal(sl_job_queue_count(&serving.queue), 0);
    sl_job_fail(&serving, next, 429, "full", false); /* it has no stream */
    expect_story("429 " JSON " Retry-After=1 {\"error\": \"full\"}\n");
    close_serving(&serving);
}

/* A completion of one choice. */
static struct sl_job *make_completion(struct seqlstm_http_request *client)
{
    struct sl_job *job = make_job(client, 1, NULL);
    struct sl_completion *completion = job->completion = calloc(1, sizeof *completion);
    assert_non_null(completion);
    completion->prompts = calloc(1, sizeof *completion->prompts);
    completion->choices = calloc(1, sizeof *completion->choices);
    assert_true(completion->prompts && completion->choices);
    completion->prompt_count = completion->each = job->count = 1;
    completion->choices[0].key = 10;
    completion->in_parts = true;
    return job;
}

static void tell(struct sl_job *job, const char *text, const char *finish)
{
    struct sl_choice *choice = &job->completion->choices[0];
    sl_buf_append_text(&choice->text, text);
    choice->fixed = choice->text.length_bytes;
    choice->finish = finish;
}

#define BEGIN "begin 200 Content-Type=text/event-stream; charset=utf-8 Cache-Control=no-cache\n"
#define EVENT(text, finish)                                                                                            \
    "add data: "                                                                                                       \
    "{\"id\":\"cmpl-000000000000000a\",\"object\":\"text_completion\",\"created\":0,\"model\":\"m\",\"choices\":"      \
    "[{\"index\":0,\"text\":\"" text "\",\"logprobs\":null,\"finish_reason\":" finish "}]}\n\n"

/* The head comes with the first part, whether that holds a text or not; then what is new; errors as a part, too. */
static void answers_in_parts_begin_once_and_end_once(void **state)
{
    (void)state;
    struct sl_serving serving;
    struct seqlstm_http_request client = {.path = "/v1/completions"};
    for (int fails = 0; fails < 2; fails++) {
        open_serving(&serving);
        client = (struct seqlstm_http_request){.path = "/v1/completions"};
        struct sl_job *job = make_completion(&client);
        assert_true(sl_job_send_part(&serving, job, 0));
        expect_story(BEGIN);
        tell(job, "ab", NULL);
        assert_true(sl_job_send_part(&serving, job, 0));
        expect_story(EVENT("ab", "null"));
        assert_true(sl_job_send_part(&serving, job, 0));
        expect_story("");
        tell(job, "c", "stop");
        client.unread = 1 << 20;
        assert_true(sl_job_send_part(&serving, job, 0));
        expect_story(EVENT("c", "\"stop\""));
        if (fails) {
            sl_job_fail(&serving, job, 500, "it \"broke\"", true);
            expect_story(
                "add data: {\"error\":{\"message\":\"it \\\"broke\\\"\",\"type\":\"server_error\",\"param\":null,"
                "\"code\":null}}\n\nend\n");
        } else {
            sl_job_answer(&serving, job);
            expect_story("add data: [DONE]\n\nend\n");
        }
        assert_int_equal(client.answers, 1);
        assert_int_equal(serving.counters.answered[fails ? 5 : 2], 1);
        close_serving(&serving);
    }
}

/* One that has not begun is refused as any other. A client that reads nothing is not worth more memory. */
static void parts_that_are_not_read_end_the_answer(void **state)
{
    (void)state;
    struct sl_serving serving;
    struct seqlstm_http_request client = {.path = "/v1/completions", .unread = (1 << 20) + 1};
    open_serving(&serving);
    struct sl_job *job = make_completion(&client);
    tell(job, "ab", NULL);
    assert_false(sl_job_send_part(&serving, job, 0));
    expect_story(BEGIN EVENT("ab", "null"));
    sl_job_fail(&serving, job, 499, "slow", false);
    job = make_completion(&client);
    expect_story(
        "add data: {\"error\":{\"message\":\"slow\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\nend\n");
    sl_job_fail(&serving, job, 499, "gone", false);
    expect_story("499 " JSON " {\"error\": {\"message\": \"gone\", \"type\": \"invalid_request_error\", "
                 "\"param\": null, \"code\": null}}\n");
    close_serving(&serving);
}

/* The head of an answer in binary says where its JSON ends. */
static void answers_in_binary_say_how_long_their_json_is(void **state)
{
    (void)state;
    static const char json[] = Y "\"parameters\":{\"binary_data_size\":8}}]}";
    struct sl_serving serving;
    struct seqlstm_http_request client = {.path = "/v2/models/m/infer"};
    char expected[300];
    open_serving(&serving);
    struct sl_job *job = make_job(&client, 1, NULL);
    job->binary_y = true;
    memcpy(job->y, "ABCDEFGH", 8);
    sl_job_answer(&serving, job);
    snprintf(expected, sizeof expected,
             "200 Content-Type=application/octet-stream Inference-Header-Content-Length=%zu %sABCDEFGH", strlen(json),
             json);
    expect_story(expected);
    close_serving(&serving);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_answers_are_left_while_others_wait),
        cmocka_unit_test(all_are_left_where_workers_are_slower_than_the_server),
        cmocka_unit_test(refusals_have_the_form_of_their_path),
        cmocka_unit_test(streams_are_given_back_before_the_answer),
        cmocka_unit_test(answers_in_parts_begin_once_and_end_once),
        cmocka_unit_test(parts_that_are_not_read_end_the_answer),
        cmocka_unit_test(answers_in_binary_say_how_long_their_json_is),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
