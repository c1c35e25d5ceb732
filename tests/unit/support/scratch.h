/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of the test program's own, made before its first test and removed behind its last; no block of memory and no
 * descriptor may be left then:
 *
 *   cmocka_run_group_tests(tests, scratch_make, scratch_remove)
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "descriptors.h"
#include "temporary.h"

/* Of oom.h; a test with an allocator of its own is without them. */
void oom_watch(void) __attribute__((weak));
int oom_end(void) __attribute__((weak));

static char scratch_folder[TEMPORARY_BYTES];
static int scratch_descriptors;

static inline int scratch_make(void **state)
{
    (void)state;
    scratch_descriptors = descriptors_count();
    if (oom_watch)
        oom_watch();
    return mkdtemp(temporary_template(scratch_folder, "unit")) ? 0 : -1;
}

/* For tests after which blocks stay, such as notes about files that are mapped for good. */
static inline int scratch_clear(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch_folder);
    return system(command) == 0 ? 0 : -1;
}

static inline int scratch_remove(void **state)
{
    const int cleared = scratch_clear(state), more = descriptors_count() - scratch_descriptors;
    if (more != 0)
        fprintf(stderr, "%d more file descriptors are open than before\n", more);
    return (oom_end && oom_end() != 0) || more != 0 ? -1 : cleared;
}

/* Valid until the next call. */
static inline const char *scratch_path(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch_folder, name);
    return path;
}

#endif
