/* SPDX-License-Identifier: Apache-2.0 */
/* See host_ranks.h. */
#include "common/host_ranks.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/host_memory.h"

enum { PAUSE_NS = 100 * 1000 };

int64_t host_ranks_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t host_ranks_deadline_ns(int64_t timeout_ns)
{
    const int64_t now = host_ranks_now_ns();
    return now > INT64_MAX - timeout_ns ? INT64_MAX : now + timeout_ns;
}

uint64_t host_ranks_head_bytes(int32_t ranks)
{
    return sizeof(struct host_ranks_head) + (uint64_t)ranks * sizeof(struct host_ranks_rank);
}

static struct host_ranks_head *get_head(const struct host_ranks *r)
{
    return r->memory;
}

struct host_ranks_rank *host_ranks_get_rank(const struct host_ranks *r, int32_t rank)
{
    return (struct host_ranks_rank *)(void *)((char *)r->memory + sizeof(struct host_ranks_head)) + rank;
}

void host_ranks_leave(const struct host_ranks *r)
{
    atomic_store(&host_ranks_get_rank(r, r->rank)->left, 1);
}

void host_ranks_close(struct host_ranks *r)
{
    for (int32_t k = 0; k < r->region_count; k++)
        munmap(r->regions[k].base, (uint64_t)r->ranks * r->regions[k].bytes);
    if (r->memory) {
        host_ranks_leave(r);
        munmap(r->memory, r->bytes);
    }
    if (r->file >= 0)
        close(r->file);
    for (int32_t k = 0; r->watched && k < r->ranks; k++)
        if (r->watched[k] >= 0)
            close(r->watched[k]);
    if (r->watched)
        host_release(r->host, r->watched);
    r->watched = NULL;
    r->memory = NULL;
    r->file = -1;
    r->region_count = 0;
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

/* Rank 0 makes the file larger; the others wait for it. */
static seqlstm_status grow(struct host_ranks *r, uint64_t end, int64_t deadline_ns, struct seqlstm_error *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct host_ranks_head *head = get_head(r);
    if (r->rank == 0) {
        if (ftruncate(r->file, (off_t)end) != 0)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %llu bytes that all ranks share",
                         (unsigned long long)end);
        atomic_store(&head->bytes, end);
    }
    while (atomic_load(&head->bytes) < end) {
        SEQLSTM_TRY(host_ranks_check(r, err));
        if (host_ranks_has_left(r, 0))
            return host_ranks_blame(0, SEQLSTM_CANCELLED, "has left the job", err);
        if (host_ranks_now_ns() >= deadline_ns)
            return host_ranks_blame(0, SEQLSTM_DEVICE, "did not come in time", err);
        nanosleep(&pause, NULL);
    }
    return SEQLSTM_OK;
}

seqlstm_status host_ranks_share(struct host_ranks *r, uint64_t bytes, int64_t deadline_ns, void **out_own,
                                struct seqlstm_error *err)
{
    const uint64_t rounded =
        (bytes > 0 ? bytes + HOST_RANKS_PAGE - 1 : HOST_RANKS_PAGE) / HOST_RANKS_PAGE * HOST_RANKS_PAGE;
    if (r->region_count == HOST_RANKS_REGIONS || rounded < bytes || rounded > (UINT64_C(1) << 62) / HOST_RANKS_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %llu bytes that all ranks share",
                     (unsigned long long)bytes);
    const uint64_t all = (uint64_t)r->ranks * rounded;
    SEQLSTM_TRY(grow(r, r->end + all, deadline_ns, err));
    void *base = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, r->file, (off_t)r->end);
    if (base == MAP_FAILED)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %llu bytes that all ranks share",
                     (unsigned long long)bytes);
    r->end += all;
    r->regions[r->region_count++] = (struct host_ranks_region){base, rounded};
    *out_own = (char *)base + (uint64_t)r->rank * rounded;
    return SEQLSTM_OK;
}

const struct host_ranks_region *host_ranks_find(const struct host_ranks *r, const void *from, uint64_t bytes,
                                                uint64_t *out_offset)
{
    for (int32_t k = 0; k < r->region_count; k++) {
        const struct host_ranks_region *region = &r->regions[k];
        const uintptr_t own = (uintptr_t)region->base + (uintptr_t)r->rank * region->bytes, at = (uintptr_t)from;
        if (at < own || at - own > region->bytes || bytes > region->bytes - (at - own))
            continue;
        *out_offset = at - own;
        return region;
    }
    return NULL;
}

/* ---- the other ranks -------------------------------------------------------------------------------------------- */

static bool is_dead(const struct host_ranks *r, int32_t rank)
{
    struct pollfd look = {.fd = r->watched[rank], .events = POLLIN};
    if (look.fd >= 0)
        return poll(&look, 1, 0) > 0;
    /* Linux before 5.3 */
    return syscall(SYS_kill, atomic_load(&host_ranks_get_rank(r, rank)->pid), 0) != 0 && errno == ESRCH;
}

seqlstm_status host_ranks_blame(int32_t rank, seqlstm_status status, const char *what, struct seqlstm_error *err)
{
    seqlstm_error_set(err, status, __FILE__, __LINE__, "rank %d %s", rank, what);
    if (err)
        err->native_code = 1 + rank;
    return status;
}

seqlstm_status host_ranks_check(const struct host_ranks *r, struct seqlstm_error *err)
{
    const int32_t aborted = atomic_load(&get_head(r)->aborted);
    if (aborted != 0)
        return host_ranks_blame(aborted - 1, SEQLSTM_CANCELLED, "has ended the job", err);
    for (int32_t k = 0; k < r->ranks; k++)
        if (k != r->rank && is_dead(r, k) && !host_ranks_has_left(r, k))
            return host_ranks_blame(k, SEQLSTM_CANCELLED, "has died", err);
    if (r->host->cancelled && r->host->cancelled(r->host->context))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the user stopped it");
    return SEQLSTM_OK;
}

bool host_ranks_is_over(const struct host_ranks *r)
{
    return atomic_load_explicit(&get_head(r)->aborted, memory_order_relaxed) != 0;
}

bool host_ranks_has_left(const struct host_ranks *r, int32_t rank)
{
    return atomic_load(&host_ranks_get_rank(r, rank)->left) != 0;
}

void host_ranks_abort(const struct host_ranks *r)
{
    int32_t none = 0;
    atomic_compare_exchange_strong(&get_head(r)->aborted, &none, 1 + r->rank);
}
