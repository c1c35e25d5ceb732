/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of decoders that are written beside each other, on a device and in a process in which something fails: each job
 * is answered once, and those that come later are computed. */
#include "served_fixture.h"

#include "oom.h"
#include "serve/compute/runner.h"
#include "serve/models.h"
#include "serve/server.h"

/* A decoder that has not learned to end: each text has MOST tokens. */
static const char pairs[] = "seqlstm: 1\nname: pairs\nseed: 2\n"
                            "data:\n  train: {type: generator, name: addition, digits: 2, size: 38}\n  batch_size: 8\n"
                            "model:\n  encoder:\n    - {type: embedding, dim: 4}\n"
                            "    - {type: lstm, units: 4, return_sequences: true}\n"
                            "  decoder:\n    - {type: embedding, dim: 4}\n"
                            "    - {type: lstm, units: 4, return_sequences: true, initial_state: lstm_1}\n"
                            "    - {type: attention, score: general}\n    - {type: output, activation: softmax}\n"
                            "train: {epochs: 1, optimizer: {type: adam, learning_rate: 1e-9}, loss: cross_entropy}\n"
                            "decode: {beam: 1, max_length: 6}\nbackends: [fake-a, reference]\n"
                            "dispatch: {policy: order}\n";

enum { SEQUENCES = 4, RUNS_MOST = 40 };

static const struct sl_predictor_limits limits = {.sequences = SEQUENCES, .steps = 40, .threads = 1};

/* ---- clients ----------------------------------------------------------------------------------------------- */

struct seqlstm_http_request {
    bool gone;
    int32_t status; /* of its answer; 0: it waits */
    int answers;
    int place; /* among all answers */
    char body[512];
};

static int places;

static int32_t is_gone(const struct seqlstm_http_request *request)
{
    return request->gone;
}

static const char *get_path(const struct seqlstm_http_request *request)
{
    (void)request;
    return "/v2/models/pairs/infer";
}

static int32_t reply(struct seqlstm_http_request *request, int32_t status, const struct seqlstm_http_header *headers,
                     const void *body, uint64_t bytes, struct seqlstm_error *err)
{
    (void)headers;
    (void)err;
    request->status = status;
    request->answers++;
    request->place = places++;
    if (bytes >= sizeof request->body)
        bytes = sizeof request->body - 1;
    if (bytes > 0)
        memcpy(request->body, body, bytes);
    request->body[bytes] = '\0';
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
};

static int open_world(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char folder[512];
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    assert_int_equal(scratch_make(state), 0);
    snprintf(folder, sizeof folder, "%s/tests/gpu", getenv("SEQLSTM_BUILD"));
    train_session(pairs, folder, &w->diagnostics, &w->session);
    ok(sl_served_model_open(w->session, "pairs", &limits, &w->model, &err), &err);
    assert_true(w->model.decodes);
    w->serving.http = &http;
    sl_job_queue_init(&w->serving.queue, 16);
    sl_counters_init(&w->serving.counters);
    ok(sl_runner_init(&w->runner, &w->serving, &w->model, &err), &err);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    sl_runner_deinit(&w->runner);
    sl_counters_deinit(&w->serving.counters);
    sl_job_queue_deinit(&w->serving.queue);
    sl_served_model_close(&w->model);
    sl_session_close(w->session);
    sl_diagnostics_destroy(w->diagnostics);
    free(w);
    return scratch_remove(state);
}

/* The client asks for the answers to some texts. */
static struct sl_job *ask_several(struct world *w, struct seqlstm_http_request *client, const char *const *texts,
                                  int64_t count)
{
    *client = (struct seqlstm_http_request){.gone = false};
    struct sl_job *job = sl_job_create(&w->model, client);
    assert_non_null(job);
    job->count = count;
    job->texts = calloc((size_t)count, sizeof *job->texts);
    job->text_bytes = calloc((size_t)count, sizeof *job->text_bytes);
    job->written = calloc((size_t)count, sizeof *job->written);
    assert_true(job->texts && job->text_bytes && job->written && sl_job_prepare_failure(job));
    for (int64_t k = 0; k < count; k++) {
        job->texts[k] = strdup(texts[k]);
        job->text_bytes[k] = strlen(texts[k]);
    }
    job->wants_labels = job->wants_y = true;
    sl_served_model_hold(&w->model);
    sl_runner_add(&w->runner, job);
    return job;
}

