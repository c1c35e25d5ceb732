/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a load, as the server reads them: of which records they are, how long, that they differ, and that
 * their heads and the lengths that are told of them are right. */
#include "oom.h"
#include "served_fixture.h"

#include "serve/body/completion_read.h"
#include "serve/body/infer_read.h"
#include "serve/load/bodies.h"

enum { REQUESTS = 40, SEED = 3 };

struct world {
    struct sl_diagnostics *diagnostics;
    struct sl_session *session;
    struct sl_served_model model;
    struct sl_load_bodies bodies;
};

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void open_world(struct world *w, void **state, const char *text)
{
    static const struct sl_predictor_limits limits = {.sequences = 4, .steps = 30, .threads = 1, .chunk_steps = 8};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    *w = (struct world){.session = NULL};
    train_session(text, NULL, &w->diagnostics, &w->session);
    ok(sl_served_model_open(w->session, "m", &limits, &w->model, &err), &err);
    ok(sl_load_bodies_init(&w->bodies, w->session, "m", "here:80", REQUESTS, SEED, &err), &err);
    assert_int_equal(w->bodies.count, REQUESTS);
}

static void close_world(struct world *w)
{
    sl_load_bodies_deinit(&w->bodies);
    sl_served_model_close(&w->model);
    sl_session_close(w->session);
    sl_diagnostics_destroy(w->diagnostics);
}

static const struct sl_served_model *find_model(void *context, const char *name)
{
    struct world *w = context;
    assert_string_equal(name, "m");
    sl_served_model_hold(&w->model);
    return &w->model;
}

/* Request k as the server reads it. */
static struct sl_job *read_request(struct world *w, int64_t k, const char *path)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char head[200];
    const struct sl_buf *request = &w->bodies.requests[k];
    const bool continues = strcmp(path, "/v1/completions") == 0;
    const char *body = strstr(sl_buf_text(request), "\r\n\r\n");
    assert_non_null(body);
    body += 4;
    const size_t bytes = request->length_bytes - (size_t)(body - request->data);
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: here:80\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", path,
             bytes);
    assert_int_equal(strlen(head), body - request->data);
    assert_memory_equal(request->data, head, strlen(head));
    struct sl_job *job = sl_job_create(continues ? NULL : find_model(w, "m"), NULL);
    assert_non_null(job);
    ok(continues ? sl_completion_read(job, body, bytes, find_model, w, &err)
                 : sl_infer_read(job, body, bytes, -1, &err),
       &err);
    return job;
}

/* Of those that are as long, most have other values: a load must not find its answers in a cache. */
static void check_that_they_differ(const struct world *w)
{
    int pairs = 0, equal = 0;
    for (int64_t a = 0; a < REQUESTS; a++)
        for (int64_t b = 0; b < a; b++)
            if (w->bodies.lengths[a] == w->bodies.lengths[b] && w->bodies.lengths[a] > 2) {
                pairs++;
                equal += strcmp(w->bodies.requests[a].data, w->bodies.requests[b].data) == 0;
            }
    assert_true(pairs > 5 && 3 * equal < pairs);
}

/* The same seed draws the same, another one others. */
static void check_seeds(const struct world *w)
{
    for (uint64_t seed = SEED; seed <= SEED + 1; seed++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_load_bodies again;
        int64_t equal = 0;
        ok(sl_load_bodies_init(&again, w->session, "m", "here:80", REQUESTS, seed, &err), &err);
        for (int64_t k = 0; k < REQUESTS; k++)
            equal += strcmp(again.requests[k].data, w->bodies.requests[k].data) == 0;
        assert_true(seed == SEED ? equal == REQUESTS : equal < REQUESTS / 2);
        sl_load_bodies_deinit(&again);
    }
}

/* ---- kinds of models ------------------------------------------------------------------------------------------- */

#define REST "backends: [reference]\ndispatch: {policy: order}\n"
#define LINES                                                                                                          \
    "seqlstm: 1\nname: m\nseed: 1\ndata:\n  type: lines\n  train: {file: train.txt}\n%s  label: first\n"               \
    "  tokenizer: {type: whitespace}\n  batch_size: 2\nmodel:\n  - {type: embedding, dim: 3}\n"                        \
    "  - {type: lstm, units: 3}\n  - {type: output, activation: softmax}\ntrain: {epochs: 1}\n" REST

