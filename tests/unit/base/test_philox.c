/* SPDX-License-Identifier: Apache-2.0 */
/* The mask generator against the known answers that Random123 publishes for philox4x32-10 (file
 * tests/kat_vectors of DEShawResearch/random123, v1.14.0), and the conventions built upon it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "oom.h"

static void known_answers(void **state)
{
    (void)state;
    /* counter, key, answer */
    static const uint32_t vectors[3][10] = {{0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                            {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
                                             0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                            {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
                                             0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
    for (int v = 0; v < 3; v++) {
        uint32_t out[4];
        seqlstm_philox4x32(vectors[v], (uint64_t)vectors[v][5] << 32 | vectors[v][4], out);
        assert_memory_equal(out, vectors[v] + 6, sizeof out);
    }
}

static void in_place(void **state)
{
    (void)state;
    uint32_t words[4] = {1, 2, 3, 4}, expected[4];
    seqlstm_philox4x32(words, 5, expected);
    seqlstm_philox4x32(words, 5, words);
    assert_memory_equal(words, expected, sizeof words);
}

/* The first outputs of splitmix64 seeded with 0 (Steele, Lea, Flood 2014; widely published). */
static void mix_is_splitmix(void **state)
{
    (void)state;
    assert_true(seqlstm_mix64_round(0) == UINT64_C(0xE220A8397B1DCDAF));
    assert_true(seqlstm_mix64_round(UINT64_C(0x9E3779B97F4A7C15)) == UINT64_C(0x6E789E6AA1B965F4));
    assert_true(seqlstm_mix64_round(UINT64_C(0x9E3779B97F4A7C15) * 2) == UINT64_C(0x06C45D188009454F));
    const uint64_t key = seqlstm_mix64(1, 2, 3);
    assert_true(key != seqlstm_mix64(2, 1, 3));
    assert_true(key != seqlstm_mix64(1, 3, 2));
    assert_true(key != seqlstm_mix64(3, 2, 1));
}

/* counter = (element / 4, step, sequence low, high); lane = element mod 4; u = (word >> 8) 2^-24. */
static void uniform_follows_its_definition(void **state)
{
    (void)state;
    const uint64_t key = seqlstm_mix64(42, 7, 1), sequence = UINT64_C(0x123456789ABCDEF0);
    for (uint64_t element = 0; element < 11; element++) {
        const uint32_t counter[4] = {(uint32_t)(element / 4), 9, 0x9ABCDEF0, 0x12345678};
        uint32_t words[4];
        seqlstm_philox4x32(counter, key, words);
        const double expected = (double)(words[element % 4] >> 8) / 16777216.0;
        assert_true((double)seqlstm_uniform(key, element, 9, sequence) == expected);
    }
}

static void uniform_fills_the_unit_interval(void **state)
{
    (void)state;
    enum { N = 100000, BINS = 10 };
    int bins[BINS] = {0};
    double sum = 0;
    for (uint64_t k = 0; k < N; k++) {
        const double u = seqlstm_uniform(99, k, 0, 1);
        assert_true(u >= 0 && u < 1);
        bins[(int)(u * BINS)]++;
        sum += u;
    }
    /* five standard deviations of a binomial and of a mean */
    for (int b = 0; b < BINS; b++)
        assert_true(abs(bins[b] - N / BINS) < 5 * sqrt(N * 0.1 * 0.9));
    assert_true(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
}

/* The answer to counter 0 and key 0, cut into halves: an element is dropped from the rate just above its half on. */
static void mask_takes_halves_in_order(void **state)
{
    (void)state;
    static const uint32_t halves[8] = {0xe8d5, 0x6627, 0xc58d, 0xe169, 0xac4c, 0xbc57, 0xdbd8, 0x9b00};
    for (uint64_t e = 0; e < 8; e++) {
        assert_int_equal(seqlstm_mask_drops(0, e, 0, 0, (float)halves[e] / 65536), 0);
        assert_int_equal(seqlstm_mask_drops(0, e, 0, 0, (float)(halves[e] + 1) / 65536), 1);
    }
}

/* counter = (element / 8, step, sequence low, high) */
static void mask_follows_its_definition(void **state)
{
    (void)state;
    const uint64_t key = seqlstm_mix64(42, 7, 1), sequence = UINT64_C(0x123456789ABCDEF0);
    const float rate = 0.375f;
    for (uint64_t element = 0; element < 40; element++) {
        const uint32_t counter[4] = {(uint32_t)(element / 8), 9, 0x9ABCDEF0, 0x12345678};
        uint32_t words[4];
        seqlstm_philox4x32(counter, key, words);
        const uint32_t word = words[element % 8 / 2], half = element % 2 ? word >> 16 : word & 0xFFFF;
        const float m = seqlstm_mask(key, element, 9, sequence, rate);
        assert_true(m == (half < 3 * 8192 ? 0.0f : 1.6f));
        assert_true(seqlstm_mask(key, element, 9, sequence, 0.0f) == 1.0f);
    }
}

static void rates_are_counted_in_65536ths(void **state)
{
    (void)state;
    static const struct {
        float rate;
        uint32_t count;
    } cases[] = {{0.0f, 0},
                 {1e-30f, 1},
                 {0.49f / 65536, 1},
                 {1.49f / 65536, 1},
                 {1.5f / 65536, 2},
                 {0.1f, 6554},
                 {0.2f, 13107},
                 {0.5f, 32768},
                 {32768.49f / 65536, 32768},
                 {32768.5f / 65536, 32769},
                 {65534.5f / 65536, 65535},
                 {65535.75f / 65536, 65535},
                 {0x1.fffffep-1f, 65535}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t k = cases[i].count;
        assert_int_equal(seqlstm_mask_count(cases[i].rate), k);
        assert_true((double)seqlstm_mask_rate(cases[i].rate) == k / 65536.0);
        assert_int_equal(seqlstm_mask_count(seqlstm_mask_rate(cases[i].rate)), k);
        assert_true(seqlstm_mask_scale(cases[i].rate) == (float)(65536.0 / (65536 - k)));
    }
}

/* Shares of dropped elements, of both halves of a word, and of pairs of neighbours: five standard deviations. */
static void mask_drops_its_share(void **state)
{
    (void)state;
    enum { N = 100000 };
    static const float rates[] = {1.0f / 65536, 0.001f, 0.1f, 0.5f, 0.9f, 65535.0f / 65536};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const double p = (double)seqlstm_mask_rate(rates[i]);
        double of[2] = {0, 0}, both[2] = {0, 0};
        int before = 0;
        for (uint64_t e = 0; e < 2 * N; e++) {
            const int drops = seqlstm_mask_drops(77, e, 3, 2, rates[i]);
            of[e % 2] += drops;
            both[e % 2] += drops && before; /* [1]: the halves of a word; [0]: of neighbouring words */
            before = drops;
        }
        for (int k = 0; k < 2; k++) {
            assert_true(fabs(of[k] - N * p) < 5 * sqrt(N * p * (1 - p)) + 1);
            assert_true(fabs(both[k] - N * p * p) < 5 * sqrt(N * p * p * (1 - p * p)) + 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(in_place),
        cmocka_unit_test(mix_is_splitmix),
        cmocka_unit_test(uniform_follows_its_definition),
        cmocka_unit_test(uniform_fills_the_unit_interval),
        cmocka_unit_test(mask_takes_halves_in_order),
        cmocka_unit_test(mask_follows_its_definition),
        cmocka_unit_test(rates_are_counted_in_65536ths),
        cmocka_unit_test(mask_drops_its_share),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
