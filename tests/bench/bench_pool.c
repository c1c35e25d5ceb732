/* SPDX-License-Identifier: Apache-2.0 */
/* What the pool costs: the round trip of a cache line between two processors (on which everything
 * else depends: virtual machines change between near and far), an empty team, a barrier, a
 * parallel_for, and waking from sleep. Medians of batches, in nanoseconds. bench_pool [MEMBERS] */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/system/clock.h"
#include "base/system/pool.h"
#include "base/value/text.h"

#define BATCHES 101

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double values[BATCHES])
{
    qsort(values, BATCHES, sizeof *values, by_value);
    return values[BATCHES / 2];
}

struct ping {
    _Alignas(128) _Atomic int ball;
    _Alignas(128) int trips;
};

static void play(void *context, int32_t member, int32_t members)
{
    (void)members;
    struct ping *ping = context;
    if (member > 1)
        return;
    for (int i = 0; i < ping->trips; i++) {
        while (atomic_load_explicit(&ping->ball, memory_order_acquire) != member)
            __builtin_ia32_pause();
        atomic_store_explicit(&ping->ball, !member, memory_order_release);
    }
}

static void nothing_team(void *context, int32_t member, int32_t members)
{
    (void)context, (void)member, (void)members;
}

static void nothing_range(void *context, int64_t begin, int64_t end)
{
    (void)context, (void)begin, (void)end;
}

static void barriers(void *context, int32_t member, int32_t members)
{
    (void)member, (void)members;
    for (int i = 0; i < 1000; i++)
        sl_pool_barrier(context);
}

static double round_trip_ns(struct sl_pool *pool)
{
    double batch[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        struct ping ping = {.trips = 1000};
        int64_t start_ns = sl_clock_ns();
        sl_pool_team(pool, play, &ping);
        batch[i] = (double)(sl_clock_ns() - start_ns) / 1000;
    }
    return median(batch);
}

int main(int argc, char **argv)
{
    int64_t members = 0;
    if (argc > 1 && !sl_text_parse_int64(argv[1], __builtin_strlen(argv[1]), &members))
        return 2;
    struct sl_pool *pool = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_pool_create((int32_t)members, &pool, &err) != SEQLSTM_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    double batch[BATCHES];
    bool two = sl_pool_get_members(pool) > 1 && sl_cpu_count_logical() > 1;
    printf("members                 %d of %d cores\n", sl_pool_get_members(pool), sl_cpu_count());
    if (two)
        printf("round trip before       %.0f ns\n", round_trip_ns(pool));
    for (int i = 0; i < BATCHES; i++) {
        int64_t start_ns = sl_clock_ns();
        for (int k = 0; k < 1000; k++)
            sl_pool_team(pool, nothing_team, NULL);
        batch[i] = (double)(sl_clock_ns() - start_ns) / 1000;
    }
    printf("team, hot               %.0f ns\n", median(batch));
    for (int i = 0; i < BATCHES; i++) {
        int64_t start_ns = sl_clock_ns();
        for (int k = 0; k < 1000; k++)
            sl_pool_parallel_for(pool, 1000, 10, nothing_range, NULL);
        batch[i] = (double)(sl_clock_ns() - start_ns) / 1000;
    }
    printf("parallel_for, hot       %.0f ns\n", median(batch));
    for (int i = 0; i < BATCHES; i++) {
        int64_t start_ns = sl_clock_ns();
        sl_pool_team(pool, barriers, pool);
        batch[i] = (double)(sl_clock_ns() - start_ns) / 1000;
    }
    printf("barrier, hot            %.0f ns\n", median(batch));
    for (int i = 0; i < BATCHES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        int64_t start_ns = sl_clock_ns();
        sl_pool_team(pool, nothing_team, NULL);
        batch[i] = (double)(sl_clock_ns() - start_ns);
    }
    printf("team, from sleep        %.0f ns\n", median(batch));
    if (two)
        printf("round trip after        %.0f ns\n", round_trip_ns(pool));
    sl_pool_destroy(pool);
    return 0;
}
