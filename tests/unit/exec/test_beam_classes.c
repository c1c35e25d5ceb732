/* SPDX-License-Identifier: Apache-2.0 */
/* The best continuations of a beam where the classes are several blocks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "ok.h"

#include "decode/beam.h"

enum { WIDE = 200, PLACES = 4 };

/* Of a vocabulary of several blocks the best continuations are those that sorting finds. */
static void best_of_many(void **state)
{
    (void)state;
    struct sl_beam_rule rule = {
        .beam = PLACES, .n_best = 1, .penalty = {SL_LENGTH_PENALTY_NONE, 0}, .begin = WIDE, .end = WIDE + 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_beam *beam = NULL;
    const int32_t limits[1] = {6}, *sources;
    float *probabilities = malloc((size_t)PLACES * WIDE * sizeof *probabilities);
    ok(sl_beam_create(&rule, 1, limits, &beam, &err), &err);
    for (uint32_t step = 0; step < 5; step++) {
        int32_t count, next;
        const struct sl_beam_row *rows = sl_beam_get_rows(beam, &count);
        double before[PLACES], last = INFINITY;
        for (int32_t r = 0; r < count; r++) {
            before[r] = rows[r].log_probability;
            for (uint32_t c = 0; c < WIDE; c++)
                probabilities[r * WIDE + (int32_t)c] = 1e-5f + powf(seqlstm_uniform(3, (uint64_t)r, step, c), 40);
        }
        ok(sl_beam_advance(beam, probabilities, WIDE, &sources, &err), &err);
        rows = sl_beam_get_rows(beam, &next);
        assert_int_equal(next, PLACES);
        for (int32_t k = 0; k < PLACES; k++) {
            double best = -INFINITY;
            for (int32_t r = 0; r < count; r++)
                for (int32_t c = 0; c < WIDE; c++) {
                    double value = before[r] + log((double)probabilities[r * WIDE + c]);
                    best = value < last && value > best ? value : best;
                }
            if (!(fabs(rows[k].log_probability - best) < 1e-9))
                fail_msg("step %u, place %d: %g is not %g", step, k, rows[k].log_probability, best);
            last = best;
        }
    }
    sl_beam_destroy(beam);
    free(probabilities);
}

/* A row ends with its last token, also where all of its blocks are passed over and the next row begins with a likely
 * one. */
static void no_token_is_behind_the_last(void **state)
{
    (void)state;
    for (int32_t classes = 64; classes <= 192; classes++) {
        const struct sl_beam_rule rule = {
            .beam = PLACES, .n_best = 1, .penalty = {SL_LENGTH_PENALTY_NONE, 0}, .begin = WIDE, .end = WIDE + 1};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_beam *beam = NULL;
        const int32_t limit = 3, *sources;
        int32_t count;
        float *probabilities = malloc((size_t)(PLACES * classes) * sizeof *probabilities);
        ok(sl_beam_create(&rule, 1, &limit, &beam, &err), &err);
        for (int32_t c = 0; c < classes; c++)
            probabilities[c] = c < PLACES ? 0.25f : 0;
        ok(sl_beam_advance(beam, probabilities, classes, &sources, &err), &err);
        for (int32_t i = 0; i < PLACES * classes; i++)
            probabilities[i] = 1e-4f;
        for (int32_t c = 0; c < PLACES; c++)
            probabilities[c] = 0.2f;
        probabilities[2 * classes] = 0.9f; /* nothing in rows 1 and 3 is as likely */
        ok(sl_beam_advance(beam, probabilities, classes, &sources, &err), &err);
        const struct sl_beam_row *rows = sl_beam_get_rows(beam, &count);
        assert_int_equal(count, PLACES);
        for (int32_t k = 0; k < PLACES; k++)
            if (sources[k] != (k ? 0 : 2) || rows[k].token != (k ? k - 1 : 0))
                fail_msg("%d classes, place %d: row %d, token %d", classes, k, sources[k], rows[k].token);
        sl_beam_destroy(beam);
        free(probabilities);
    }
}

/* Where many are equal, the earlier row and then the lower token has the place, also in a vocabulary of several blocks
 * and where only the last places are contested. */
static void of_equal_ones_the_first(void **state)
{
    (void)state;
    static float probabilities[PLACES * WIDE];
    for (uint32_t trial = 0; trial < 60; trial++) {
        const int32_t beam_width = 1 + (int32_t)trial % PLACES, classes = WIDE - (int32_t)trial, limit = 9;
        const struct sl_beam_rule rule = {
            .beam = beam_width, .n_best = 1, .penalty = {SL_LENGTH_PENALTY_NONE, 0}, .begin = WIDE, .end = WIDE + 1};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_beam *beam = NULL;
        const int32_t *sources;
        ok(sl_beam_create(&rule, 1, &limit, &beam, &err), &err);
        for (uint32_t step = 0; step < 3; step++) {
            int32_t count, next;
            const struct sl_beam_row *rows = sl_beam_get_rows(beam, &count);
            double before[PLACES];
            bool taken[PLACES * WIDE] = {false};
            for (int32_t i = 0; i < count * classes; i++) /* one of four values; the largest is rare */
                probabilities[i] =
                    ldexpf(1, -3 - (int)(4 * powf(seqlstm_uniform(trial, (uint64_t)i, step, 7), trial % 3 ? 0.1f : 2)));
            for (int32_t r = 0; r < count; r++)
                before[r] = rows[r].log_probability;
            ok(sl_beam_advance(beam, probabilities, classes, &sources, &err), &err);
            rows = sl_beam_get_rows(beam, &next);
            assert_int_equal(next, beam_width);
            for (int32_t k = 0; k < next; k++) {
                int32_t best = -1;
                double most = -INFINITY;
                for (int32_t i = 0; i < count * classes; i++) {
                    const double value = before[i / classes] + log((double)probabilities[i]);
                    if (!taken[i] && value > most) {
                        best = i;
                        most = value;
                    }
                }
                taken[best] = true;
                if (sources[k] != best / classes || rows[k].token != best % classes)
                    fail_msg("trial %u, step %u, place %d: row %d, token %d, expected %d and %d", trial, step, k,
                             sources[k], rows[k].token, best / classes, best % classes);
            }
        }
        sl_beam_destroy(beam);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_of_many),
        cmocka_unit_test(no_token_is_behind_the_last),
        cmocka_unit_test(of_equal_ones_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
