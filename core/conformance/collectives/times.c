/* SPDX-License-Identifier: Apache-2.0 */
/* --bench: how long an all_reduce takes, beside a memcpy of as many bytes by all ranks at once. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/value/median.h"
#include "conformance/collectives/cases.h"

enum { SAMPLES = 21 };

/* Nanoseconds of one repetition: the median of samples, each of which all ranks begin together. */
static double time_one(struct sl_trial *trial, float *values, float *copy, int64_t elems, int repetitions, bool copies)
{
    double samples[SAMPLES];
    for (int s = -2; s < SAMPLES; s++) {
        sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BARRIER, SEQLSTM_DTYPE_UINT8, 0, 0, NULL, NULL, 0);
        const int64_t begin = sl_clock_ns();
        for (int k = 0; k < repetitions; k++) {
            if (copies)
                memcpy(k % 2 ? values : copy, k % 2 ? copy : values, (size_t)elems * sizeof *values);
            else
                sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_REDUCE, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_REDUCE_SUM, 0,
                                  values, values, elems);
        }
        if (s >= 0)
            samples[s] = (double)(sl_clock_ns() - begin) / repetitions;
    }
    return sl_median(samples, SAMPLES);
}

/* One rank for each processor, if there are enough: the kernel likes to wake a process where its waker runs. */
static void pin(const struct sl_trial *trial)
{
    cpu_set_t all, own;
    int32_t skipped = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < trial->ranks)
        return;
    CPU_ZERO(&own);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&own) == 0; cpu++)
        if (CPU_ISSET(cpu, &all) && skipped++ == trial->rank)
            CPU_SET(cpu, &own);
    sched_setaffinity(0, sizeof own, &own);
}

/* Gradients lie in memory of the plugin, if it has any. */
static void *allocate_shared(struct sl_trial *trial, int64_t bytes)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *memory = NULL;
    sl_trial_check(trial, sl_connection_allocate(trial->connection, bytes, &memory, &err) == SEQLSTM_OK, "allocate: %s",
                   err.message);
    return memory;
}

void sl_trial_time(struct sl_trial *trial)
{
    static const int64_t bytes[] = {4, 1 << 10, 64 << 10, 1 << 20, 4 * INT64_C(4700000)};
    pin(trial);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        const int64_t elems = bytes[i] / 4;
        const int repetitions = bytes[i] < 1 << 16 ? 2000 : bytes[i] < 1 << 22 ? 50 : 2;
        void *shared = allocate_shared(trial, bytes[i]);
        float *own = sl_trial_allocate(trial, bytes[i]), *copy = sl_trial_allocate(trial, bytes[i]);
        float *values = shared ? shared : own;
        if (own && copy) {
            memset(values, 0, (size_t)bytes[i]);
            memset(own, 0, (size_t)bytes[i]);
            memset(copy, 0, (size_t)bytes[i]);
            const double exchange = time_one(trial, values, copy, elems, repetitions, false);
            const double copying = time_one(trial, own, copy, elems, repetitions, true);
            const size_t used = strlen(trial->report);
            snprintf(trial->report + used, sizeof trial->report - used, "%12lld %14.2f %14.2f %8.2f\n",
                     (long long)bytes[i], exchange * 1e-3, copying * 1e-3, exchange / copying);
        }
        free(own);
        free(copy);
    }
}
