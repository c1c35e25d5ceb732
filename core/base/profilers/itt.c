/* SPDX-License-Identifier: Apache-2.0 */
/* See itt.h. Names, numbers and layouts are those of the ITT API, version 3. A collector that does not make domains and
 * names itself reads those made here from the lists of the global object, with its mutex. */
#include "base/profilers/itt.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/profilers/library.h"
#include "base/system/trace.h"
#include "base/value/hash.h"

enum { GROUP_STRUCTURE = 1 << 12, GROUP_ALL = -1, NAMES = 1024, NAME_BYTES = 160 };

struct domain {
    volatile int flags; /* 0: switched off */
    const char *name;
    void *wide_name;
    int extra1;
    void *extra2;
    struct domain *next;
};

struct handle {
    const char *text;
    void *wide_text;
    int extra1;
    void *extra2;
    struct handle *next;
};

struct id {
    unsigned long long d1, d2, d3;
};

struct function {
    const char *name;
    void **pointer;
    void *initial, *fallback; /* before the collector has been asked, and if it has none */
    int group;
};

/* What the collector gets. */
struct global {
    unsigned char magic[8];
    unsigned long major, minor, build;
    volatile long is_initialized, has_mutex, counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **library_path;
    struct function *functions;
    struct global *next;
    void *threads;
    struct domain *domains;
    struct handle *handles;
    int state;
    void *counters;
    unsigned int collects_processor_trace;
    void *histograms, *counter_metadata;
};

enum { DOMAIN_CREATE, HANDLE_CREATE, TASK_BEGIN, TASK_END, FUNCTIONS };

static void *entered[FUNCTIONS]; /* by the collector, which may do so again at any time */
static struct function functions[FUNCTIONS + 1] = {
    [DOMAIN_CREATE] = {"__itt_domain_create", &entered[DOMAIN_CREATE], NULL, NULL, GROUP_STRUCTURE},
    [HANDLE_CREATE] = {"__itt_string_handle_create", &entered[HANDLE_CREATE], NULL, NULL, GROUP_STRUCTURE},
    [TASK_BEGIN] = {"__itt_task_begin", &entered[TASK_BEGIN], NULL, NULL, GROUP_STRUCTURE},
    [TASK_END] = {"__itt_task_end", &entered[TASK_END], NULL, NULL, GROUP_STRUCTURE},
};

static struct global global = {.magic = {0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30},
                               .major = 3,
                               .minor = 0,
                               .build = 20230630,
                               .has_mutex = 1,
                               .mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                               .functions = functions};

static const struct domain *domain;
static struct {
    char text[NAME_BYTES];
    struct handle *handle;
} names[NAMES]; /* a hash table; free where `handle` is NULL */
static int32_t name_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* names */

static struct domain *make_domain(const char *name)
{
    struct domain *made = calloc(1, sizeof *made);
    if (made) {
        pthread_mutex_lock(&global.mutex);
        *made = (struct domain){.flags = 1, .name = name, .next = global.domains};
        global.domains = made;
        pthread_mutex_unlock(&global.mutex);
    }
    return made;
}

static struct handle *make_handle(const char *text)
{
    struct handle *made = calloc(1, sizeof *made);
    if (made) {
        pthread_mutex_lock(&global.mutex);
        *made = (struct handle){.text = text, .next = global.handles};
        global.handles = made;
        pthread_mutex_unlock(&global.mutex);
    }
    return made;
}

/* `text` stays where it is. */
static struct handle *create_handle(const char *text)
{
    struct handle *(*create)(const char *text);
    memcpy(&create, &entered[HANDLE_CREATE], sizeof create);
    return create ? create(text) : NULL;
}

/* The handle of a text. One eighth of the table stays free; what comes then is shown by its kind alone. */
static struct handle *find_handle(const char *text, const char *kind)
{
    pthread_mutex_lock(&lock);
    const char *wanted = name_count < NAMES - NAMES / 8 ? text : kind;
    size_t at = sl_hash_bytes(wanted, strlen(wanted), 0) % NAMES;
    while (names[at].handle && strcmp(names[at].text, wanted) != 0)
        at = (at + 1) % NAMES;
    if (!names[at].handle && name_count < NAMES - 1) {
        snprintf(names[at].text, sizeof names[at].text, "%s", wanted);
        names[at].handle = create_handle(names[at].text);
        name_count += names[at].handle != NULL;
    }
    struct handle *handle = names[at].handle;
    pthread_mutex_unlock(&lock);
    return handle;
}

static void begin_task(enum sl_activity_kind kind, const char *name)
{
    static const struct id none = {0, 0, 0};
    void (*begin)(const struct domain *domain, struct id task, struct id parent, struct handle *name);
    char text[NAME_BYTES];
    const char *kind_name = sl_activity_kind_get_name(kind);
    snprintf(text, sizeof text, "%s%s%s", kind_name, name ? " " : "", name ? name : "");
    memcpy(&begin, &entered[TASK_BEGIN], sizeof begin);
    if (begin && domain->flags)
        begin(domain, none, none, find_handle(text, kind_name));
}

static void end_task(void)
{
    void (*end)(const struct domain *domain);
    memcpy(&end, &entered[TASK_END], sizeof end);
    if (end && domain->flags)
        end(domain);
}

/* What is used where the collector has no function of its own. */
static void set_fallbacks(void)
{
    struct domain *(*domain_create)(const char *name) = make_domain;
    struct handle *(*handle_create)(const char *text) = make_handle;
    memcpy(&functions[DOMAIN_CREATE].fallback, &domain_create, sizeof domain_create);
    memcpy(&functions[HANDLE_CREATE].fallback, &handle_create, sizeof handle_create);
}

/* A collector that takes no list exports the functions by their names. */
static void find_functions(void *library)
{
    for (struct function *f = functions; f->name; f++) {
        void *symbol = sl_profiler_library_find(library, f->name);
        *f->pointer = symbol ? symbol : f->fallback;
    }
}

void sl_itt_attach(void)
{
    static const struct sl_trace_marker marker = {begin_task, end_task};
    void (*init)(struct global * global, int groups);
    struct domain *(*create)(const char *name);
    void *library = sl_profiler_library_open("INTEL_LIBITTNOTIFY64");
    if (!library)
        return;
    global.library = library;
    set_fallbacks();
    void *symbol = sl_profiler_library_find(library, "__itt_api_init");
    memcpy(&init, &symbol, sizeof init);
    if (init)
        init(&global, GROUP_ALL);
    else
        find_functions(library);
    global.is_initialized = 1;
    memcpy(&create, &entered[DOMAIN_CREATE], sizeof create);
    domain = create && entered[TASK_BEGIN] && entered[TASK_END] ? create("seqlstm") : NULL;
    if (domain)
        sl_trace_add_marker(&marker);
}
