/* SPDX-License-Identifier: Apache-2.0 */
/* Beam search and drawing on probabilities that are written down: against an exhaustive search, and the rules of ends,
 * limits and penalties one by one; the coins of scheduled sampling. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "ok.h"
#include "oom.h"

#include "decode/beam.h"
#include "decode/decoder.h"
#include "decode/sample.h"
#include "decode/sampler.h"

enum { V = 5, BEGIN = 0, END = 1, LIMIT = 4 };

/* A language: the probabilities of what follows (sentence, last token, number of tokens so far). */
static void fill_row(int32_t sentence, int32_t last, int32_t step, float *row)
{
    double sum = 0;
    for (int c = 0; c < V; c++) {
        uint64_t cell = (uint64_t)(((sentence * 16 + step) * V + last) * V + c);
        row[c] = 0.02f + powf(seqlstm_uniform(17, cell, 0, 0), 3);
        sum += (double)row[c];
    }
    for (int c = 0; c < V; c++)
        row[c] = (float)(row[c] / sum);
}

/* The rows of every step of the last search. */
static struct sl_beam_row history[LIMIT][4096];

/* Each token of a result continues a row of its sentence that ends in the token before. */
static void check_rows(const struct sl_hypothesis *result, int32_t sentence)
{
    for (int32_t t = 0; t < result->count + result->ended; t++) {
        const struct sl_beam_row *row = &history[t][result->rows[t]];
        assert_int_equal(row->sentence, sentence);
        assert_int_equal(row->token, t ? result->ids[t - 1] : BEGIN);
    }
}

/* Runs a search over `sentences` of the language, each with a limit of its own, none above `limit`; counts the rows of
 * each. */
static struct sl_beam *search_to(const struct sl_beam_rule *rule, int32_t sentences, const int32_t *limits,
                                 int32_t limit, int32_t *rows_of)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_beam *beam = NULL;
    memset(rows_of, 0, (size_t)sentences * sizeof *rows_of);
    ok(sl_beam_create(rule, sentences, limits, &beam, &err), &err);
    float *probabilities = malloc((size_t)(sentences * rule->beam) * V * sizeof *probabilities);
    for (int32_t step = 0;; step++) {
        int32_t count;
        const struct sl_beam_row *rows = sl_beam_get_rows(beam, &count);
        const int32_t *sources;
        if (count == 0)
            break;
        assert_true(step < limit);
        assert_true(limit > LIMIT || count <= (int32_t)(sizeof history[0] / sizeof *history[0]));
        if (limit <= LIMIT)
            memcpy(history[step], rows, (size_t)count * sizeof *rows);
        for (int32_t r = 0; r < count; r++) {
            assert_true(r == 0 || rows[r].sentence >= rows[r - 1].sentence);
            fill_row(rows[r].sentence, rows[r].token, step, probabilities + r * V);
            rows_of[rows[r].sentence]++;
        }
        int32_t before = count;
        ok(sl_beam_advance(beam, probabilities, V, &sources, &err), &err);
        sl_beam_get_rows(beam, &count);
        for (int32_t r = 0; r < count; r++)
            assert_true(sources[r] >= 0 && sources[r] < before);
    }
    free(probabilities);
    return beam;
}

static struct sl_beam *search(const struct sl_beam_rule *rule, int32_t sentences, int32_t limit, int32_t *out_rows)
{
    int32_t limits[8] = {0}, rows_of[8], all = 0;
    for (int32_t s = 0; s < sentences; s++)
        limits[s] = limit;
    struct sl_beam *beam = search_to(rule, sentences, limits, limit, rows_of);
    for (int32_t s = 0; s < sentences; s++)
        all += rows_of[s];
    if (out_rows)
        *out_rows = all;
    return beam;
}

static double score_of(const struct sl_beam_rule *rule, double log_probability, int32_t length)
{
    return rule->penalty.kind == SL_LENGTH_PENALTY_AVERAGE ? log_probability / length
           : rule->penalty.kind == SL_LENGTH_PENALTY_GNMT
               ? log_probability / pow((5.0 + length) / 6.0, rule->penalty.alpha)
               : log_probability;
}

