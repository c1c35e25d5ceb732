/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of both texts get numbers, and n-grams of the numbers are counted.
 *
 * 13a is a chain of replacements in the text between two spaces, each from left to right without overlap:
 *
 *   entities and <skipped>                              resolved, removed
 *   any of  ! " # $ % & ( ) * + / : ; < = > ? @ [ \ ] ^ _ ` { | } ~   gets a space on both sides
 *   . and , after a character that is no digit          get a space on both sides
 *   . and , before a character that is no digit         the same
 *   - after a digit                                     the same
 *
 * Every character that matters is ASCII, so it works on bytes.
 */
#include "train/metrics/bleu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "data/text/intern.h"
#include "train/metrics/ngram.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_point(char c)
{
    return c == '.' || c == ',';
}

/* Punctuation that is always a token of its own: all of ASCII's but ' , - . */
static bool stands_alone(char c)
{
    return (c >= '!' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* Appends `text` with every `from` replaced by `to`. */
static void replace(const struct sl_buf *text, const char *from, const char *to, struct sl_buf *out)
{
    const size_t bytes = strlen(from);
    sl_buf_truncate(out, 0);
    for (size_t i = 0; i < text->length_bytes;) {
        const bool here = text->length_bytes - i >= bytes && memcmp(text->data + i, from, bytes) == 0;
        if (here)
            sl_buf_append_text(out, to);
        else
            sl_buf_append_char(out, text->data[i]);
        i += here ? bytes : 1;
    }
}

/* One replacement in two neighbours at a time: separates c[i] and c[i + 1], with a space before or after them. */
enum rule { POINT_BEHIND, POINT_BEFORE, DASH };

static bool applies(enum rule rule, char a, char b)
{
    return rule == POINT_BEHIND   ? !is_digit(a) && is_point(b)
           : rule == POINT_BEFORE ? is_point(a) && !is_digit(b)
                                  : is_digit(a) && b == '-';
}

static void part(enum rule rule, const struct sl_buf *text, struct sl_buf *out)
{
    sl_buf_truncate(out, 0);
    for (size_t i = 0; i < text->length_bytes; i++) {
        const char *c = text->data + i;
        if (i + 1 >= text->length_bytes || !applies(rule, c[0], c[1])) {
            sl_buf_append_char(out, c[0]);
            continue;
        }
        if (rule == POINT_BEFORE)
            sl_buf_append_char(out, ' ');
        sl_buf_append_char(out, c[0]);
        sl_buf_append_char(out, ' ');
        sl_buf_append_char(out, c[1]);
        if (rule != POINT_BEFORE)
            sl_buf_append_char(out, ' ');
        i++;
    }
}

/* The text of 13a, before it is split at spaces. */
static void separate(const char *text, size_t bytes, struct sl_buf *out)
{
    static const char *const pairs[][2] = {{"<skipped>", ""}, {"-\n", ""},   {"\n", " "},  {"&quot;", "\""},
                                           {"&amp;", "&"},    {"&lt;", "<"}, {"&gt;", ">"}};
    struct sl_buf work = {0};
    sl_buf_append(out, text, bytes);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        replace(out, pairs[i][0], pairs[i][1], &work);
        const struct sl_buf done = work;
        work = *out;
        *out = done;
    }
    sl_buf_truncate(&work, 0);
    sl_buf_append_char(&work, ' ');
    for (size_t i = 0; i < out->length_bytes; i++) {
        const bool alone = stands_alone(out->data[i]);
        sl_buf_append(&work, " ", alone);
        sl_buf_append_char(&work, out->data[i]);
        sl_buf_append(&work, " ", alone);
    }
    sl_buf_append_char(&work, ' ');
    part(POINT_BEHIND, &work, out);
    part(POINT_BEFORE, out, &work);
    part(DASH, &work, out);
    out->failed = out->failed || work.failed;
    sl_buf_deinit(&work);
}

/* White space at the end is removed first, so that "-\n" does not occur. */
static size_t strip(const char *text, size_t bytes)
{
    size_t end = 0, at = 0, begin, word;
    while (sl_word_next(text, bytes, &at, &begin, &word))
        end = begin + word;
    return end;
}

static void prepare(enum sl_bleu_tokenizer tokenizer, const char *text, size_t bytes, struct sl_buf *out)
{
    bytes = strip(text, bytes);
    if (tokenizer == SL_BLEU_13A)
        separate(text, bytes, out);
    else
        sl_buf_append(out, text, bytes);
}

void sl_bleu_tokenize(enum sl_bleu_tokenizer tokenizer, const char *text, size_t bytes, struct sl_buf *out)
{
    struct sl_buf words = {0};
    size_t at = 0, begin, word;
    prepare(tokenizer, text, bytes, &words);
    for (bool first = true; sl_word_next(sl_buf_text(&words), sl_buf_text_bytes(&words), &at, &begin, &word);
         first = false) {
        if (!first)
            sl_buf_append_char(out, ' ');
        sl_buf_append(out, words.data + begin, word);
    }
    out->failed = out->failed || words.failed;
    sl_buf_deinit(&words);
}

/* Numbers of the words, the same for the same word. */
static void number(enum sl_bleu_tokenizer tokenizer, const char *text, size_t bytes, struct sl_intern *known,
                   struct sl_buf *ids)
{
    struct sl_buf words = {0};
    size_t at = 0, begin, word;
    prepare(tokenizer, text, bytes, &words);
    while (sl_word_next(sl_buf_text(&words), sl_buf_text_bytes(&words), &at, &begin, &word)) {
        const int32_t id = sl_intern_add(known, words.data + begin, word);
        sl_buf_append(ids, &id, sizeof id);
    }
    ids->failed = ids->failed || words.failed || known->failed;
    sl_buf_deinit(&words);
}

seqlstm_status sl_bleu_add(struct sl_bleu_sums *sums, enum sl_bleu_tokenizer tokenizer, const char *hypothesis,
                           size_t hypothesis_bytes, const char *reference, size_t reference_bytes,
                           struct seqlstm_error *err)
{
    struct sl_intern known;
    struct sl_buf said = {0}, meant = {0};
    sl_intern_init(&known);
    number(tokenizer, hypothesis, hypothesis_bytes, &known, &said);
    number(tokenizer, reference, reference_bytes, &known, &meant);
    const int64_t H = (int64_t)(said.length_bytes / sizeof(int32_t));
    const int64_t R = (int64_t)(meant.length_bytes / sizeof(int32_t));
    const int32_t **scratch = malloc((size_t)(H + R + 1) * sizeof *scratch);
    const bool ok = scratch && !said.failed && !meant.failed;
    for (int64_t n = 1; ok && n <= SL_BLEU_ORDER; n++) {
        struct sl_ngram_counts counts;
        sl_ngram_count((const int32_t *)(const void *)said.data, H, (const int32_t *)(const void *)meant.data, R, n,
                       scratch, &counts);
        sums->matches[n - 1] += (double)counts.matches;
        sums->totals[n - 1] += (double)counts.hypothesis;
    }
    sums->hypothesis_words += ok ? (double)H : 0;
    sums->reference_words += ok ? (double)R : 0;
    free(scratch);
    sl_buf_deinit(&said);
    sl_buf_deinit(&meant);
    sl_intern_deinit(&known);
    if (!ok)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to score a text of %zu bytes", hypothesis_bytes);
    return SEQLSTM_OK;
}

double sl_bleu_compute(const struct sl_bleu_sums *sums)
{
    double logs = 0, any = 0, smoothing = 1;
    for (int n = 0; n < SL_BLEU_ORDER; n++)
        any += sums->matches[n];
    if (any == 0)
        return 0;
    for (int n = 0; n < SL_BLEU_ORDER; n++) {
        if (sums->totals[n] == 0)
            return 0; /* no hypothesis has so many words: the geometric mean contains a zero */
        if (sums->matches[n] == 0)
            smoothing *= 2;
        const double precision =
            sums->matches[n] == 0 ? 100 / (smoothing * sums->totals[n]) : 100 * sums->matches[n] / sums->totals[n];
        logs += log(precision);
    }
    const bool brief = sums->hypothesis_words < sums->reference_words;
    const double penalty = brief ? exp(1 - sums->reference_words / sums->hypothesis_words) : 1;
    return penalty * exp(logs / SL_BLEU_ORDER);
}

const char *sl_bleu_get_signature(enum sl_bleu_tokenizer tokenizer)
{
    return tokenizer == SL_BLEU_13A ? "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"
                                    : "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp";
}
