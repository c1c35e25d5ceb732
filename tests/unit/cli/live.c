/* SPDX-License-Identifier: Apache-2.0 */
/* See live.h. */
#include "live.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

static atomic_long live;

static void *count(void *block)
{
    live += block != NULL;
    return block;
}

void *malloc(size_t bytes)
{
    return count(__libc_malloc(bytes));
}

void *calloc(size_t n, size_t bytes)
{
    return count(__libc_calloc(n, bytes));
}

void *realloc(void *block, size_t bytes)
{
    void *changed = __libc_realloc(block, bytes);
    live += block == NULL && changed != NULL;
    live -= block != NULL && changed == NULL && bytes == 0;
    return changed;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return count(__libc_memalign(alignment, bytes));
}

int posix_memalign(void **out_block, size_t alignment, size_t bytes)
{
    void *block = count(__libc_memalign(alignment, bytes));
    if (block != NULL)
        *out_block = block;
    return block != NULL ? 0 : ENOMEM;
}

void free(void *block)
{
    live -= block != NULL;
    __libc_free(block);
}

long live_count(void)
{
    return live;
}

#else

long live_count(void)
{
    return 0;
}

#endif
