/* SPDX-License-Identifier: Apache-2.0 */
/* See pinning.h. */
#include "serve/compute/pinning.h"

#include <sched.h>
#include <stdlib.h>

seqlstm_status sl_pinning_begin(struct sl_pinning *pinning, int32_t count, struct seqlstm_error *err)
{
    cpu_set_t left;
    *pinning = (struct sl_pinning){.processors = calloc((size_t)count, sizeof *pinning->processors)};
    if (pinning->processors == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %d workers", (int)count);
    if (pthread_getaffinity_np(pthread_self(), sizeof left, &left) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "workers cannot keep processors: there are more than %d", CPU_SETSIZE);
    const int has = CPU_COUNT(&left);
    if (has <= count)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "%d workers cannot keep a processor each, since one of %d is for the rest of the server",
                     (int)count, has);
    for (int cpu = CPU_SETSIZE - 1; pinning->count < count; cpu--)
        if (CPU_ISSET((size_t)cpu, &left)) {
            CPU_CLR((size_t)cpu, &left);
            pinning->processors[pinning->count++] = cpu;
        }
    if (pthread_setaffinity_np(pthread_self(), sizeof left, &left) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "workers cannot keep processors: the system does not let the server");
    return SEQLSTM_OK;
}

static void add(const struct sl_pinning *pinning, int32_t k, cpu_set_t *set)
{
    CPU_SET((size_t)pinning->processors[k], set);
}

seqlstm_status sl_pinning_keep(const struct sl_pinning *pinning, int32_t k, pthread_t thread, struct seqlstm_error *err)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    add(pinning, k, &own);
    if (pthread_setaffinity_np(thread, sizeof own, &own) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "workers cannot keep processors: the system does not let worker %d",
                     (int)k);
    return SEQLSTM_OK;
}

void sl_pinning_end(struct sl_pinning *pinning)
{
    cpu_set_t all;
    if (pinning->count > 0 && pthread_getaffinity_np(pthread_self(), sizeof all, &all) == 0) {
        for (int32_t k = 0; k < pinning->count; k++)
            add(pinning, k, &all);
        pthread_setaffinity_np(pthread_self(), sizeof all, &all);
    }
    free(pinning->processors);
    *pinning = (struct sl_pinning){.count = 0};
}
