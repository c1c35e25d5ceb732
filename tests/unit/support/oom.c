/* SPDX-License-Identifier: Apache-2.0 */
/* Wrapped system functions that fail on demand; see oom.h. */
#include "oom.h"

#include "descriptors.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* What oom_watch remembers: a block is in the first free slot from its hash on. */
enum { SLOT_BITS = 18, SLOTS = 1 << SLOT_BITS, WATCHED_MOST = SLOTS / 2 };
static struct {
    void *block, *caller;
} slots[SLOTS];
static int watched_count;
static _Atomic bool watching;
static atomic_flag slots_taken = ATOMIC_FLAG_INIT;

static _Atomic int io_calls, io_target, io_errno, io_bytes;

void __real_free(void *block);
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

void __wrap_free(void *block);
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

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static uint32_t find_slot(const void *block)
{
    uint32_t slot = (uint32_t)(((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS));
    while (slots[slot].block != NULL && slots[slot].block != block)
        slot = (slot + 1) % SLOTS;
    return slot;
}

/* Those that follow move up: none is behind a free slot. */
static void empty_slot(uint32_t slot)
{
    slots[slot].block = NULL;
    watched_count--;
    for (uint32_t next = (slot + 1) % SLOTS; slots[next].block != NULL; next = (next + 1) % SLOTS) {
        void *block = slots[next].block;
        slots[next].block = NULL;
        const uint32_t to = find_slot(block);
        slots[to].block = block;
        slots[to].caller = slots[next].caller;
    }
}

static void *remember(void *block, void *caller)
{
    if (block == NULL || !watching)
        return block;
    while (atomic_flag_test_and_set(&slots_taken))
        ;
    if (watched_count < WATCHED_MOST) {
        const uint32_t slot = find_slot(block);
        watched_count += slots[slot].block == NULL;
        slots[slot].block = block;
        slots[slot].caller = caller;
    }
    atomic_flag_clear(&slots_taken);
    return block;
}

static void forget(const void *block)
{
    if (block == NULL || !watching)
        return;
    while (atomic_flag_test_and_set(&slots_taken))
        ;
    const uint32_t slot = find_slot(block);
    if (slots[slot].block != NULL)
        empty_slot(slot);
    atomic_flag_clear(&slots_taken);
}

void oom_watch(void)
{
    if (watched_count > 0)
        memset(slots, 0, sizeof slots);
    watched_count = 0;
    watching = true;
}

int oom_unwatch(char *where, size_t where_bytes)
{
    watching = false;
    for (uint32_t slot = 0; slot < SLOTS && where && watched_count > 0; slot++)
        if (slots[slot].block != NULL) {
            char **symbol = backtrace_symbols(&slots[slot].caller, 1);
            snprintf(where, where_bytes, "%s", symbol ? symbol[0] : "");
            __real_free(symbol);
            break;
        }
    return watched_count;
}

int oom_end(void)
{
    char where[256] = "";
    const int blocks = oom_unwatch(where, sizeof where);
    if (blocks > 0)
        fprintf(stderr, "%d block%s of memory %s left, the first of %s\n", blocks, blocks == 1 ? "" : "s",
                blocks == 1 ? "is" : "are", where);
    return blocks > 0 ? -1 : 0;
}

static int group_descriptors;

int oom_group_begin(void **state)
{
    (void)state;
    group_descriptors = descriptors_count();
    oom_watch();
    return 0;
}

int oom_group_end(void **state)
{
    (void)state;
    const int more = descriptors_count() - group_descriptors;
    if (more != 0)
        fprintf(stderr, "%d more file descriptors are open than before\n", more);
    return oom_end() != 0 || more != 0 ? -1 : 0;
}

/* ---- the functions ---------------------------------------------------------------------------------------------- */

static bool io_now(void)
{
    int call = atomic_fetch_add(&io_calls, 1) + 1;
    if (call != io_target)
        return false;
    errno = io_errno;
    return true;
}

void __wrap_free(void *block)
{
    forget(block);
    __real_free(block);
}

static _Thread_local size_t last_bytes; /* of the thread's last malloc */

void *__wrap_malloc(size_t bytes)
{
    last_bytes = bytes;
    return oom_now() ? NULL : remember(__real_malloc(bytes), __builtin_return_address(0));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return oom_now() ? NULL : remember(__real_calloc(count, bytes), __builtin_return_address(0));
}

void *__wrap_realloc(void *block, size_t bytes)
{
    if (oom_now())
        return NULL;
    forget(block); /* before another thread can be given it */
    void *moved = __real_realloc(block, bytes);
    remember(moved ? moved : block, __builtin_return_address(0));
    return moved;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return oom_now() ? NULL : remember(__real_aligned_alloc(alignment, bytes), __builtin_return_address(0));
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
    const int code = oom_now() ? ENOMEM : __real_posix_memalign(out, alignment, bytes);
    if (code == 0)
        remember(*out, __builtin_return_address(0));
    return code;
}

char *__wrap_strdup(const char *text)
{
    return oom_now() ? NULL : remember(__real_strdup(text), __builtin_return_address(0));
}

char *__wrap_strndup(const char *text, size_t length)
{
    return oom_now() ? NULL : remember(__real_strndup(text, length), __builtin_return_address(0));
}

/* jansson is a shared library, whose own calls the linker leads nowhere: where a test has it, it allocates here. */
void json_set_alloc_funcs(void *(*allocate)(size_t), void (*release)(void *)) __attribute__((weak));

/* Its scanner writes past the end of a buffer that cannot grow. So json_load.c asks for as much first: between the two
 * nothing takes that room. */
static void *allocate_json(size_t bytes)
{
    const bool asked = bytes == last_bytes;
    last_bytes = 0;
    if (!asked && oom_now())
        return NULL;
    return remember(__real_malloc(bytes), __builtin_return_address(0));
}

__attribute__((constructor)) static void lead_jansson(void)
{
    if (json_set_alloc_funcs)
        json_set_alloc_funcs(allocate_json, free);
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
