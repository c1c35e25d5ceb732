/* SPDX-License-Identifier: Apache-2.0 */
/* Large aligned allocations, counted in an object that the caller passes: there is no global total.
 *
 * Blocks are aligned to at least 64 bytes, and rounded up so that reading a whole last vector stays inside; in large
 * ones, wherever it begins. Counting is atomic: one sl_memory may serve many threads.
 */
#ifndef SL_BASE_MEMORY_MEMORY_H
#define SL_BASE_MEMORY_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks of at least SL_MEMORY_LARGE bytes begin with a page of SL_MEMORY_LARGE_PAGE, lie on such pages as far as they
 * fill them, where the system has them, and for the rest on small ones. */
enum { SL_MEMORY_PAGE = 4 << 10, SL_MEMORY_LARGE_PAGE = 2 << 20, SL_MEMORY_LARGE = 4 << 20 };

struct sl_memory {
    _Atomic int64_t live_bytes;  /* what the callers asked for and still hold */
    _Atomic int64_t peak_bytes;  /* most that live_bytes has been */
    _Atomic int64_t live_blocks; /* 0 at the end, or something leaks */
    _Atomic int64_t n_allocs;    /* ever made: a loop that leaves it unchanged allocates nothing */
};

/* A zeroed struct sl_memory is an initialised one. */
void sl_memory_init(struct sl_memory *memory);

/* NULL when memory runs out. Contents are undefined / zero. `memory` may be NULL: not counted. */
void *sl_memory_alloc(struct sl_memory *memory, size_t bytes);
void *sl_memory_alloc_zeroed(struct sl_memory *memory, size_t bytes);

/* `alignment` is a power of two; values below SEQLSTM_ALIGNMENT count as that. */
void *sl_memory_alloc_aligned(struct sl_memory *memory, size_t bytes, size_t alignment);

/* Bytes of the pages that large blocks lie on: SL_MEMORY_LARGE_PAGE, or SL_MEMORY_PAGE where there are no others. */
size_t sl_memory_get_large_page(void);

/* Returns to the system what the heaps of all threads keep of freed blocks. Called after work that needed much memory
 * once. */
void sl_memory_trim(void);

/* Frees a block of any of the above; `memory` must be the one it came from. NULL block is fine. */
void sl_memory_free(struct sl_memory *memory, void *block);

#endif
