/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the n-th allocation, for every n, while a decoder or a sampler is made and runs: NO_MEMORY,
 * nothing lost (sanitizers), and the same text from the next run. */
#include "exec_pairs.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decoder_runs_out_of_memory),
        cmocka_unit_test(a_sampler_runs_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
