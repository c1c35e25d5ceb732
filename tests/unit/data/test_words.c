/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loop of cutting large texts: words begin and end where the tokenizer says, and a table numbers them as a
 * list that is searched from its beginning does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "oom.h"
#include "base/value/hash.h"
#include "data/text/tokenizer.h"
#include "data/text/word_edges.h"
#include "data/text/word_table.h"
#include "data/text/word_vectors.h"
#include "temporary.h"

enum { LONGEST = 700, WORDS = 3000, KINDS = 300 };

/* Blanks of all kinds, bytes next to them, letters and bytes of other scripts; `dense`: how many of 16 are blank. */
static void fill(char *text, size_t bytes, uint64_t seed, unsigned dense)
{
    static const char blanks[] = " \t\n\r\f\v", others[] = "az\x08\x0E!\x1F\x80\x89\xA0\xC3\xFF~Z\x7F_0";
    for (size_t i = 0; i < bytes; i++) {
        seed = sl_hash_combine(seed, i);
        text[i] = (seed & 15) < dense ? blanks[(seed >> 8) % 6] : others[(seed >> 8) % 16];
    }
}

static void test_edges(void **state)
{
    (void)state;
    static char text[LONGEST + SL_WORD_EDGES_BEHIND];
    struct sl_word_edges edges;
    for (uint64_t round = 0; round < 4000; round++) {
        size_t bytes = round % LONGEST;
        fill(text, sizeof text, round, round % 17);
        struct sl_token_cursor cursor;
        const char *token;
        size_t token_bytes;
        int count = 0, at = 0;
        sl_token_cursor_init(&cursor, SL_TOKENIZER_WHITESPACE, text, bytes);
        sl_word_edges_init(&edges, text, bytes);
        while (sl_token_cursor_next(&cursor, &token, &token_bytes)) {
            if (at == count) {
                count = sl_word_edges_next(&edges);
                assert_in_range(count, 1, SL_WORD_EDGES_WORDS);
                at = 0;
            }
            assert_int_equal(edges.at[2 * at], token - text);
            assert_int_equal(edges.at[2 * at + 1], token - text + (ptrdiff_t)token_bytes);
            at++;
        }
        assert_int_equal(at, count);
        assert_int_equal(sl_word_edges_next(&edges), 0);
    }
}

/* Words that differ in their last byte alone, in their first, in their length; of 8 bytes with a high last one. */
static size_t make_word(char *out, unsigned kind)
{
    static const char *const ends[] = {"a", "b", "\xC3\xA4", "\xF0\x9F\x98\x80", "\xFF"};
    size_t bytes = kind % 23, end = strlen(ends[kind % 5]);
    memset(out, 'x', bytes);
    if (bytes > 0 && kind % 2)
        out[0] = (char)('a' + kind / 23);
    memcpy(out + bytes, ends[kind % 5], end);
    return bytes + end;
}

static void test_numbers(void **state)
{
    (void)state;
    static char text[WORDS * 32 + 8], known[KINDS][32];
    static size_t at[2 * WORDS], known_bytes[KINDS];
    static int64_t counts[KINDS], expected_counts[KINDS];
    static uint32_t expected[WORDS], numbers[WORDS];
    struct sl_word_table one, many;
    size_t end = 0;
    uint32_t kinds = 0;
    uint64_t draw = 5;
    for (int w = 0; w < WORDS; w++) {
        draw = sl_hash_combine(draw, (uint64_t)w);
        at[2 * w] = end;
        end += make_word(text + end, (unsigned)(draw % KINDS));
        at[2 * w + 1] = end;
        size_t bytes = end - at[2 * w];
        uint32_t n = 0;
        while (n < kinds && (known_bytes[n] != bytes || memcmp(known[n], text + at[2 * w], bytes) != 0))
            n++;
        if (n == kinds) {
            memcpy(known[n], text + at[2 * w], bytes);
            known_bytes[kinds++] = bytes;
        }
        expected[w] = n;
        expected_counts[n]++;
    }
    sl_word_table_init(&one);
    sl_word_table_init(&many);
    for (int w = 0; w < WORDS; w++)
        assert_int_equal(sl_word_table_add(&one, text + at[2 * w], at[2 * w + 1] - at[2 * w]), expected[w]);
    for (int w = 0, step = 1; w < WORDS; w += step, step = step % SL_WORD_TABLE_MANY + 1) {
        step = step < WORDS - w ? step : WORDS - w;
        assert_true(sl_word_table_add_many(&many, text, at + 2 * w, step, numbers + w));
    }
    assert_memory_equal(numbers, expected, sizeof expected);
    assert_int_equal(many.count, kinds);
    sl_word_table_read_counts(&many, counts);
    assert_memory_equal(counts, expected_counts, kinds * sizeof *counts);
    for (uint32_t n = 0; n < kinds; n++) {
        size_t bytes;
        const char *word = sl_word_table_get(&many, (int32_t)n, &bytes);
        assert_int_equal(bytes, known_bytes[n]);
        assert_memory_equal(word, known[n], bytes);
    }
    sl_word_table_deinit(&one);
    sl_word_table_deinit(&many);
}

