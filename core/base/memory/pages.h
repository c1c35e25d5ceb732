/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a block of memory.h takes by what of it is touched: a page counts whole with its first byte. */
#ifndef SL_BASE_MEMORY_PAGES_H
#define SL_BASE_MEMORY_PAGES_H

#include <stdint.h>

#include <seqlstm/status.h>

struct sl_pages {
    int64_t bytes;             /* of the block */
    int64_t large_bytes;       /* of its pages, as far as it fills them; the rest of it has small ones */
    unsigned char *is_touched; /* of each small page */
};

/* A block of which nothing is touched, on pages of the system. Errors: NO_MEMORY. */
seqlstm_status sl_pages_init(struct sl_pages *pages, int64_t bytes, struct seqlstm_error *err);
void sl_pages_deinit(struct sl_pages *pages); /* a zeroed struct is fine */

/* Bytes [begin, end), which is cut at the end of the block. */
void sl_pages_touch(struct sl_pages *pages, int64_t begin, int64_t end);

/* Bytes of the block on pages that were touched; at most the block's. */
int64_t sl_pages_count(const struct sl_pages *pages);

#endif
