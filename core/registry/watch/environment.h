/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the process's environment, to see whether it has changed and to restore it. No other thread may change the
 * environment meanwhile. */
#ifndef SL_REGISTRY_WATCH_ENVIRONMENT_H
#define SL_REGISTRY_WATCH_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct sl_environment {
    char *texts; /* "NAME=value", one after the other, each with its NUL; NULL: memory ran out, nothing is watched */
    size_t count;
};

void sl_environment_copy(struct sl_environment *environment);
void sl_environment_release(struct sl_environment *environment);

/* Name of a variable that has changed since, in `name`; false: none has. */
bool sl_environment_find_change(const struct sl_environment *environment, char *name, size_t capacity_bytes);

/* False: memory ran out, and some variables are missing. */
bool sl_environment_restore(const struct sl_environment *environment);

#endif
