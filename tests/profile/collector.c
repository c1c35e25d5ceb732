/* SPDX-License-Identifier: Apache-2.0 */
/* What a profiler of Intel injects: writes each task into the file of COLLECTOR_FILE, as `+name` and `-`. It makes no
 * domains and names itself, as the reference collector of ITT does not. With COLLECTOR_DETACHES it switches the domain
 * off at the first task, as a profiler does that detaches. With COLLECTOR_EXPORTS it is built as a collector that is
 * asked for its functions by name. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name {
    const char *text;
    void *wide_text;
    int extra1;
    void *extra2;
    struct name *next;
};

struct domain {
    volatile int flags;
    const char *name;
    void *wide_name;
    int extra1;
    void *extra2;
    struct domain *next;
};

struct id {
    unsigned long long d1, d2, d3;
};

struct api {
    const char *name;
    void **function;
    void *initial, *null;
    int group;
};

struct global {
    unsigned char magic[8];
    unsigned long major, minor, build;
    volatile long initialized, mutex_initialized, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **path;
    struct api *list;
    struct global *next;
    void *threads;
    struct domain *domains;
    struct name *names;
};

#define EXPORT __attribute__((visibility("default")))

EXPORT void __itt_task_begin(const struct domain *domain, struct id task, struct id parent, struct name *name);
EXPORT void __itt_task_end(const struct domain *domain);

static FILE *file;
#ifndef COLLECTOR_EXPORTS
static struct global *given; /* of the program; libraries that it opens, such as oneDNN, bring their own later */
#endif

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("COLLECTOR_FILE");
    file = path ? fopen(path, "w") : NULL;
    if (file)
        setvbuf(file, NULL, _IOLBF, 0);
}

/* Are both in the lists of what the collector was given? */
static int is_listed(const struct domain *domain, const struct name *name)
{
#ifdef COLLECTOR_EXPORTS
    (void)domain, (void)name;
    return 1;
#else
    pthread_mutex_lock(&given->mutex);
    const struct domain *d = given->domains;
    const struct name *n = given->names;
    while (d && d != domain)
        d = d->next;
    while (n && n != name)
        n = n->next;
    pthread_mutex_unlock(&given->mutex);
    return d && n;
#endif
}

static void switch_off(const struct domain *domain)
{
#ifdef COLLECTOR_EXPORTS
    (void)domain;
#else
    pthread_mutex_lock(&given->mutex);
    for (struct domain *d = given->domains; d && getenv("COLLECTOR_DETACHES"); d = d->next)
        if (d == domain)
            d->flags = 0;
    pthread_mutex_unlock(&given->mutex);
#endif
}

void __itt_task_begin(const struct domain *domain, struct id task, struct id parent, struct name *name)
{
    if (!file || strcmp(domain->name, "seqlstm") != 0 || task.d1 || parent.d3 || !is_listed(domain, name))
        return;
    fprintf(file, "+%s\n", name->text);
    switch_off(domain);
}

void __itt_task_end(const struct domain *domain)
{
    if (file && strcmp(domain->name, "seqlstm") == 0)
        fputs("-\n", file);
}

#ifndef COLLECTOR_EXPORTS
EXPORT void __itt_api_init(struct global *global, int groups);

void __itt_api_init(struct global *global, int groups)
{
    static const unsigned char magic[8] = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30};
    void (*begin)(const struct domain *, struct id, struct id, struct name *) = __itt_task_begin;
    void (*end)(const struct domain *) = __itt_task_end;
    if (memcmp(global->magic, magic, sizeof magic) != 0 || global->major != 3 || !global->mutex_initialized ||
        !global->library || !(groups & 1 << 12) || pthread_mutex_lock(&global->mutex) != 0)
        return;
    if (!given)
        given = global;
    for (struct api *api = global->list; api->name; api++)
        if (strcmp(api->name, "__itt_task_begin") == 0)
            memcpy(api->function, &begin, sizeof begin);
        else if (strcmp(api->name, "__itt_task_end") == 0)
            memcpy(api->function, &end, sizeof end);
        else
            *api->function = api->null;
    pthread_mutex_unlock(&global->mutex);
}
#endif
