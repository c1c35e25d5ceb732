/* SPDX-License-Identifier: Apache-2.0 */
/* See environment.h. */
#include "registry/watch/environment.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"

extern char **environ;

static const char *next(const char *text)
{
    return text + strlen(text) + 1;
}

void sl_environment_copy(struct sl_environment *environment)
{
    size_t bytes = 1, count = 0;
    for (; environ && environ[count]; count++)
        bytes += strlen(environ[count]) + 1;
    char *at = environment->texts = malloc(bytes);
    environment->count = at ? count : 0;
    for (size_t i = 0; i < environment->count; i++) {
        size_t length = strlen(environ[i]) + 1;
        memcpy(at, environ[i], length);
        at += length;
    }
}

void sl_environment_release(struct sl_environment *environment)
{
    free(environment->texts);
    *environment = (struct sl_environment){NULL, 0};
}

static void copy_name(const char *text, char *name, size_t capacity_bytes)
{
    sl_text_snprintf(name, capacity_bytes, "%.*s", (int)strcspn(text, "="), text);
}

bool sl_environment_find_change(const struct sl_environment *environment, char *name, size_t capacity_bytes)
{
    const char *text = environment->texts;
    for (size_t i = 0; text && i < environment->count; i++, text = next(text))
        if (!environ || !environ[i] || strcmp(environ[i], text) != 0) {
            copy_name(text, name, capacity_bytes);
            return true;
        }
    if (!text || !environ || !environ[environment->count])
        return false;
    copy_name(environ[environment->count], name, capacity_bytes);
    return true;
}

bool sl_environment_restore(const struct sl_environment *environment)
{
    bool complete = clearenv() == 0;
    const char *text = environment->texts;
    for (size_t i = 0; i < environment->count; i++, text = next(text)) {
        const char *equals = strchr(text, '=');
        char *name = equals ? strndup(text, (size_t)(equals - text)) : NULL;
        complete = name && setenv(name, equals + 1, 1) == 0 && complete;
        free(name);
    }
    return complete;
}
