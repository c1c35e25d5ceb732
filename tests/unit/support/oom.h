/* SPDX-License-Identifier: Apache-2.0 */
/* Failing on purpose. Every unit test is linked with oom.c, through which the linker leads malloc,
 * calloc, realloc, aligned_alloc, posix_memalign, strdup and strndup (and write, fsync, rename) of the code under test;
 * jansson allocates there too.
 *
 *   for (int n = 1;; n++) {
 *       oom_fail_at(n);
 *       status = thing_create(&thing, &err);
 *       if (!oom_disarm())
 *           break;                       n calls were not reached: the run was whole
 *       assert_int_equal(status, SEQLSTM_NO_MEMORY);
 *   }
 *
 * Under the sanitizers this finds leaks and double frees on every path of failure.
 */
#ifndef SL_TESTS_OOM_H
#define SL_TESTS_OOM_H

#include <stdbool.h>
#include <stddef.h>

/* The n-th allocation from now on fails, and that one alone; n >= 1. */
void oom_fail_at(int n);
/* The same, and all that follow it, until oom_disarm. */
void oom_fail_from(int n);

/* The first allocation fails for whose nearest `callers` (at most 16) none has failed yet in this process, and that one
 * alone: until nothing fails any more, each place that allocates has failed once, however often it is come by. More
 * callers tell more places apart, and take longer. */
void oom_fail_anew(int callers);

/* Stops failing. True if a failure has happened since oom_fail_at, oom_fail_from or oom_fail_anew. */
bool oom_disarm(void);

/* Allocations since oom_fail_at or oom_count_start. */
void oom_count_start(void);
int oom_count(void);

/* Remembers the blocks that are allocated from now on, by all threads, and forgets those that are freed. */
void oom_watch(void);
/* Stops it. How many of the blocks are still there; where the first of them was allocated, as backtrace_symbols has it,
 * goes to `where` (NULL: nowhere). A block that a library frees counts as there. */
int oom_unwatch(char *where, size_t where_bytes);

/* For the teardown of a group whose setup has called oom_watch: -1, and a word about it, if a block is left. */
int oom_end(void);

/* Setup and teardown of a group that has no others. */
int oom_group_begin(void **state);
int oom_group_end(void **state);

/* The same for write, pwrite, fsync and rename together: the n-th returns -1 with errno `error_number`. With
 * `bytes` >= 0 a failing write first writes that many bytes, as a full disk does. */
void io_fail_at(int n, int error_number, int bytes);
bool io_disarm(void);

/* Arenas take their memory in large blocks, so that few of the calls that may return NULL do where malloc fails. A test
 * with `#define OOM_ARENAS` and arena_oom_dep of meson.build makes the n-th of them fail. */
#ifdef OOM_ARENAS

#include <stdarg.h>

#include "base/memory/arena.h"

static int arena_calls, arena_target;

/* The n-th call from now on fails, and that one alone; n >= 1. */
static inline void arena_fail_at(int n)
{
    arena_calls = 0;
    arena_target = n;
}

static inline bool arena_disarm(void)
{
    const bool failed = arena_target > 0 && arena_calls >= arena_target;
    arena_target = 0;
    return failed;
}

static bool arena_has_room(void)
{
    return ++arena_calls != arena_target;
}

#define ARENA_WRAP(type, name, parameters, arguments)                                                                  \
    type __real_sl_arena_##name parameters;                                                                            \
    type __wrap_sl_arena_##name parameters;                                                                            \
    type __wrap_sl_arena_##name parameters                                                                             \
    {                                                                                                                  \
        if (arena_has_room())                                                                                          \
            return __real_sl_arena_##name arguments;                                                                   \
        arena->failed = true;                                                                                          \
        return NULL;                                                                                                   \
    }

ARENA_WRAP(void *, alloc, (struct sl_arena * arena, size_t bytes), (arena, bytes))
ARENA_WRAP(void *, alloc_array, (struct sl_arena * arena, size_t count, size_t bytes), (arena, count, bytes))
ARENA_WRAP(char *, strdup, (struct sl_arena * arena, const char *text), (arena, text))
ARENA_WRAP(char *, strndup, (struct sl_arena * arena, const char *text, size_t length), (arena, text, length))
ARENA_WRAP(char *, strdup_printable, (struct sl_arena * arena, const char *text), (arena, text))
ARENA_WRAP(char *, vprintf, (struct sl_arena * arena, const char *format, va_list args), (arena, format, args))

char *__wrap_sl_arena_printf(struct sl_arena *arena, const char *format, ...);
char *__wrap_sl_arena_printf(struct sl_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const bool fits = arena_has_room();
    char *text = fits ? __real_sl_arena_vprintf(arena, format, args) : NULL;
    va_end(args);
    arena->failed = arena->failed || !fits;
    return text;
}

#endif
#endif
