/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a block of memory.h takes, by the parts of it that are touched: a page counts whole as soon as one
 * byte is touched. */
#ifndef SL_BASE_MEMORY_PAGES_H
#define SL_BASE_MEMORY_PAGES_H

#include <stdint.h>

#include <seqlstm/status.h>

struct sl_pages {
    int64_t bytes;             /* of the block */
    int64_t small_bytes;       /* what is counted as one page; more than a page for blocks of over 16 GiB */
    int64_t large_bytes;       /* of its pages, where it fills them; the rest is on small ones */
    unsigned char *is_touched; /* of each small one */
};

/* A block without a touched page, on the system's page size. Errors: NO_MEMORY. */
seqlstm_status sl_pages_init(struct sl_pages *pages, int64_t bytes, struct seqlstm_error *err);
void sl_pages_deinit(struct sl_pages *pages); /* a zeroed struct is fine */

/* Bytes [begin, end), which is cut at the end of the block. */
void sl_pages_touch(struct sl_pages *pages, int64_t begin, int64_t end);

/* Bytes of the block on pages that were touched; at most the block's. */
int64_t sl_pages_count(const struct sl_pages *pages);

#endif
