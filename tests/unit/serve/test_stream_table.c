/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of clients while newer weights are taken over: which version a request is computed on. Several streams, and
 * those that end. */
#include "served_fixture.h"

#include "oom.h"
#include "serve/job/stream_table.h"

static const char text[] = "seqlstm: 1\nname: m\nseed: 1\n"
                           "data: {type: generator, name: adding_problem, length: 6, train: {size: 8}, batch_size: 4}\n"
                           "model:\n  - {type: lstm, units: 3}\n  - {type: dense, units: from_target}\n"
                           "train: {epochs: 1, loss: mse}\nbackends: [reference]\ndispatch: {policy: order}\n";

enum { OLD, NEW, VERSIONS };

struct world {
    struct sl_diagnostics *diagnostics;
    struct sl_session *session;
    struct sl_served_model versions[VERSIONS];
    struct sl_stream_table table;
};

static int open_world(void **state)
{
    static const struct sl_predictor_limits limits = {.sequences = 4, .steps = 8, .chunk_steps = 4, .threads = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    assert_int_equal(scratch_make(state), 0);
    train_session(text, NULL, &w->diagnostics, &w->session);
    for (int v = 0; v < VERSIONS; v++) {
        ok(sl_served_model_open(w->session, "m", &limits, &w->versions[v], &err), &err);
        assert_true(w->versions[v].streams);
    }
    sl_stream_table_init(&w->table, 4, 4, INT64_MAX);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    sl_stream_table_deinit(&w->table);
    for (int v = 0; v < VERSIONS; v++) {
        assert_int_equal(atomic_load(&w->versions[v].uses->count), 1); /* jobs and streams have let it go */
        sl_served_model_close(&w->versions[v]);
    }
    sl_session_close(w->session);
    sl_diagnostics_destroy(w->diagnostics);
    free(w);
    return scratch_remove(state);
}

/* A request of stream 7, that arrives when `version` is the newest. */
static struct sl_job *ask(struct world *w, int version, bool starts, bool ends, bool waits)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    bool does_wait;
    struct sl_job *job = sl_job_create(&w->versions[version], NULL);
    assert_non_null(job);
    sl_served_model_hold(&w->versions[version]);
    job->stream_id = strdup("7");
    job->starts = starts;
    job->ends = ends;
    ok(sl_stream_table_claim(&w->table, job, &does_wait, &err), &err);
    assert_int_equal(does_wait, waits);
    return job;
}

/* Ends a request; `next` has its turn then, on `version`. */
static void finish(struct world *w, struct sl_job *job, const struct sl_job *next, int version)
{
    struct sl_job *found, *orphans;
    sl_stream_table_release(&w->table, job, true, false, &found, &orphans);
    assert_ptr_equal(found, next);
    assert_null(orphans);
    if (next) {
        assert_ptr_equal(next->model, &w->versions[version]);
        assert_ptr_equal(next->stream->model, &w->versions[version]);
        assert_int_equal(sl_stream_get_position(next->stream->state), 0);
    }
    sl_job_destroy(job);
}

static void test_a_stream_stays_on_its_version(void **state)
{
    struct world *w = *state;
    struct sl_job *first = ask(w, OLD, true, false, false), *second = ask(w, NEW, false, true, true);
    finish(w, first, second, OLD);
    finish(w, second, NULL, OLD);
    first = ask(w, OLD, true, false, false);
    finish(w, first, NULL, OLD);
    second = ask(w, NEW, false, true, false);
    assert_ptr_equal(second->model, &w->versions[OLD]);
    finish(w, second, NULL, OLD);
}

static void test_it_begins_again_on_the_newest(void **state)
{
    struct world *w = *state;
    struct sl_job *first = ask(w, OLD, true, false, false);
    finish(w, first, NULL, OLD);
    struct sl_job *again = ask(w, NEW, true, true, false);
    assert_ptr_equal(again->model, &w->versions[NEW]);
    assert_ptr_equal(again->stream->model, &w->versions[NEW]);
    finish(w, again, NULL, NEW);
}

static void test_also_while_it_is_busy(void **state)
{
    struct world *w = *state;
    struct sl_job *first = ask(w, OLD, true, false, false), *on = ask(w, NEW, false, false, true);
    struct sl_job *again = ask(w, NEW, true, false, true), *last = ask(w, NEW, false, true, true);
    finish(w, first, on, OLD);
    finish(w, on, again, NEW);
    finish(w, again, last, NEW);
    finish(w, last, NULL, NEW);
}

