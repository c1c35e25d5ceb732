/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations from arenas that fail on purpose: most of them need none of the system, so that oom.h does not reach
 * them. For tests with arena_oom_dep, which leads these functions of the code under test here. */
#ifndef SL_TESTS_ARENA_OOM_H
#define SL_TESTS_ARENA_OOM_H

#include <stdbool.h>

#include "base/memory/arena.h"

void *__real_sl_arena_alloc(struct sl_arena *arena, size_t bytes);
void *__real_sl_arena_alloc_array(struct sl_arena *arena, size_t count, size_t element_bytes);
char *__real_sl_arena_strdup(struct sl_arena *arena, const char *text);
char *__real_sl_arena_strndup(struct sl_arena *arena, const char *text, size_t length);
char *__real_sl_arena_strdup_printable(struct sl_arena *arena, const char *text);
char *__real_sl_arena_vprintf(struct sl_arena *arena, const char *format, va_list args);
void *__wrap_sl_arena_alloc(struct sl_arena *arena, size_t bytes);
void *__wrap_sl_arena_alloc_array(struct sl_arena *arena, size_t count, size_t element_bytes);
char *__wrap_sl_arena_strdup(struct sl_arena *arena, const char *text);
char *__wrap_sl_arena_strndup(struct sl_arena *arena, const char *text, size_t length);
char *__wrap_sl_arena_strdup_printable(struct sl_arena *arena, const char *text);
char *__wrap_sl_arena_vprintf(struct sl_arena *arena, const char *format, va_list args);
char *__wrap_sl_arena_printf(struct sl_arena *arena, const char *format, ...);

static int arena_oom_left = -1; /* until one fails; below 0: none does */
static bool arena_oom_failed;

/* The n-th allocation from now on fails; n >= 1. */
static inline void arena_oom_fail_at(int n)
{
    arena_oom_left = n;
    arena_oom_failed = false;
}

/* Stops failing. True if one has failed. */
static inline bool arena_oom_disarm(void)
{
    arena_oom_left = -1;
    return arena_oom_failed;
}

static inline bool arena_oom_now(void)
{
    if (arena_oom_left < 0 || --arena_oom_left != 0)
        return false;
    arena_oom_left = -1;
    arena_oom_failed = true;
    return true;
}

void *__wrap_sl_arena_alloc(struct sl_arena *arena, size_t bytes)
{
    return arena_oom_now() ? NULL : __real_sl_arena_alloc(arena, bytes);
}

void *__wrap_sl_arena_alloc_array(struct sl_arena *arena, size_t count, size_t element_bytes)
{
    return arena_oom_now() ? NULL : __real_sl_arena_alloc_array(arena, count, element_bytes);
}

char *__wrap_sl_arena_strdup(struct sl_arena *arena, const char *text)
{
    return arena_oom_now() ? NULL : __real_sl_arena_strdup(arena, text);
}

char *__wrap_sl_arena_strndup(struct sl_arena *arena, const char *text, size_t length)
{
    return arena_oom_now() ? NULL : __real_sl_arena_strndup(arena, text, length);
}

char *__wrap_sl_arena_strdup_printable(struct sl_arena *arena, const char *text)
{
    return arena_oom_now() ? NULL : __real_sl_arena_strdup_printable(arena, text);
}

char *__wrap_sl_arena_vprintf(struct sl_arena *arena, const char *format, va_list args)
{
    return arena_oom_now() ? NULL : __real_sl_arena_vprintf(arena, format, args);
}

char *__wrap_sl_arena_printf(struct sl_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = __wrap_sl_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

#endif
