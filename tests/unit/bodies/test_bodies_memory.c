/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are read, and answers that are written, while one allocation after the other fails. */
#include "bodies_fixture.h"
#include "oom.h"

/* What a whole request of each kind looks like. */
static const struct {
    enum kind kind;
    const char *body, *binary;
    size_t binary_bytes;
} requests[] = {
    {VALUES,
     MORE(X("FP32", "[3,2]", "[1,2,3,4,5,6]") "," LENGTHS("[1]", "[3]"),
          "\"id\":\"a\",\"parameters\":{\"sequence_id\":\"s\",\"sequence_start\":true}"),
     NULL, 0},
    {ROWS, INPUTS(X("FP32", "[3]", "[1,2,3]")), NULL, 0},
    {IDS, MORE(X("INT64", "[3]", "[0,4,2]"), "\"parameters\":{\"sequence_id\":7,\"binary_data_output\":true}"), "", 0},
    {IDS, INPUTS(BINARY("x", "INT32", "[2]", "8") "," BINARY("lengths", "INT64", "[2]", "16")),
     "\4\0\0\0\0\0\0\0"
     "\2\0\0\0\0\0\0\0"
     "\0\0\0\0\0\0\0\0",
     24},
    {TEXTS,
     MORE(TEXT("[3]", "[\"a b\",\"\",\"c\"]"), "\"id\":\"b\",\"outputs\":[{\"name\":\"label\"},{\"name\":\"y\"}]"),
     NULL, 0},
    {TEXTS, MORE(TEXT("[2]", "[\"a b\",\"c\"]"), "\"parameters\":{\"binary_data_output\":true}"), "", 0},
    {DECODER, INPUTS(TEXT("[3]", "[\"a b\",\"\",\"x y z w\"]")), NULL, 0},
    {DECODER, MORE(BINARY("text", "BYTES", "[2]", "11"), "\"parameters\":{\"binary_data_output\":true}"),
     "\3\0\0\0a b\0\0\0\0", 11},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

static const char *const continued[] = {
    "{\"model\":\"letters\",\"prompt\":[\"ab\",\"b\"],\"n\":2,\"echo\":true,\"stop\":[\"a\",\"bc\"],\"max_tokens\":3}",
    "{\"model\":\"letters\",\"prompt\":[[0,1],[1]],\"stop\":\"c\",\"stream\":true,\"stream_options\":"
    "{\"include_usage\":true}}",
    "{\"model\":\"letters\",\"prompt\":[1],\"seed\":3}",
};
enum { CONTINUED = sizeof continued / sizeof *continued };

/* Asks for request k, which sl_job_destroy forgets. */
static seqlstm_status read_request(int k, struct sl_job *job, struct seqlstm_error *err)
{
    char body[600];
    const bool infers = k < REQUESTS;
    const char *text = infers ? requests[k].body : continued[k - REQUESTS];
    const size_t bytes = strlen(text), more = infers && requests[k].binary ? requests[k].binary_bytes : 0;
    assert_true(bytes + more <= sizeof body);
    memcpy(body, text, bytes);
    if (more > 0)
        memcpy(body + bytes, requests[k].binary, more);
    if (infers)
        return sl_infer_read(job, body, bytes + more, requests[k].binary ? (int64_t)bytes : -1, err);
    return sl_completion_read(job, body, bytes, find_model, NULL, err);
}

static struct sl_job *make_job(int k)
{
    struct sl_job *job = sl_job_create(k < REQUESTS ? &models[requests[k].kind] : NULL, NULL);
    assert_non_null(job);
    return job;
}

static void test_what_cannot_be_read_is_an_error(void **state)
{
    (void)state;
    for (int k = 0; k < REQUESTS + CONTINUED; k++)
        for (int n = 1;; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_job *job = make_job(k);
            oom_fail_at(n);
            const seqlstm_status status = read_request(k, job, &err);
            const bool failed = oom_disarm();
            sl_job_destroy(job);
            assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
            if (!failed)
                break;
            assert_string_equal(err.message, "no memory for the request");
        }
}

/* Writes all of what is told of job k, part by part. */
static void write_answer(int k, struct sl_job *job, struct sl_buf *out)
{
    int64_t json_bytes = 0;
    if (k < REQUESTS) {
        sl_infer_write(job, out, &json_bytes);
        sl_buf_printf(out, " %lld", (long long)json_bytes);
        return;
    }
    for (int64_t c = 0; c < job->count; c++) {
        job->completion->choices[c].fixed = job->completion->choices[c].text.length_bytes;
        sl_completion_write_event(job, c, out);
    }
    sl_completion_write_end(job, out);
    sl_completion_write(job, out);
}

/* Nothing is told in part. */
static void test_what_cannot_be_written_is_known(void **state)
{
    (void)state;
    for (int k = 0; k < REQUESTS + CONTINUED; k++)
        for (int n = 1;; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_buf out = {0};
            struct sl_job *job = make_job(k);
            assert_int_equal(read_request(k, job, &err), SEQLSTM_OK);
            if (k < REQUESTS)
                fill_results(job);
            for (int64_t c = 0; k >= REQUESTS && c < job->count; c++)
                job->completion->choices[c].finish = "length";
            oom_fail_at(n);
            write_answer(k, job, &out);
            const bool failed = oom_disarm();
            assert_int_equal(out.failed, failed);
            sl_buf_deinit(&out);
            sl_job_destroy(job);
            if (!failed)
                break;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_cannot_be_read_is_an_error),
        cmocka_unit_test(test_what_cannot_be_written_is_known),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
