/* SPDX-License-Identifier: Apache-2.0 */
/* See cgroup.h. */
#include "base/system/cgroup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/value/text.h"

#define PATH_LENGTH 1024

bool sl_cgroup_read_line(const char *path, char *out, size_t capacity_bytes)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool ok = fgets(out, (int)capacity_bytes, file) != NULL;
    fclose(file);
    if (ok)
        out[strcspn(out, "\n")] = '\0';
    return ok;
}

static int64_t lower_limit(int64_t a, int64_t b)
{
    return a == 0 ? b : b == 0 || a < b ? a : b;
}

/* The lowest limit of mount/group and of its parents up to mount itself. A container may see a group path that does not
 * exist below its own mount; the mount is always looked at. */
static int64_t find_in_group(const char *mount, const char *group, int64_t (*read)(const char *folder))
{
    char folder[PATH_LENGTH];
    int64_t limit = read(mount);
    int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof folder)
        return limit;
    while (strlen(folder) > strlen(mount)) {
        limit = lower_limit(limit, read(folder));
        *strrchr(folder, '/') = '\0';
    }
    return limit;
}

/* True if the comma-separated list of v1 controllers names this one. */
static bool has_controller(const char *list, size_t length, const char *controller)
{
    for (size_t at = 0; at < length;) {
        size_t n = strcspn(list + at, ",:");
        if (n == strlen(controller) && memcmp(list + at, controller, n) == 0)
            return true;
        at += n + 1;
    }
    return false;
}

int64_t sl_cgroup_find_limit(const char *root, const char *controller, int64_t (*read)(const char *folder))
{
    char path[PATH_LENGTH], mount[PATH_LENGTH + 64], line[PATH_LENGTH];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int64_t limit = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/')
            continue;
        size_t n = (size_t)(group - controllers - 1);
        if (n == 0)
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
        else if (has_controller(controllers + 1, n, controller))
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%.*s", root, (int)n, controllers + 1);
        else
            continue;
        limit = lower_limit(limit, find_in_group(mount, group[2] ? group + 1 : "", read));
    }
    fclose(file);
    return limit;
}

/* v1 writes a number close to 2^63 where there is no limit, v2 the word "max". */
static int64_t read_memory(const char *folder)
{
    static const char *const names[] = {"memory.max", "memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_LENGTH + 32], line[128];
        int64_t bytes;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (sl_cgroup_read_line(path, line, sizeof line) && sl_text_parse_int64(line, strlen(line), &bytes) &&
            bytes > 0 && bytes < INT64_C(1) << 60)
            return bytes;
    }
    return 0;
}

int64_t sl_cgroup_find_memory(const char *root)
{
    return sl_cgroup_find_limit(root, "memory", read_memory);
}
