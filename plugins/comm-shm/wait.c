/* SPDX-License-Identifier: Apache-2.0 */
/* Counters in shared memory: a bounded spin, then sleep. While it sleeps, a rank looks every few milliseconds whether
 * the others are still there. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"

enum { LOOK_NS = 20 * 1000 * 1000, LOOKS_PER_CLOCK = 16 };

int64_t shm_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static bool has_reached(struct shm_counter *counter, uint32_t value)
{
    return (int32_t)(atomic_load_explicit(&counter->value, memory_order_acquire) - value) >= 0;
}

void shm_advance(struct shm_counter *counter, uint32_t value)
{
    atomic_store(&counter->value, value); /* sequentially consistent: a sleeper is seen, or sees the value */
    if (atomic_load(&counter->sleepers) != 0)
        syscall(SYS_futex, &counter->value, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void sleep_on(struct shm_counter *counter, uint32_t value)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    atomic_fetch_add(&counter->sleepers, 1);
    const uint32_t seen = atomic_load(&counter->value);
    if ((int32_t)(seen - value) < 0)
        syscall(SYS_futex, &counter->value, FUTEX_WAIT, seen, &look, NULL, 0);
    atomic_fetch_sub(&counter->sleepers, 1);
}

/* ---- the other ranks -------------------------------------------------------------------------------------------- */

seqlstm_status shm_watch_ranks(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    for (int32_t r = 0; r < connection->ranks; r++) {
        const int32_t pid = atomic_load(&shm_segment_rank(connection->segment, r)->pid);
        if (r != connection->rank)
            connection->watched[r] = (int)syscall(SYS_pidfd_open, pid, 0);
        if (r != connection->rank && connection->watched[r] < 0 && errno != ENOSYS && errno != ESRCH)
            SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "rank %d (process %d) cannot be watched: error %d", r, pid, errno);
    }
    return SEQLSTM_OK;
}

static bool is_dead(const struct seqlstm_connection *connection, int32_t rank)
{
    struct pollfd look = {.fd = connection->watched[rank], .events = POLLIN};
    if (look.fd >= 0)
        return poll(&look, 1, 0) > 0;
    /* Linux before 5.3 */
    return syscall(SYS_kill, atomic_load(&shm_segment_rank(connection->segment, rank)->pid), 0) != 0 && errno == ESRCH;
}

static seqlstm_status blame(int32_t rank, seqlstm_status status, const char *what, struct seqlstm_error *err)
{
    seqlstm_error_set(err, status, __FILE__, __LINE__, "rank %d %s", rank, what);
    if (err)
        err->native_code = 1 + rank;
    return status;
}

seqlstm_status shm_check(struct seqlstm_connection *connection, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = connection->host;
    const int32_t aborted = atomic_load(&shm_segment_head(connection->segment)->aborted);
    if (aborted != 0)
        return blame(aborted - 1, SEQLSTM_CANCELLED, "has ended the job", err);
    for (int32_t r = 0; r < connection->ranks; r++)
        if (r != connection->rank && is_dead(connection, r) &&
            !atomic_load(&shm_segment_rank(connection->segment, r)->left))
            return blame(r, SEQLSTM_CANCELLED, "has died", err);
    if (host->cancelled && host->cancelled(host->context))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the user stopped it");
    return SEQLSTM_OK;
}

seqlstm_status shm_wait(struct seqlstm_connection *connection, struct shm_counter *counter, uint32_t value,
                        int32_t rank, int64_t deadline_ns, struct seqlstm_error *err)
{
    if (has_reached(counter, value))
        return SEQLSTM_OK;
    const int64_t spin_end = shm_now_ns() + connection->spin_ns;
    do {
        for (int k = 0; k < LOOKS_PER_CLOCK; k++) {
            pause_briefly();
            if (has_reached(counter, value))
                return SEQLSTM_OK;
        }
    } while (shm_now_ns() < spin_end);
    for (;;) {
        sleep_on(counter, value);
        if (has_reached(counter, value))
            return SEQLSTM_OK;
        SEQLSTM_TRY(shm_check(connection, err));
        const bool left = atomic_load(&shm_segment_rank(connection->segment, rank)->left) != 0;
        if (has_reached(counter, value))
            return SEQLSTM_OK;
        if (left)
            return blame(rank, SEQLSTM_CANCELLED, "has left the job", err);
        if (shm_now_ns() >= deadline_ns)
            return blame(rank, SEQLSTM_DEVICE, "did not come in time", err);
    }
}
