/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapped system functions that fail on demand; see oom.h. */
#include "oom.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

static _Atomic int oom_calls, oom_target;
static _Atomic bool oom_lasts;

/* Callers of which an allocation has failed, as hashes of their addresses. */
enum { CALLERS_MOST = 16, PLACES_MOST = 1 << 14 };
static uint64_t places[PLACES_MOST];
static int anew_callers;
static int place_count;
static _Atomic bool anew_wanted, anew_failed;
static atomic_flag anew_taken = ATOMIC_FLAG_INIT;
static _Atomic int io_calls, io_target, io_errno, io_bytes;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __real_pwrite64(int fd, const void *data, size_t bytes, off_t offset);
int __real_rename(const char *from, const char *to);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t offset);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);

void oom_fail_at(int n)
{
    oom_lasts = anew_wanted = false;
    oom_calls = 0;
    oom_target = n;
}

void oom_fail_from(int n)
{
    oom_fail_at(n);
    oom_lasts = true;
}

void oom_fail_anew(int callers)
{
    void *none[1];
    oom_fail_at(0);
    (void)backtrace(none, 1); /* loads what it needs */
    anew_callers = callers < CALLERS_MOST ? callers : CALLERS_MOST;
    anew_failed = false;
    anew_wanted = true;
}

bool oom_disarm(void)
{
    bool failed = anew_wanted ? anew_failed : oom_target > 0 && oom_calls >= oom_target;
    anew_wanted = false;
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

/* Is it the first of its place, and the first since oom_fail_anew? */
static bool fails_anew(void)
{
    void *callers[CALLERS_MOST];
    uint64_t place = 0;
    bool is_new = false;
    const int count = backtrace(callers, anew_callers);
    for (int k = 0; k < count; k++)
        place = (place ^ (uintptr_t)callers[k]) * UINT64_C(0x9e3779b97f4a7c15);
    while (atomic_flag_test_and_set(&anew_taken))
        ;
    if (!anew_failed && place_count < PLACES_MOST) {
        int k = 0;
        while (k < place_count && places[k] != place)
            k++;
        is_new = k == place_count;
        places[place_count] = place;
        place_count += is_new;
        anew_failed = is_new;
    }
    atomic_flag_clear(&anew_taken);
    return is_new;
}

static bool oom_now(void)
{
    int call = atomic_fetch_add(&oom_calls, 1) + 1;
    const int target = oom_target;
    if (anew_wanted && !anew_failed && fails_anew()) {
        errno = ENOMEM;
        return true;
    }
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

char *__wrap_strdup(const char *text)
{
    return oom_now() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t length)
{
    return oom_now() ? NULL : __real_strndup(text, length);
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

/* Nothing has to outlast a test: that the file is open is all that is asked. */
int __wrap_fsync(int fd)
{
    return io_now() || fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

int __wrap_rename(const char *from, const char *to)
{
    return io_now() ? -1 : __real_rename(from, to);
}
