/* SPDX-License-Identifier: Apache-2.0 */
/* See value_histogram.h. */
#include "session/evaluate/value_histogram.h"

#include <math.h>
#include <string.h>

/* Orders floats like unsigned numbers: negative ones come first, the largest of them in size before all. */
static uint32_t get_rank(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(0x80000000);
}

static float get_value(uint32_t rank)
{
    uint32_t bits = rank >> 31 ? rank & UINT32_C(0x7fffffff) : ~rank;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void sl_value_histogram_add(struct sl_value_histogram *histogram, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) {
            histogram->strange++;
            continue;
        }
        if (histogram->total == 0)
            histogram->low = histogram->high = values[i];
        histogram->low = values[i] < histogram->low ? values[i] : histogram->low;
        histogram->high = values[i] > histogram->high ? values[i] : histogram->high;
        histogram->counts[get_rank(values[i]) >> 16]++;
        histogram->total++;
    }
}

bool sl_value_histogram_find_range(const struct sl_value_histogram *histogram, double share, double *out_low,
                                   double *out_high)
{
    if (histogram->total == 0)
        return false;
    const double most = share * (double)histogram->total;
    int64_t below = 0, above = 0;
    uint32_t first = 0, last = SL_VALUE_BUCKETS - 1;
    while (first < last && (double)(below + histogram->counts[first]) <= most)
        below += histogram->counts[first++];
    while (last > first && (double)(above + histogram->counts[last]) <= most)
        above += histogram->counts[last--];
    *out_low = fmax((double)histogram->low, (double)get_value(first << 16));
    *out_high = fmin((double)histogram->high, (double)get_value(last << 16 | 0xffff));
    return true;
}
