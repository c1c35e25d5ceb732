/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a job on one host: they meet, share the memory of an unnamed file (memfd), and watch each other's
 * processes.
 *
 *   head │ rank 0, rank 1, … │ what the plugin puts there │ regions (host_ranks_share)
 *
 * A page takes memory when it is first written, so what is not used costs nothing.
 */
#ifndef COMMON_HOST_RANKS_H
#define COMMON_HOST_RANKS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/collectives.h>

enum { HOST_RANKS_MOST = 128, HOST_RANKS_REGIONS = 16, HOST_RANKS_PAGE = 4096 };

struct host_ranks_head {
    alignas(64) _Atomic int32_t aborted; /* 1 + the rank that aborted; 0: none */
    int32_t ranks;
    _Atomic uint64_t bytes; /* of the file; rank 0 makes it larger */
};

struct host_ranks_rank {
    alignas(64) _Atomic int32_t pid; /* 0: not there yet */
    _Atomic int32_t left;            /* 1: it has closed its connection */
};

/* Memory of all ranks, which each of them has mapped: that of rank r begins at r * bytes. */
struct host_ranks_region {
    char *base;
    uint64_t bytes; /* of each rank */
};

struct host_ranks {
    const struct seqlstm_host *host;
    int32_t rank, ranks;
    int file;
    void *memory;
    uint64_t bytes, end; /* mapped at `memory`; up to the last region */
    int *watched;        /* [ranks] pidfd of each rank; -1: none */
    struct host_ranks_region regions[HOST_RANKS_REGIONS];
    int32_t region_count;
};

int64_t host_ranks_now_ns(void);
/* now + timeout_ns, without overflow. */
int64_t host_ranks_deadline_ns(int64_t timeout_ns);

/* The bytes of head and ranks; what the plugin puts behind them is aligned to 64 bytes. */
uint64_t host_ranks_head_bytes(int32_t ranks);
struct host_ranks_rank *host_ranks_get_rank(const struct host_ranks *r, int32_t rank);

/* host_meet.c. Returns when all ranks have mapped the `bytes` of the file, zeros at first, and watch each other.
 * UNAVAILABLE: they are not on one host, or too many. `r` is zeroed; close it also after a failure. */
seqlstm_status host_ranks_open(struct host_ranks *r, const struct seqlstm_host *host,
                               const struct seqlstm_rendezvous *rendezvous, uint64_t bytes, struct seqlstm_error *err);
/* The others see that this rank has left. */
void host_ranks_leave(const struct host_ranks *r);
void host_ranks_close(struct host_ranks *r);

/* All ranks call it with the same bytes, in the same order: a further region, zeros at first. NO_MEMORY, and the errors
 * of an exchange. */
seqlstm_status host_ranks_share(struct host_ranks *r, uint64_t bytes, int64_t deadline_ns, void **out_own,
                                struct seqlstm_error *err);
/* The region in which this rank's `bytes` at `from` lie, and at which offset; NULL: none. */
const struct host_ranks_region *host_ranks_find(const struct host_ranks *r, const void *from, uint64_t bytes,
                                                uint64_t *out_offset);

/* Says whether the job can go on: no rank has aborted, and none has died without leaving it. */
seqlstm_status host_ranks_check(const struct host_ranks *r, struct seqlstm_error *err);
/* Has a rank aborted? Costs nothing. */
bool host_ranks_is_over(const struct host_ranks *r);
bool host_ranks_has_left(const struct host_ranks *r, int32_t rank);
void host_ranks_abort(const struct host_ranks *r);
/* An error for which `rank` is to blame: "rank 3 has died". Returns `status`. */
seqlstm_status host_ranks_blame(int32_t rank, seqlstm_status status, const char *what, struct seqlstm_error *err);

#endif
