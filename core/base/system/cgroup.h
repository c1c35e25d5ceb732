/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of the control groups (cgroups, v2 or v1) that the process is in, by which a container limits it. */
#ifndef SL_BASE_SYSTEM_CGROUP_H
#define SL_BASE_SYSTEM_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The lowest of the limits that `read` finds in the folders of the process's groups and of their parents, or 0 for
 * none. `read` gets a folder and returns its limit, 0 for none. `controller`: "cpu", "memory". `root` is put before
 * /proc and /sys: "" but in tests. [any thread] */
int64_t sl_cgroup_find_limit(const char *root, const char *controller, int64_t (*read)(const char *folder));

/* Bytes of memory that the groups of the process may use together; 0: no limit. Swap does not count. [any thread] */
int64_t sl_cgroup_find_memory(const char *root);

/* The first line of a small file, such as a limit, without its newline; false if there is none. [any thread] */
bool sl_cgroup_read_line(const char *path, char *out, size_t capacity_bytes);

#endif
