/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of texts, finished vocabularies, and ids as readable text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "base/value/buf.h"
#include "base/value/hash.h"
#include "data/text/intern.h"
#include "data/text/pieces.h"
#include "data/text/tokenizer.h"

enum { TEXTS = 3000, LONGEST = 40 };

/* A text of one of 2000 kinds: of one byte, empty, with a NUL, or long. */
static size_t make_text(uint64_t kind, char text[LONGEST])
{
    if (kind == 0)
        return 0;
    if (kind < 200) {
        text[0] = (char)kind;
        return 1;
    }
    size_t bytes = (size_t)snprintf(text, LONGEST, "%llu", (unsigned long long)(kind * kind));
    if (kind % 7 == 0)
        text[1] = '\0';
    for (size_t more = kind % 30; more > 0; more--)
        text[bytes++] = 'x';
    return bytes;
}

/* Each new text has the next number, whatever came between; what was never added has none. */
static void test_numbers_are_those_of_a_list(void **state)
{
    (void)state;
    static char known[TEXTS][LONGEST];
    static size_t known_bytes[TEXTS];
    struct sl_intern intern;
    int32_t count = 0;
    uint64_t seed = 5;
    sl_intern_init(&intern);
    for (int i = 0; i < TEXTS; i++) {
        char text[LONGEST];
        seed = sl_hash_combine(seed, (uint64_t)i);
        const size_t bytes = make_text(seed % 2000, text);
        int32_t n = 0;
        while (n < count && (known_bytes[n] != bytes || memcmp(known[n], text, bytes) != 0))
            n++;
        assert_int_equal(sl_intern_find(&intern, text, bytes), n < count ? n : -1);
        assert_int_equal(sl_intern_add(&intern, text, bytes), n);
        if (n == count) {
            memcpy(known[count], text, bytes);
            known_bytes[count++] = bytes;
        }
        assert_int_equal(intern.count, count);
    }
    for (int32_t n = 0; n < count; n++) {
        size_t bytes;
        const char *text = sl_intern_get(&intern, n, &bytes);
        assert_int_equal(bytes, known_bytes[n]);
        assert_memory_equal(text, known[n], bytes);
        assert_int_equal(text[bytes], '\0');
        assert_int_equal(sl_intern_find(&intern, known[n], bytes), n);
        assert_ptr_equal(sl_intern_get(&intern, n, NULL), text);
    }
    assert_int_equal(sl_intern_find(&intern, "never added", 11), -1);
    sl_intern_deinit(&intern);
    sl_intern_init(&intern);
    assert_int_equal(sl_intern_find(&intern, "a", 1), -1);
    assert_int_equal(sl_intern_find(&intern, "ab", 2), -1);
    sl_intern_deinit(&intern);
}

static struct sl_vocabulary *make(const struct sl_vocabulary_entry *entries, int64_t count, const int32_t *specials)
{
    struct sl_vocabulary *vocabulary = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_vocabulary_create(entries, count, specials, &vocabulary, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return vocabulary;
}

static const struct sl_vocabulary_entry words[] = {{"<pad>", 5, 0}, {"<unk>", 5, 3}, {"<bos>", 5, 1}, {"<eos>", 5, 2},
                                                   {"the", 3, 9},   {"a", 1, 7},     {"-", 1, 4}};
static const int32_t marks[SL_SPECIAL_COUNT] = {0, 1, 2, 3};

static void test_vocabularies(void **state)
{
    (void)state;
    struct sl_vocabulary *v = make(words, 7, marks);
    assert_int_equal(sl_vocabulary_get_size(v), 7);
    for (int32_t id = 0; id < 7; id++) {
        size_t bytes;
        assert_string_equal(sl_vocabulary_get_text(v, id, &bytes), words[id].text);
        assert_int_equal(bytes, words[id].bytes);
        assert_int_equal(sl_vocabulary_get_count(v, id), words[id].count);
        assert_int_equal(sl_vocabulary_find(v, words[id].text, bytes), id);
    }
    assert_int_equal(sl_vocabulary_find(v, "The", 3), -1);
    assert_int_equal(sl_vocabulary_find(v, "the", 2), -1);
    for (int s = 0; s < SL_SPECIAL_COUNT; s++) {
        assert_int_equal(sl_vocabulary_get_special(v, (enum sl_special)s), s);
        assert_string_equal(sl_special_get_token((enum sl_special)s), words[s].text);
        assert_memory_equal(sl_special_get_name((enum sl_special)s), words[s].text + 1, 3);
    }
    struct sl_vocabulary *none = make(words, 7, NULL), *empty = make(NULL, 0, NULL);
    assert_int_equal(sl_vocabulary_get_special(none, SL_SPECIAL_PAD), -1);
    assert_int_equal(sl_vocabulary_get_special(none, SL_SPECIAL_EOS), -1);
    assert_int_equal(sl_vocabulary_get_size(empty), 0);
    assert_int_equal(sl_vocabulary_find(empty, "a", 1), -1);
    static const struct sl_vocabulary_entry twice[] = {{"a", 1, 1}, {"b", 1, 1}, {"a", 1, 1}};
    struct sl_vocabulary *refused = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_vocabulary_create(twice, 3, NULL, &refused, &err), SEQLSTM_CORRUPT_DATA);
    assert_string_equal(err.message, "the vocabulary has the entry \"a\" twice, as 0 and 2");
    assert_null(refused);
    sl_vocabulary_destroy(v);
    sl_vocabulary_destroy(none);
    sl_vocabulary_destroy(empty);
}