/* Training texts have 1, 2 or 12 tokens, those of the test split 3, 5 or 7. */
static void check_lengths(void **state, bool tests)
{
    write_file("train.txt", "yes a\nno b c\nyes a b c d e f g h a b c d\n");
    write_file("test.txt", "yes a b c\nno a b c d e\nno a b c d e f g\n");
    struct world w;
    char text[1024];
    int64_t steps = 0;
    int seen[13] = {0};
    snprintf(text, sizeof text, LINES, tests ? "  test: {file: test.txt}\n" : "");
    open_world(&w, state, text);
    for (int64_t k = 0; k < REQUESTS; k++) {
        struct sl_job *job = read_request(&w, k, "/v2/models/m/infer");
        assert_int_equal(job->count, 1);
        assert_int_equal(job->rows, w.bodies.lengths[k]);
        assert_in_range(job->rows, 1, 12);
        seen[job->rows]++;
        steps += job->rows;
        sl_job_destroy(job);
    }
    assert_int_equal(w.bodies.steps, steps);
    assert_int_equal(tests ? seen[3] + seen[5] + seen[7] : seen[1] + seen[2] + seen[12], REQUESTS);
    assert_true(tests ? seen[3] && seen[5] && seen[7] : seen[1] && seen[2] && seen[12]);
    check_that_they_differ(&w);
    check_seeds(&w);
    close_world(&w);
}

static void lengths_are_those_of_the_test_split(void **state)
{
    check_lengths(state, true);
}

static void without_tests_lengths_are_those_of_training(void **state)
{
    check_lengths(state, false);
}

/* An empty text is asked for as one token, and of a long one so much as a server takes at most. */
static void lengths_have_limits(void **state)
{
    enum { LONG = 300, MOST = 256 };
    FILE *file = fopen(scratch_path("train.txt"), "w");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w = {.session = NULL};
    int seen[MOST + 1] = {0};
    char text[1024];
    (void)state;
    assert_non_null(file);
    fputs("yes \nno a b c\nyes ", file);
    for (int k = 0; k < LONG; k++)
        fputs("a ", file);
    fputs("\n", file);
    fclose(file);
    snprintf(text, sizeof text, LINES, "");
    train_session(text, NULL, &w.diagnostics, &w.session);
    ok(sl_load_bodies_init(&w.bodies, w.session, "m", "here:80", REQUESTS, SEED, &err), &err);
    for (int64_t k = 0; k < REQUESTS; k++) {
        char shape[40];
        assert_in_range(w.bodies.lengths[k], 1, MOST);
        seen[w.bodies.lengths[k]]++;
        snprintf(shape, sizeof shape, "\"shape\":[%lld],", (long long)w.bodies.lengths[k]);
        assert_non_null(strstr(sl_buf_text(&w.bodies.requests[k]), shape));
    }
    assert_true(seen[1] > 0 && seen[3] > 0 && seen[MOST] > 0);
    assert_int_equal(seen[1] + seen[3] + seen[MOST], REQUESTS);
    sl_load_bodies_deinit(&w.bodies);
    sl_session_close(w.session);
    sl_diagnostics_destroy(w.diagnostics);
}

/* The text is the source of a record, and its length that of the source. */
static void texts_are_those_of_the_data(void **state)
{
    static const char pairs[] = "seqlstm: 1\nname: m\nseed: 2\ndata:\n"
                                "  train: {type: generator, name: addition, digits: 3, size: 60}\n  batch_size: 8\n"
                                "model:\n  encoder:\n    - {type: embedding, dim: 3}\n    - {type: lstm, units: 3}\n"
                                "  decoder:\n    - {type: embedding, dim: 3}\n"
                                "    - {type: lstm, units: 3, return_sequences: true}\n"
                                "    - {type: output, activation: softmax}\n"
                                "train: {epochs: 1, loss: cross_entropy}\n" REST;
    struct world w;
    int64_t steps = 0, least = INT64_MAX, most = 0;
    (void)state;
    open_world(&w, state, pairs);
    for (int64_t k = 0; k < REQUESTS; k++) {
        struct sl_job *job = read_request(&w, k, "/v2/models/m/infer");
        int64_t length = 0;
        assert_int_equal(job->count, 1);
        for (size_t b = 0; b < job->text_bytes[0]; b++) { /* each character is a token */
            assert_true(job->texts[0][b] == '+' || (job->texts[0][b] >= '0' && job->texts[0][b] <= '9'));
            length++;
        }
        assert_int_equal(w.bodies.lengths[k], length);
        steps += length;
        least = length < least ? length : least;
        most = length > most ? length : most;
        sl_job_destroy(job);
    }
    assert_true(least < most);
    assert_int_equal(w.bodies.steps, steps);
    check_seeds(&w);
    close_world(&w);
}