/* The best of all texts, by trying each. */
static double try_all(const struct sl_beam_rule *rule, int32_t sentence, int32_t last, int32_t step, double so_far)
{
    float row[V];
    double best = -INFINITY;
    fill_row(sentence, last, step, row);
    for (int32_t c = 0; c < V; c++) {
        double log_probability = so_far + log((double)row[c]);
        double score = c == END || step + 1 == LIMIT ? score_of(rule, log_probability, step + 1)
                                                     : try_all(rule, sentence, c, step + 1, log_probability);
        best = score > best ? score : best;
    }
    return best;
}

static const struct sl_length_penalty penalties[] = {
    {SL_LENGTH_PENALTY_NONE, 0}, {SL_LENGTH_PENALTY_AVERAGE, 0}, {SL_LENGTH_PENALTY_GNMT, 0.6}};

/* A beam that is wide enough finds the best of all. */
static void wide_beam_is_exhaustive(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof penalties / sizeof *penalties; p++) {
        struct sl_beam_rule rule = {.beam = 700, .n_best = 1, .penalty = penalties[p], .begin = BEGIN, .end = END};
        struct sl_beam *beam = search(&rule, 4, LIMIT, NULL);
        for (int32_t s = 0; s < 4; s++) {
            struct sl_hypothesis best = sl_beam_get_result(beam, s, 0);
            double expected = try_all(&rule, s, BEGIN, 0, 0);
            check_rows(&best, s);
            if (!(fabs(best.score - expected) <= 1e-6))
                fail_msg("penalty %d, sentence %d: %g is not %g", (int)p, s, best.score, expected);
        }
        sl_beam_destroy(beam);
    }
}

/* A beam of 1 takes the likeliest token until the end. */
static void beam_of_one_is_greedy(void **state)
{
    (void)state;
    struct sl_beam_rule rule = {.beam = 1, .n_best = 1, .penalty = penalties[1], .begin = BEGIN, .end = END};
    struct sl_beam *beam = search(&rule, 6, LIMIT, NULL);
    bool ends = false, cuts = false;
    for (int32_t s = 0; s < 6; s++) {
        struct sl_hypothesis got = sl_beam_get_result(beam, s, 0);
        int32_t last = BEGIN, k = 0;
        assert_int_equal(sl_beam_count_results(beam, s), 1);
        for (; k < LIMIT; k++) {
            float row[V];
            int32_t best = 0;
            fill_row(s, last, k, row);
            for (int32_t c = 1; c < V; c++)
                best = row[c] > row[best] ? c : best;
            last = best;
            if (best == END)
                break;
            assert_int_equal(got.ids[k], best);
        }
        assert_int_equal(got.count, k);
        assert_int_equal(got.ended, k < LIMIT);
        ends = ends || got.ended;
        cuts = cuts || !got.ended;
    }
    assert_true(ends && cuts);
    sl_beam_destroy(beam);
}

/* Results are distinct, sorted, and those of each sentence alone: others in the batch change nothing. */
static void sentences_do_not_meet(void **state)
{
    (void)state;
    struct sl_beam_rule rule = {.beam = 4, .n_best = 3, .penalty = penalties[2], .begin = BEGIN, .end = END};
    struct sl_beam *all = search(&rule, 5, LIMIT, NULL);
    for (int32_t n = 1; n <= 5; n++) {
        struct sl_beam *some = search(&rule, n, LIMIT, NULL);
        int32_t s = n - 1;
        assert_int_equal(sl_beam_count_results(some, s), 3);
        for (int32_t r = 0; r < 3; r++) {
            struct sl_hypothesis a = sl_beam_get_result(some, s, r), b = sl_beam_get_result(all, s, r);
            assert_true(a.score == b.score);
            assert_int_equal(a.count, b.count);
            assert_memory_equal(a.ids, b.ids, (size_t)a.count * sizeof *a.ids);
            if (r > 0)
                assert_true(sl_beam_get_result(all, s, r - 1).score >= b.score);
            assert_true(fabs(b.score - score_of(&rule, b.log_probability, (int32_t)b.count + b.ended)) <= 1e-12);
        }
        sl_beam_destroy(some);
    }
    sl_beam_destroy(all);
}

/* A sentence is searched up to its own limit, and stops where that decides it, whatever the limits of the others are.
 */
