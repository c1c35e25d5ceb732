/* SPDX-License-Identifier: Apache-2.0 */
/* Which answers a worker writes, and which it leaves to the thread of the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "serve/compute/replies.h"

enum { JOBS = 5 };

struct seqlstm_http_request {
    int answers;
};

static int32_t reply(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err)
{
    (void)headers, (void)body, (void)err;
    assert_true(status == 200 && bytes > 0);
    request->answers++;
    return SEQLSTM_OK;
}

static const struct seqlstm_http_module http = {.struct_size = sizeof http, .reply = reply};
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

/* How many of JOBS answers of so many rows are left when workers compute for so long for each. */
static int count_left(int workers, int64_t waiting, int64_t rows, double sequence_ns)
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
    assert_int_equal(count_left(1, 1, 16, 0), JOBS - 1);
    assert_int_equal(count_left(1, 1, 15, 0), 0);
    assert_int_equal(count_left(1, 0, 16, 0), 0);
}

/* The thread of the server takes 30 microseconds for a request: it has time if all workers together take longer. */
static void all_are_left_where_workers_are_slower_than_the_server(void **state)
{
    (void)state;
    assert_int_equal(count_left(1, 1, 1, 31000), JOBS - 1);
    assert_int_equal(count_left(1, 1, 1, 29000), 0);
    assert_int_equal(count_left(3, 1, 1, 91000), JOBS - 1);
    assert_int_equal(count_left(3, 1, 1, 89000), 0);
    assert_int_equal(count_left(1, 0, 1, 31000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_answers_are_left_while_others_wait),
        cmocka_unit_test(all_are_left_where_workers_are_slower_than_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
