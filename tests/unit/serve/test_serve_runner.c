/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences, texts and streams that one worker computes beside each other: each request is answered once, with what it
 * is answered alone, in every way of batching; and what is counted is what was asked for. */
#include "oom.h"
#include "served_fixture.h"

#include "serve/body/completion_read.h"
#include "serve/body/infer_read.h"
#include "serve/compute/runner.h"
#include "serve/models.h"
#include "serve/server.h"

enum { SEQUENCES = 4, CHUNK = 16, VALUES_MOST = 2000, RUNS_MOST = 400 };

/* ---- clients ----------------------------------------------------------------------------------------------- */

struct seqlstm_http_request {
    bool gone;
    int32_t status; /* of its answer; 0: it waits */
    int answers;
    struct sl_buf body;
};

static int32_t is_gone(const struct seqlstm_http_request *request)
{
    return request->gone;
}

static const char *get_path(const struct seqlstm_http_request *request)
{
    (void)request;
    return "/v2/models/m/infer";
}

static int32_t reply(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err)
{
    (void)headers, (void)err;
    request->status = status;
    request->answers++;
    sl_buf_append(&request->body, body, bytes);
    return SEQLSTM_OK;
}

static const struct seqlstm_http_module http = {
    .struct_size = sizeof http, .get_path = get_path, .is_gone = is_gone, .reply = reply};

/* ---- a server without connections -------------------------------------------------------------------------- */

struct world {
    struct sl_diagnostics *diagnostics;
    struct sl_session *session;
    struct sl_served_model model;
    struct sl_serving serving;
    struct sl_runner runner;
    struct sl_history history;
};

static const char letters[] = "seqlstm: 1\nname: m\nseed: 2\ndata:\n  train: {type: text, file: text.txt}\n"
                              "  tokenizer: {type: char}\n  batching: {unit: stream, bptt: 8}\n  batch_size: 2\n"
                              "model:\n  - {type: embedding, dim: 4}\n"
                              "  - {type: lstm, units: 5, layers: 2, return_sequences: true}\n"
                              "  - {type: output, activation: softmax}\n"
                              "train: {task: language_model, epochs: 1, optimizer: {type: adam, learning_rate: 0.1}}\n"
                              "backends: [reference]\ndispatch: {policy: order}\n";

/* Needs whole sequences, and gives one row for each. */
static const char sums[] = "seqlstm: 1\nname: m\nseed: 1\n"
                           "data: {type: generator, name: adding_problem, length: 6, train: {size: 8}, batch_size: 4}\n"
                           "model:\n  - {type: lstm, units: 3, direction: bidirectional}\n"
                           "  - {type: dense, units: from_target}\n"
                           "train: {epochs: 1, loss: mse}\nbackends: [reference]\ndispatch: {policy: order}\n";

static int open_world(void **state, const char *text)
{
    static const struct sl_predictor_limits limits = {.sequences = 2 * SEQUENCES, /* those of padding, too */
                                                      .steps = 64,
                                                      .rows = 512,
                                                      .threads = 1,
                                                      .stream_steps = CHUNK,
                                                      .chunk_steps = CHUNK};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    assert_int_equal(scratch_make(state), 0);
    FILE *file = fopen(scratch_path("text.txt"), "w");
    assert_non_null(file);
    for (int k = 0; k < 8; k++)
        fputs("the cat saw a dog.\nno dog saw it\n", file);
    fclose(file);
    train_session(text, NULL, &w->diagnostics, &w->session);
    ok(sl_served_model_open(w->session, "m", &limits, &w->model, &err), &err);
    w->model.sequences = SEQUENCES;
    *state = w;
    return 0;
}

static int open_letters(void **state)
{
    return open_world(state, letters);
}

static int open_sums(void **state)
{
    return open_world(state, sums);
}

static int close_world(void **state)
{
    struct world *w = *state;
    assert_int_equal(atomic_load(&w->model.uses->count), 1); /* no job or stream has kept it */
    sl_served_model_close(&w->model);
    sl_session_close(w->session);
    sl_diagnostics_destroy(w->diagnostics);
    free(w);
    return scratch_remove(state);
}

struct way {
    enum sl_serve_batching batching;
    bool reproducible;
    int64_t target_ns;
};

