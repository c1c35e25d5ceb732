/* SPDX-License-Identifier: Apache-2.0 */
/* BLEU, chrF, exact match and the F1 of spans: equal to what sacreBLEU and seqeval say (tests/fixtures/scores.txt and
 * spans.txt, written by make_scores.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "base/system/file.h"
#include "base/value/text.h"
#include "oom.h"
#include "train/metrics/ngram.h"
#include "train/metrics/span.h"
#include "train/metrics/text_score.h"

#define TOLERANCE 1e-9

/* The fixture's lines, one after the other; `fields` point into the text. */
struct table {
    char *text, *next;
    char *fields[4];
    int count;
};

static void open_table(struct table *table, const char *name)
{
    const char *source = getenv("SEQLSTM_SOURCE");
    char path[512];
    size_t bytes;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_non_null(source);
    snprintf(path, sizeof path, "%s/tests/fixtures/%s", source, name);
    if (sl_file_read(path, 1 << 20, &table->text, &bytes, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    table->next = table->text;
}

/* "\n" in a field is a newline. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text; text++)
        if (text[0] == '\\' && text[1] == 'n') {
            *to++ = '\n';
            text++;
        } else {
            *to++ = *text;
        }
    *to = '\0';
}

static bool next_line(struct table *table)
{
    char *end = strchr(table->next, '\n');
    if (!end)
        return false;
    *end = '\0';
    table->count = 0;
    for (char *field = table->next; field && table->count < 4; table->count++) {
        char *tab = strchr(field, '\t');
        if (tab)
            *tab = '\0';
        table->fields[table->count] = field;
        field = tab ? tab + 1 : NULL;
    }
    for (int i = 0; i < table->count; i++)
        unescape(table->fields[i]);
    table->next = end + 1;
    return true;
}

static void expect_near(const char *what, int corpus, double got, const char *text)
{
    const double want = strtod(text, NULL);
    if (!(fabs(got - want) <= TOLERANCE))
        fail_msg("corpus %d: %s %.15g, expected %.15g", corpus, what, got, want);
}

static void as_sacrebleu(void **state)
{
    (void)state;
    struct table table;
    struct sl_text_sums thirteen = {0}, none = {0};
    struct sl_buf tokens = {0};
    int corpora = 0, texts = 0;
    open_table(&table, "scores.txt");
    while (next_line(&table)) {
        char *const *f = table.fields;
        if (strcmp(f[0], "token") == 0) {
            sl_buf_truncate(&tokens, 0);
            sl_bleu_tokenize(SL_BLEU_13A, f[1], strlen(f[1]), &tokens);
            assert_string_equal(sl_buf_text(&tokens), f[2]);
            texts++;
        } else if (strcmp(f[0], "segment") == 0) {
            const size_t h = strlen(f[1]), r = strlen(f[2]);
            assert_int_equal(sl_text_sums_add(&thirteen, SL_BLEU_13A, f[1], h, f[2], r, NULL), SEQLSTM_OK);
            assert_int_equal(sl_text_sums_add(&none, SL_BLEU_NONE, f[1], h, f[2], r, NULL), SEQLSTM_OK);
        } else {
            corpora++;
            expect_near("BLEU 13a", corpora, sl_bleu_compute(&thirteen.bleu), f[1]);
            expect_near("BLEU none", corpora, sl_bleu_compute(&none.bleu), f[2]);
            expect_near("chrF2", corpora, sl_chrf_compute(&none.chrf), f[3]);
            memset(&thirteen, 0, sizeof thirteen);
            memset(&none, 0, sizeof none);
        }
    }
    assert_true(corpora > 40 && texts > 100);
    sl_buf_deinit(&tokens);
    free(table.text);
}

static void signatures(void **state)
{
    (void)state;
    assert_string_equal(sl_bleu_get_signature(SL_BLEU_13A), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp");
    assert_string_equal(sl_bleu_get_signature(SL_BLEU_NONE), "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp");
    assert_string_equal(sl_chrf_get_signature(), "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no");
}

static void exact_match(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"596", "596"}, {"a b", " a  b\n"}, {"", " "},       {"a", "b"},
                                           {"a b", "ab"},  {"a", ""},          {"a b", "a b c"}};
    struct sl_text_sums sums = {0};
    assert_true(isnan(sl_text_sums_get_exact_match(&sums)));
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_int_equal(sl_text_sums_add(&sums, SL_BLEU_13A, pairs[i][0], strlen(pairs[i][0]), pairs[i][1],
                                          strlen(pairs[i][1]), NULL),
                         SEQLSTM_OK);
    assert_true(sl_text_sums_get_exact_match(&sums) == 3.0 / 7);
}

/* Words and letters of scores are cut where str.split of Python cuts, which sacrebleu uses. */
static void blanks_are_those_of_python(void **state)
{
    static const uint32_t ranges[][2] = {{0x09, 0x0D},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                         {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                         {0x205F, 0x205F}, {0x3000, 0x3000}};
    (void)state;
    for (uint32_t c = 0; c < 0x11000; c++) {
        char text[5] = {0};
        const size_t bytes = c >= 0xD800 && c < 0xE000 ? 0 : sl_text_utf8_encode(text, c);
        bool blank = false;
        for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
            blank = blank || (c >= ranges[r][0] && c <= ranges[r][1]);
        if (bytes > 0 && sl_blank_find(text, bytes) != (blank ? bytes : 0))
            fail_msg("U+%04X", c);
    }
    assert_int_equal(sl_blank_find("", 0), 0);
}

static void memory_runs_out(void **state)
{
    (void)state;
    /* longer than the first piece of memory of a text, so that the text fails when it has begun */
    static const char said[] =
        "a &amp; b, which is said (at some length) in more words than are needed, and then -\nagain",
                      meant[] = "a, c";
    struct sl_text_sums whole = {0};
    assert_int_equal(sl_text_sums_add(&whole, SL_BLEU_13A, said, sizeof said - 1, meant, sizeof meant - 1, NULL),
                     SEQLSTM_OK);
    for (int n = 1;; n++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_text_sums sums = {0};
        oom_fail_at(n);
        const seqlstm_status status =
            sl_text_sums_add(&sums, SL_BLEU_13A, said, sizeof said - 1, meant, sizeof meant - 1, &err);
        if (!oom_disarm()) {
            assert_int_equal(status, SEQLSTM_OK);
            assert_memory_equal(&sums, &whole, sizeof sums);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_true(sums.segments == 0 && sums.chrf.reference[0] == 0);
        assert_true(n < 1000);
    }
}

/* ---- spans ---- */

enum { MOST_TAGS = 64 };

/* Cuts "O B-PER I-PER" and gives each tag its number among the names seen. */
static int parse_tags(char *text, const char **names, int32_t *name_count, struct sl_span_tag *out)
{
    int count = 0;
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        int32_t id = 0;
        while (id < *name_count && strcmp(names[id], word) != 0)
            id++;
        if (id == *name_count)
            names[(*name_count)++] = word;
        assert_true(*name_count < MOST_TAGS && count < MOST_TAGS);
        assert_true(sl_span_tag_parse(names, id, &out[count++]));
    }
    return count;
}

static void as_seqeval(void **state)
{
    (void)state;
    struct table table;
    struct sl_span_sums sums[SL_SPAN_RULES] = {{0}};
    const char *names[MOST_TAGS];
    int32_t name_count = 0;
    int corpora = 0;
    open_table(&table, "spans.txt");
    while (next_line(&table)) {
        struct sl_span_tag meant[MOST_TAGS], said[MOST_TAGS];
        if (strcmp(table.fields[0], "score") == 0) {
            corpora++;
            expect_near("conlleval", corpora, sl_span_compute_f1(&sums[SL_SPAN_CONLLEVAL]), table.fields[1]);
            expect_near("strict", corpora, sl_span_compute_f1(&sums[SL_SPAN_STRICT]), table.fields[2]);
            memset(sums, 0, sizeof sums);
            continue;
        }
        const int count = parse_tags(table.fields[1], names, &name_count, meant);
        assert_int_equal(parse_tags(table.fields[2], names, &name_count, said), count);
        for (int rule = 0; rule < SL_SPAN_RULES; rule++) {
            struct sl_span_walk walk = {0};
            for (int t = 0; t < count; t++)
                sl_span_walk_step(&walk, (enum sl_span_rule)rule, said[t], meant[t], &sums[rule]);
            sl_span_walk_end(&walk, (enum sl_span_rule)rule, &sums[rule]);
        }
    }
    assert_true(corpora > 40);
    free(table.text);
}

static void no_tags(void **state)
{
    (void)state;
    static const char *const names[] = {"O", "B-PER", "I-PER", "I-LOC", "NOUN", "", "B", "B_x"};
    struct sl_span_tag tag;
    assert_true(sl_span_tag_parse(names, 0, &tag) && tag.part == SL_SPAN_OUTSIDE);
    assert_true(sl_span_tag_parse(names, 1, &tag) && tag.part == SL_SPAN_BEGIN && tag.type == 1);
    assert_true(sl_span_tag_parse(names, 2, &tag) && tag.part == SL_SPAN_INSIDE && tag.type == 1);
    assert_true(sl_span_tag_parse(names, 3, &tag) && tag.type == 3);
    for (int32_t i = 4; i < 8; i++)
        assert_false(sl_span_tag_parse(names, i, &tag));
    const struct sl_span_sums none = {0};
    assert_true(sl_span_compute_f1(&none) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_sacrebleu),    cmocka_unit_test(signatures),
        cmocka_unit_test(exact_match),     cmocka_unit_test(blanks_are_those_of_python),
        cmocka_unit_test(memory_runs_out), cmocka_unit_test(as_seqeval),
        cmocka_unit_test(no_tags),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
