/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: many small allocations with one lifetime, freed in one call.
 *
 * base/memory: where memory comes from. Arenas for records, memory.h for large aligned blocks that are counted, pages.h
 * to find out how much of a block is touched.
 *
 * Model, graph and plan each live in one. Memory is zeroed, aligned to at least 16 bytes and never moves. Every
 * allocating function returns NULL when memory runs out; the arena stays usable, and what it holds is freed by
 * sl_arena_deinit. [one thread at a time]
 */
#ifndef SL_BASE_MEMORY_ARENA_H
#define SL_BASE_MEMORY_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <seqlstm/status.h>

struct sl_arena_block;

struct sl_arena {
    struct sl_arena_block *blocks; /* newest first; the newest is the one being filled */
    size_t total_bytes;            /* taken from the system */
    bool failed;                   /* since sl_arena_init something could not be allocated */
};

/* Allocates nothing; a zeroed struct sl_arena is an initialised one. */
void sl_arena_init(struct sl_arena *arena);

/* Frees everything; the arena is then as after sl_arena_init. */
void sl_arena_deinit(struct sl_arena *arena);

/* `bytes` zeroed bytes, aligned to 16. A request of 0 bytes gives a distinct pointer. */
void *sl_arena_alloc(struct sl_arena *arena, size_t bytes);

/* count * element_bytes zeroed bytes; NULL as well when the product overflows. */
void *sl_arena_alloc_array(struct sl_arena *arena, size_t count, size_t element_bytes);

/* Copies of strings. strndup copies at most `length` bytes, stops at a NUL and always ends in one. */
char *sl_arena_strdup(struct sl_arena *arena, const char *text);
char *sl_arena_strndup(struct sl_arena *arena, const char *text, size_t length);
/* A copy that is fit to be shown: with the escapes of base/value/printable.h. */
char *sl_arena_strdup_printable(struct sl_arena *arena, const char *text);

/* Formatted text; numbers are printed as in the C locale, whatever the program's locale is. */
char *sl_arena_printf(struct sl_arena *arena, const char *format, ...) SEQLSTM_PRINTF(2, 3);
char *sl_arena_vprintf(struct sl_arena *arena, const char *format, va_list args) SEQLSTM_PRINTF(2, 0);

#define SL_ARENA_NEW(arena, type)          ((type *)sl_arena_alloc_array((arena), 1, sizeof(type)))
#define SL_ARENA_ARRAY(arena, type, count) ((type *)sl_arena_alloc_array((arena), (count), sizeof(type)))

#endif