static const struct way ways[] = {{SL_BATCHING_STEPS, false, 0},
                                  {SL_BATCHING_STEPS, false, 1},
                                  {SL_BATCHING_PADDED, false, 0},
                                  {SL_BATCHING_STEPS, true, 0}};
enum { WAYS = sizeof ways / sizeof *ways };

static void open_runner(struct world *w, const struct way *way)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_history_init(&w->history);
    w->serving = (struct sl_serving){.http = &http,
                                     .batching = way->batching,
                                     .reproducible = way->reproducible,
                                     .target_ns = way->target_ns,
                                     .workers = 1,
                                     .history = &w->history};
    sl_job_queue_init(&w->serving.queue, 16);
    sl_counters_init(&w->serving.counters);
    sl_stream_table_init(&w->serving.streams, 4, 4, INT64_MAX);
    ok(sl_runner_init(&w->runner, &w->serving, &w->model, &err), &err);
}

static void close_runner(struct world *w)
{
    sl_runner_deinit(&w->runner);
    sl_stream_table_deinit(&w->serving.streams);
    sl_counters_deinit(&w->serving.counters);
    sl_job_queue_deinit(&w->serving.queue);
    sl_history_deinit(&w->history);
}

static const struct sl_served_model *find_model(void *context, const char *name)
{
    struct world *w = context;
    assert_string_equal(name, "m");
    sl_served_model_hold(&w->model);
    return &w->model;
}

/* The client asks; bodies that name a model are of texts to be continued. */
static struct sl_job *ask(struct world *w, struct seqlstm_http_request *client, const char *body)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const bool continues = strncmp(body, "{\"model\"", 8) == 0;
    bool waits = false;
    *client = (struct seqlstm_http_request){.gone = false};
    struct sl_job *job = sl_job_create(continues ? NULL : find_model(w, "m"), client);
    assert_non_null(job);
    ok(continues ? sl_completion_read(job, body, strlen(body), find_model, w, &err)
                 : sl_infer_read(job, body, strlen(body), -1, &err),
       &err);
    if (continues)
        job->completion->created_s = 0;
    job->checked_ns = INT64_MAX / 2; /* whether it is there is asked where the test wants it */
    if (job->stream_id)
        ok(sl_stream_table_claim(&w->serving.streams, job, &waits, &err), &err);
    if (!waits)
        sl_runner_add(&w->runner, job);
    return job;
}

static void see(void *context, const struct sl_job *job)
{
    (void)context, (void)job;
}

static void choose(void *context)
{
    (void)context;
}

static bool wants(void *context, const struct sl_job *job)
{
    (void)context, (void)job;
    return true;
}

static void run_to_the_end(struct world *w)
{
    static const struct sl_job_taker taker = {.look = see, .choose = choose, .wants = wants};
    for (int n = 0; sl_runner_is_busy(&w->runner); n++) {
        struct sl_job *jobs = NULL;
        if (n == RUNS_MOST)
            fail_msg("a job is never answered");
        sl_runner_run(&w->runner);
        assert_true(sl_job_queue_take(&w->serving.queue, false, &taker, &jobs));
        while (jobs) { /* those that waited for their stream */
            struct sl_job *job = jobs;
            jobs = job->next;
            job->next = NULL;
            sl_runner_add(&w->runner, job);
        }
    }
    sl_job_destroy_retired(&w->serving.retired);
}

/* ---- answers ----------------------------------------------------------------------------------------------- */

/* Numbers may differ by rounding, everything else is the same. */
static void expect_same(const char *a, const char *b)
{
    while (*a && *b) {
        char *a_end, *b_end;
        const bool numbers = strchr("-0123456789", *a) && strchr("-0123456789", *b);
        const double x = numbers ? strtod(a, &a_end) : 0, y = numbers ? strtod(b, &b_end) : 0;
        if (numbers && a_end > a && b_end > b) {
            if (!(x - y <= 1e-5 && y - x <= 1e-5))
                break;
            a = a_end;
            b = b_end;
        } else if (*a++ != *b++)
            break;
    }
    if (*a || *b)
        fail_msg("'%.100s' and '%.100s'", a, b);
}

static void forget(struct seqlstm_http_request *clients, int count)
{
    for (int k = 0; k < count; k++)
        sl_buf_deinit(&clients[k].body);
}

