/* SPDX-License-Identifier: Apache-2.0 */
/* What a test leaves open. No sanitizer tells of file descriptors that are not closed. */
#ifndef SL_TESTS_DESCRIPTORS_H
#define SL_TESTS_DESCRIPTORS_H

#include <dirent.h>

/* Open file descriptors of this process; -1: not known. */
static inline int descriptors_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    if (!folder)
        return -1;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

#endif
