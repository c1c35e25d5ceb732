/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the n-th allocation, for every n, while a decoder or a sampler is made and runs: NO_MEMORY,
 * nothing lost (sanitizers), and the same text from the next run. What they count of the memory that they take. */
#include "exec_pairs.h"

#include <malloc.h>

#include "oom.h"

#include "decode/decoder.h"
#include "decode/sampler.h"

enum { BEGIN = 0, END = 1, BEAM = 3, WORDS = 40, ATTENDING = 8 };

static const struct sl_decode_config configs[] = {
    {.beam = 1, .n_best = 1, .length_penalty = {SL_LENGTH_PENALTY_NONE, 0}, .top_p = 1},
    {.beam = BEAM, .n_best = BEAM, .length_penalty = {SL_LENGTH_PENALTY_GNMT, 0.6}, .top_p = 1},
    {.beam = 1, .n_best = 1, .temperature = 2, .top_k = 5, .top_p = 0.9}};

struct team {
    struct world w;
    struct part encoder, step;
};

static void open_team(struct team *team, bool reports)
{
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    open_world(&team->w, data_pairs, cases[ATTENDING].layers, &facts, true);
    struct sl_envelope small = facts.envelope;
    small.steps = 1;
    small.sequences = small.rows = BEAM * B;
    part_reports_attention = reports;
    open_part(&team->encoder, &team->w, SL_PART_ENCODER, &facts.envelope);
    open_part(&team->step, &team->w, SL_PART_DECODER, &small);
}

static void close_team(struct team *team)
{
    close_part(&team->step);
    close_part(&team->encoder);
    close_world(&team->w);
}

/* What was written for each source of the batch. */
struct texts {
    int64_t count[B];
    int32_t ids[B][WORDS];
};

static void read_texts(struct sl_decoder *decoder, struct texts *out)
{
    memset(out, 0, sizeof *out);
    for (int64_t k = 0; k < B; k++) {
        const struct sl_hypothesis best = sl_decoder_get_result(decoder, k, 0);
        assert_true(best.count <= WORDS);
        out->count[k] = best.count;
        memcpy(out->ids[k], best.ids, (size_t)best.count * sizeof *best.ids);
    }
}

static void a_decoder_runs_out_of_memory(void **state)
{
    (void)state;
    struct team team;
    open_team(&team, true);
    struct sl_batch *batch = make_pairs(false);
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
        struct sl_decoder_request request = {.encoder = team.encoder.exec,
                                             .step = team.step.exec,
                                             .config = &configs[c],
                                             .begin = BEGIN,
                                             .end = END,
                                             .seed = 3,
                                             .traces_attention = true};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_decoder *decoder = NULL;
        struct texts expected, got;
        int failures = 0;
        for (int n = 1;; n++) {
            oom_fail_at(n);
            const seqlstm_status status = sl_decoder_create(&request, &decoder, &err);
            if (!oom_disarm()) {
                ok(status, &err);
                break;
            }
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
            assert_null(decoder);
            assert_non_null(strstr(err.message, "no memory"));
            err.message[0] = '\0';
        }
        ok(sl_decoder_run(decoder, batch, &err), &err);
        read_texts(decoder, &expected);
        sl_decoder_destroy(decoder);
        for (int n = 1;; n++, failures++) { /* of a decoder that has no room from an earlier run */
            ok(sl_decoder_create(&request, &decoder, &err), &err);
            oom_fail_at(n);
            const seqlstm_status status = sl_decoder_run(decoder, batch, &err);
            const bool fails = oom_disarm();
            if (status == SEQLSTM_OK) /* the watch over a plugin's calls goes without a call's record */
                assert_int_equal(sl_decoder_get_totals(decoder).sequences, B);
            else
                assert_int_equal(status, fails ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
            if (status != SEQLSTM_OK)
                ok(sl_decoder_run(decoder, batch, &err), &err);
            read_texts(decoder, &got);
            assert_memory_equal(&got, &expected, sizeof got);
            sl_decoder_destroy(decoder);
            if (!fails)
                break;
        }
        assert_true(failures > 10);
    }
    sl_batch_destroy(batch);
    close_team(&team);
}