static void check_answers(const struct seqlstm_http_request *clients, const struct seqlstm_http_request *alone,
                          int count)
{
    for (int k = 0; k < count; k++) {
        assert_int_equal(clients[k].answers, 1);
        assert_int_equal(clients[k].status, 200);
        expect_same(sl_buf_text(&clients[k].body), sl_buf_text(&alone[k].body));
    }
}

/* All requests at once, in each way, against what each gets by itself; the sequences and steps that are counted. */
static void check_together(struct world *w, const char *const *bodies, int count, int64_t sequences, int64_t rows)
{
    enum { REQUESTS_MOST = 12 };
    struct seqlstm_http_request alone[REQUESTS_MOST], clients[REQUESTS_MOST];
    assert_true(count <= REQUESTS_MOST);
    open_runner(w, &ways[0]);
    for (int k = 0; k < count; k++) {
        ask(w, &alone[k], bodies[k]);
        run_to_the_end(w);
        assert_int_equal(alone[k].status, 200);
    }
    assert_int_equal(w->serving.counters.sequences, sequences);
    assert_int_equal(w->serving.counters.rows, rows);
    close_runner(w);
    for (int way = 0; way < WAYS; way++) {
        open_runner(w, &ways[way]);
        for (int round = 1; round <= 2; round++) { /* the second finds what the first has left */
            for (int k = 0; k < count; k++)
                ask(w, &clients[k], bodies[k]);
            run_to_the_end(w);
            check_answers(clients, alone, count);
            forget(clients, count);
            assert_int_equal(w->serving.counters.sequences, round * sequences);
            assert_int_equal(w->serving.counters.rows, round * rows);
            assert_int_equal(w->serving.counters.answered[2], round * count);
        }
        close_runner(w);
    }
    forget(alone, count);
}

#define TEXTS(count, texts)                                                                                            \
    "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[" count "],\"data\":[" texts "]}]}"
#define PROMPT(prompt, more) "{\"model\":\"m\",\"prompt\":" prompt "," more "}"

static void letters_are_those_of_each_alone(void **state)
{
    static const char *const bodies[] = {
        TEXTS("3", "\"the\",\"a cat saw a dog and a dog saw it\",\"\""),
        PROMPT("\"the \"", "\"seed\":5,\"max_tokens\":9,\"n\":3"),
        TEXTS("1", "\"saw a dog. no dog saw\""),
        PROMPT("[\"a\",\"dog saw the cat saw a dog\"]", "\"seed\":7,\"max_tokens\":4,\"n\":2,\"echo\":true"),
        TEXTS("0", ""),
        TEXTS("5", "\"t\",\"he\",\"cat\",\"saw \",\"a dog\""),
        PROMPT("\"it\"", "\"seed\":3,\"temperature\":0,\"max_tokens\":30"),
    };
    /* a text of n tokens has n - 1 steps behind its prompt */
    const int64_t rows = 3 + 32 + 3 * (4 + 8) + 21 + 2 * (1 + 3) + 2 * (25 + 3) + (1 + 2 + 3 + 4 + 5) + 2 + 29;
    check_together(*state, bodies, sizeof bodies / sizeof *bodies, 3 + 3 + 1 + 4 + 5 + 1, rows);
}

#define X(steps, values, lengths)                                                                                      \
    "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[" steps ",2],\"data\":[" values "]}" lengths "]}"
#define LENGTHS(count, lengths)                                                                                        \
    ",{\"name\":\"lengths\",\"datatype\":\"INT32\",\"shape\":[" count "],\"data\":[" lengths "]}"

static void whole_sequences_are_those_of_each_alone(void **state)
{
    static const char *const bodies[] = {
        X("3", "0.5,1,0.25,0,0.125,1", ""),
        X("6", "1,1,2,0,3,1,4,0,5,1,6,0", LENGTHS("4", "2,0,1,3")),
        X("1", "0.75,1", ""),
        X("5", "0.1,1,0.2,0,0.3,1,0.4,0,0.5,1", LENGTHS("5", "1,1,1,1,1")),
        X("0", "", LENGTHS("2", "0,0")),
    };
    check_together(*state, bodies, sizeof bodies / sizeof *bodies, 1 + 4 + 1 + 5 + 2, 3 + 6 + 1 + 5);
}

/* ---- streams ----------------------------------------------------------------------------------------------- */

#define PART(text, more)                                                                                               \
    "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"" text                           \
    "\"]}],\"parameters\":{\"sequence_id\":" more "}}"

