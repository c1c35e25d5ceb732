/* SPDX-License-Identifier: Apache-2.0 */
/* See pinning.h. */
#include "serve/compute/pinning.h"

#include <pthread.h>

/* The processor number k of a set, in their order. */
static void pick(const cpu_set_t *set, int32_t k, cpu_set_t *out)
{
    CPU_ZERO(out);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set) && k-- == 0)
            CPU_SET(cpu, out);
}

void sl_pinning_begin(struct sl_pinning *pinning, int32_t count)
{
    cpu_set_t first;
    *pinning = (struct sl_pinning){.used = false};
    if (pthread_getaffinity_np(pthread_self(), sizeof pinning->all, &pinning->all) != 0 ||
        CPU_COUNT(&pinning->all) != count + 1)
        return;
    pick(&pinning->all, 0, &first);
    pinning->used = pthread_setaffinity_np(pthread_self(), sizeof first, &first) == 0;
}

void sl_pinning_get(const struct sl_pinning *pinning, int32_t k, cpu_set_t *out)
{
    pick(&pinning->all, k + 1, out);
}

void sl_pinning_end(struct sl_pinning *pinning)
{
    if (pinning->used)
        pthread_setaffinity_np(pthread_self(), sizeof pinning->all, &pinning->all);
    pinning->used = false;
}
