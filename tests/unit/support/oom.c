/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapped system functions that fail on demand; see oom.h. */
#include "oom.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static _Atomic int oom_calls, oom_target;
static _Atomic bool oom_lasts;
static _Atomic int io_calls, io_target, io_errno, io_bytes;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __real_pwrite64(int fd, const void *data, size_t bytes, off_t offset);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t offset);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);

void oom_fail_at(int n)
{
    oom_lasts = false;
    oom_calls = 0;
    oom_target = n;
}

void oom_fail_from(int n)
{
    oom_fail_at(n);
    oom_lasts = true;
}

bool oom_disarm(void)
{
    bool failed = oom_target > 0 && oom_calls >= oom_target;
    oom_target = 0;
    return failed;
}

void oom_count_start(void)
{
    oom_fail_at(0);
}

int oom_count(void)
{
    return oom_calls;
}

void io_fail_at(int n, int error_number, int bytes)
{
    io_calls = 0;
    io_errno = error_number;
    io_bytes = bytes;
    io_target = n;
}

bool io_disarm(void)
{
    bool failed = io_target > 0 && io_calls >= io_target;
    io_target = 0;
    return failed;
}

static bool oom_now(void)
{
    int call = atomic_fetch_add(&oom_calls, 1) + 1;
    const int target = oom_target;
    if (call != target && !(oom_lasts && target > 0 && call > target))
        return false;
    errno = ENOMEM;
    return true;
}

static bool io_now(void)
{
    int call = atomic_fetch_add(&io_calls, 1) + 1;
    if (call != io_target)
        return false;
    errno = io_errno;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return oom_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return oom_now() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *block, size_t bytes)
{
    return oom_now() ? NULL : __real_realloc(block, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return oom_now() ? NULL : __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    return oom_now() ? ENOMEM : __real_posix_memalign(out, alignment, bytes);
}

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    if (!io_now())
        return __real_write(fd, data, bytes);
    if (io_bytes >= 0 && (size_t)io_bytes < bytes) {
        io_target++; /* a short write succeeds; the next call fails */
        return __real_write(fd, data, (size_t)io_bytes);
    }
    return -1;
}

/* What pwrite is with 64-bit offsets. */
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t offset)
{
    if (!io_now())
        return __real_pwrite64(fd, data, bytes, offset);
    if (io_bytes >= 0 && (size_t)io_bytes < bytes) {
        io_target++; /* a short write succeeds; the next call fails */
        return __real_pwrite64(fd, data, (size_t)io_bytes, offset);
    }
    return -1;
}

int __wrap_fsync(int fd)
{
    return io_now() ? -1 : __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    return io_now() ? -1 : __real_rename(from, to);
}
