/* SPDX-License-Identifier: Apache-2.0 */
/* Counters in shared memory: a bounded spin, then sleep. While it sleeps, a rank looks every few milliseconds whether
 * the others are still there. */
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"

enum { LOOK_NS = 20 * 1000 * 1000, LOOKS_PER_CLOCK = 16 };

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

seqlstm_status shm_wait(struct seqlstm_connection *connection, struct shm_counter *counter, uint32_t value,
                        int32_t rank, int64_t deadline_ns, struct seqlstm_error *err)
{
    if (has_reached(counter, value))
        return SEQLSTM_OK;
    const int64_t spin_end = host_ranks_now_ns() + connection->spin_ns;
    do {
        for (int k = 0; k < LOOKS_PER_CLOCK; k++) {
            pause_briefly();
            if (has_reached(counter, value))
                return SEQLSTM_OK;
        }
    } while (host_ranks_now_ns() < spin_end);
    for (;;) {
        sleep_on(counter, value);
        if (has_reached(counter, value))
            return SEQLSTM_OK;
        SEQLSTM_TRY(host_ranks_check(&connection->ranks, err));
        const bool left = host_ranks_has_left(&connection->ranks, rank);
        if (has_reached(counter, value))
            return SEQLSTM_OK;
        if (left)
            return host_ranks_blame(rank, SEQLSTM_CANCELLED, "has left the job", err);
        if (host_ranks_now_ns() >= deadline_ns)
            return host_ranks_blame(rank, SEQLSTM_DEVICE, "did not come in time", err);
    }
}
