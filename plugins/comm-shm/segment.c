/* SPDX-License-Identifier: Apache-2.0 */
/* See segment.h. */
#include "segment.h"

#include <stddef.h>

static uint64_t mailboxes_at(int32_t ranks)
{
    return host_ranks_head_bytes(ranks) + (uint64_t)SHM_GROUPS * (uint64_t)ranks * sizeof(struct shm_box);
}

uint64_t shm_segment_bytes(int32_t ranks)
{
    return mailboxes_at(ranks) + (uint64_t)ranks * (uint64_t)ranks * sizeof(struct shm_mailbox);
}

struct shm_box *shm_segment_box(void *segment, int32_t ranks, uint32_t group, int32_t rank)
{
    struct shm_box *boxes = (struct shm_box *)(void *)((char *)segment + host_ranks_head_bytes(ranks));
    return boxes + (size_t)group * (size_t)ranks + (size_t)rank;
}

struct shm_mailbox *shm_segment_mailbox(void *segment, int32_t ranks, int32_t from, int32_t to)
{
    struct shm_mailbox *boxes = (struct shm_mailbox *)(void *)((char *)segment + mailboxes_at(ranks));
    return boxes + (size_t)from * (size_t)ranks + (size_t)to;
}
