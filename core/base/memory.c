/* SPDX-License-Identifier: Apache-2.0 */
/* Counted aligned blocks. In front of each stands a header with what free needs:
 *
 *   [ padding | header ][ the caller's bytes, aligned | padding ]
 *
 * Zeroed ones are the system's zeros: pages of theirs that nobody writes to cost nothing.
 */
#include "base/memory.h"

#include <assert.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"

struct header {
    void *base; /* what the system gave */
    size_t bytes;
};

_Static_assert(sizeof(struct header) <= SL_MEMORY_ALIGNMENT, "the header fits in the alignment");

void sl_memory_init(struct sl_memory *memory)
{
    atomic_init(&memory->live_bytes, 0);
    atomic_init(&memory->peak_bytes, 0);
    atomic_init(&memory->live_blocks, 0);
    atomic_init(&memory->n_allocs, 0);
}

static void count(struct sl_memory *memory, size_t bytes)
{
    int64_t live = atomic_fetch_add_explicit(&memory->live_bytes, (int64_t)bytes,
                                             memory_order_relaxed) +
                   (int64_t)bytes;
    atomic_fetch_add_explicit(&memory->live_blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&memory->n_allocs, 1, memory_order_relaxed);
    int64_t peak = atomic_load_explicit(&memory->peak_bytes, memory_order_relaxed);
    while (peak < live && !atomic_compare_exchange_weak_explicit(&memory->peak_bytes, &peak, live,
                                                                 memory_order_relaxed,
                                                                 memory_order_relaxed))
        continue;
}

/* Weights and activations of many megabytes are walked through at every step: with small pages the walk
 * misses the translation cache at each. A hint; what the system makes of it does not matter. */
static void advise_huge(char *base, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { PAGE = 4096, WORTH_IT = 4 << 20 };
    size_t skip = (PAGE - (uintptr_t)base % PAGE) % PAGE;
    if (bytes >= WORTH_IT)
        (void)madvise(base + skip, (bytes - skip) / PAGE * PAGE, MADV_HUGEPAGE);
#else
    (void)base, (void)bytes;
#endif
}

static void *allocate(struct sl_memory *memory, size_t bytes, size_t alignment, bool zeroed)
{
    assert((alignment & (alignment - 1)) == 0);
    if (alignment < SL_MEMORY_ALIGNMENT)
        alignment = SL_MEMORY_ALIGNMENT;
    size_t total_bytes;
    if (!sl_checked_add_size(bytes, 2 * alignment, &total_bytes) ||
        !sl_checked_round_up_size(total_bytes, alignment, &total_bytes))
        return NULL;
    char *base = zeroed ? calloc(1, total_bytes) : malloc(total_bytes);
    if (!base)
        return NULL;
    advise_huge(base, total_bytes);
    char *block = base + 2 * alignment - (uintptr_t)base % alignment;
    *((struct header *)(void *)block - 1) = (struct header){.base = base, .bytes = bytes};
    if (memory)
        count(memory, bytes);
    return block;
}

void *sl_memory_alloc_aligned(struct sl_memory *memory, size_t bytes, size_t alignment)
{
    return allocate(memory, bytes, alignment, false);
}

void *sl_memory_alloc(struct sl_memory *memory, size_t bytes)
{
    return sl_memory_alloc_aligned(memory, bytes, SL_MEMORY_ALIGNMENT);
}

void *sl_memory_alloc_zeroed(struct sl_memory *memory, size_t bytes)
{
    return allocate(memory, bytes, SL_MEMORY_ALIGNMENT, true);
}

void sl_memory_trim(void)
{
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

void sl_memory_free(struct sl_memory *memory, void *block)
{
    if (!block)
        return;
    struct header header = *((struct header *)block - 1);
    if (memory) {
        atomic_fetch_sub_explicit(&memory->live_bytes, (int64_t)header.bytes,
                                  memory_order_relaxed);
        atomic_fetch_sub_explicit(&memory->live_blocks, 1, memory_order_relaxed);
    }
    free(header.base);
}