/* Counts do not matter, every text, its place and the marks do. */
static void test_same_vocabularies(void **state)
{
    (void)state;
    struct sl_vocabulary_entry others[7];
    struct sl_vocabulary *v = make(words, 7, marks);
    memcpy(others, words, sizeof words);
    for (int i = 0; i < 7; i++)
        others[i].count = 99;
    struct sl_vocabulary *same = make(others, 7, marks);
    assert_true(sl_vocabulary_is_same(v, same));
    assert_true(sl_vocabulary_is_same(v, v));
    assert_true(sl_vocabulary_is_same(NULL, NULL));
    assert_false(sl_vocabulary_is_same(v, NULL));
    assert_false(sl_vocabulary_is_same(NULL, v));
    for (int change = 0; change < 12; change++) {
        int32_t ids[SL_SPECIAL_COUNT] = {0, 1, 2, 3};
        int64_t count = 7;
        memcpy(others, words, sizeof words);
        if (change < 7)
            others[change] = (struct sl_vocabulary_entry){"q", 1, 1};
        else if (change < 11)
            ids[change - 7] = -1;
        else
            count = 6;
        struct sl_vocabulary *other = make(others, count, ids);
        assert_false(sl_vocabulary_is_same(v, other));
        assert_false(sl_vocabulary_is_same(other, v));
        sl_vocabulary_destroy(other);
    }
    sl_vocabulary_destroy(v);
    sl_vocabulary_destroy(same);
}

static void test_ids_as_text(void **state)
{
    (void)state;
    static const struct {
        int32_t ids[10];
        const char *spaced, *joined;
    } cases[] = {
        {{4, 5, -9}, "the a", "thea"},
        {{2, 4, 3, -9}, "the\n", "the\n"},
        {{2, 4, 5, 3, 2, 5, 6, 3, 0, -9}, "the a\na -\n", "thea\na-\n"},
        {{0, 0, 4, 0, 5, -9}, "the a", "thea"},
        {{1, 4, -9}, "<unk> the", "<unk>the"},
        {{3, 3, 4, -9}, "\n\nthe", "\n\nthe"},
        {{7, 4, -1, 5, 1000, -9}, "the a", "thea"},
        {{-9}, "", ""},
    };
    struct sl_vocabulary *v = make(words, 7, marks);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const enum sl_tokenizer_type types[] = {SL_TOKENIZER_WHITESPACE, SL_TOKENIZER_WORD, SL_TOKENIZER_CHAR};
        for (int t = 0; t < 3; t++) {
            struct sl_buf out = {0};
            int64_t count = 0;
            while (cases[i].ids[count] != -9)
                count++;
            sl_tokens_join(&(struct sl_tokenizer){.type = types[t]}, v, cases[i].ids, count, &out);
            assert_string_equal(sl_buf_text(&out), t < 2 ? cases[i].spaced : cases[i].joined);
            sl_buf_deinit(&out);
        }
    }
    sl_vocabulary_destroy(v);
}

#define BLANK "\xe2\x96\x81"

/* A blank of a piece is a space, but at the begin of a line; <0xHH> is a byte. */
static void test_pieces_as_text(void **state)
{
    (void)state;
    static const struct {
        const char *piece, *first, *later;
    } cases[] = {
        {BLANK "the", "the", " the"},
        {"ing", "ing", "ing"},
        {BLANK, "", " "},
        {BLANK BLANK, " ", "  "},
        {"a" BLANK "b", "a b", "a b"},
        {"a" BLANK, "a ", "a "},
        {"<0x41>", "A", "A"},
        {"<0x0A>", "\n", "\n"},
        {"<0xFF>", "\xff", "\xff"},
        {"<0x4>", "<0x4>", "<0x4>"},
        {"<0x4G>", "<0x4G>", "<0x4G>"},
        {"<0xG4>", "<0xG4>", "<0xG4>"},
        {"<0x41>x", "<0x41>x", "<0x41>x"},
        {"<1x41>", "<1x41>", "<1x41>"},
        {"<0x41]", "<0x41]", "<0x41]"},
        {"<0xaf>", "<0xaf>", "<0xaf>"},
        {"\xe2\x96", "\xe2\x96", "\xe2\x96"},
        {"", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int begins = 0; begins < 2; begins++) {
            struct sl_buf out = {0};
            sl_pieces_join(cases[i].piece, strlen(cases[i].piece), begins, &out);
            const char *expected = begins ? cases[i].first : cases[i].later;
            assert_int_equal(out.length_bytes, strlen(expected));
            assert_string_equal(sl_buf_text(&out), expected);
            sl_buf_deinit(&out);
        }
    }
    static const struct sl_vocabulary_entry pieces[] = {{"<eos>", 5, 0}, {BLANK "a", 4, 0}, {"b", 1, 0}, {BLANK, 3, 0}};
    static const int32_t eos[SL_SPECIAL_COUNT] = {-1, -1, -1, 0}, ids[] = {1, 2, 1, 3, 2, 0, 1, 0, 0, 2, 1};
    struct sl_vocabulary *v = make(pieces, 4, eos);
    struct sl_buf out = {0};
    sl_tokens_join(&(struct sl_tokenizer){.type = SL_TOKENIZER_SENTENCEPIECE}, v, ids, sizeof ids / sizeof *ids, &out);
    assert_string_equal(sl_buf_text(&out), "ab a b\na\n\nb a");
    sl_buf_deinit(&out);
    sl_vocabulary_destroy(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_those_of_a_list),
        cmocka_unit_test(test_vocabularies),
        cmocka_unit_test(test_same_vocabularies),
        cmocka_unit_test(test_ids_as_text),
        cmocka_unit_test(test_pieces_as_text),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