static void each_sentence_has_a_limit_of_its_own(void **state)
{
    (void)state;
    static const int32_t limits[] = {3, 1, 4, 2, 4, 3, 1, 2};
    enum { SENTENCES = sizeof limits / sizeof *limits };
    for (size_t p = 0; p < sizeof penalties / sizeof *penalties; p++)
        for (int32_t wide = 1; wide <= 4; wide++) {
            struct sl_beam_rule rule = {
                .beam = wide, .n_best = (wide + 1) / 2, .penalty = penalties[p], .begin = BEGIN, .end = END};
            int32_t mixed_rows[SENTENCES], rows[SENTENCES];
            struct sl_beam *mixed = search_to(&rule, SENTENCES, limits, LIMIT, mixed_rows);
            for (int32_t s = 0; s < SENTENCES; s++) {
                int32_t same[SENTENCES];
                for (int32_t k = 0; k <= s; k++)
                    same[k] = limits[s];
                struct sl_beam *alone = search_to(&rule, s + 1, same, limits[s], rows);
                assert_int_equal(mixed_rows[s], rows[s]);
                assert_int_equal(sl_beam_count_results(mixed, s), sl_beam_count_results(alone, s));
                for (int32_t r = 0; r < sl_beam_count_results(alone, s); r++) {
                    struct sl_hypothesis a = sl_beam_get_result(alone, s, r), b = sl_beam_get_result(mixed, s, r);
                    assert_true(a.score == b.score && a.count == b.count && a.ended == b.ended);
                    assert_true(a.ended || a.count == limits[s]);
                    assert_memory_equal(a.ids, b.ids, (size_t)a.count * sizeof *a.ids);
                }
                sl_beam_destroy(alone);
            }
            sl_beam_destroy(mixed);
        }
}

/* What has ended leaves the batch, and a search that is decided stops. */
static void ended_ones_leave(void **state)
{
    (void)state;
    struct sl_beam_rule rule = {.beam = 3, .n_best = 1, .penalty = penalties[0], .begin = BEGIN, .end = END};
    int32_t rows, most = 5 * (1 + 3 * 9);
    sl_beam_destroy(search(&rule, 5, 10, &rows));
    assert_true(rows < most / 2);
    sl_beam_destroy(search(&rule, 5, 1, &rows)); /* a limit of one token */
    assert_int_equal(rows, 5);
}

/* A search in which every step is written down: the probabilities of each of its rows, in order. */
struct script {
    int32_t rows; /* that the step must have */
    float probabilities[4][V];
};

static struct sl_beam *play(const struct sl_beam_rule *rule, int32_t limit, const struct script *steps, int32_t count)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_beam *beam = NULL;
    ok(sl_beam_create(rule, 1, &limit, &beam, &err), &err);
    for (int32_t step = 0; step < count; step++) {
        int32_t rows;
        const int32_t *sources;
        sl_beam_get_rows(beam, &rows);
        if (rows != steps[step].rows)
            fail_msg("step %d has %d rows, expected %d", step, rows, steps[step].rows);
        ok(sl_beam_advance(beam, steps[step].probabilities[0], V, &sources, &err), &err);
    }
    int32_t rows;
    sl_beam_get_rows(beam, &rows);
    if (rows != 0)
        fail_msg("%d rows are left", rows);
    return beam;
}

/* The rules of beam.h, one by one: which hypothesis keeps a place, when a sentence is done, and which of equals comes
 * first. */
