/* SPDX-License-Identifier: Apache-2.0 */
/* A host that counts what is allocated. */
#ifndef COUNTED_HOST_H
#define COUNTED_HOST_H

#include <stdlib.h>

#include <seqlstm/backend.h>

static int on_host; /* blocks that are allocated */

static inline void *counted_allocate(void *context, uint64_t bytes)
{
    (void)context;
    on_host++;
    return malloc(bytes);
}

static inline void counted_release(void *context, void *pointer)
{
    (void)context;
    on_host -= pointer != NULL;
    free(pointer);
}

#define COUNTED_HOST                                                                                                   \
    {                                                                                                                  \
        .struct_size = sizeof(struct seqlstm_host), .allocate = counted_allocate, .release = counted_release           \
    }

#endif
