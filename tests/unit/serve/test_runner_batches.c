/* SPDX-License-Identifier: Apache-2.0 */
/* What a runner computes in each batch, and what becomes of its jobs. */
#include "oom.h"
#include "runner_fixture.h"

#include <seqlstm/philox.h>

/* ---- tests --------------------------------------------------------------------------------------------------- */

/* Sequences of any lengths, some of no step, that come while others are computed: each has the output of itself. */
static void each_job_has_its_own_answer(void **state)
{
    (void)state;
    uint64_t draws = 0;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (int way = 0; way < 6; way++) {
            struct scene scene;
            enum { JOBS = 20 };
            struct seqlstm_http_request all[JOBS];
            begin(&scene, kinds[kind], way % 3 == 1 ? SL_BATCHING_PADDED : SL_BATCHING_STEPS, way % 3 == 2);
            scene.serving.target_ns = way > 2 ? 16 * STEP_NS : 0;
            for (int j = 0, added = 0; added < JOBS || sl_runner_is_busy(&scene.runner); j++) {
                struct sl_job *job = NULL;
                if (added < JOBS && seqlstm_uniform(3, draws++, 0, 0) < 0.6f) {
                    all[added] =
                        (struct seqlstm_http_request){.count = 1 + (int)(6 * seqlstm_uniform(3, draws++, 0, 0))};
                    for (int k = 0; k < all[added].count; k++)
                        all[added].lengths[k] = (int64_t)(9 * seqlstm_uniform(3, draws++, 0, 0));
                    job = make_job(&scene, &all[added++]);
                    sl_runner_look(&scene.runner, job);
                }
                sl_runner_choose(&scene.runner);
                if (job)
                    sl_runner_add(&scene.runner, job);
                story[0] = '\0';
                sl_runner_run(&scene.runner);
                assert_true(j < 2000);
            }
            for (int j = 0; j < JOBS; j++)
                assert_int_equal(all[j].status, 200);
            end(&scene);
        }
}

/* Longer sequences are cut, and the others end meanwhile; what has no step is computed whole, once. A state that was
 * used is as new for the next sequence. */
static void sequences_are_cut_into_chunks(void **state)
{
    (void)state;
    struct seqlstm_http_request first = JOB(4, 0, 2), second = JOB(3), third = JOB(7, 1);
    struct scene scene;
    begin(&scene, kinds[0], SL_BATCHING_STEPS, false);
    sl_runner_add(&scene.runner, make_job(&scene, &first));
    sl_runner_run(&scene.runner);
    expect_story("whole 0\nchunks 3 2\n");
    sl_runner_add(&scene.runner, make_job(&scene, &second));
    sl_runner_run(&scene.runner);
    expect_story("chunks 1 3\nanswer of 3\nanswer of 1\n");
    sl_runner_add(&scene.runner, make_job(&scene, &third));
    for (int k = 0; k < 3; k++)
        sl_runner_run(&scene.runner);
    expect_story("chunks 3 1\nchunks 3\nchunks 1\nanswer of 2\n");
    assert_true(resets > 0);
    expect_history(&scene, "3x3=5 2x3=4 2x3=4 1x3=3 1x1=1 ");
    end(&scene);
}

/* Of sequences that are cut, the time of a step counts, not that of a row of whole ones: two steps fit here. */
static void chunks_keep_to_the_latency(void **state)
{
    (void)state;
    struct seqlstm_http_request all[] = {JOB(5, 1), JOB(3)};
    struct scene scene;
    begin(&scene, kinds[1], SL_BATCHING_STEPS, false);
    scene.runner.step_ns = STEP_NS;
    scene.runner.row_ns = 1;
    scene.serving.target_ns = 8 * 2 * STEP_NS;
    for (int j = 0; j < 2; j++)
        sl_runner_add(&scene.runner, make_job(&scene, &all[j]));
    sl_runner_run(&scene.runner);
    expect_story("chunks 2 1 2\n");
    end_with(&scene);
}

