/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, edit distance, "did you mean", checksums and hashes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/base64.h"
#include "base/value/error_place.h"
#include "base/value/hash.h"
#include "base/value/printable.h"
#include "base/value/text.h"
#include "oom.h"

/* RFC 4648, section 10; and what is not written so is refused. */
static void bytes_survive_base64(void **state)
{
    (void)state;
    static const char *const known[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    static const char *const bad[] = {"Z", "Zg=", "Zg==Zg==", "Z===", "Zh==", "Zm9=", "Zm9*", "====", "Zm\n="};
    struct sl_buf text = {0}, back = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        sl_buf_truncate(&text, 0);
        sl_buf_truncate(&back, 0);
        sl_base64_write(known[i][0], strlen(known[i][0]), &text);
        assert_string_equal(sl_buf_text(&text), known[i][1]);
        assert_true(sl_base64_read(known[i][1], strlen(known[i][1]), &back));
        assert_string_equal(sl_buf_text(&back), known[i][0]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(sl_base64_read(bad[i], strlen(bad[i]), &back));
    for (size_t i = 0; i < 4; i++) { /* zeros are no letters */
        char zero[] = "Zm9v";
        zero[i] = 0;
        assert_false(sl_base64_read(zero, 4, &back));
    }
    sl_buf_deinit(&text);
    sl_buf_deinit(&back);
}

static void every_character_survives_utf8(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x110000; code++) {
        char bytes[4];
        size_t n = sl_text_utf8_encode(bytes, code);
        int valid = code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
        assert_int_equal(n != 0, valid);
        if (!valid)
            continue;
        uint32_t back = 0;
        assert_int_equal(sl_text_utf8_decode(bytes, n, &back), n);
        assert_int_equal(back, code);
        if (n > 1)
            assert_int_equal(sl_text_utf8_decode(bytes, n - 1, &back), 0);
    }
}

/* What a terminal would execute is shown; all else stays as it is. */
static void controls_become_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *keep, *shown;
    } cases[] = {
        {"", "", ""},
        {"plain ~", "", "plain ~"},
        {"a\x1b[2Jb", "", "a\\x1b[2Jb"},
        {"\t\n\r\x07\x7f", "", "\\t\\n\\r\\x07\\x7f"},
        {"\t\n\r\x1b", "\n\t", "\t\n\\r\\x1b"},
        {"na\xc3\xafve \xe6\x97\xa5", "", "na\xc3\xafve \xe6\x97\xa5"},
        {"\xc2\x85 \xe2\x80\xae \xe2\x81\xa9", "", "\\u0085 \\u202e \\u2069"},
        {"\xff\xc3", "", "\\xff\\xc3"},
        {"back\\slash", "", "back\\slash"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_buf out = {0};
        char copy[64];
        sl_printable_append(&out, cases[i].text, strlen(cases[i].text), cases[i].keep);
        assert_string_equal(sl_buf_text(&out), cases[i].shown);
        size_t length = sl_printable_copy(copy, sizeof copy, cases[i].text, strlen(cases[i].text), cases[i].keep);
        assert_string_equal(copy, cases[i].shown);
        assert_int_equal(length, strlen(copy));
        sl_buf_deinit(&out);
    }
    /* each range from its first character to its last */
    static const uint32_t ranges[][2] = {{0x1, 0x1f}, {0x7f, 0x9f}, {0x202a, 0x202e}, {0x2066, 0x2069}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (uint32_t code = ranges[i][0] - 1 + (i == 0); code <= ranges[i][1] + 1; code++) {
            char bytes[8] = "", copy[16];
            const size_t n = sl_text_utf8_encode(bytes, code);
            sl_printable_copy(copy, sizeof copy, bytes, n, "");
            assert_int_equal(copy[0] == '\\', code >= ranges[i][0] && code <= ranges[i][1]);
        }
    char nul[8], small[8];
    assert_int_equal(sl_printable_copy(nul, sizeof nul, "a\0b", 3, "\n"), 6);
    assert_string_equal(nul, "a\\x00b");
    assert_int_equal(sl_printable_copy(small, sizeof small, "abcde\x1b", 6, ""), 5); /* no half of an escape */
    assert_string_equal(small, "abcde");
    assert_int_equal(sl_printable_copy(small, 0, "a", 1, ""), 0);
    for (size_t capacity = 1; capacity < 12; capacity++) { /* whole escapes and the end, and nothing beyond */
        char room[16];
        memset(room, '?', sizeof room);
        const size_t length = sl_printable_copy(room, capacity, "ab\x1b\n", 4, "");
        assert_int_equal(length, capacity > 8 ? 8 : capacity > 6 ? 6 : capacity > 2 ? 2 : capacity - 1);
        assert_memory_equal(room, "ab\\x1b\\n", length);
        assert_true(room[length] == '\0' && room[length + 1] == '?' && room[capacity] == '?');
    }
}

static void bad_utf8_is_found_where_it_is(void **state)
{
    (void)state;
    const struct {
        const char *text;
        size_t length, offset;
    } bad[] = {
        {"\x80", 1, 0},                 /* a continuation alone */
        {"abcdefghij\xC3", 11, 10},     /* cut off */
        {"ab\xC0\xAF", 4, 2},           /* overlong */
        {"\xE0\x80\x80", 3, 0},         /* overlong */
        {"x\xED\xA0\x80", 4, 1},        /* surrogate */
        {"\xF4\x90\x80\x80", 4, 0},     /* over U+10FFFF */
        {"\xF8\x88\x80\x80\x80", 5, 0}, /* five bytes */
        {"\xFF", 1, 0},
        {"\xE2\x82z", 3, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t offset = 99;
        assert_false(sl_text_is_utf8(bad[i].text, bad[i].length, &offset));
        assert_int_equal(offset, bad[i].offset);
    }
    assert_true(sl_text_is_utf8("", 0, NULL));
    assert_true(sl_text_is_utf8("h\xC3\xA9llo w\xF0\x9F\x98\x80rld, again", 20, NULL));
    assert_true(sl_text_is_utf8("a\0b", 3, NULL));
}

static void distance_counts_edits(void **state)
{
    (void)state;
    assert_int_equal(sl_text_distance("", ""), 0);
    assert_int_equal(sl_text_distance("", "abc"), 3);
    assert_int_equal(sl_text_distance("kitten", "sitting"), 3);
    assert_int_equal(sl_text_distance("untis", "units"), 1);
    assert_int_equal(sl_text_distance("abcdef", "badcfe"), 3);
    assert_int_equal(sl_text_distance("abc", "abc"), 0);
    char a[200], b[200];
    memset(a, 'a', 199), memset(b, 'b', 199);
    a[199] = b[199] = '\0';
    assert_int_equal(sl_text_distance(a, b), 63);
}

static void suggests_what_was_meant(void **state)
{
    (void)state;
    const char *const names[] = {"units",      "layers", "recurrent_dropout", "dropout",
                                 "activation", "merge",  "learning_rate"};
    const size_t n = sizeof names / sizeof *names;
    assert_string_equal(sl_text_closest("unit", names, n), "units");
    assert_string_equal(sl_text_closest("Untis", names, n), "units");
    assert_string_equal(sl_text_closest("recurrent-dropuot", names, n), "recurrent_dropout");
    assert_string_equal(sl_text_closest("learningrate", names, n), "learning_rate");
    assert_string_equal(sl_text_closest("LAYERS", names, n), "layers");
    assert_string_equal(sl_text_closest("act", names, n), "activation");
    assert_string_equal(sl_text_closest("Recurrent", names, n), "recurrent_dropout");
    assert_null(sl_text_closest("un", names, n));
    static const char *const alike[] = {"input", "inputs_of"};
    assert_null(sl_text_closest("inp", alike, 2)); /* which of the two? */
    assert_null(sl_text_closest("hidden_size", names, n));
    assert_null(sl_text_closest("x", names, n));
    assert_null(sl_text_closest("units", names, 0));
    static const char *const short_names[] = {"abc", "vwxyz"}; /* as much as a third of the letters may be wrong */
    assert_string_equal(sl_text_closest("abd", short_names, 2), "abc");
    assert_string_equal(sl_text_closest("vwxyabz", short_names, 2), "vwxyz");
    assert_null(sl_text_closest("ad", short_names, 2));
    assert_null(sl_text_closest("vwxab", short_names, 2));
    static const char *const near[] = {"abcd", "abce", "abcg", "abcg_"}; /* of equally near ones the first */
    for (size_t from = 0; from < 3; from++)
        assert_string_equal(sl_text_closest("abcf", near + from, 4 - from), near[from]);
    assert_string_equal(sl_text_closest("abcg", near, 4), "abcg");
    char word[80], other[80]; /* letters beyond the 63rd do not count */
    for (size_t length = 60; length < 70; length++) {
        memset(word, 'a', length);
        strcpy(word + length, "b");
        memset(other, 'a', length);
        strcpy(other + length, "c");
        assert_int_equal(sl_text_distance(word, other), length < 63);
    }
}

static void checksum_is_the_standard_one(void **state)
{
    (void)state;
    assert_true(sl_crc64(0, "123456789", 9) == 0x995DC9BBDF1939FAu);
    assert_true(sl_crc64(0, "", 0) == 0);
    char text[SL_HASH_TEXT_BYTES];
    assert_string_equal(sl_hash_write(sl_crc64(0, "123456789", 9), text), "995dc9bbdf1939fa");
    assert_string_equal(sl_hash_write(0xAB, text), "00000000000000ab");
    unsigned char data[300];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37 + 11);
    /* bit by bit, from the definition */
    uint64_t slow = ~(uint64_t)0;
    for (size_t i = 0; i < sizeof data; i++) {
        slow ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            slow = slow >> 1 ^ (slow & 1 ? 0xC96C5795D7870F42u : 0);
    }
    uint64_t whole = sl_crc64(0, data, sizeof data);
    assert_true(whole == ~slow);
    for (size_t cut = 0; cut <= sizeof data; cut++)
        assert_true(sl_crc64(sl_crc64(0, data, cut), data + cut, sizeof data - cut) == whole);
    for (size_t bit = 0; bit < sizeof data * 8; bit++) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_true(sl_crc64(0, data, sizeof data) != whole);
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

static void hash_spreads_and_is_fixed(void **state)
{
    (void)state;
    /* Values are part of what caches on disk are keyed by: they may not drift. */
    assert_true(sl_hash_text("lstm") == sl_hash_bytes("lstm", 4, 0));
    assert_true(sl_hash_bytes("a", 1, 0) != sl_hash_bytes("a\0", 2, 0));
    assert_true(sl_hash_bytes("abc", 3, 0) != sl_hash_bytes("abc", 3, 1));
    assert_true(sl_hash_bytes("", 0, 0) != sl_hash_bytes("", 0, 1));
    assert_true(sl_hash_combine(sl_hash_combine(0, 1), 2) != sl_hash_combine(sl_hash_combine(0, 2), 1));
    int flips = 0, buckets[256] = {0};
    for (uint64_t i = 0; i < 25600; i++) {
        uint64_t a = sl_hash_bytes(&i, sizeof i, 0), other = i ^ (uint64_t)1 << i % 64;
        flips += __builtin_popcountll(a ^ sl_hash_bytes(&other, sizeof other, 0));
        buckets[a & 0xFF]++;
    }
    double mean = flips / 25600.0;
    assert_true(mean > 31.5 && mean < 32.5);
    for (int i = 0; i < 256; i++)
        assert_in_range(buckets[i], 50, 150);
}

/* The place of an error keeps the numbers and the name of the file, and as much of the path as there is room for. */
static void places_are_whole_or_cut_in_the_middle(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[300] = "", wanted[300];
    sl_error_place_set(NULL, "a.yaml", 1, 2);
    sl_error_place_set(&err, NULL, 0, 0);
    assert_string_equal(err.where, "");
    sl_error_place_set(&err, "a.yaml", 0, 0);
    assert_string_equal(err.where, "a.yaml");
    sl_error_place_set(&err, "a.yaml", 12, 345);
    assert_string_equal(err.where, "a.yaml:12:345");
    for (size_t bytes = 90; bytes < sizeof path; bytes++) { /* a folder before the file, of more and more bytes */
        memset(path, 'd', bytes - 7);
        memcpy(path + bytes - 7, "/a.yaml", 8);
        path[0] = 'b';
        sl_error_place_set(&err, path, 7, 2147483647);
        snprintf(wanted, sizeof wanted, "%s:7:2147483647", path);
        if (strlen(wanted) < sizeof err.where) {
            assert_string_equal(err.where, wanted);
            continue;
        }
        assert_int_equal(strlen(err.where), sizeof err.where - 1);
        assert_memory_equal(err.where, "bd", 2);
        assert_non_null(strstr(err.where, "d…d"));
        assert_string_equal(err.where + strlen(err.where) - 20, "d/a.yaml:7:2147483647" + 1);
    }
    /* a long name: its end stays, and no character is cut */
    for (size_t lead = 0; lead < 3; lead++) {
        memset(path, 'x', lead);
        for (size_t k = 0; k < 90; k++)
            memcpy(path + lead + 3 * k, "\xE2\x82\xAC", 4);
        sl_error_place_set(&err, path, 7, 3);
        size_t bad;
        assert_true(sl_text_is_utf8(err.where, strlen(err.where), &bad));
        assert_non_null(strstr(err.where, "\xE2\x82\xAC:7:3"));
        assert_true(strlen(err.where) > sizeof err.where - 6);
    }
}

static void times_have_two_units_at_most(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {{0, "0.0s"},        {0.05, "0.1s"},  {9.94, "9.9s"},     {9.96, "10s"},          {9.95, "10s"},
                {59.5, "1m00s"},    {60, "1m00s"},   {3599.5, "1h00m"},  {0.999, "1.0s"},        {10.4, "10s"},
                {10.5, "11s"},      {3660, "1h01m"}, {59.4, "59s"},      {59.6, "1m00s"},        {187, "3m07s"},
                {3599.4, "59m59s"}, {3600, "1h00m"}, {8137, "2h15m"},    {359999, "99h59m"},     {1e9, "277777h46m"},
                {1.1e9, "?"},       {-1, "?"},       {(double)NAN, "?"}, {(double)INFINITY, "?"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[24];
        sl_text_write_seconds(text, rows[k].seconds);
        assert_string_equal(text, rows[k].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_survive_base64),
        cmocka_unit_test(every_character_survives_utf8),
        cmocka_unit_test(controls_become_escapes),
        cmocka_unit_test(bad_utf8_is_found_where_it_is),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(suggests_what_was_meant),
        cmocka_unit_test(checksum_is_the_standard_one),
        cmocka_unit_test(hash_spreads_and_is_fixed),
        cmocka_unit_test(places_are_whole_or_cut_in_the_middle),
        cmocka_unit_test(times_have_two_units_at_most),
    };
    return cmocka_run_group_tests_name("text", tests, oom_group_begin, oom_group_end);
}