/* Writes the file, loads it for the words `a`, `b c` and `d`; returns what was found, -1 with the message if nothing.
 */
static int64_t load_vectors(const char *text, float *table, struct seqlstm_error *err)
{
    static const struct sl_vocabulary_entry words[] = {{"a", 1, 1}, {"b c", 3, 1}, {"d", 1, 1}};
    char path[TEMPORARY_BYTES];
    const int file = mkstemp(temporary_template(path, "vectors"));
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    struct sl_vocabulary *vocabulary = NULL;
    int64_t found = 0;
    assert_int_equal(sl_vocabulary_create(words, 3, NULL, &vocabulary, NULL), SEQLSTM_OK);
    const seqlstm_status status = sl_word_vectors_load(path, vocabulary, 2, table, &found, err);
    sl_vocabulary_destroy(vocabulary);
    unlink(path);
    return status == SEQLSTM_OK ? found : -1;
}

/* What cannot be opened, or opened but not read. */
static void test_no_vectors(void **state)
{
    (void)state;
    static const struct sl_vocabulary_entry words[] = {{"a", 1, 1}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_vocabulary *vocabulary = NULL;
    float table[2];
    int64_t found = -1;
    assert_int_equal(sl_vocabulary_create(words, 1, NULL, &vocabulary, NULL), SEQLSTM_OK);
    assert_int_equal(sl_word_vectors_load("/dev/null/none", vocabulary, 2, table, &found, &err), SEQLSTM_IO);
    assert_int_equal(sl_word_vectors_load("/no/such file", vocabulary, 2, table, &found, &err), SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(err.message, "cannot open `/no/such file`: "));
    assert_int_equal(sl_word_vectors_load("/", vocabulary, 2, table, &found, &err), SEQLSTM_IO);
    assert_non_null(strstr(err.message, "cannot read `/`: "));
    assert_int_equal(found, -1);
    sl_vocabulary_destroy(vocabulary);
}

static void test_vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t found;
        float table[6];
    } cases[] = {
        {"a 1 2\nb c 3 4\nd 5 6\n", 3, {1, 2, 3, 4, 5, 6}},
        {"4 2\na 1 2\n\nx 7 8\r\nd 5 6 \r\n", 2, {1, 2, 9, 9, 5, 6}},
        {"a 1 2\na 3 4\n", 1, {1, 2, 9, 9, 9, 9}}, /* the first line of a word counts */
        {"d\t-1e-3\t2\nb c 1 2", 2, {9, 9, 1, 2, -1e-3f, 2}},
        {"x 1 2\n", 0, {9, 9, 9, 9, 9, 9}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float table[6] = {9, 9, 9, 9, 9, 9};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const int64_t found = load_vectors(cases[i].text, table, &err);
        if (found != cases[i].found || memcmp(table, cases[i].table, sizeof table) != 0)
            fail_msg("case %d: %d found: %s", (int)i, (int)found, err.message);
        assert_int_equal(load_vectors(cases[i].text, NULL, &err), found);
    }
    static const char *const wrong[][2] = {
        {"a 1\n", ":1: a word and 1 number,"},
        {"a 1 2\nd 1 x\n", ":2: `x` is not"},
        {"a 1 2\n3 2\n", ":2: a word and 1 number,"}, /* only the first line may be a header */
        {"a 1 2 3\n", ":1: a word and 3"},
        {"2 2\na 1 nan\n", ":2: `nan` is not"},
        {"", "is empty"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        float table[6];
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(load_vectors(wrong[i][0], table, &err), -1);
        if (!strstr(err.message, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][1], err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_vectors), cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_edges), cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
