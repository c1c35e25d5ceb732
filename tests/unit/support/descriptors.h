/* SPDX-License-Identifier: Apache-2.0 */
/* What a test leaves open. No sanitizer tells of file descriptors that are not closed, nor of threads that wait. */
#ifndef SL_TESTS_DESCRIPTORS_H
#define SL_TESTS_DESCRIPTORS_H

#include <dirent.h>

static inline int descriptors_count_in(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    if (!folder)
        return -1;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Open file descriptors of this process; -1: not known. */
static inline int descriptors_count(void)
{
    return descriptors_count_in("/proc/self/fd");
}

/* Its threads, and two more; -1: not known. */
static inline int threads_count(void)
{
    return descriptors_count_in("/proc/self/task");
}

#endif
