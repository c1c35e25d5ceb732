/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths, sorted once. */
#include "data/dataset/lengths.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

seqlstm_status sl_lengths_sort(int32_t *lengths, int64_t count, struct seqlstm_error *err)
{
    int32_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        longest = lengths[i] > longest ? lengths[i] : longest;
    if (longest >= count) { /* few, and far apart */
        qsort(lengths, (size_t)count, sizeof *lengths, ascending);
        return SEQLSTM_OK;
    }
    int64_t *of_length = calloc((size_t)longest + 1, sizeof *of_length);
    if (!of_length)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to sort %lld lengths", (long long)count);
    for (int64_t i = 0; i < count; i++)
        of_length[lengths[i]]++;
    for (int32_t length = 0; length <= longest; length++)
        while (of_length[length]-- > 0)
            *lengths++ = length;
    free(of_length);
    return SEQLSTM_OK;
}

static void fill_bins(struct sl_lengths *lengths)
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

seqlstm_status sl_lengths_init(struct sl_lengths *out, const int32_t *lengths, int64_t records,
                               struct seqlstm_error *err)
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
    seqlstm_status status = sl_lengths_sort(out->sorted, records, err);
    if (status != SEQLSTM_OK)
        sl_lengths_deinit(out);
    else if (records > 0)
        fill_bins(out);
    return status;
}

void sl_lengths_deinit(struct sl_lengths *lengths)
{
    free(lengths->sorted);
    memset(lengths, 0, sizeof *lengths);
}

int64_t sl_lengths_get_longest(const struct sl_lengths *lengths)
{
    return lengths->records > 0 ? lengths->sorted[lengths->records - 1] : 0;
}

int64_t sl_lengths_get_shortest(const struct sl_lengths *lengths)
{
    return lengths->records > 0 ? lengths->sorted[0] : 0;
}

double sl_lengths_get_mean(const struct sl_lengths *lengths)
{
    return lengths->records > 0 ? (double)lengths->rows / (double)lengths->records : 0;
}

int64_t sl_lengths_get_quantile(const struct sl_lengths *lengths, double share)
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
static int64_t count_below(const struct sl_lengths *lengths, int64_t length)
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

int64_t sl_lengths_count(const struct sl_lengths *lengths, int64_t first, int64_t last)
{
    return last < first ? 0 : count_below(lengths, last + 1) - count_below(lengths, first);
}
