/* SPDX-License-Identifier: Apache-2.0 */
/* See passed.h. */
#include "data/read/passed.h"

#include <stdlib.h>

void sl_passed_deinit(struct sl_passed *passed)
{
    free(passed->lines);
    free(passed->offsets);
    free(passed->text);
    *passed = (struct sl_passed){.rows = 0};
}

const char *sl_passed_find(const struct sl_passed *passed, int64_t row, size_t column, size_t *out_bytes)
{
    if (row < 0 || row >= passed->rows || column >= passed->columns)
        return NULL;
    const int64_t *offset = &passed->offsets[(size_t)row * passed->columns + column];
    *out_bytes = (size_t)(offset[1] - offset[0]);
    return passed->text + offset[0];
}

int64_t sl_passed_find_row(const struct sl_passed *passed, int64_t line)
{
    int64_t low = 0, high = passed->rows;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (passed->lines[middle] < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low < passed->rows && passed->lines[low] == line ? low : -1;
}