/* Prompts of tokens that the model knows, to each of which one token is written. How many have which length. */
static void count_prompts(void **state, const char *tokenizer, const char *data, int seen[32])
{
    static const char letters[] = "seqlstm: 1\nname: m\nseed: 2\ndata:\n  train: {type: text, file: text.txt}\n"
                                  "  tokenizer: {%s}\n  batching: {unit: stream, bptt: 4}\n  batch_size: 1\n"
                                  "model:\n  - {type: embedding, dim: 3}\n"
                                  "  - {type: lstm, units: 3, return_sequences: true}\n"
                                  "  - {type: output, activation: softmax}\n"
                                  "train: {task: language_model, epochs: 1}\n" REST;
    struct world w;
    char text[1024];
    int64_t steps = 0;
    write_file("text.txt", data);
    snprintf(text, sizeof text, letters, tokenizer);
    open_world(&w, state, text);
    for (int64_t k = 0; k < REQUESTS; k++) {
        struct sl_job *job = read_request(&w, k, "/v1/completions");
        const struct sl_completion *completion = job->completion;
        assert_int_equal(completion->most, 1);
        assert_true(completion->rule.temperature <= 0);
        assert_int_equal(completion->prompts[0].count, w.bodies.lengths[k]);
        assert_in_range(w.bodies.lengths[k], 1, 31);
        seen[w.bodies.lengths[k]]++;
        steps += w.bodies.lengths[k];
        sl_job_destroy(job);
    }
    assert_int_equal(w.bodies.steps, steps);
    check_that_they_differ(&w);
    check_seeds(&w);
    close_world(&w);
}

/* The ends of lines are tokens, too; that of the text is never read, but only written. */
static void prompts_are_as_long_as_lines(void **state)
{
    int seen[32] = {0};
    count_prompts(state, "type: whitespace, specials: [unk, eos]", "a b c d e f\nb c\na b c d e f g h i j\n", seen);
    assert_true(seen[3] + seen[7] + seen[10] == REQUESTS && seen[3] && seen[7] && seen[10]);
}

/* As a training reads them. */
static void without_lines_prompts_are_as_long_as_segments(void **state)
{
    int seen[32] = {0};
    count_prompts(state, "type: char", "abcdef\nab\nabcdefghij\nabcdef\nab\nabcdefghij\n", seen);
    assert_int_equal(seen[4], REQUESTS);
}

/* Numbers of as many columns as the model reads; a row is a sequence of one step where it reads no steps. */
static void values_have_the_columns_of_the_data(void **state)
{
    static const char sums[] =
        "seqlstm: 1\nname: m\nseed: 1\n"
        "data: {type: generator, name: adding_problem, length: 6, train: {size: 8}, batch_size: 4}\n"
        "model:\n  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"
        "train: {epochs: 1, loss: mse}\n" REST;
    struct world w;
    (void)state;
    open_world(&w, state, sums);
    for (int64_t k = 0; k < REQUESTS; k++) {
        struct sl_job *job = read_request(&w, k, "/v2/models/m/infer");
        const float *x = job->x;
        assert_int_equal(job->rows, w.bodies.lengths[k]);
        for (int64_t e = 0; e < job->rows * 2; e++)
            assert_true(x[e] >= 0 && x[e] < 1);
        sl_job_destroy(job);
    }
    check_that_they_differ(&w);
    check_seeds(&w);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lengths_are_those_of_the_test_split, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(without_tests_lengths_are_those_of_training, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(lengths_have_limits, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(texts_are_those_of_the_data, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(prompts_are_as_long_as_lines, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(without_lines_prompts_are_as_long_as_segments, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(values_have_the_columns_of_the_data, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
