/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a job share (common/host_ranks.h), behind the ranks:
 *
 *   for each group: a box of each rank │ for each ordered pair of ranks: a mailbox
 *
 * Counters only grow, and each has one writer.
 */
#ifndef COMM_SHM_SEGMENT_H
#define COMM_SHM_SEGMENT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/host_ranks.h"

enum {
    SHM_GROUPS = 8,
    SHM_CHUNK_BYTES = 64 << 10, /* of a group's data at a time: two chunks of each rank stay in a second-level cache */
    SHM_PACKET_BYTES = 32 << 10 /* of a pair's data at a time */
};

/* A counter on which other processes may sleep. */
struct shm_counter {
    alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
};

/* Of one rank in one group. It fills chunk c into `chunks[c % 2]` when all members have `done` chunk c - 2. */
struct shm_box {
    struct shm_counter ready; /* phases that this rank has finished; a chunk has one or two */
    struct shm_counter done;  /* chunks of all others that it has read */
    alignas(64) unsigned char chunks[2][SHM_CHUNK_BYTES];
};

/* From one rank to another. */
struct shm_mailbox {
    struct shm_counter sent;
    struct shm_counter taken;
    alignas(64) unsigned char packets[2][SHM_PACKET_BYTES];
};

uint64_t shm_segment_bytes(int32_t ranks);

/* Where things are in the memory of `ranks` ranks. */
struct shm_box *shm_segment_box(void *segment, int32_t ranks, uint32_t group, int32_t rank);
struct shm_mailbox *shm_segment_mailbox(void *segment, int32_t ranks, int32_t from, int32_t to);

#endif