/* The numbers of an answer. */
static int read_values(const struct seqlstm_http_request *client, double *out)
{
    const char *at = strstr(sl_buf_text(&client->body), "\"data\":[");
    int count = 0;
    assert_int_equal(client->status, 200);
    assert_non_null(at);
    at += strlen("\"data\":[");
    while (*at != ']') {
        char *end;
        assert_true(count < VALUES_MOST);
        out[count++] = strtod(at, &end);
        at = end + (*end == ',');
    }
    return count;
}

static void expect_values(const struct seqlstm_http_request *parts, int count, const struct seqlstm_http_request *whole)
{
    static double got[VALUES_MOST], want[VALUES_MOST];
    int values = 0;
    for (int k = 0; k < count; k++)
        values += read_values(&parts[k], got + values);
    assert_int_equal(values, read_values(whole, want));
    for (int k = 0; k < values; k++)
        assert_true(got[k] - want[k] <= 1e-5 && want[k] - got[k] <= 1e-5);
}

/* Parts of two streams, beside texts; the second one begins anew in between, without having ended. */
static void streams_go_on_where_they_were(void **state)
{
    struct world *w = *state;
    static const char *const bodies[] = {
        PART("the c", "\"s\",\"sequence_start\":true"),
        PART("no dog saw it twice and", "7,\"sequence_start\":true"),
        PART("at saw a dog. no do", "\"s\""),
        PART("no ", "7,\"sequence_start\":true"),
        PROMPT("\"the \"", "\"seed\":5,\"max_tokens\":9,\"n\":2"),
        PART("g", "\"s\",\"sequence_end\":true"),
        PART("dog", "7,\"sequence_end\":true"),
    };
    static const int first[] = {0, 2, 5}, second[] = {3, 6};
    enum { REQUESTS = sizeof bodies / sizeof *bodies };
    struct seqlstm_http_request clients[REQUESTS], parts[3], whole[2];
    for (int way = 0; way < WAYS; way++)
        for (int left = 0; left < 2; left++) { /* clients that leave do not stop what has begun */
            int64_t expired;
            open_runner(w, &ways[way]);
            for (int k = 0; k < REQUESTS; k++) {
                struct sl_job *job = ask(w, &clients[k], bodies[k]);
                if (job->stream_id && left) {
                    clients[k].gone = true;
                    job->checked_ns = 0;
                }
            }
            run_to_the_end(w);
            assert_int_equal(sl_stream_table_count(&w->serving.streams, &expired), 0);
            ask(w, &whole[0], TEXTS("1", "\"the cat saw a dog. no dog\""));
            ask(w, &whole[1], TEXTS("1", "\"no dog\""));
            run_to_the_end(w);
            for (int k = 0; k < REQUESTS; k++)
                assert_int_equal(clients[k].answers, 1);
            for (int k = 0; k < 3; k++)
                parts[k] = clients[first[k]];
            expect_values(parts, 3, &whole[0]);
            for (int k = 0; k < 2; k++)
                parts[k] = clients[second[k]];
            expect_values(parts, 2, &whole[1]);
            assert_int_equal(w->serving.counters.gone, 0);
            forget(clients, REQUESTS);
            forget(whole, 2);
            close_runner(w);
        }
}

/* Those of others go on. */
static void jobs_of_clients_that_have_left_are_dropped(void **state)
{
    struct world *w = *state;
    static const char *const bodies[] = {
        TEXTS("2", "\"the cat saw a dog. no dog saw the cat\",\"a dog saw a cat and a cat and a cat\""),
        PROMPT("\"no \"", "\"seed\":6,\"max_tokens\":40,\"n\":2"), PROMPT("\"the \"", "\"seed\":5,\"max_tokens\":9")};
    struct seqlstm_http_request clients[3], alone;
    open_runner(w, &ways[0]);
    ask(w, &alone, bodies[2]);
    run_to_the_end(w);
    for (int gone = 0; gone < 2; gone++) {
        struct sl_job *jobs[3];
        for (int k = 0; k < 3; k++)
            jobs[k] = ask(w, &clients[k], bodies[k]);
        sl_runner_run(&w->runner);
        clients[gone].gone = true;
        for (int k = 0; k < 3; k++)
            jobs[k]->checked_ns = 0;
        run_to_the_end(w);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(clients[k].answers, 1);
            assert_int_equal(clients[k].status, k == gone ? 499 : 200);
        }
        expect_same(sl_buf_text(&clients[2].body), sl_buf_text(&alone.body));
        assert_int_equal(w->serving.counters.gone, gone + 1);
        forget(clients, 3);
    }
    forget(&alone, 1);
    close_runner(w);
}