static void rules_of_the_search(void **state)
{
    (void)state;
    struct sl_beam_rule rule = {.beam = 3, .n_best = 3, .penalty = penalties[0], .begin = BEGIN, .end = END};
    /* what has ended keeps its place: two are left for the live ones, then one, then none */
    static const struct script places[] = {{1, {{0, 0.4f, 0.3f, 0.2f, 0.1f}}},
                                           {2, {{0, 0.6f, 0.3f, 0.1f, 0}, {0, 0.1f, 0.2f, 0.6f, 0.1f}}},
                                           {1, {{0, 0.9f, 0.1f, 0, 0}}}};
    struct sl_beam *beam = play(&rule, 9, places, 3);
    static const double expected[] = {0.4, 0.3 * 0.6, 0.2 * 0.6 * 0.9};
    assert_int_equal(sl_beam_count_results(beam, 0), 3);
    for (int32_t r = 0; r < 3; r++)
        assert_true(fabs(sl_beam_get_result(beam, 0, r).score - log(expected[r])) <= 1e-6);
    sl_beam_destroy(beam);
    /* done as soon as no live one can overtake the n_best: log-probabilities only fall */
    rule.n_best = 1;
    sl_beam_destroy(play(&rule, 9, places, 1));
    static const struct script overtakes[] = {{1, {{0, 0.3f, 0.5f, 0.2f, 0}}},
                                              {2, {{0, 0.9f, 0.1f, 0, 0}, {0, 0.9f, 0.1f, 0, 0}}}};
    beam = play(&rule, 9, overtakes, 2);
    assert_true(fabs(sl_beam_get_result(beam, 0, 0).score - log(0.5 * 0.9)) <= 1e-6);
    sl_beam_destroy(beam);
    /* of several that are wanted the last one decides */
    rule.n_best = 2;
    static const struct script second[] = {
        {1, {{0, 0.5f, 0.3f, 0.2f, 0}}}, {2, {{0, 0.6f, 0.4f, 0, 0}, {0, 0, 1, 0, 0}}}, {1, {{0, 0.95f, 0.05f, 0, 0}}}};
    beam = play(&rule, 9, second, 3);
    assert_true(fabs(sl_beam_get_result(beam, 0, 1).score - log(0.2 * 0.95)) <= 1e-6);
    sl_beam_destroy(beam);
    rule.n_best = 1;
    /* with a penalty longer ones gain: it must be seen whether they do, up to the limit */
    rule.penalty = penalties[1];
    static const struct script longer[] = {{1, {{0, 0.5f, 0.3f, 0.2f, 0}}},
                                           {2, {{0, 0, 1, 0, 0}, {0, 0, 0.5f, 0.5f, 0}}},
                                           {2, {{0, 1, 0, 0, 0}, {0, 0, 0.5f, 0.5f, 0}}}};
    beam = play(&rule, 3, longer, 3);
    assert_true(fabs(sl_beam_get_result(beam, 0, 0).score - log(0.3) / 3) <= 1e-6);
    sl_beam_destroy(beam);
    /* equal results: the earlier row, then the lower token, stays first */
    rule = (struct sl_beam_rule){.beam = 3, .n_best = 3, .penalty = penalties[0], .begin = BEGIN, .end = END};
    static const struct script ties[] = {{1, {{0, 0, 0.25f, 0.25f, 0.5f}}},
                                         {3, {{0, 0.5f, 0.25f, 0.25f, 0}, {0, 1, 0, 0, 0}, {0, 1, 0, 0, 0}}}};
    beam = play(&rule, 3, ties, 2);
    static const int32_t first[] = {4, 2, 3};
    for (int32_t r = 0; r < 3; r++) {
        struct sl_hypothesis got = sl_beam_get_result(beam, 0, r);
        if (got.count != 1 || got.ids[0] != first[r])
            fail_msg("result %d begins with token %d, expected %d", r, got.ids[0], first[r]);
    }
    sl_beam_destroy(beam);
}

/* A text that ends with the last token that its limit allows has ended, one that goes on is cut; where there are fewer
 * texts than are wanted, there are fewer results. */
