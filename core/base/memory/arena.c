/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: a list of zeroed blocks, filled from the front.
 *
 *   blocks -> [header | used ... | free ...] -> [header | used ...] -> ... -> NULL
 *
 * Invariants: (1) only the first block of the list is filled further; (2) bytes behind `used_bytes` have never been
 * handed out, so they are still the zeros of calloc; (3) a request larger than a quarter of the next block's size gets
 * a block of its own, put second, so that the rest of the first one is not lost.
 *
 * Under the address sanitizer what has not been handed out is poisoned, and behind each part stays a gap.
 */
#include "base/memory/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/checked.h"
#include "base/value/printable.h"
#include "base/value/text.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define gap_within(left)  ((left) < 16 ? (left) : (size_t)16)
#define hide(from, bytes) ASAN_POISON_MEMORY_REGION(from, bytes)
#define show(from, bytes) ASAN_UNPOISON_MEMORY_REGION(from, bytes)
#else
#define gap_within(left)  ((size_t)0)
#define hide(from, bytes) ((void)0)
#define show(from, bytes) ((void)0)
#endif

#define ARENA_ALIGNMENT     16
#define ARENA_FIRST_BYTES   ((size_t)4096)
#define ARENA_LARGEST_BYTES ((size_t)1 << 20)

struct sl_arena_block {
    struct sl_arena_block *next;
    size_t capacity_bytes; /* behind this header */
    size_t used_bytes;
    size_t reserved; /* keeps the header a multiple of the alignment */
};

_Static_assert(sizeof(struct sl_arena_block) % ARENA_ALIGNMENT == 0, "payload must be aligned");

void sl_arena_init(struct sl_arena *arena)
{
    *arena = (struct sl_arena){0};
}

void sl_arena_deinit(struct sl_arena *arena)
{
    struct sl_arena_block *block = arena->blocks;
    while (block) {
        struct sl_arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = (struct sl_arena){0};
}

static struct sl_arena_block *block_create(struct sl_arena *arena, size_t capacity_bytes)
{
    size_t total_bytes;
    if (!sl_checked_add_size(sizeof(struct sl_arena_block), capacity_bytes, &total_bytes))
        return NULL;
    struct sl_arena_block *block = calloc(1, total_bytes);
    if (!block)
        return NULL;
    block->capacity_bytes = capacity_bytes;
    hide(block + 1, capacity_bytes);
    arena->total_bytes += total_bytes;
    return block;
}

static void *fail(struct sl_arena *arena)
{
    arena->failed = true;
    return NULL;
}

/* The next aligned address of the block if `bytes` fit behind it, else NULL. */
static void *block_take(struct sl_arena_block *block, size_t bytes)
{
    uintptr_t start = (uintptr_t)(block + 1);
    uintptr_t address = (start + block->used_bytes + ARENA_ALIGNMENT - 1) & ~(uintptr_t)(ARENA_ALIGNMENT - 1);
    size_t offset = (size_t)(address - start);
    if (offset > block->capacity_bytes || bytes > block->capacity_bytes - offset)
        return NULL;
    block->used_bytes = offset + bytes + gap_within(block->capacity_bytes - offset - bytes);
    show((char *)(block + 1) + offset, bytes);
    return (char *)(block + 1) + offset;
}

void *sl_arena_alloc(struct sl_arena *arena, size_t bytes)
{
    if (bytes == 0)
        bytes = 1;
    if (arena->blocks) {
        void *found = block_take(arena->blocks, bytes);
        if (found)
            return found;
    }
    size_t next_bytes = ARENA_FIRST_BYTES;
    if (arena->blocks && arena->blocks->capacity_bytes >= ARENA_FIRST_BYTES) {
        next_bytes = arena->blocks->capacity_bytes * 2;
        if (next_bytes > ARENA_LARGEST_BYTES)
            next_bytes = ARENA_LARGEST_BYTES;
    }
    size_t padded_bytes;
    if (!sl_checked_add_size(bytes, ARENA_ALIGNMENT, &padded_bytes))
        return fail(arena);
    if (padded_bytes > next_bytes / 4) {
        struct sl_arena_block *own = block_create(arena, padded_bytes);
        if (!own)
            return fail(arena);
        if (arena->blocks) {
            own->next = arena->blocks->next;
            arena->blocks->next = own;
        } else {
            arena->blocks = own;
        }
        return block_take(own, bytes);
    }
    struct sl_arena_block *block = block_create(arena, next_bytes);
    if (!block)
        return fail(arena);
    block->next = arena->blocks;
    arena->blocks = block;
    return block_take(block, bytes);
}

void *sl_arena_alloc_array(struct sl_arena *arena, size_t count, size_t element_bytes)
{
    size_t bytes;
    if (!sl_checked_mul_size(count, element_bytes, &bytes))
        return fail(arena);
    return sl_arena_alloc(arena, bytes);
}

char *sl_arena_strdup(struct sl_arena *arena, const char *text)
{
    return sl_arena_strndup(arena, text, strlen(text));
}

char *sl_arena_strndup(struct sl_arena *arena, const char *text, size_t length)
{
    length = strnlen(text, length);
    char *copy = sl_arena_alloc(arena, length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

char *sl_arena_strdup_printable(struct sl_arena *arena, const char *text)
{
    struct sl_buf shown = {0};
    sl_printable_append(&shown, text, strlen(text), "");
    char *copy = shown.failed ? NULL : sl_arena_strdup(arena, sl_buf_text(&shown));
    sl_buf_deinit(&shown);
    return copy;
}

char *sl_arena_vprintf(struct sl_arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    char *text = NULL;
    int length = sl_text_vsnprintf(NULL, 0, format, args);
    if (length >= 0) {
        text = sl_arena_alloc(arena, (size_t)length + 1);
        if (text)
            sl_text_vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    return text;
}

char *sl_arena_printf(struct sl_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = sl_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