/* The client of the request that begins again has left, and nothing has been computed. */
static void test_nothing_continues_what_has_not_begun(void **state)
{
    struct world *w = *state;
    struct sl_job *first = ask(w, OLD, true, false, false), *again = ask(w, NEW, true, false, true);
    struct sl_job *last = ask(w, NEW, false, true, true), *found, *orphans;
    finish(w, first, again, NEW);
    sl_stream_table_release(&w->table, again, false, false, &found, &orphans);
    assert_null(found);
    assert_ptr_equal(orphans, last);
    assert_null(last->next);
    sl_job_destroy(again);
    sl_job_destroy(last);
}

static void test_without_memory_it_begins_on_the_old_one(void **state)
{
    struct world *w = *state;
    struct sl_job *first = ask(w, OLD, true, false, false), *again = ask(w, NEW, true, true, true), *found, *orphans;
    oom_fail_from(1);
    sl_stream_table_release(&w->table, first, true, false, &found, &orphans);
    assert_true(oom_disarm());
    sl_job_destroy(first);
    assert_ptr_equal(found, again);
    assert_ptr_equal(again->model, &w->versions[OLD]);
    finish(w, again, NULL, OLD);
}

/* As many may wait as the table was made for, of all streams together; each that has its turn makes room. */
static void test_few_may_wait(void **state)
{
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_job *jobs[5], *last;
    bool waits;
    for (int k = 0; k < 5; k++)
        jobs[k] = ask(w, OLD, k == 0, false, k > 0);
    for (int round = 0; round < 2; round++) { /* what is refused does not count */
        struct sl_job *refused = sl_job_create(&w->versions[OLD], NULL);
        assert_non_null(refused);
        sl_served_model_hold(&w->versions[OLD]);
        refused->stream_id = strdup("7");
        assert_int_equal(sl_stream_table_claim(&w->table, refused, &waits, &err), SEQLSTM_UNAVAILABLE);
        assert_string_equal(err.message, "too many requests wait");
        sl_job_destroy(refused);
    }
    finish(w, jobs[0], jobs[1], OLD);
    last = ask(w, OLD, false, true, true);
    for (int k = 1; k < 4; k++)
        finish(w, jobs[k], jobs[k + 1], OLD);
    finish(w, jobs[4], last, OLD);
    finish(w, last, NULL, OLD);
}

/* When all that waited have had their turns, the next to wait is the first again. */
static void test_those_that_wait_later_have_their_turns(void **state)
{
    struct world *w = *state;
    struct sl_job *now = ask(w, OLD, true, false, false);
    for (int round = 0; round < 3; round++) { /* two wait, then one, then one */
        struct sl_job *next = ask(w, OLD, false, false, true),
                      *then = round == 0 ? ask(w, OLD, false, false, true) : NULL;
        finish(w, now, next, OLD);
        now = next;
        if (then) {
            finish(w, now, then, OLD);
            now = then;
        }
    }
    struct sl_job *last = ask(w, OLD, false, true, true);
    finish(w, now, last, OLD);
    finish(w, last, NULL, OLD);
}

/* ---- several streams ----------------------------------------------------------------------------------------- */

/* The stream to which a request belongs, whose turn is now. */
static struct sl_job *claim(struct sl_stream_table *table, struct sl_served_model *model, int token, const char *id,
                            bool starts, bool ends)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    bool waits = true;
    struct sl_job *job = sl_job_create(model, NULL);
    assert_non_null(job);
    sl_served_model_hold(model);
    job->stream_id = strdup(id);
    job->token = token;
    job->starts = starts;
    job->ends = ends;
    ok(sl_stream_table_claim(table, job, &waits, &err), &err);
    assert_false(waits);
    return job;
}

static void release(struct sl_stream_table *table, struct sl_job *job)
{
    struct sl_job *next, *orphans;
    sl_stream_table_release(table, job, true, false, &next, &orphans);
    assert_null(next);
    assert_null(orphans);
    sl_job_destroy(job);
}

static void expect_count(struct sl_stream_table *table, int64_t count, int64_t expired)
{
    int64_t found;
    assert_int_equal(sl_stream_table_count(table, &found), count);
    assert_int_equal(found, expired);
}

static void expect_refusal(struct sl_stream_table *table, struct sl_served_model *model, const char *id, bool starts,
                           seqlstm_status status, const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    bool waits;
    struct sl_job *job = sl_job_create(model, NULL);
    assert_non_null(job);
    sl_served_model_hold(model);
    job->stream_id = strdup(id);
    job->starts = starts;
    assert_int_equal(sl_stream_table_claim(table, job, &waits, &err), status);
    assert_string_equal(err.message, message);
    sl_job_destroy(job);
}