static void texts_at_the_limit(void **state)
{
    (void)state;
    static const struct script script[] = {{1, {{0, 0.25f, 0.5f, 0.25f, 0}}},
                                           {2, {{0, 0.75f, 0.25f, 0, 0}, {0, 0.5f, 0.5f, 0, 0}}}};
    struct sl_beam_rule rule = {.beam = 5,
                                .n_best = 4,
                                .penalty = penalties[1],
                                .begin = BEGIN,
                                .end = END,
                                .never = {.ids = {BEGIN, 4}, .count = 2}};
    static const struct {
        int32_t ids[2], count;
        bool ended;
        double probability;
    } expected[] = {{{2}, 1, true, 0.375}, {{2, 2}, 2, false, 0.125}, {{3}, 1, true, 0.125}, {{3, 2}, 2, false, 0.125}};
    struct sl_beam *beam = play(&rule, 2, script, 2);
    assert_int_equal(sl_beam_count_results(beam, 0), 4);
    for (int32_t r = 0; r < 4; r++) {
        const struct sl_hypothesis got = sl_beam_get_result(beam, 0, r);
        assert_int_equal(got.count, expected[r].count);
        assert_int_equal(got.ended, expected[r].ended);
        assert_memory_equal(got.ids, expected[r].ids, (size_t)got.count * sizeof *got.ids);
        assert_true(fabs(got.log_probability - log(expected[r].probability)) <= 1e-6);
        assert_true(fabs(got.score - log(expected[r].probability) / 2) <= 1e-6);
    }
    sl_beam_destroy(beam);
    beam = play(&rule, 1, script, 1); /* three tokens may be written, and one is the end */
    assert_int_equal(sl_beam_count_results(beam, 0), 3);
    static const int32_t counts[] = {1, 0, 1};
    for (int32_t r = 0; r < 3; r++) {
        const struct sl_hypothesis got = sl_beam_get_result(beam, 0, r);
        assert_int_equal(got.count, counts[r]);
        assert_int_equal(got.ended, counts[r] == 0);
    }
    sl_beam_destroy(beam);
    /* a live one that can only become equal does not keep the search going */
    rule = (struct sl_beam_rule){.beam = 2, .n_best = 1, .penalty = penalties[0], .begin = BEGIN, .end = END};
    static const struct script equal[] = {{1, {{0, 0.5f, 0.5f, 0, 0}}}};
    beam = play(&rule, 9, equal, 1);
    assert_int_equal(sl_beam_get_result(beam, 0, 0).count, 0);
    sl_beam_destroy(beam);
}

/* Tokens of `never` are in no result, and without them the search is that of a language without them. */
static void what_is_never_a_target_is_not_written(void **state)
{
    (void)state;
    struct sl_beam_rule rule = {.beam = 700,
                                .n_best = 8,
                                .penalty = penalties[1],
                                .begin = BEGIN,
                                .end = END,
                                .never = {.ids = {BEGIN, 3}, .count = 2}};
    struct sl_beam *beam = search(&rule, 3, LIMIT, NULL);
    for (int32_t s = 0; s < 3; s++) {
        assert_int_equal(sl_beam_count_results(beam, s), 8);
        double best = -INFINITY; /* of all texts of 2 and 4 */
        for (int32_t text = 0; text < 31; text++) {
            int32_t tokens[LIMIT] = {0}, last = BEGIN, n = 0;
            for (int32_t code = text; code > 0 && n < LIMIT; code = (code - 1) / 2)
                tokens[n++] = (code - 1) % 2 ? 4 : 2;
            double log_probability = 0;
            float row[V];
            for (int32_t t = 0; t < n; t++) {
                fill_row(s, last, t, row);
                log_probability += log((double)row[tokens[t]]);
                last = tokens[t];
            }
            if (n < LIMIT) {
                fill_row(s, last, n, row);
                log_probability += log((double)row[END]);
            }
            best = fmax(best, score_of(&rule, log_probability, n < LIMIT ? n + 1 : n));
        }
        assert_true(fabs(sl_beam_get_result(beam, s, 0).score - best) <= 1e-6);
        for (int32_t r = 0; r < 8; r++) {
            struct sl_hypothesis got = sl_beam_get_result(beam, s, r);
            for (int32_t k = 0; k < got.count; k++)
                assert_true(got.ids[k] == 2 || got.ids[k] == 4);
        }
    }
    sl_beam_destroy(beam);
}

/* A probability that underflows at a low temperature leaves the likeliest class; forbidden ones are never drawn. */
static void draws_without_what_is_never_a_target(void **state)
{
    (void)state;
    static const float row[5] = {0.3f, 0.05f, 0.2f, 0.15f, 0.3f};
    struct sl_sample_candidate scratch[5];
    struct sl_sample_rule rule = {1, 0, 1, {.ids = {0, 4}, .count = 2}};
    double counts[5] = {0};
    for (int u = 0; u < 3000; u++)
        counts[sl_sample_draw(&rule, row, 5, (u + 0.5) / 3000, scratch)]++;
    const double share[5] = {0, 0.125, 0.5, 0.375, 0};
    for (int c = 0; c < 5; c++)
        assert_true(fabs(counts[c] / 3000 - share[c]) <= 1e-3);
    assert_int_equal(sl_sample_find_best(&rule.never, row, 5), 2);
    rule.top_k = 1;
    assert_int_equal(sl_sample_draw(&rule, row, 5, 0.999, scratch), 2);
    rule = (struct sl_sample_rule){1e-3, 0, 1, {.ids = {0, 4}, .count = 2}};
    for (int u = 0; u < 10; u++)
        assert_int_equal(sl_sample_draw(&rule, row, 5, u / 10.0, scratch), 2);
    static const float sure[3] = {1, 0, 0}; /* all that is left has underflowed */
    rule = (struct sl_sample_rule){1, 0, 1, {.ids = {0}, .count = 1}};
    assert_int_equal(sl_sample_draw(&rule, sure, 3, 0.2, scratch), 1);
}

