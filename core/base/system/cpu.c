/* SPDX-License-Identifier: Apache-2.0 */
/* Counting processors: the affinity mask, the topology in /sys and the cgroup's quota, v2 or v1. */
#include "base/system/cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/system/cgroup.h"
#include "base/value/text.h"

#define CPUS_MOST   8192
#define PATH_LENGTH 1024

/* Blank-separated integer number `index` of a line; -1 if it is not one. */
static int64_t integer_field(const char *line, int index)
{
    for (; index > 0; index--) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    int64_t value;
    return sl_text_parse_int64(line, strcspn(line, " "), &value) ? value : -1;
}

/* The quota of one cgroup folder in thousandths, 0 for none. */
static int64_t folder_quota(const char *folder)
{
    char path[PATH_LENGTH + 32], line[128];
    int64_t quota = -1, period = -1;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (sl_cgroup_read_line(path, line, sizeof line)) {
        quota = integer_field(line, 0); /* "max" is no integer: no limit */
        period = integer_field(line, 1);
    } else {
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (sl_cgroup_read_line(path, line, sizeof line))
            quota = integer_field(line, 0);
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (sl_cgroup_read_line(path, line, sizeof line))
            period = integer_field(line, 0);
    }
    if (quota <= 0 || period <= 0 || quota > INT64_MAX / 1000)
        return 0;
    int64_t milli = quota * 1000 / period;
    return milli > 0 ? milli : 1;
}

int64_t sl_cpu_quota_milli(const char *root)
{
    return sl_cgroup_find_limit(root, "cpu", folder_quota);
}

/* The lowest sibling of a processor names its core; a processor without topology is its own core. */
static int core_of(int cpu)
{
    static const char *const names[] = {"core_cpus_list", "thread_siblings_list"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128], line[256];
        int64_t first;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, names[i]);
        if (sl_cgroup_read_line(path, line, sizeof line) && sl_text_parse_int64(line, strcspn(line, "-,"), &first) &&
            first >= 0 && first < CPUS_MOST)
            return (int)first;
    }
    return cpu;
}

static int32_t count_processors(bool cores_only)
{
    /* Larger than the mask of any current kernel, which refuses a smaller one. */
    unsigned long mask[CPUS_MOST / (8 * sizeof(unsigned long))] = {0};
    unsigned char seen[CPUS_MOST / 8] = {0};
    int32_t count = 0;
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) == 0)
        for (int cpu = 0; cpu < CPUS_MOST; cpu++) {
            if (!CPU_ISSET_S((size_t)cpu, sizeof mask, (cpu_set_t *)mask))
                continue;
            int core = cores_only ? core_of(cpu) : cpu;
            count += !(seen[core / 8] >> core % 8 & 1);
            seen[core / 8] |= (unsigned char)(1 << core % 8);
        }
    int64_t quota = sl_cpu_quota_milli("") / 1000;
    if (sl_cpu_quota_milli("") > 0 && quota < count)
        count = (int32_t)quota;
    return count > 0 ? count : 1;
}

int32_t sl_cpu_count(void)
{
    return count_processors(true);
}

int32_t sl_cpu_count_logical(void)
{
    return count_processors(false);
}
