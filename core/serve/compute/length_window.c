/* SPDX-License-Identifier: Apache-2.0 */
/* See length_window.h. */
#include "serve/compute/length_window.h"

#include <stdlib.h>
#include <string.h>

bool sl_length_window_init(struct sl_length_window *window, int64_t most)
{
    *window = (struct sl_length_window){.most = most, .longest = -1};
    window->counts = calloc((size_t)most + 1, sizeof *window->counts);
    return window->counts != NULL;
}

void sl_length_window_deinit(struct sl_length_window *window)
{
    free(window->counts);
    *window = (struct sl_length_window){.counts = NULL};
}

void sl_length_window_clear(struct sl_length_window *window)
{
    if (window->counts && window->longest >= 0)
        memset(window->counts + window->shortest, 0,
               (size_t)(window->longest - window->shortest + 1) * sizeof *window->counts);
    window->longest = -1;
}

static int64_t limit(const struct sl_length_window *window, int64_t length)
{
    return length < window->most ? length : window->most;
}

void sl_length_window_add(struct sl_length_window *window, int64_t length, int64_t count)
{
    if (window->counts == NULL)
        return;
    length = limit(window, length);
    if (window->longest < 0)
        window->oldest = window->shortest = window->longest = length;
    window->shortest = length < window->shortest ? length : window->shortest;
    window->longest = length > window->longest ? length : window->longest;
    window->counts[length] += count;
}

/* The next length below or above the chosen ones that some have; else one that none has. */
static int64_t find_below(const struct sl_length_window *window)
{
    int64_t length = window->low - 1;
    while (length >= window->shortest && window->counts[length] == 0)
        length--;
    return length;
}

static int64_t find_above(const struct sl_length_window *window)
{
    int64_t length = window->high + 1;
    while (length <= window->longest && window->counts[length] == 0)
        length++;
    return length;
}

void sl_length_window_choose(struct sl_length_window *window, int64_t count)
{
    if (window->counts == NULL || window->longest < 0)
        return;
    window->low = window->high = window->oldest;
    for (int64_t chosen = window->counts[window->oldest]; chosen < count;) {
        const int64_t below = find_below(window), above = find_above(window);
        if (below < window->shortest && above > window->longest)
            return;
        const bool goes_up =
            below < window->shortest || (above <= window->longest && above - window->oldest < window->oldest - below);
        *(goes_up ? &window->high : &window->low) = goes_up ? above : below;
        chosen += window->counts[goes_up ? above : below];
    }
}

bool sl_length_window_has(const struct sl_length_window *window, int64_t length)
{
    length = limit(window, length);
    return window->counts == NULL || (length >= window->low && length <= window->high);
}
