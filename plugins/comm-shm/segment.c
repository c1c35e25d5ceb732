/* SPDX-License-Identifier: Apache-2.0 */
/* See segment.h. */
#include "segment.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t boxes_at(int32_t ranks)
{
    return sizeof(struct shm_head) + (uint64_t)ranks * sizeof(struct shm_rank);
}

static uint64_t mailboxes_at(int32_t ranks)
{
    return boxes_at(ranks) + (uint64_t)SHM_GROUPS * (uint64_t)ranks * sizeof(struct shm_box);
}

uint64_t shm_segment_bytes(int32_t ranks)
{
    return mailboxes_at(ranks) + (uint64_t)ranks * (uint64_t)ranks * sizeof(struct shm_mailbox);
}

struct shm_head *shm_segment_head(void *segment)
{
    return segment;
}

struct shm_rank *shm_segment_rank(void *segment, int32_t rank)
{
    return (struct shm_rank *)(void *)((char *)segment + sizeof(struct shm_head)) + rank;
}

struct shm_box *shm_segment_box(void *segment, int32_t ranks, uint32_t group, int32_t rank)
{
    struct shm_box *boxes = (struct shm_box *)(void *)((char *)segment + boxes_at(ranks));
    return boxes + (size_t)group * (size_t)ranks + (size_t)rank;
}

struct shm_mailbox *shm_segment_mailbox(void *segment, int32_t ranks, int32_t from, int32_t to)
{
    struct shm_mailbox *boxes = (struct shm_mailbox *)(void *)((char *)segment + mailboxes_at(ranks));
    return boxes + (size_t)from * (size_t)ranks + (size_t)to;
}

int shm_segment_make(int32_t ranks)
{
    const int file = memfd_create("seqlstm-ranks", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, (off_t)shm_segment_bytes(ranks)) != 0) {
        const int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}

void *shm_segment_map(int file, int32_t ranks)
{
    void *segment = mmap(NULL, shm_segment_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return segment == MAP_FAILED ? NULL : segment;
}

void shm_segment_unmap(void *segment, int32_t ranks)
{
    munmap(segment, shm_segment_bytes(ranks));
}