static struct sl_job *ask(struct world *w, struct seqlstm_http_request *client, const char *text)
{
    return ask_several(w, client, &text, 1);
}

static void run_to_the_end(struct world *w)
{
    for (int n = 0; n < RUNS_MOST && sl_runner_is_busy(&w->runner); n++)
        sl_runner_run(&w->runner);
    if (sl_runner_is_busy(&w->runner))
        fail_msg("a job is never answered");
    sl_job_destroy_retired(&w->serving.retired);
}

static void fail_next_read(void)
{
    setenv("SEQLSTM_FAKE_FAIL_READ", "1", 1);
}

static bool has_read_failed(void)
{
    const bool failed = getenv("SEQLSTM_FAKE_FAIL_READ") == NULL;
    unsetenv("SEQLSTM_FAKE_FAIL_READ");
    return failed;
}

/* Texts 2 and 3 are begun, and the client of text 1, which is the first in the batch, has left. */
static void leave_first(struct world *w, struct seqlstm_http_request clients[3])
{
    struct sl_job *first = ask(w, &clients[0], "11+2");
    ask(w, &clients[1], "3+44");
    ask(w, &clients[2], "5+5");
    sl_runner_run(&w->runner);
    assert_int_equal(w->runner.count, 3);
    clients[0].gone = true;
    first->checked_ns = 0;
}

/* ---- tests ------------------------------------------------------------------------------------------------- */

static void texts_do_not_depend_on_those_that_leave(void **state)
{
    struct world *w = *state;
    static struct seqlstm_http_request alone[2], clients[3];
    ask(w, &alone[0], "3+44");
    run_to_the_end(w);
    ask(w, &alone[1], "5+5");
    run_to_the_end(w);
    leave_first(w, clients);
    run_to_the_end(w);
    assert_int_equal(clients[0].status, 499);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(alone[k].status, 200);
        assert_string_equal(clients[1 + k].body, alone[k].body);
    }
}

/* The items of `what` in an answer, without brackets. */
static void cut(const struct seqlstm_http_request *client, const char *what, char out[200])
{
    const char *at = strstr(client->body, what);
    assert_int_equal(client->status, 200);
    assert_non_null(at);
    at = strstr(at, "\"data\":[") + strlen("\"data\":[");
    snprintf(out, 200, "%.*s", (int)strcspn(at, "]"), at);
}

/* Texts of one request, some longer than others and more than are written at once, are in their order. */
static void texts_of_one_request_are_those_of_each_alone(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"3+44", "5", "11+22", "7+8", "99+1", "6+6"};
    enum { TEXTS = sizeof texts / sizeof *texts };
    static struct seqlstm_http_request alone, together;
    char scores[600] = "", written[600] = "", part[200];
    for (int k = 0; k < TEXTS; k++) {
        ask(w, &alone, texts[k]);
        run_to_the_end(w);
        cut(&alone, "\"score\"", part);
        snprintf(scores + strlen(scores), 100, "%s%s", k ? "," : "", part);
        cut(&alone, "\"name\":\"text\"", part);
        snprintf(written + strlen(written), 100, "%s%s", k ? "," : "", part);
    }
    for (int round = 0; round < 2; round++) {
        ask_several(w, &together, texts, TEXTS);
        run_to_the_end(w);
        cut(&together, "\"name\":\"text\"", part);
        assert_string_equal(part, written);
        cut(&together, "\"score\"", part);
        for (const char *a = part, *b = scores; *a && *b; a += *a == ',', b += *b == ',') {
            char *a_end, *b_end;
            const double x = strtod(a, &a_end), y = strtod(b, &b_end);
            assert_true(x - y < 1e-5 && y - x < 1e-5);
            a = a_end;
            b = b_end;
        }
    }
}

/* The states of the others are on a device, from which they cannot be read when a client has left. */
static void states_that_cannot_be_moved_are_an_error(void **state)
{
    struct world *w = *state;
    static struct seqlstm_http_request clients[3], next;
    leave_first(w, clients);
    fail_next_read();
    run_to_the_end(w);
    assert_true(has_read_failed());
    for (int k = 1; k < 3; k++) {
        assert_int_equal(clients[k].status, 500);
        assert_int_equal(clients[k].answers, 1);
        assert_non_null(strstr(clients[k].body, "failed on purpose"));
    }
    ask(w, &next, "3+44");
    run_to_the_end(w);
    assert_int_equal(next.status, 200);
}