/* The share of each class in many draws; what is cut off is never drawn. */
static void draws_follow_the_rule(void **state)
{
    (void)state;
    static const float row[4] = {0.1f, 0.4f, 0.2f, 0.3f};
    static const struct {
        struct sl_sample_rule rule;
        double share[4];
    } cases[] = {
        {{1, 0, 1, {{0}, 0}}, {0.1, 0.4, 0.2, 0.3}},
        {{1, 2, 1, {{0}, 0}}, {0, 4.0 / 7, 0, 3.0 / 7}},
        {{1, 0, 0.65, {{0}, 0}}, {0, 4.0 / 7, 0, 3.0 / 7}},
        {{0.5, 0, 1, {{0}, 0}}, {1.0 / 30, 16.0 / 30, 4.0 / 30, 9.0 / 30}},
        {{0.01, 0, 1, {{0}, 0}}, {0, 1, 0, 0}},
    };
    struct sl_sample_candidate scratch[4];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double counts[4] = {0};
        for (int u = 0; u < 3000; u++)
            counts[sl_sample_draw(&cases[i].rule, row, 4, (u + 0.5) / 3000, scratch)]++;
        for (int c = 0; c < 4; c++)
            assert_true(fabs(counts[c] / 3000 - cases[i].share[c]) <= 1e-3);
    }
}

/* The share of coins is the probability, within four standard deviations of n fair draws. */
static void coins_show_the_probability(void **state)
{
    (void)state;
    enum { N = 40000 };
    static const double probabilities[] = {0, 0.1, 0.5, 0.9, 1};
    for (size_t i = 0; i < sizeof probabilities / sizeof *probabilities; i++) {
        double p = probabilities[i], sigma = sqrt(p * (1 - p) / N);
        int64_t taught = 0, changed = 0;
        for (int64_t n = 0; n < N; n++) {
            bool now = sl_sampler_toss(7, 1, (uint64_t)(n / 20), (uint32_t)(n % 20), p);
            taught += now;
            changed += now != sl_sampler_toss(7, 2, (uint64_t)(n / 20), (uint32_t)(n % 20), p);
        }
        assert_true(fabs((double)taught / N - p) <= 4 * sigma);
        assert_int_equal(changed > 0, p > 0 && p < 1);
    }
}

/* Two seeds that differ in their upper halves alone draw other tokens, and toss other coins. */
static void all_of_a_seed_counts(void **state)
{
    (void)state;
    const uint64_t seeds[2] = {7, 7 + (UINT64_C(1) << 32)};
    int tossed = 0;
    for (uint32_t step = 0; step < 64; step++) {
        assert_true(sl_decoder_draw(seeds[0], step, 3) != sl_decoder_draw(seeds[1], step, 3));
        assert_true(sl_decoder_draw(7, step, 3) != sl_decoder_draw(7, step, 4));
        assert_true(sl_decoder_draw(7, step, 3) != sl_decoder_draw(7, step + 1, 3));
        tossed += sl_sampler_toss(seeds[0], 1, 2, step, 0.5) != sl_sampler_toss(seeds[1], 1, 2, step, 0.5);
    }
    assert_in_range(tossed, 10, 54);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_beam_is_exhaustive),
        cmocka_unit_test(beam_of_one_is_greedy),
        cmocka_unit_test(sentences_do_not_meet),
        cmocka_unit_test(each_sentence_has_a_limit_of_its_own),
        cmocka_unit_test(ended_ones_leave),
        cmocka_unit_test(draws_follow_the_rule),
        cmocka_unit_test(rules_of_the_search),
        cmocka_unit_test(texts_at_the_limit),
        cmocka_unit_test(what_is_never_a_target_is_not_written),
        cmocka_unit_test(draws_without_what_is_never_a_target),
        cmocka_unit_test(coins_show_the_probability),
        cmocka_unit_test(all_of_a_seed_counts),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
