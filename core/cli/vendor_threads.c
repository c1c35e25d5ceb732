/* SPDX-License-Identifier: Apache-2.0 */
/* The variables that tell vendors' libraries how many threads to start. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const char *own_variables[4]; /* set by the program, not by the user */
static int own_count;

static void set_variable(const char *name, const char *value)
{
    if (getenv(name) == NULL && setenv(name, value, 0) == 0)
        own_variables[own_count++] = name;
}

/* Thread variables of vendors' libraries, set before any thread or library exists: the cores belong to our thread pool.
 * Idle threads of a library must not spin for long, because they would slow down what runs next. libgomp's threads spin
 * for about 0.1 ms, which is longer than the pause between two parallel regions of one primitive: if they slept there,
 * a training step of 2 x 650 on two threads would take 25 % longer. */
void cli_set_vendor_threads(void)
{
    if (getenv("OMP_WAIT_POLICY") == NULL)
        set_variable("GOMP_SPINCOUNT", "3000");
    set_variable("OPENBLAS_NUM_THREADS", "1");
    set_variable("OMP_NUM_THREADS", "1");
    set_variable("OMP_WAIT_POLICY", "passive");
}

bool cli_has_set(const char *variable)
{
    for (int k = 0; k < own_count; k++)
        if (strcmp(own_variables[k], variable) == 0)
            return true;
    return false;
}