/* The second text joins while the n-th allocation and all that follow fail, and with `reads` a read from the device,
 * too. Returns whether there were so many; counts the first texts that were written all the same. */
static bool join_in_trouble(struct world *w, int n, bool reads, const char *known, int *served)
{
    static struct seqlstm_http_request clients[2];
    ask(w, &clients[0], "3+44");
    sl_runner_run(&w->runner);
    ask(w, &clients[1], "5+5");
    if (reads)
        fail_next_read();
    oom_fail_from(n);
    sl_runner_run(&w->runner);
    const bool failed = oom_disarm();
    has_read_failed();
    run_to_the_end(w);
    for (int k = 0; k < 2; k++) {
        const int32_t status = clients[k].status;
        assert_int_equal(clients[k].answers, 1);
        assert_true(status == 200 || status == 500 || status == 503);
    }
    if (clients[0].status == 200)
        assert_string_equal(clients[0].body, known);
    *served += clients[0].status == 200;
    return failed;
}

static void each_job_is_answered_whatever_fails(void **state)
{
    struct world *w = *state;
    static struct seqlstm_http_request alone;
    ask(w, &alone, "3+44");
    run_to_the_end(w);
    assert_int_equal(alone.status, 200);
    for (int reads = 0; reads < 2; reads++) {
        int n = 1, served = 0;
        while (join_in_trouble(w, n, reads, alone.body, &served))
            n += reads ? 1 : 5;
        assert_true(n > 20 && served > 0);
    }
}

/* There is room for the tokens of the long text if hardly any other is written. Short ones come all the time;
 * `refuses`: a text before them is refused, so that each joins by itself. */
static void check_order(struct world *w, bool refuses)
{
    enum { SHORT_MOST = 20 };
    struct seqlstm_http_request first, longest, refused, shorter[SHORT_MOST];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_predictor_limits narrow = {.sequences = SEQUENCES, .steps = 36, .rows = 37, .threads = 1};
    struct world own = {.serving = w->serving};
    ok(sl_served_model_open(w->session, "pairs", &narrow, &own.model, &err), &err);
    ok(sl_runner_init(&own.runner, &own.serving, &own.model, &err), &err);
    ask(&own, &first, "1+1");
    sl_runner_run(&own.runner);
    if (refuses)
        ask(&own, &refused, "1\n2");
    ask(&own, &longest, "1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1");
    int count = 0;
    while (count < SHORT_MOST && longest.status == 0) {
        ask(&own, &shorter[count++], "5+5");
        sl_runner_run(&own.runner);
    }
    run_to_the_end(&own);
    assert_int_equal(longest.status, 200);
    assert_true(longest.place < shorter[0].place);
    if (refuses)
        assert_int_equal(refused.status, 400);
    sl_runner_deinit(&own.runner);
    sl_served_model_close(&own.model);
}

static void long_texts_are_not_overtaken(void **state)
{
    check_order(*state, false);
    check_order(*state, true);
}

/* Texts that have ended keep their rows, so padded batches need no more room. */
static void padding_needs_no_other_limits(void **state)
{
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const char *const names[] = {"pairs"};
    int64_t sequences[2], rows[2];
    for (int padded = 0; padded < 2; padded++) {
        struct sl_models models;
        const struct sl_server_request request = {.sessions = &w->session,
                                                  .names = names,
                                                  .count = 1,
                                                  .threads = 1,
                                                  .steps = 40,
                                                  .sequences = SEQUENCES,
                                                  .batching = padded ? SL_BATCHING_PADDED : SL_BATCHING_STEPS};
        ok(sl_models_init(&models, &request, &err), &err);
        const struct sl_served_model *model = models.newest[0];
        const struct sl_graph *encoder = sl_predictor_find_graph(model->predictor, SL_USE_ENCODER);
        assert_int_equal(model->sequences, SEQUENCES);
        sequences[padded] = encoder->facts.envelope.sequences;
        rows[padded] = encoder->facts.envelope.source_rows;
        sl_models_deinit(&models);
    }
    assert_int_equal(sequences[1], sequences[0]);
    assert_int_equal(rows[1], rows[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_do_not_depend_on_those_that_leave),
        cmocka_unit_test(texts_of_one_request_are_those_of_each_alone),
        cmocka_unit_test(states_that_cannot_be_moved_are_an_error),
        cmocka_unit_test(each_job_is_answered_whatever_fails),
        cmocka_unit_test(long_texts_are_not_overtaken),
        cmocka_unit_test(padding_needs_no_other_limits),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