/* Where each request is to give the same bits, each is computed by itself: whole if it is no longer than a chunk. */
static void reproducible_sequences_are_computed_alone(void **state)
{
    (void)state;
    struct seqlstm_http_request first = JOB(4, 0, 3), second = JOB(2);
    struct scene scene;
    begin(&scene, kinds[0], SL_BATCHING_STEPS, true);
    sl_runner_add(&scene.runner, make_job(&scene, &first));
    sl_runner_add(&scene.runner, make_job(&scene, &second));
    sl_runner_run(&scene.runner);
    sl_runner_run(&scene.runner);
    expect_story("chunks 3\nwhole 0\nwhole 3\nwhole 2\nanswer of 1\nchunks 1\nanswer of 3\n");
    end(&scene);
    begin(&scene, kinds[3], SL_BATCHING_STEPS, true);
    assert_null(scene.runner.window.counts); /* nothing else counts for a batch */
    end(&scene);
    begin(&scene, kinds[3], SL_BATCHING_STEPS, false);
    assert_non_null(scene.runner.window.counts);
    end(&scene);
}

/* As many rows as make all as long as the longest; none for what has no step, and none where there are no steps. */
static void padded_batches_cost_what_padding_costs(void **state)
{
    (void)state;
    struct seqlstm_http_request first = JOB(4, 0, 1, 2), second = JOB(3), rows = JOB(1, 1, 1);
    struct scene scene;
    begin(&scene, kinds[3], SL_BATCHING_PADDED, false);
    sl_runner_add(&scene.runner, make_job(&scene, &first));
    sl_runner_add(&scene.runner, make_job(&scene, &second));
    sl_runner_run(&scene.runner);
    sl_runner_run(&scene.runner);
    expect_story("whole 4 0 1 2 3 2\nanswer of 4\nwhole 3\nanswer of 1\n");
    expect_history(&scene, "4x4=7 1x3=3 ");
    end(&scene);
    begin(&scene, kinds[4], SL_BATCHING_PADDED, false);
    sl_runner_add(&scene.runner, make_job(&scene, &rows));
    sl_runner_run(&scene.runner);
    expect_story("whole 1 1 1\nanswer of 3\n");
    end(&scene);
}

/* Of whole sequences as many as have room for their rows, one at least; the others stay for the next batch, also where
 * this one fails. */
static void rows_of_a_batch_have_a_limit(void **state)
{
    (void)state;
    struct seqlstm_http_request all[] = {JOB(12), JOB(8), JOB(1), JOB(12)};
    for (int failing = 0; failing < 3; failing++) {
        static const seqlstm_status failures[] = {SEQLSTM_OK, SEQLSTM_NO_MEMORY, SEQLSTM_NUMERIC};
        static const int32_t statuses[] = {200, 503, 500};
        struct scene scene;
        begin(&scene, kinds[2], SL_BATCHING_STEPS, false);
        for (int j = 0; j < 4; j++) {
            all[j].status = 0;
            sl_runner_add(&scene.runner, make_job(&scene, &all[j]));
        }
        fails = failures[failing];
        sl_runner_run(&scene.runner);
        for (int j = 0; j < 2; j++)
            assert_int_equal(all[j].status, statuses[failing]);
        if (failing)
            assert_string_equal(all[1].message, "the batch failed");
        assert_true(all[2].status == 0 && all[3].status == 0);
        sl_runner_run(&scene.runner);
        assert_true(all[2].status == 200 && all[3].status == 200);
        expect_story(failing ? "whole 12 8\nwhole 1 12\nanswer of 1\nanswer of 1\n"
                             : "whole 12 8\nanswer of 1\nanswer of 1\nwhole 1 12\nanswer of 1\nanswer of 1\n");
        end(&scene);
    }
    struct scene scene; /* one that is larger than the limit of the latency allows */
    begin(&scene, kinds[2], SL_BATCHING_STEPS, false);
    scene.runner.row_ns = STEP_NS;
    scene.runner.step_ns = 1;
    scene.serving.target_ns = 8 * 5 * STEP_NS;
    struct seqlstm_http_request few[] = {JOB(7), JOB(2), JOB(3), JOB(1)};
    for (int j = 0; j < 4; j++)
        sl_runner_add(&scene.runner, make_job(&scene, &few[j]));
    sl_runner_run(&scene.runner);
    expect_story("whole 7\nanswer of 1\n");
    end_with(&scene);
}

