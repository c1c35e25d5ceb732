/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths, sorted once. */
#include "data/lengths.h"

#include <stdlib.h>
#include <string.h>

static int
ascending(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static void
fill_bins(struct sl_lengths *lengths)
{
    int64_t low = sl_lengths_get_shortest(lengths), high = sl_lengths_get_longest(lengths);
    int64_t width = (high - low + SL_LENGTH_BINS_MOST) / SL_LENGTH_BINS_MOST;
    lengths->bin_count = (int)((high - low) / width) + 1;
    for (int i = 0; i < lengths->bin_count; i++) {
        lengths->bins[i].first = low + i * width;
        lengths->bins[i].last = lengths->bins[i].first + width - 1;
    }
    for (int64_t r = 0; r < lengths->records; r++)
        lengths->bins[(lengths->sorted[r] - low) / width].records++;
}

seqlstm_status
sl_lengths_init(struct sl_lengths *out, const int32_t *lengths, int64_t records, struct seqlstm_error *err)
{
    memset(out, 0, sizeof *out);
    out->sorted = malloc(((size_t)records + 1) * sizeof *out->sorted);
    if (!out->sorted)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %lld lengths", (long long)records);
    for (int64_t r = 0; r < records; r++) {
        out->sorted[r] = lengths[r];
        out->rows += lengths[r];
    }
    out->records = records;
    qsort(out->sorted, (size_t)records, sizeof *out->sorted, ascending);
    if (records > 0)
        fill_bins(out);
    return SEQLSTM_OK;
}

void
sl_lengths_deinit(struct sl_lengths *lengths)
{
    free(lengths->sorted);
    memset(lengths, 0, sizeof *lengths);
}

int64_t
sl_lengths_get_longest(const struct sl_lengths *lengths)
{
    return lengths->records > 0 ? lengths->sorted[lengths->records - 1] : 0;
}

int64_t
sl_lengths_get_shortest(const struct sl_lengths *lengths)
{
    return lengths->records > 0 ? lengths->sorted[0] : 0;
}

double
sl_lengths_get_mean(const struct sl_lengths *lengths)
{
    return lengths->records > 0 ? (double)lengths->rows / (double)lengths->records : 0;
}

int64_t
sl_lengths_get_quantile(const struct sl_lengths *lengths, double share)
{
    if (lengths->records == 0)
        return 0;
    double place = share * (double)lengths->records;
    int64_t index = (int64_t)place;
    index -= (double)index == place && index > 0; /* the smallest length with enough records up to it */
    if (index >= lengths->records)
        index = lengths->records - 1;
    return lengths->sorted[index < 0 ? 0 : index];
}

/* Records shorter than `length`. */
static int64_t
count_below(const struct sl_lengths *lengths, int64_t length)
{
    int64_t low = 0, high = lengths->records;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (lengths->sorted[middle] < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t
sl_lengths_count(const struct sl_lengths *lengths, int64_t first, int64_t last)
{
    return last < first ? 0 : count_below(lengths, last + 1) - count_below(lengths, first);
}
