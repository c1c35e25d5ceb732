/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the n-grams of both sides and merges them: no table, no hash, and the same counts as a multiset. */
#include "train/metrics/ngram.h"

#include "base/value/text.h"

size_t sl_blank_find(const char *text, size_t bytes)
{
    uint32_t c;
    const size_t length = bytes > 0 ? sl_text_utf8_decode(text, bytes, &c) : 0;
    if (length == 0)
        return 0;
    const bool blank = (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
                       (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
                       c == 0x3000;
    return blank ? length : 0;
}

bool sl_word_next(const char *text, size_t bytes, size_t *at, size_t *out_begin, size_t *out_bytes)
{
    size_t blank;
    while ((blank = sl_blank_find(text + *at, bytes - *at)) > 0)
        *at += blank;
    *out_begin = *at;
    while (*at < bytes && sl_blank_find(text + *at, bytes - *at) == 0)
        ++*at;
    *out_bytes = *at - *out_begin;
    return *out_bytes > 0;
}

static int compare(const int32_t *a, const int32_t *b, int64_t order)
{
    for (int64_t i = 0; i < order; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static void sift(const int32_t **grams, int64_t root, int64_t count, int64_t order)
{
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        child += child + 1 < count && compare(grams[child], grams[child + 1], order) < 0;
        if (compare(grams[root], grams[child], order) >= 0)
            return;
        const int32_t *other = grams[root];
        grams[root] = grams[child];
        grams[child] = other;
    }
}

/* Heap sort: qsort passes no context to its comparison. */
static void sort(const int32_t **grams, int64_t count, int64_t order)
{
    for (int64_t i = count / 2; i-- > 0;)
        sift(grams, i, count, order);
    for (int64_t end = count - 1; end > 0; end--) {
        const int32_t *largest = grams[0];
        grams[0] = grams[end];
        grams[end] = largest;
        sift(grams, 0, end, order);
    }
}

static int64_t list(const int32_t *ids, int64_t count, int64_t order, const int32_t **grams)
{
    const int64_t found = count >= order ? count - order + 1 : 0;
    for (int64_t i = 0; i < found; i++)
        grams[i] = ids + i;
    sort(grams, found, order);
    return found;
}

void sl_ngram_count(const int32_t *hypothesis, int64_t hypothesis_count, const int32_t *reference,
                    int64_t reference_count, int64_t order, const int32_t **scratch, struct sl_ngram_counts *out)
{
    const int32_t **said = scratch, **meant = scratch + hypothesis_count;
    *out = (struct sl_ngram_counts){.hypothesis = list(hypothesis, hypothesis_count, order, said),
                                    .reference = list(reference, reference_count, order, meant)};
    for (int64_t h = 0, r = 0; h < out->hypothesis && r < out->reference;) {
        const int side = compare(said[h], meant[r], order);
        out->matches += side == 0;
        h += side <= 0;
        r += side >= 0;
    }
}
