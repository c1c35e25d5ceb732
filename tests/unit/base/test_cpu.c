/* SPDX-License-Identifier: Apache-2.0 */
/* Counting processors: the affinity mask and cgroup quotas of both versions, from made-up trees. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/cgroup.h"
#include "base/system/cpu.h"
#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/value/path.h"
#include "oom.h"
#include "temporary.h"

static char root[TEMPORARY_BYTES];

static void put(const char *name, const char *text)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *path = sl_path_join(root, name), *folder = sl_path_folder(path);
    assert_int_equal(sl_file_make_folders(folder, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_write(path, text, strlen(text), &err), SEQLSTM_OK);
    free(folder);
    free(path);
}

static void clear(void)
{
    char command[2 * TEMPORARY_BYTES + 32];
    snprintf(command, sizeof command, "rm -rf %s/proc %s/sys", root, root);
    assert_int_equal(system(command), 0);
}

static void quota_of_version_2(void **state)
{
    (void)state;
    assert_int_equal(sl_cpu_quota_milli(root), 0);
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(sl_cpu_quota_milli(root), 0);
    put("sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    assert_int_equal(sl_cpu_quota_milli(root), 2500);
    put("sys/fs/cgroup/a/cpu.max", "150000 100000\n"); /* the tighter one above holds */
    assert_int_equal(sl_cpu_quota_milli(root), 1500);
    put("sys/fs/cgroup/a/cpu.max", "nonsense");
    assert_int_equal(sl_cpu_quota_milli(root), 2500);
    put("sys/fs/cgroup/a/b/cpu.max", "1 1000000\n");
    assert_int_equal(sl_cpu_quota_milli(root), 1);
    put("sys/fs/cgroup/a/b/cpu.max", "9223372036854775 1000\n"); /* the largest that can be counted, and one more */
    assert_true(sl_cpu_quota_milli(root) == INT64_C(9223372036854775));
    put("sys/fs/cgroup/a/b/cpu.max", "9223372036854776 1000\n");
    assert_int_equal(sl_cpu_quota_milli(root), 0);
    clear();
    put("proc/self/cgroup", "0::/outside/the/container\n"); /* the path does not exist here */
    put("sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_int_equal(sl_cpu_quota_milli(root), 500);
    clear();
}

static void quota_of_version_1(void **state)
{
    (void)state;
    put("proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/box\n3:memory:/x\n0::/\n");
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "300000\n");
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us", "1\n");
    put("sys/fs/cgroup/cpuset/x/cpu.cfs_period_us", "1000\n");
    assert_int_equal(sl_cpu_quota_milli(root), 3000);
    put("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(sl_cpu_quota_milli(root), 0);
    clear();
}

static void memory_of_both_versions(void **state)
{
    (void)state;
    assert_int_equal(sl_cgroup_find_memory(root), 0);
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    assert_int_equal(sl_cgroup_find_memory(root), 0);
    put("sys/fs/cgroup/a/memory.max", "536870912\n"); /* that of a parent holds, too */
    assert_int_equal(sl_cgroup_find_memory(root), 536870912);
    put("sys/fs/cgroup/a/b/memory.max", "1000000\n");
    assert_int_equal(sl_cgroup_find_memory(root), 1000000);
    clear();
    put("proc/self/cgroup", "7:hugetlb,memory,pids:/x\n0::/\n"); /* neither the first nor the last of its mount */
    put("sys/fs/cgroup/hugetlb,memory,pids/x/memory.limit_in_bytes", "3000000\n");
    assert_int_equal(sl_cgroup_find_memory(root), 3000000);
    put("proc/self/cgroup", "7:memory:/box\n4:cpu:/x\n3:cpuset:/x\n0::/\n");
    put("sys/fs/cgroup/cpuset/x/memory.limit_in_bytes", "1\n"); /* a name of as many letters */
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n");
    assert_int_equal(sl_cgroup_find_memory(root), 0);
    put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2000000\n");
    assert_int_equal(sl_cgroup_find_memory(root), 2000000);
    put("proc/self/cgroup",
        "\nno group\n8:memory\n9:memory:relative\n7:memory:/box\n"); /* a line of no use ends nothing */
    assert_int_equal(sl_cgroup_find_memory(root), 2000000);
    clear();
}

static void affinity_limits_the_count(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int32_t cores = sl_cpu_count(), logical = sl_cpu_count_logical();
    assert_true(cores >= 1 && cores <= logical && logical <= CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &before)) {
            CPU_SET(cpu, &one);
            break;
        }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(sl_cpu_count(), 1);
    assert_int_equal(sl_cpu_count_logical(), 1);
    sched_setaffinity(0, sizeof before, &before);
    assert_int_equal(sl_cpu_count(), cores);
}

static int make_root(void **state)
{
    oom_group_begin(state);
    return mkdtemp(temporary_template(root, "cpu")) ? 0 : -1;
}

static int remove_root(void **state)
{
    clear();
    return oom_group_end(state) == 0 ? rmdir(root) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quota_of_version_2),
        cmocka_unit_test(quota_of_version_1),
        cmocka_unit_test(memory_of_both_versions),
        cmocka_unit_test(affinity_limits_the_count),
    };
    return cmocka_run_group_tests_name("cpu", tests, make_root, remove_root);
}