static void a_sampler_runs_out_of_memory(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_sampler *sampler = NULL;
    struct team team;
    open_team(&team, false);
    const struct sl_sampler_request request = {.encoder = team.encoder.exec, .step = team.step.exec, .seed = 11};
    struct sl_batch *expected = make_pairs(true);
    int64_t own = 0;
    for (int n = 1;; n++) {
        oom_fail_at(n);
        const seqlstm_status status = sl_sampler_create(&request, &sampler, &err);
        if (!oom_disarm()) {
            ok(status, &err);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_null(sampler);
    }
    ok(sl_sampler_mix(sampler, expected, 0, 1, &own, &err), &err);
    assert_int_equal(own, R - B); /* all but the first of each sequence */
    for (int n = 1;; n++) {
        struct sl_batch *batch = make_pairs(true);
        oom_fail_at(n);
        const seqlstm_status status = sl_sampler_mix(sampler, batch, 0, 1, &own, &err);
        const bool fails = oom_disarm();
        if (status != SEQLSTM_OK)
            assert_int_equal(status, fails ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        else
            assert_memory_equal(batch->input.ids, expected->input.ids, R * sizeof(int32_t));
        sl_batch_destroy(batch);
        if (!fails)
            break;
    }
    sl_sampler_destroy(sampler);
    sl_batch_destroy(expected);
    close_team(&team);
}

/* A decoder that is gone no longer watches the executor that it has watched. */
static void a_decoder_leaves_its_executors_alone(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct team team;
    struct texts expected, got;
    open_team(&team, true);
    struct sl_batch *batch = make_pairs(false);
    struct sl_decoder_request request = {.encoder = team.encoder.exec,
                                         .step = team.step.exec,
                                         .config = &configs[1],
                                         .begin = BEGIN,
                                         .end = END,
                                         .traces_attention = true};
    for (int time = 0; time < 2; time++) {
        struct sl_decoder *decoder = NULL;
        ok(sl_decoder_create(&request, &decoder, &err), &err);
        ok(sl_decoder_run(decoder, batch, &err), &err);
        read_texts(decoder, time ? &got : &expected);
        sl_decoder_destroy(decoder);
        request.traces_attention = false;
    }
    assert_memory_equal(&got, &expected, sizeof got);
    sl_batch_destroy(batch);
    close_team(&team);
}

static size_t count_used(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd; /* on the heap, and mapped for themselves */
}

static void expect_bytes(const char *what, size_t before, int64_t counted)
{
    const double taken = (double)(count_used() - before);
    if (taken > 0 && !(fabs(taken - (double)counted) <= 0.05 * taken)) /* sanitizers count in their own way */
        fail_msg("%s takes %g bytes, but counts %g", what, taken, (double)counted);
}

/* What is counted is what is taken, of things so large that the rest does not matter. */
static void what_is_counted_is_taken(void **state)
{
    (void)state;
    enum { ROWS = 5000, SENTENCES = 2000 };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    struct team team;
    struct sl_sampler *sampler = NULL;
    struct sl_beam *beam = NULL;
    open_world(&team.w, data_pairs, cases[0].layers, &facts, true);
    struct sl_envelope large = facts.envelope;
    large.steps = 1;
    large.sequences = large.rows = ROWS;
    part_reports_attention = false;
    open_part(&team.encoder, &team.w, SL_PART_ENCODER, &facts.envelope);
    open_part(&team.step, &team.w, SL_PART_DECODER, &large);
    const struct sl_sampler_request request = {.encoder = team.encoder.exec, .step = team.step.exec};
    size_t before = count_used();
    ok(sl_sampler_create(&request, &sampler, &err), &err);
    expect_bytes("a sampler", before, sl_sampler_count_bytes(sl_exec_get_graph(team.step.exec)));
    sl_sampler_destroy(sampler);
    for (size_t c = 0; c < sizeof configs / sizeof *configs;
         c++) { /* before its first search, which is counted below */
        const struct sl_decode_config *config = &configs[c];
        const struct sl_beam_rule own = {.beam = (int32_t)config->beam, .n_best = (int32_t)config->n_best};
        const struct sl_graph *graph = sl_exec_get_graph(team.step.exec);
        const int64_t search = sl_beam_count_bytes(&own, ROWS / config->beam, sl_decoder_get_limit(config, 7));
        const struct sl_decoder_request wanted = {
            .encoder = team.encoder.exec, .step = team.step.exec, .config = config};
        struct sl_decoder *decoder = NULL;
        before = count_used();
        ok(sl_decoder_create(&wanted, &decoder, &err), &err);
        expect_bytes("a decoder", before, sl_decoder_count_bytes(graph, config, 7) - search);
        sl_decoder_destroy(decoder);
    }
    const struct sl_beam_rule rule = {.beam = 12, .n_best = 1};
    int32_t *limits = calloc(SENTENCES, sizeof *limits);
    for (int32_t s = 0; s < SENTENCES; s++)
        limits[s] = 1;
    before = count_used();
    ok(sl_beam_create(&rule, SENTENCES, limits, &beam, &err), &err);
    const int64_t one = sl_beam_count_bytes(&rule, SENTENCES, 1), two = sl_beam_count_bytes(&rule, SENTENCES, 2);
    expect_bytes("a beam without a step", before, one - (two - one));
    sl_beam_destroy(beam);
    free(limits);
    close_team(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decoder_runs_out_of_memory),
        cmocka_unit_test(a_sampler_runs_out_of_memory),
        cmocka_unit_test(a_decoder_leaves_its_executors_alone),
        cmocka_unit_test(what_is_counted_is_taken),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
