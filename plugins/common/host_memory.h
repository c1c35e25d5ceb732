/* SPDX-License-Identifier: Apache-2.0 */
/* Memory from the services that the host passed to open. */
#ifndef COMMON_HOST_MEMORY_H
#define COMMON_HOST_MEMORY_H

#include <string.h>

#include <seqlstm/backend.h>

/* Allocates zeroed memory of the host; NULL if there is none. [any] */
static inline void *host_allocate(const struct seqlstm_host *host, uint64_t bytes)
{
    void *memory = host->allocate(host->context, bytes);
    if (memory != NULL)
        memset(memory, 0, (size_t)bytes);
    return memory;
}

static inline void host_release(const struct seqlstm_host *host, void *memory)
{
    host->release(host->context, memory);
}

#endif