/* What a batch has taken is known for a step, a row and a sequence; of later ones a tenth counts. */
static void times_are_means(void **state)
{
    (void)state;
    struct seqlstm_http_request all[] = {JOB(4), JOB(2), JOB(5, 5, 5)};
    struct scene scene;
    begin(&scene, kinds[2], SL_BATCHING_STEPS, false);
    sl_runner_add(&scene.runner, make_job(&scene, &all[0]));
    sl_runner_add(&scene.runner, make_job(&scene, &all[1]));
    sl_runner_run(&scene.runner);
    const double ms = (double)STEP_NS;
    assert_true(scene.runner.step_ns == ms && scene.runner.row_ns == 4 * ms / 6 && scene.runner.sequence_ns == 2 * ms);
    sl_runner_add(&scene.runner, make_job(&scene, &all[2]));
    sl_runner_run(&scene.runner);
    assert_true(scene.runner.row_ns > 0.9 * 4 * ms / 6 + 0.1 * ms / 3 - 1 &&
                scene.runner.row_ns < 0.9 * 4 * ms / 6 + 0.1 * ms / 3 + 1);
    assert_true(scene.runner.sequence_ns > 1.8 * ms + 0.1 * 5 * ms / 3 - 1 &&
                scene.runner.sequence_ns < 1.8 * ms + 0.1 * 5 * ms / 3 + 1);
    assert_int_equal(scene.serving.counters.batches, 2);
    assert_int_equal(scene.serving.counters.rows, 21);
    assert_int_equal(scene.serving.counters.sequences, 5);
    end(&scene);
}

/* The costs are asked with all that waits and all that is computed; not where texts go on, and not for padded ones.
 * What is promised to come has its place. */
static void the_next_batch_is_chosen_from_all(void **state)
{
    (void)state;
    struct seqlstm_http_request running = JOB(7, 2), one = JOB(9), two = JOB(3, 5);
    struct scene scene;
    begin(&scene, kinds[0], SL_BATCHING_STEPS, false);
    sl_runner_add(&scene.runner, make_job(&scene, &running));
    sl_runner_run(&scene.runner); /* four steps of the first are left */
    struct sl_job *jobs[] = {make_job(&scene, &one), make_job(&scene, &two)};
    for (int j = 0; j < 2; j++)
        sl_runner_look(&scene.runner, jobs[j]);
    asked.times = 0;
    sl_runner_choose(&scene.runner);
    assert_true(asked.times == 1 && asked.count == 4 && asked.steps == 9 && asked.rows == 4 + 9 + 8);
    assert_int_equal(scene.runner.most, SEQUENCES);
    scene.runner.promised = 2;
    assert_true(sl_runner_wants(&scene.runner, jobs[1]));
    scene.runner.promised = 3;
    assert_false(sl_runner_wants(&scene.runner, jobs[1]));
    scene.runner.promised = 0;
    jobs[0]->goes_on = true;
    sl_runner_look(&scene.runner, jobs[0]);
    sl_runner_choose(&scene.runner);
    assert_true(asked.times == 1 && scene.runner.most == SEQUENCES);
    sl_runner_choose(&scene.runner); /* it is shown nothing now */
    assert_true(asked.times == 2 && asked.count == 1 && asked.steps == 4 && asked.rows == 4);
    assert_int_equal(scene.runner.most, 1);
    for (int j = 0; j < 2; j++)
        sl_job_destroy(jobs[j]);
    end_with(&scene);
    begin(&scene, kinds[3], SL_BATCHING_PADDED, false);
    sl_runner_choose(&scene.runner);
    assert_true(asked.times == 2 && scene.runner.most == SEQUENCES);
    end(&scene);
}

