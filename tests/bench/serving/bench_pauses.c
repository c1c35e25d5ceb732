/* SPDX-License-Identifier: Apache-2.0 */
/* When the processors of a machine compute nothing of ours, or slowly. Driven by serving.py.
 *
 * A thread on each processor that the process may use looks at the clock each millisecond, at real-time priority where
 * that is allowed: what keeps it waiting keeps everything waiting that runs there. Then it times a calculation of a few
 * microseconds, which needs no memory: a virtual machine can take nine tenths of a processor away in parts of 5 to 100
 * microseconds, for tens of milliseconds, and the thread still comes on time.
 *
 * When standard input ends it prints a line "processor begin_s seconds", on the clock of CLOCK_MONOTONIC, for each time
 * it came more than 0.3 ms late, and for each calculation that took more than 1.25 times the median: the part of the
 * millisecond that was lost if all of it went at this speed. At last it prints "# cost share priority": the part of a
 * processor that the threads took, and 1 where they had the priority. A pause begins between two looks; half-way is
 * what is printed. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSORS_MOST = 64, LOOKS_MOST = 1 << 21, PERIOD_NS = 1000000, LATE_NS = 300000, ROUNDS = 2000 };
static const double SLOW = 1.25;

struct look {
    double wanted_s;
    float late_s, took_s;
};

struct watch {
    pthread_t thread;
    int processor;
    int count;
    double cpu_s;
    struct look *looks; /* pages are used as they are needed */
};

static _Atomic int over;
static int has_priority = 1;

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void calculate(void)
{
    volatile double kept;
    double x = 1;
    for (int k = 0; k < ROUNDS; k++)
        x = x * 1.0000001 + 1e-9;
    kept = x;
    (void)kept;
}

static void *look(void *context)
{
    struct watch *watch = context;
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    while (!over && watch->count < LOOKS_MOST) {
        due.tv_nsec += PERIOD_NS;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        const double wanted = (double)due.tv_sec + (double)due.tv_nsec * 1e-9, came = seconds(CLOCK_MONOTONIC);
        calculate();
        const double took = seconds(CLOCK_MONOTONIC) - came;
        watch->looks[watch->count++] = (struct look){wanted, (float)(came - wanted), (float)took};
        if (came + took - wanted >= LATE_NS * 1e-9)
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
    watch->looks = malloc(LOOKS_MOST * sizeof *watch->looks);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof own, &own);
    if (watch->looks == NULL || pthread_create(&watch->thread, &attributes, look, watch) != 0) {
        fprintf(stderr, "bench_pauses: a thread cannot be started\n");
        exit(1);
    }
    if (pthread_setschedparam(watch->thread, SCHED_FIFO, &priority) != 0)
        has_priority = 0;
    pthread_attr_destroy(&attributes);
}

static int compare(const void *a, const void *b)
{
    const float left = *(const float *)a, right = *(const float *)b;
    return (left > right) - (left < right);
}

static double find_median(const struct watch *watch)
{
    float *took = malloc(((size_t)watch->count + 1) * sizeof *took);
    if (took == NULL)
        exit(1);
    for (int k = 0; k < watch->count; k++)
        took[k] = watch->looks[k].took_s;
    qsort(took, (size_t)watch->count, sizeof *took, compare);
    const double median = watch->count > 0 ? took[watch->count / 2] : 0;
    free(took);
    return median;
}

static void print(const struct watch *watch)
{
    const double usual = find_median(watch), half = PERIOD_NS * 0.5e-9;
    for (int k = 0; k < watch->count; k++) {
        const struct look *one = &watch->looks[k];
        if (one->late_s >= LATE_NS * 1e-9)
            printf("%d %.6f %.6f\n", watch->processor, one->wanted_s - half, one->late_s + half);
        if (one->took_s > SLOW * usual)
            printf("%d %.6f %.6f\n", watch->processor, one->wanted_s + one->late_s,
                   PERIOD_NS * 1e-9 * (1 - usual / one->took_s));
    }
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
        print(&watches[w]);
        free(watches[w].looks);
    }
    printf("# cost %.5f %d\n", cpu_s / count / (seconds(CLOCK_MONOTONIC) - began), has_priority);
    free(watches);
    return 0;
}
