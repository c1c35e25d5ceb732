/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the code points of both texts without white space, and their n-grams. */
#include "train/metrics/chrf.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/value/buf.h"
#include "base/value/text.h"
#include "train/metrics/ngram.h"

static void list_characters(const char *text, size_t bytes, struct sl_buf *out)
{
    for (size_t at = 0, length; at < bytes; at += length) {
        uint32_t c = 0;
        length = sl_blank_find(text + at, bytes - at);
        if (length > 0)
            continue;
        length = sl_text_utf8_decode(text + at, bytes - at, &c);
        length = length > 0 ? length : 1;
        const int32_t id = (int32_t)c;
        sl_buf_append(out, &id, sizeof id);
    }
}

seqlstm_status sl_chrf_add(struct sl_chrf_sums *sums, const char *hypothesis, size_t hypothesis_bytes,
                           const char *reference, size_t reference_bytes, struct seqlstm_error *err)
{
    struct sl_buf said = {0}, meant = {0};
    list_characters(hypothesis, hypothesis_bytes, &said);
    list_characters(reference, reference_bytes, &meant);
    const int64_t H = (int64_t)(said.length_bytes / sizeof(int32_t));
    const int64_t R = (int64_t)(meant.length_bytes / sizeof(int32_t));
    const int32_t **scratch = malloc((size_t)(H + R + 1) * sizeof *scratch);
    const bool ok = scratch && !said.failed && !meant.failed;
    for (int64_t n = 1; ok && n <= SL_CHRF_ORDER; n++) {
        struct sl_ngram_counts counts;
        sl_ngram_count((const int32_t *)(const void *)said.data, H, (const int32_t *)(const void *)meant.data, R, n,
                       scratch, &counts);
        /* If the reference has no n-gram of this order, those of the hypothesis do not count. */
        sums->hypothesis[n - 1] += counts.reference > 0 ? (double)counts.hypothesis : 0;
        sums->reference[n - 1] += (double)counts.reference;
        sums->matches[n - 1] += (double)counts.matches;
    }
    free(scratch);
    sl_buf_deinit(&said);
    sl_buf_deinit(&meant);
    if (!ok)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to score a text of %zu bytes", hypothesis_bytes);
    return SEQLSTM_OK;
}

double sl_chrf_compute(const struct sl_chrf_sums *sums)
{
    const double factor = 4; /* beta 2, squared */
    double precision = 0, recall = 0, orders = 0;
    for (int n = 0; n < SL_CHRF_ORDER; n++) {
        if (sums->hypothesis[n] == 0 || sums->reference[n] == 0)
            continue;
        precision += sums->matches[n] / sums->hypothesis[n];
        recall += sums->matches[n] / sums->reference[n];
        orders++;
    }
    if (precision + recall == 0)
        return 0;
    precision /= orders;
    recall /= orders;
    return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

const char *sl_chrf_get_signature(void)
{
    return "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no";
}