/* ---- texts --------------------------------------------------------------------------------------------------- */

/* Choices of prompts of these lengths, which draw `drawn` tokens each. */
static struct sl_job *make_text(struct scene *scene, struct seqlstm_http_request *request, int64_t drawn)
{
    static int32_t ids[40];
    struct sl_job *job = make_job(scene, request);
    struct sl_completion *completion = job->completion = calloc(1, sizeof *completion);
    assert_non_null(completion);
    assert_true(sl_job_prepare_failure(job));
    free(job->x);
    job->x = NULL;
    completion->prompts = calloc((size_t)request->count, sizeof *completion->prompts);
    completion->choices = calloc((size_t)request->count, sizeof *completion->choices);
    assert_true(completion->prompts && completion->choices);
    completion->prompt_count = request->count;
    completion->each = 1;
    for (int k = 0; k < request->count; k++) {
        completion->prompts[k].count = request->lengths[k];
        completion->prompts[k].ids = malloc(sizeof ids);
        assert_non_null(completion->prompts[k].ids);
        memcpy(completion->prompts[k].ids, ids, sizeof ids);
        completion->choices[k].prompt = &completion->prompts[k];
        completion->choices[k].key = (uint64_t)drawn + (uint64_t)k;
    }
    return job;
}

static const struct sl_served_model language = {
    .reads_ids = true, .reads_steps = true, .gives_steps = true, .streams = true, .continues = true};

/* Of texts that are sent in parts, as they are written. */
static bool reads_slowly;

bool __wrap_sl_job_send_part(struct sl_serving *serving, struct sl_job *job, int64_t k);

bool __wrap_sl_job_send_part(struct sl_serving *serving, struct sl_job *job, int64_t k)
{
    (void)serving;
    tell("part of %d, choice %d\n", job->request->count, (int)k);
    return !reads_slowly;
}

/* Each token is sent as one of its choice; a client that does not read is not written for. */
static void parts_are_those_of_their_choice(void **state)
{
    (void)state;
    struct seqlstm_http_request all[] = {JOB(1, 1, 1), JOB(1, 1)};
    struct scene scene;
    begin(&scene, language, SL_BATCHING_STEPS, false);
    struct sl_job *job = make_text(&scene, &all[0], 1);
    job->completion->in_parts = true;
    sl_runner_add(&scene.runner, job);
    for (int k = 0; k < 3; k++)
        sl_runner_run(&scene.runner);
    expect_story("chunks 1 last 1 last 1 last\npart of 3, choice 0\npart of 3, choice 1\npart of 3, choice 2\n"
                 "chunks 1 last 1 last\npart of 3, choice 1\npart of 3, choice 2\n"
                 "chunks 1 last\npart of 3, choice 2\nanswer of 3\n");
    job = make_text(&scene, &all[1], 5);
    job->completion->in_parts = reads_slowly = true;
    sl_runner_add(&scene.runner, job);
    sl_runner_run(&scene.runner);
    reads_slowly = false;
    assert_int_equal(all[1].status, 499);
    assert_string_equal(all[1].message, "the client reads too slowly");
    end(&scene);
}

/* Prompts are read in chunks, of which the last row alone is wanted, beside tokens that are written one by one. */
static void texts_are_written_token_by_token(void **state)
{
    (void)state;
    struct seqlstm_http_request first = JOB(4, 1), second = JOB(2);
    struct scene scene;
    begin(&scene, language, SL_BATCHING_STEPS, false);
    sl_runner_add(&scene.runner, make_text(&scene, &first, 2));
    sl_runner_run(&scene.runner);
    sl_runner_add(&scene.runner, make_text(&scene, &second, 1));
    while (sl_runner_is_busy(&scene.runner))
        sl_runner_run(&scene.runner);
    expect_story("chunks 3 last 1 last\nchunks 1 last 1 last 2 last\nanswer of 1\nchunks 1 last 1 last\nanswer of 2\n");
    end(&scene);
}

