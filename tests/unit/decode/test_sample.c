/* SPDX-License-Identifier: Apache-2.0 */
/* The shares of [0, 1) from which each class is drawn, against the formula of sample.h worked out plainly. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "decode/decoder.h"
#include "decode/sample.h"
#include "oom.h"

enum { CASES = 80, CLASSES = 6, DRAWS = 3000 };

struct sample_case {
    uint64_t seed, draws;
    struct sl_sample_rule rule;
    float row[CLASSES];
    bool never[CLASSES];
};

static double draw(struct sample_case *c)
{
    return (double)seqlstm_uniform(c->seed, c->draws++, 5, 0);
}

static void draw_case(struct sample_case *c, uint64_t seed)
{
    double sum = 0;
    *c = (struct sample_case){.seed = seed};
    c->rule.temperature = draw(c) < 0.4 ? 1 : 0.2 + 2 * draw(c);
    c->rule.top_k = draw(c) < 0.5 ? 0 : 1 + (int64_t)(draw(c) * CLASSES);
    c->rule.top_p = draw(c) < 0.5 ? 1 : 0.1 + 0.9 * draw(c);
    for (int k = 0; k < CLASSES; k++) {
        c->row[k] = (float)draw(c);
        sum += (double)c->row[k];
    }
    for (int k = 0; k < CLASSES; k++)
        c->row[k] /= (float)sum;
    while (c->rule.never.count < 2 && draw(c) < 0.4) {
        const int32_t id = (int32_t)(draw(c) * CLASSES);
        c->rule.never.ids[c->rule.never.count++] = id;
        c->never[id] = true;
    }
}

/* How many classes are better than class k, of equal ones those before it. */
static int count_better(const struct sample_case *c, int k)
{
    int better = 0;
    for (int i = 0; i < CLASSES; i++)
        better += !c->never[i] && (c->row[i] > c->row[k] || (c->row[i] >= c->row[k] && i < k));
    return better;
}

static void find_shares(const struct sample_case *c, double shares[CLASSES])
{
    double kept[CLASSES], sum = 0;
    for (int k = 0; k < CLASSES; k++) {
        shares[k] = c->never[k] ? 0 : pow((double)c->row[k], 1 / c->rule.temperature);
        sum += shares[k];
    }
    for (int k = 0; k < CLASSES; k++)
        shares[k] /= sum;
    for (int k = 0; k < CLASSES; k++) { /* kept: the better ones together have not reached top_p yet */
        double before = 0;
        for (int i = 0; i < CLASSES; i++)
            if (!c->never[i] && count_better(c, i) < count_better(c, k))
                before += shares[i];
        const bool few = c->rule.top_k == 0 || count_better(c, k) < c->rule.top_k;
        kept[k] = few && before < c->rule.top_p ? shares[k] : 0;
    }
    sum = 0;
    for (int k = 0; k < CLASSES; k++)
        sum += kept[k];
    for (int k = 0; k < CLASSES; k++)
        shares[k] = kept[k] / sum;
}

static void shares_are_those_of_the_formula(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct sample_case c;
        struct sl_sample_candidate scratch[CLASSES];
        double shares[CLASSES];
        int drawn[CLASSES] = {0}, best = -1;
        draw_case(&c, seed);
        find_shares(&c, shares);
        for (int u = 0; u < DRAWS; u++)
            drawn[sl_sample_draw(&c.rule, c.row, CLASSES, (u + 0.5) / DRAWS, scratch)]++;
        for (int k = 0; k < CLASSES; k++) {
            if (!(fabs((double)drawn[k] / DRAWS - shares[k]) <= 1.5 / DRAWS))
                fail_msg("case %d: class %d is drawn with %g, expected %g", (int)seed, k, (double)drawn[k] / DRAWS,
                         shares[k]);
            if (!c.never[k] && (best < 0 || c.row[k] > c.row[best]))
                best = k;
        }
        assert_int_equal(sl_sample_find_best(&c.rule.never, c.row, CLASSES), best);
    }
}