/* A stream is that of its model, of the token that opened it and of its id. */
static void test_streams_are_told_apart(void **state)
{
    struct world *w = *state;
    enum { ALL = 8 };
    static const char *const ids[] = {"7", "70"};
    struct sl_served_stream *streams[ALL];
    struct sl_stream_table table;
    sl_stream_table_init(&table, ALL, 0, INT64_MAX);
    w->versions[1].slot = 1; /* two models */
    for (int k = 0; k < ALL; k++) {
        struct sl_job *job = claim(&table, &w->versions[k % 2], k / 2 % 2, ids[k / 4], true, false);
        streams[k] = job->stream;
        for (int before = 0; before < k; before++)
            assert_ptr_not_equal(streams[before], streams[k]);
        release(&table, job);
    }
    expect_count(&table, ALL, 0);
    expect_refusal(&table, &w->versions[0], "8", true, SEQLSTM_UNAVAILABLE,
                   "8 streams are open, and there may be no more");
    for (int turn = 0; turn < 2 * ALL; turn++) { /* in another order, and at last to their ends */
        const int k = 3 * turn % ALL;
        struct sl_job *job = claim(&table, &w->versions[k % 2], k / 2 % 2, ids[k / 4], false, turn >= ALL);
        assert_ptr_equal(job->stream, streams[k]);
        assert_ptr_equal(job->model, &w->versions[k % 2]);
        release(&table, job);
        expect_count(&table, turn < ALL ? ALL : 2 * ALL - 1 - turn, 0);
    }
    expect_refusal(&table, &w->versions[0], "70", false, SEQLSTM_INVALID_ARGUMENT,
                   "there is no stream `70`: it has ended, or its first request had no `sequence_start`");
    w->versions[1].slot = 0;
    sl_stream_table_deinit(&table);
}

/* Those that were not used for the time of the table end, and no others; what is busy does not. */
static void test_streams_that_are_not_used_end(void **state)
{
    struct world *w = *state;
    static const char *const ids[] = {"a", "b", "c"};
    static const int order[] = {1, 2, 0};
    struct sl_served_stream *streams[3];
    struct sl_stream_table table;
    sl_stream_table_init(&table, 3, 0, INT64_MAX); /* by the clock, none ends meanwhile */
    for (int k = 0; k < 3; k++) {
        struct sl_job *job = claim(&table, &w->versions[0], 0, ids[k], true, false);
        streams[k] = job->stream;
        release(&table, job);
    }
    for (int k = 0; k < 3; k++) {
        release(&table, claim(&table, &w->versions[0], 0, ids[order[k]], false, false));
        streams[order[k]]->used_ns = 100 * (k + 1);
    }
    table.idle_ns = 50;
    sl_stream_table_expire(&table, 149);
    expect_count(&table, 3, 0);
    sl_stream_table_expire(&table, 150);
    expect_count(&table, 2, 1);
    sl_stream_table_expire(&table, 299);
    expect_count(&table, 1, 2);
    struct sl_job *job = claim(&table, &w->versions[0], 0, "a", false, true);
    sl_stream_table_expire(&table, INT64_MAX);
    expect_count(&table, 1, 2);
    release(&table, job);
    expect_count(&table, 0, 2);
    sl_stream_table_deinit(&table);
}

/* Whichever number its token has: also where it would be looked for in the same place. */
static void test_no_other_token_finds_a_stream(void **state)
{
    struct world *w = *state;
    enum { OWNER = 5, TOKENS = 6 * SL_STREAM_BUCKETS };
    struct sl_stream_table table;
    sl_stream_table_init(&table, 2, 0, INT64_MAX);
    release(&table, claim(&table, &w->versions[0], OWNER, "7", true, false));
    for (int token = 0; token < TOKENS; token++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        bool waits;
        struct sl_job *job = sl_job_create(&w->versions[0], NULL);
        assert_non_null(job);
        sl_served_model_hold(job->model);
        job->stream_id = strdup("7");
        job->token = token == OWNER ? TOKENS : token;
        assert_int_equal(sl_stream_table_claim(&table, job, &waits, &err), SEQLSTM_INVALID_ARGUMENT);
        sl_job_destroy(job);
    }
    release(&table, claim(&table, &w->versions[0], OWNER, "7", false, true));
    sl_stream_table_deinit(&table);
}

/* Where all places are taken, those that are not used make room at once. */
static void test_a_full_table_ends_what_is_not_used(void **state)
{
    struct world *w = *state;
    struct sl_served_stream *streams[2];
    struct sl_stream_table table;
    sl_stream_table_init(&table, 2, 0, INT64_MAX);
    for (int k = 0; k < 2; k++) {
        struct sl_job *job = claim(&table, &w->versions[0], 0, k ? "b" : "a", true, false);
        streams[k] = job->stream;
        release(&table, job);
    }
    expect_refusal(&table, &w->versions[0], "c", true, SEQLSTM_UNAVAILABLE,
                   "2 streams are open, and there may be no more");
    table.idle_ns = 1000;
    streams[0]->used_ns = 0;
    streams[1]->used_ns = INT64_MAX;
    release(&table, claim(&table, &w->versions[0], 0, "c", true, false));
    expect_count(&table, 2, 1);
    release(&table, claim(&table, &w->versions[0], 0, "b", false, true));
    expect_count(&table, 1, 1);
    sl_stream_table_deinit(&table);
    sl_stream_table_init(&table, 1, 0, INT64_MAX);
    release(&table, claim(&table, &w->versions[0], 0, "a", true, false));
    expect_refusal(&table, &w->versions[0], "b", true, SEQLSTM_UNAVAILABLE,
                   "1 stream is open, and there may be no more");
    sl_stream_table_deinit(&table);
}