/* A text that cannot be continued fails with its own reason, and its status tells whose fault it is. */
static void texts_fail_with_their_own_reason(void **state)
{
    (void)state;
    static const struct {
        seqlstm_status failure;
        int32_t status;
    } cases[] = {{SEQLSTM_NO_MEMORY, 503},    {SEQLSTM_CANCELLED, 499}, {SEQLSTM_INVALID_ARGUMENT, 400},
                 {SEQLSTM_CORRUPT_DATA, 400}, {SEQLSTM_NUMERIC, 500},   {SEQLSTM_INTERNAL, 500}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct seqlstm_http_request all[] = {JOB(1), JOB(1, 1), JOB(1)};
        struct scene scene;
        begin(&scene, language, SL_BATCHING_STEPS, false);
        for (int j = 0; j < 3; j++)
            sl_runner_add(&scene.runner, make_text(&scene, &all[j], j == 2 ? 3 : 1));
        take_fails[2] = cases[c].failure; /* of the job of two */
        sl_runner_run(&scene.runner);
        take_fails[2] = SEQLSTM_OK;
        assert_true(all[0].status == 200 && all[2].status == 0);
        assert_int_equal(all[1].status, cases[c].status);
        assert_string_equal(all[1].message, "job 2, choice 0");
        assert_true(all[1].broken);
        while (sl_runner_is_busy(&scene.runner))
            sl_runner_run(&scene.runner);
        assert_int_equal(all[2].status, 200);
        end(&scene);
    }
}

/* Of a padded batch those that have ended stay, as zeros; when the client of the last one leaves, all are answered, and
 * nothing is computed for it. */
static void padding_ends_with_the_last_text(void **state)
{
    (void)state;
    struct seqlstm_http_request all[] = {JOB(1), JOB(2), JOB(1, 1)};
    struct scene scene;
    begin(&scene, language, SL_BATCHING_PADDED, false);
    sl_runner_add(&scene.runner, make_text(&scene, &all[0], 1));
    sl_runner_add(&scene.runner, make_text(&scene, &all[1], 9));
    sl_runner_run(&scene.runner);
    sl_runner_run(&scene.runner);
    expect_story("chunks 1 last 2 last 1\nchunks 1 1 last\n");
    expect_history(&scene, "2x2=3 1x1=1 ");
    all[1].gone = true;
    now_ns += 100 * STEP_NS;
    sl_runner_run(&scene.runner);
    expect_story("answer of 1\n");
    assert_true(all[0].status == 200 && all[1].status == 499);
    assert_string_equal(all[1].message, "the client has left");
    assert_false(all[1].broken);
    assert_int_equal(scene.serving.counters.gone, 1);
    end(&scene);
}

/* A padded batch computes all prompts to the length of the longest, behind them, on states that it keeps for later
 * ones, also where a batch fails. */
static void prompts_are_padded(void **state)
{
    (void)state;
    struct seqlstm_http_request all[] = {JOB(1), JOB(3), JOB(2), JOB(1), JOB(2)};
    struct scene scene;
    begin(&scene, language, SL_BATCHING_PADDED, false);
    for (int k = 0; k < 3; k++)
        sl_runner_add(&scene.runner, make_text(&scene, &all[k], 1));
    sl_runner_run(&scene.runner);
    expect_story("chunks 1 last 3 last 2 last 2 1\nanswer of 1\nanswer of 1\nanswer of 1\n");
    assert_int_equal(state_count, 5);
    for (int k = 3; k < 5; k++)
        sl_runner_add(&scene.runner, make_text(&scene, &all[k], 1));
    fails = SEQLSTM_NUMERIC;
    sl_runner_run(&scene.runner);
    assert_int_equal(all[4].status, 500);
    assert_int_equal(state_count, 5);
    assert_int_equal(scene.runner.spare_count, 5);
    end(&scene);
}

