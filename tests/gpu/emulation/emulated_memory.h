/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the emulated devices: an arena that only running work may access.
 *
 * It is closed (mprotect) while no stream works, so a host that dereferences a device address then crashes at once.
 * Behind each allocation lie bytes that nothing may write; its release looks at them, and aborts if they changed.
 *
 * With SEQLSTM_EMULATED_PEAK=FILE the most bytes that were allocated at the same time are written there. With
 * SEQLSTM_EMULATED_MEMORY=BYTES there is no more memory than that. [any thread] */
#ifndef EMULATED_MEMORY_H
#define EMULATED_MEMORY_H

#include <cstddef>
#include <map>
#include <mutex>

class emulated_memory
{
    std::mutex lock;
    unsigned char *base = nullptr;
    std::map<size_t, size_t> used; /* offset -> bytes */
    std::map<size_t, int> devices;
    size_t high = 0, total = 0, peak = 0; /* total: bytes that were asked for */
    std::map<size_t, size_t> asked;
    int working = 0;

    static unsigned char *reserve();
    void protect(int how);
    void protect();

  public:
    static size_t get_limit();
    /* nullptr: there is no room. */
    void *allocate(size_t bytes, int device);
    void release(void *pointer);
    /* Are these bytes of one allocation of that device? -1: of any. */
    bool owns(const void *pointer, size_t bytes, int device = -1);
    /* Bytes that are allocated. */
    size_t count();
    void begin_work();
    void end_work();
};

extern emulated_memory device_memory; /* of all devices */

#endif
