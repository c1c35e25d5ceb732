/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Init sets variables for processes that it may start (OMPI_COMMAND and others). A plugin must leave the
 * environment as it was, so they are taken back. */
#include <stdlib.h>
#include <string.h>

#include "connection.h"

extern char **environ;

static size_t count_variables(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    return count;
}

static size_t get_name_bytes(const char *text)
{
    return strcspn(text, "=");
}

static const char *find(char *const *texts, const char *name, size_t name_bytes)
{
    for (; texts && *texts; texts++)
        if (strncmp(*texts, name, name_bytes) == 0 && (*texts)[name_bytes] == '=')
            return *texts;
    return NULL;
}

char **mpi_copy_environment(void)
{
    const size_t count = count_variables();
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t k = 0; copy && k < count; k++)
        if (!(copy[k] = strdup(environ[k]))) {
            mpi_free_environment(copy);
            return NULL;
        }
    return copy;
}

void mpi_free_environment(char **copy)
{
    for (size_t k = 0; copy && copy[k]; k++)
        free(copy[k]);
    free(copy);
}

/* Sets the variable to what the copy says; removes one that the copy lacks. */
static void restore(char *const *copy, const char *text)
{
    char *name = strndup(text, get_name_bytes(text));
    const char *was = name ? find(copy, name, strlen(name)) : NULL;
    if (was)
        (void)setenv(name, was + strlen(name) + 1, 1);
    else if (name)
        (void)unsetenv(name);
    free(name);
}

void mpi_restore_environment(char *const *copy)
{
    for (size_t k = 0; copy && environ && environ[k];) {
        const size_t count = count_variables();
        const char *was = find(copy, environ[k], get_name_bytes(environ[k]));
        if (!was || strcmp(was, environ[k]) != 0)
            restore(copy, environ[k]);
        if (count_variables() == count) /* one that is removed makes room for the next */
            k++;
    }
    for (size_t k = 0; copy && copy[k]; k++)
        if (!find(environ, copy[k], get_name_bytes(copy[k])))
            restore(copy, copy[k]);
}