/* ---- batches ----------------------------------------------------------------------------------------------- */

static void expect_batches(const struct world *w, const char *expected)
{
    struct sl_buf found = {0};
    for (int64_t k = 0; k < w->history.count; k++) {
        const struct sl_history_event *e = &w->history.events[k];
        assert_true(e->number == -1 && e->begin_ns < e->end_ns);
        sl_buf_printf(&found, "%lldx%lld:%lld ", (long long)e->sequences, (long long)e->steps, (long long)e->rows);
    }
    assert_string_equal(sl_buf_text(&found), expected);
    sl_buf_deinit(&found);
}

/* Sequences x steps of the longest : steps of all. Prompts are read in large chunks; while texts are written others
 * take few steps at a time, wherever they stand. */
static void batches_are_short_while_texts_are_written(void **state)
{
    struct world *w = *state;
    static const char *const bodies[] = {TEXTS("1", "\"the cat saw a dog. no dog saw the cat the cat saw a dog. no \""),
                                         PROMPT("\"a cat saw a dog and \"", "\"seed\":1,\"max_tokens\":3")};
    struct seqlstm_http_request clients[2];
    for (int swaps = 0; swaps < 2; swaps++) {
        open_runner(w, &ways[0]);
        ask(w, &clients[0], bodies[swaps]);
        ask(w, &clients[1], bodies[1 - swaps]);
        run_to_the_end(w);
        expect_batches(w, "2x16:32 2x16:20 2x8:9 2x8:9 1x12:12 ");
        forget(clients, 2);
        close_runner(w);
    }
}

/* What pads a batch of texts takes as many steps as the longest of those that are written, and does not count. */
static void padding_follows_the_longest(void **state)
{
    struct world *w = *state;
    struct seqlstm_http_request clients[2];
    open_runner(w, &ways[2]);
    ask(w, &clients[0], PROMPT("\"the cat\"", "\"seed\":1,\"max_tokens\":2"));
    ask(w, &clients[1], PROMPT("\"a\"", "\"seed\":1,\"max_tokens\":5"));
    run_to_the_end(w);
    expect_batches(w, "2x7:8 2x1:2 1x1:1 1x1:1 1x1:1 ");
    forget(clients, 2);
    close_runner(w);
}

/* Padding needs as many sequences again, so that as many requests fit as were asked for. */
static void padding_has_room_of_its_own(void **state)
{
    struct world *w = *state;
    const char *const names[] = {"m"};
    for (int padded = 0; padded < 2; padded++)
        for (int64_t wanted = 0; wanted <= 6; wanted += 6) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_models models;
            const struct sl_server_request request = {.sessions = &w->session,
                                                      .names = names,
                                                      .count = 1,
                                                      .threads = 1,
                                                      .steps = 5000,
                                                      .sequences = wanted,
                                                      .batching = padded ? SL_BATCHING_PADDED : SL_BATCHING_STEPS};
            ok(sl_models_init(&models, &request, &err), &err);
            const struct sl_served_model *model = models.newest[0];
            const struct sl_envelope *most = &sl_predictor_find_graph(model->predictor, SL_USE_WHOLE)->facts.envelope;
            assert_int_equal(model->sequences, wanted ? wanted : 64);
            assert_int_equal(most->sequences, model->sequences * (padded ? 2 : 1));
            assert_int_equal(most->rows, (padded ? 2 : 1) * 5000);
            sl_models_deinit(&models);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(letters_are_those_of_each_alone, open_letters, close_world),
        cmocka_unit_test_setup_teardown(whole_sequences_are_those_of_each_alone, open_sums, close_world),
        cmocka_unit_test_setup_teardown(streams_go_on_where_they_were, open_letters, close_world),
        cmocka_unit_test_setup_teardown(jobs_of_clients_that_have_left_are_dropped, open_letters, close_world),
        cmocka_unit_test_setup_teardown(batches_are_short_while_texts_are_written, open_letters, close_world),
        cmocka_unit_test_setup_teardown(padding_follows_the_longest, open_letters, close_world),
        cmocka_unit_test_setup_teardown(padding_has_room_of_its_own, open_letters, close_world),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
