/* SPDX-License-Identifier: Apache-2.0 */
/* See pages.h. */
#include "base/memory/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

enum { COUNTED_MOST = 1 << 22 }; /* pages of a block that are counted one by one */

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t count_small(const struct sl_pages *pages)
{
    return (pages->bytes + pages->small_bytes - 1) / pages->small_bytes;
}

seqlstm_status sl_pages_init(struct sl_pages *pages, int64_t bytes, struct seqlstm_error *err)
{
    *pages = (struct sl_pages){.bytes = bytes, .small_bytes = SL_MEMORY_PAGE, .large_bytes = SL_MEMORY_PAGE};
    if (bytes >= SL_MEMORY_LARGE)
        pages->large_bytes = (int64_t)sl_memory_get_large_page();
    while (bytes / pages->small_bytes > COUNTED_MOST)
        pages->small_bytes *= 2;
    if (pages->large_bytes < pages->small_bytes)
        pages->large_bytes = pages->small_bytes;
    pages->is_touched = calloc((size_t)count_small(pages) + 1, 1);
    if (pages->is_touched == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the pages of %lld bytes", (long long)bytes);
    return SEQLSTM_OK;
}

void sl_pages_deinit(struct sl_pages *pages)
{
    free(pages->is_touched);
    *pages = (struct sl_pages){0};
}

void sl_pages_touch(struct sl_pages *pages, int64_t begin, int64_t end)
{
    end = min(end, pages->bytes);
    if (begin >= end)
        return;
    const int64_t first = begin / pages->small_bytes, behind = (end + pages->small_bytes - 1) / pages->small_bytes;
    memset(pages->is_touched + first, 1, (size_t)(behind - first));
}

int64_t sl_pages_count(const struct sl_pages *pages)
{
    const int64_t each = pages->large_bytes / pages->small_bytes, small = count_small(pages);
    const int64_t on_large = pages->bytes / pages->large_bytes * each;
    int64_t touched = 0;
    for (int64_t first = 0; first < on_large; first += each)
        touched += memchr(pages->is_touched + first, 1, (size_t)each) != NULL ? each : 0;
    for (int64_t page = on_large; page < small; page++)
        touched += pages->is_touched[page];
    return min(touched * pages->small_bytes, pages->bytes);
}