/* Of equal probabilities the lower class comes first, and a share that is just reached is enough. */
static void equals_are_in_order(void **state)
{
    (void)state;
    static const float row[CLASSES] = {0.125f, 0.25f, 0.125f, 0.25f, 0.25f, 0};
    struct sl_sample_candidate scratch[CLASSES];
    struct sl_sample_rule rule = {1, 1, 1, {{0}, 0}};
    assert_int_equal(sl_sample_find_best(&rule.never, row, CLASSES), 1);
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0.99, scratch), 1);
    rule.top_k = 2;
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0.49, scratch), 1);
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0.51, scratch), 3);
    rule.top_k = 4;
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0.99, scratch), 0);
    rule = (struct sl_sample_rule){1, 0, 0.5, {{0}, 0}};
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0.99, scratch), 3);
    rule.top_p = 0.51;
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0.99, scratch), 4);
    rule.top_p = 1;
    rule.top_k = CLASSES + 1; /* more than there are */
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0, scratch), 1);
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0.999, scratch), 2);
    rule = (struct sl_sample_rule){1, CLASSES - 1, 1, {{4, 5, 2}, 3}}; /* more than there are without those */
    for (int k = 0; k < CLASSES; k++)
        scratch[k] = (struct sl_sample_candidate){5, 0.5};
    assert_int_equal(sl_sample_draw(&rule, row, CLASSES, 0.999, scratch), 0);
}

/* A row whose every token is never drawn, or is impossible, still gives one of its tokens. */
static void rows_without_a_choice(void **state)
{
    (void)state;
    static const float none[CLASSES] = {0, 0, 1, 0, 0, 0};
    struct sl_sample_candidate scratch[CLASSES];
    const struct sl_never both = {{0, 1}, 2};
    assert_int_equal(sl_sample_find_best(&both, none, 2), 0);
    struct sl_sample_rule rule = {1, 0, 1, {{0, 1}, 2}};
    assert_int_equal(sl_sample_draw(&rule, none, 2, 0.7, scratch), 0);
    rule.never = (struct sl_never){{2}, 1};
    for (int k = 0; k < CLASSES - 1; k++) /* the others have equal shares */
        assert_int_equal(sl_sample_draw(&rule, none, CLASSES, (k + 0.5) / (CLASSES - 1), scratch), k < 2 ? k : k + 1);
}

/* Without a limit twice the source and ten; numbers that draw are in [0, 1) and differ by what they depend on. */
static void limits_and_numbers(void **state)
{
    (void)state;
    struct sl_decode_config config = {.beam = 1};
    assert_int_equal(sl_decoder_get_limit(&config, 0), 10);
    assert_int_equal(sl_decoder_get_limit(&config, 7), 24);
    assert_int_equal(sl_decoder_get_limit(&config, INT64_C(1) << 40), INT32_MAX);
    config.max_length = 5;
    assert_int_equal(sl_decoder_get_limit(&config, 7), 5);
    config.max_length = 100; /* also above what it would be without it */
    assert_int_equal(sl_decoder_get_limit(&config, 7), 100);
    assert_int_equal(sl_decoder_get_limit(&config, 1000), 100);
    config.max_length = INT64_C(1) << 40;
    assert_int_equal(sl_decoder_get_limit(&config, 7), INT32_MAX);
    double sum = 0;
    for (int64_t record = 0; record < 500; record++)
        for (int64_t step = 0; step < 4; step++) {
            const double u = sl_decoder_draw(3, step, record);
            assert_true(u >= 0 && u < 1);
            assert_true(u == sl_decoder_draw(3, step, record));
            assert_true(u != sl_decoder_draw(4, step, record) && u != sl_decoder_draw(3, step + 1, record) &&
                        u != sl_decoder_draw(3, step, record + 1));
            sum += u / 2000;
        }
    assert_true(fabs(sum - 0.5) < 4 * sqrt(1.0 / 12 / 2000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_those_of_the_formula),
        cmocka_unit_test(equals_are_in_order),
        cmocka_unit_test(rows_without_a_choice),
        cmocka_unit_test(limits_and_numbers),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
