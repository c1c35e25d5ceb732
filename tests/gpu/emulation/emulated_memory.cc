/* SPDX-License-Identifier: Apache-2.0 */
/* See emulated_memory.h. */
#include "emulated_memory.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace
{

/* Guarded bytes are behind what was asked for, up to the end of the pages. */
enum { PAGE = 4096, LARGE_PAGE = 2 << 20, GUARD = 64, GUARDED = 0xA5 };
const size_t ARENA_BYTES = (size_t)1 << 32;

void write_peak(size_t bytes)
{
    const char *path = getenv("SEQLSTM_EMULATED_PEAK");
    FILE *file = path ? fopen(path, "w") : nullptr;
    if (!file)
        return;
    fprintf(file, "%zu\n", bytes);
    fclose(file);
}

} // namespace

emulated_memory device_memory;

size_t emulated_memory::get_limit()
{
    const char *text = getenv("SEQLSTM_EMULATED_MEMORY");
    return text ? strtoul(text, nullptr, 10) : ARENA_BYTES;
}

/* In large pages, and always protected as whole ones: that costs little time, however many bytes are in use. */
unsigned char *emulated_memory::reserve()
{
    void *all = mmap(nullptr, ARENA_BYTES + LARGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return static_cast<unsigned char *>(all);
    unsigned char *first = static_cast<unsigned char *>(all);
    first += LARGE_PAGE - reinterpret_cast<uintptr_t>(first) % LARGE_PAGE;
    madvise(first, ARENA_BYTES, MADV_HUGEPAGE);
    return first;
}

void emulated_memory::protect(int how)
{
    if (high > 0)
        mprotect(base, (high + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE, how);
}

void emulated_memory::protect()
{
    protect(working > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void *emulated_memory::allocate(size_t bytes, int device)
{
    std::lock_guard<std::mutex> guard(lock);
    if (total + bytes > get_limit())
        return nullptr;
    if (!base)
        base = reserve();
    const size_t rounded = (bytes + GUARD + PAGE - 1) / PAGE * PAGE;
    size_t at = 0;
    for (const auto &[offset, length] : used) {
        if (offset - at >= rounded)
            break;
        at = offset + length;
    }
    if (base == MAP_FAILED || at + rounded > ARENA_BYTES)
        return nullptr;
    used[at] = rounded;
    asked[at] = bytes;
    devices[at] = device;
    total += bytes;
    if (total > peak)
        write_peak(peak = total);
    high = at + rounded > high ? at + rounded : high;
    protect(PROT_READ | PROT_WRITE);
    memset(base + at + bytes, GUARDED, rounded - bytes);
    protect();
    return base + at;
}

void emulated_memory::release(void *pointer)
{
    std::lock_guard<std::mutex> guard(lock);
    const auto found = used.find((size_t)(static_cast<unsigned char *>(pointer) - base));
    protect(PROT_READ | PROT_WRITE);
    for (size_t k = asked[found->first]; k < found->second; k++)
        if (static_cast<unsigned char *>(pointer)[k] != GUARDED) {
            fprintf(stderr, "emulated device: byte %zu of an allocation of %zu bytes was written\n", k,
                    asked[found->first]);
            abort();
        }
    memset(pointer, 0xFF, found->second); /* so that later reads are noticed */
    total -= asked[found->first];
    asked.erase(found->first);
    devices.erase(found->first);
    used.erase(found);
    protect();
}

bool emulated_memory::owns(const void *pointer, size_t bytes, int device)
{
    std::lock_guard<std::mutex> guard(lock);
    const unsigned char *at = static_cast<const unsigned char *>(pointer);
    if (!base || at < base || at >= base + ARENA_BYTES)
        return false;
    const size_t offset = (size_t)(at - base);
    auto after = used.upper_bound(offset);
    if (after == used.begin())
        return false;
    const size_t start = (--after)->first;
    return offset + bytes <= start + asked[start] && (device < 0 || devices[start] == device);
}

size_t emulated_memory::count()
{
    std::lock_guard<std::mutex> guard(lock);
    return total;
}

void emulated_memory::begin_work()
{
    std::lock_guard<std::mutex> guard(lock);
    if (working++ == 0)
        protect();
}

void emulated_memory::end_work()
{
    std::lock_guard<std::mutex> guard(lock);
    if (--working == 0)
        protect();
}
