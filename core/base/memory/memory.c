/* SPDX-License-Identifier: Apache-2.0 */
/* Counted aligned blocks. In front of each stands a header with what free needs:
 *
 *   [ padding | header ][ the caller's bytes, aligned | padding ]
 *
 * Zeroed blocks are zero pages of the system: pages that are never written cost nothing. Large blocks are mappings of
 * their own, which begin with a large page: how many of its pages a block takes does not depend on where it lies.
 */
#include "base/memory/memory.h"

#include <assert.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <seqlstm/backend.h>

#include "base/value/checked.h"

struct header {
    void *base; /* what the system gave */
    size_t bytes;
    size_t mapped_bytes; /* from base on; 0: base is of the heap */
};

_Static_assert(sizeof(struct header) <= SEQLSTM_ALIGNMENT, "the header fits in the alignment");

void sl_memory_init(struct sl_memory *memory)
{
    atomic_init(&memory->live_bytes, 0);
    atomic_init(&memory->peak_bytes, 0);
    atomic_init(&memory->live_blocks, 0);
    atomic_init(&memory->n_allocs, 0);
}

static void count(struct sl_memory *memory, size_t bytes)
{
    int64_t live =
        atomic_fetch_add_explicit(&memory->live_bytes, (int64_t)bytes, memory_order_relaxed) + (int64_t)bytes;
    atomic_fetch_add_explicit(&memory->live_blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&memory->n_allocs, 1, memory_order_relaxed);
    int64_t peak = atomic_load_explicit(&memory->peak_bytes, memory_order_relaxed);
    while (peak < live && !atomic_compare_exchange_weak_explicit(&memory->peak_bytes, &peak, live, memory_order_relaxed,
                                                                 memory_order_relaxed))
        continue;
}

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* A mapping whose second small page begins a large one: the first is the header's. Weights and activations of many
 * megabytes are walked through at every step, and with small pages the walk misses the translation cache at each. The
 * advice is a hint; what the system makes of it does not matter. NULL: there is no room. */
static char *map_large(size_t bytes, size_t alignment, struct header *out_header)
{
    size_t room;
    alignment = alignment < SL_MEMORY_LARGE_PAGE ? SL_MEMORY_LARGE_PAGE : alignment;
    if (!sl_checked_add_size(bytes, alignment + 3 * SL_MEMORY_PAGE, &room))
        return NULL;
    room = room / SL_MEMORY_PAGE * SL_MEMORY_PAGE;
    char *map = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    const size_t skip = round_up((uintptr_t)map + SL_MEMORY_PAGE, alignment) - (uintptr_t)map;
    const size_t held = round_up(bytes + SEQLSTM_ALIGNMENT, SL_MEMORY_PAGE); /* a whole last vector may be read */
    char *block = map + skip, *base = block - SL_MEMORY_PAGE;
    if (base > map)
        (void)munmap(map, (size_t)(base - map));
    if (map + room > block + held)
        (void)munmap(block + held, (size_t)(map + room - block) - held);
#ifdef MADV_HUGEPAGE
    (void)madvise(block, held, MADV_HUGEPAGE);
#endif
    *out_header = (struct header){.base = base, .bytes = bytes, .mapped_bytes = SL_MEMORY_PAGE + held};
    return block;
}

static char *take_small(size_t bytes, size_t alignment, bool zeroed, struct header *out_header)
{
    size_t total_bytes;
    if (!sl_checked_add_size(bytes, 2 * alignment, &total_bytes) ||
        !sl_checked_round_up_size(total_bytes, alignment, &total_bytes))
        return NULL;
    char *base = zeroed ? calloc(1, total_bytes) : malloc(total_bytes);
    if (!base)
        return NULL;
    *out_header = (struct header){.base = base, .bytes = bytes};
    return base + 2 * alignment - (uintptr_t)base % alignment;
}

static void *allocate(struct sl_memory *memory, size_t bytes, size_t alignment, bool zeroed)
{
    assert((alignment & (alignment - 1)) == 0);
    if (alignment < SEQLSTM_ALIGNMENT)
        alignment = SEQLSTM_ALIGNMENT;
    struct header header;
    char *block =
        bytes >= SL_MEMORY_LARGE ? map_large(bytes, alignment, &header) : take_small(bytes, alignment, zeroed, &header);
    if (!block)
        return NULL;
    *((struct header *)(void *)block - 1) = header;
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
    return sl_memory_alloc_aligned(memory, bytes, SEQLSTM_ALIGNMENT);
}

void *sl_memory_alloc_zeroed(struct sl_memory *memory, size_t bytes)
{
    return allocate(memory, bytes, SEQLSTM_ALIGNMENT, true);
}

size_t sl_memory_get_large_page(void)
{
    char text[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    bool there = file != NULL && fgets(text, sizeof text, file) != NULL && strstr(text, "[never]") == NULL;
    if (file)
        (void)fclose(file);
#ifndef MADV_HUGEPAGE
    there = false;
#endif
    return there ? SL_MEMORY_LARGE_PAGE : SL_MEMORY_PAGE;
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
        atomic_fetch_sub_explicit(&memory->live_bytes, (int64_t)header.bytes, memory_order_relaxed);
        atomic_fetch_sub_explicit(&memory->live_blocks, 1, memory_order_relaxed);
    }
    if (header.mapped_bytes > 0)
        (void)munmap(header.base, header.mapped_bytes);
    else
        free(header.base);
}