/* It costs a call of the system to see whether a client is there: that is done every 50 ms, not for each batch. */
static void clients_are_looked_for_now_and_then(void **state)
{
    (void)state;
    struct seqlstm_http_request request = JOB(1);
    struct scene scene;
    begin(&scene, language, SL_BATCHING_STEPS, false);
    sl_runner_add(&scene.runner, make_text(&scene, &request, 120));
    for (int k = 0; k < 120; k++) { /* each takes a millisecond */
        assert_in_range(request.looks, k / 50 - (k % 50 < 2 && k > 1), k / 50);
        sl_runner_run(&scene.runner);
    }
    assert_int_equal(request.looks, 2);
    end_with(&scene);
}

/* Without memory for its answer a job is refused, and the next one is not. */
static void a_job_without_memory_is_refused(void **state)
{
    (void)state;
    struct seqlstm_http_request all[] = {JOB(2), JOB(2)};
    struct scene scene;
    begin(&scene, kinds[0], SL_BATCHING_STEPS, false);
    struct sl_job *job = make_job(&scene, &all[0]);
    oom_fail_at(1);
    sl_runner_add(&scene.runner, job);
    assert_true(oom_disarm());
    assert_int_equal(all[0].status, 503);
    assert_string_equal(all[0].message, "no memory for the answer");
    assert_false(all[0].broken); /* nothing of its stream has been computed */
    sl_runner_add(&scene.runner, make_job(&scene, &all[1]));
    sl_runner_run(&scene.runner);
    assert_int_equal(all[1].status, 200);
    end(&scene);
}

/* A batch that there is no memory for fails with its jobs, in whatever place; what comes then, small or large, is
 * computed as if it had not been. */
static void a_batch_without_memory_fails_alone(void **state)
{
    (void)state;
    for (size_t kind = 2; kind < sizeof kinds / sizeof *kinds; kind++) /* those that compute whole sequences */
        for (int n = 1;; n++) {
            struct seqlstm_http_request small = JOB(1), large = JOB(3, 2, 4), again = JOB(1), larger = JOB(5, 2, 4);
            struct scene scene;
            begin(&scene, kinds[kind], SL_BATCHING_STEPS, false);
            sl_runner_add(&scene.runner, make_job(&scene, &small));
            sl_runner_run(&scene.runner);
            sl_runner_add(&scene.runner, make_job(&scene, &large));
            oom_fail_at(n);
            sl_runner_run(&scene.runner);
            const bool failed = oom_disarm();
            assert_int_equal(small.status, 200);
            assert_int_equal(large.status, failed ? 503 : 200);
            assert_string_equal(large.message, failed ? "no memory for a batch" : "");
            assert_int_equal(large.broken, failed);
            sl_runner_add(&scene.runner, make_job(&scene, &again));
            sl_runner_run(&scene.runner);
            assert_int_equal(again.status, 200);
            sl_runner_add(&scene.runner, make_job(&scene, &larger));
            sl_runner_run(&scene.runner);
            assert_int_equal(larger.status, 200);
            end(&scene);
            if (!failed) {
                assert_true(n > 2); /* the inputs, the outputs */
                break;
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_has_its_own_answer),
        cmocka_unit_test(sequences_are_cut_into_chunks),
        cmocka_unit_test(chunks_keep_to_the_latency),
        cmocka_unit_test(reproducible_sequences_are_computed_alone),
        cmocka_unit_test(padded_batches_cost_what_padding_costs),
        cmocka_unit_test(rows_of_a_batch_have_a_limit),
        cmocka_unit_test(times_are_means),
        cmocka_unit_test(the_next_batch_is_chosen_from_all),
        cmocka_unit_test(texts_are_written_token_by_token),
        cmocka_unit_test(parts_are_those_of_their_choice),
        cmocka_unit_test(texts_fail_with_their_own_reason),
        cmocka_unit_test(padding_ends_with_the_last_text),
        cmocka_unit_test(prompts_are_padded),
        cmocka_unit_test(clients_are_looked_for_now_and_then),
        cmocka_unit_test(a_job_without_memory_is_refused),
        cmocka_unit_test(a_batch_without_memory_fails_alone),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