/* What was never computed has no state to go on from. */
static void test_a_first_request_that_is_not_computed_leaves_no_stream(void **state)
{
    struct world *w = *state;
    struct sl_job *first = ask(w, OLD, true, false, false), *on = ask(w, OLD, false, false, true), *found, *orphans;
    sl_stream_table_release(&w->table, first, false, false, &found, &orphans);
    assert_null(found);
    assert_ptr_equal(orphans, on);
    expect_count(&w->table, 0, 0);
    sl_job_destroy(first);
    sl_job_destroy(on);
}

/* The time counts from the last request, not from the first. */
static void test_each_request_begins_the_time_anew(void **state)
{
    struct world *w = *state;
    struct sl_job *job = ask(w, OLD, true, false, false);
    struct sl_served_stream *stream = job->stream;
    finish(w, job, NULL, OLD);
    for (int k = 0; k < 3; k++) {
        job = ask(w, OLD, false, k == 2, false);
        stream->used_ns = 1;
        if (k < 2) {
            finish(w, job, NULL, OLD);
            assert_true(stream->used_ns > 1);
        } else
            finish(w, job, NULL, OLD);
    }
    expect_count(&w->table, 0, 0);
}

/* Its client has left before it was computed: the stream is where it was, and goes on. */
static void test_a_last_request_that_is_not_computed_ends_nothing(void **state)
{
    struct world *w = *state;
    struct sl_job *first = ask(w, OLD, true, false, false), *last = ask(w, OLD, false, true, true), *found, *orphans;
    struct sl_job *on = ask(w, OLD, false, false, true);
    finish(w, first, last, OLD);
    sl_stream_table_release(&w->table, last, false, false, &found, &orphans);
    assert_ptr_equal(found, on);
    assert_null(orphans);
    sl_job_destroy(last);
    finish(w, on, NULL, OLD);
    expect_count(&w->table, 1, 0);
    finish(w, ask(w, OLD, false, true, false), NULL, OLD);
    expect_count(&w->table, 0, 0);
}

/* Of those that wait for a stream that breaks, each is refused up to the one that begins again. */
static void test_a_broken_stream_ends_for_all_that_continue_it(void **state)
{
    struct world *w = *state;
    struct sl_job *first = ask(w, OLD, true, false, false), *on[2], *found, *orphans;
    on[0] = ask(w, OLD, false, false, true);
    on[1] = ask(w, OLD, false, false, true);
    struct sl_job *again = ask(w, OLD, true, false, true), *last = ask(w, OLD, false, true, true);
    sl_stream_table_release(&w->table, first, true, true, &found, &orphans);
    assert_ptr_equal(found, again);
    assert_true((orphans == on[0] && on[0]->next == on[1] && on[1]->next == NULL) ||
                (orphans == on[1] && on[1]->next == on[0] && on[0]->next == NULL));
    assert_true(on[0]->stream == NULL && on[1]->stream == NULL);
    sl_job_destroy(first);
    sl_job_destroy(on[0]);
    sl_job_destroy(on[1]);
    finish(w, again, last, OLD);
    finish(w, last, NULL, OLD);
    expect_count(&w->table, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_stays_on_its_version),
        cmocka_unit_test(test_it_begins_again_on_the_newest),
        cmocka_unit_test(test_also_while_it_is_busy),
        cmocka_unit_test(test_nothing_continues_what_has_not_begun),
        cmocka_unit_test(test_without_memory_it_begins_on_the_old_one),
        cmocka_unit_test(test_few_may_wait),
        cmocka_unit_test(test_those_that_wait_later_have_their_turns),
        cmocka_unit_test(test_streams_are_told_apart),
        cmocka_unit_test(test_no_other_token_finds_a_stream),
        cmocka_unit_test(test_a_full_table_ends_what_is_not_used),
        cmocka_unit_test(test_streams_that_are_not_used_end),
        cmocka_unit_test(test_a_first_request_that_is_not_computed_leaves_no_stream),
        cmocka_unit_test(test_each_request_begins_the_time_anew),
        cmocka_unit_test(test_a_last_request_that_is_not_computed_ends_nothing),
        cmocka_unit_test(test_a_broken_stream_ends_for_all_that_continue_it),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
