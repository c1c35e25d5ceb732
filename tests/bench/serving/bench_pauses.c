/* SPDX-License-Identifier: Apache-2.0 */
/* When the processors of a machine compute nothing of ours. Driven by serving.py.
 *
 * A thread on each processor that the process may use looks at the clock each millisecond, at real-time priority where
 * that is allowed: what keeps it waiting keeps everything waiting that runs there. When standard input ends it prints,
 * for each time it came more than 0.3 ms late, a line "processor begin_s seconds", on the clock of CLOCK_MONOTONIC, and
 * at last "# cost share priority": the part of a processor that the threads took, and 1 where they had the priority.
 * A pause begins between two looks; half-way is what is printed. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSORS_MOST = 64, PAUSES_MOST = 1 << 16, PERIOD_NS = 1000000, LATE_NS = 300000 };

struct watch {
    pthread_t thread;
    int processor;
    int count;
    double cpu_s;
    struct {
        double begin_s, seconds;
    } pauses[PAUSES_MOST];
};

static _Atomic int over;
static int has_priority = 1;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *look(void *context)
{
    struct watch *watch = context;
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    while (!over) {
        due.tv_nsec += PERIOD_NS;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        const double wanted = (double)due.tv_sec + (double)due.tv_nsec * 1e-9, late = seconds(CLOCK_MONOTONIC) - wanted;
        if (late < LATE_NS * 1e-9)
            continue;
        if (watch->count < PAUSES_MOST) {
            watch->pauses[watch->count].begin_s = wanted - PERIOD_NS * 0.5e-9;
            watch->pauses[watch->count++].seconds = late + PERIOD_NS * 0.5e-9;
        }
        clock_gettime(CLOCK_MONOTONIC, &due);
    }
    watch->cpu_s = seconds(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static void start(struct watch *watch, int processor)
{
    pthread_attr_t attributes;
    const struct sched_param priority = {.sched_priority = 50};
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processor, &own);
    watch->processor = processor;
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof own, &own);
    if (pthread_create(&watch->thread, &attributes, look, watch) != 0) {
        fprintf(stderr, "bench_pauses: a thread cannot be started\n");
        exit(1);
    }
    if (pthread_setschedparam(watch->thread, SCHED_FIFO, &priority) != 0)
        has_priority = 0;
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    cpu_set_t all;
    char byte;
    int count = 0;
    struct watch *watches = calloc(PROCESSORS_MOST, sizeof *watches);
    if (watches == NULL || sched_getaffinity(0, sizeof all, &all) != 0)
        return 1;
    const double began = seconds(CLOCK_MONOTONIC);
    for (int p = 0; p < CPU_SETSIZE && count < PROCESSORS_MOST; p++)
        if (CPU_ISSET(p, &all))
            start(&watches[count++], p);
    while (read(0, &byte, 1) > 0)
        ;
    over = 1;
    double cpu_s = 0;
    for (int w = 0; w < count; w++) {
        pthread_join(watches[w].thread, NULL);
        cpu_s += watches[w].cpu_s;
        for (int k = 0; k < watches[w].count; k++)
            printf("%d %.6f %.6f\n", watches[w].processor, watches[w].pauses[k].begin_s, watches[w].pauses[k].seconds);
    }
    printf("# cost %.5f %d\n", cpu_s / count / (seconds(CLOCK_MONOTONIC) - began), has_priority);
    free(watches);
    return 0;
}
