/* SPDX-License-Identifier: Apache-2.0 */
/* See run_facts.h. */
#include "runs/run_facts.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory/arena.h"
#include "base/system/file.h"
#include "base/system/file_lock.h"
#include "base/value/json_tree.h"
#include "base/value/path.h"

enum {
    SUMMARY_LIMIT = 1 << 24,
    TAIL_BYTES = 1 << 16, /* of metrics.jsonl: holds the last rows of each split */
    METRICS_MOST = 256
};

const char *sl_run_state_get_name(enum sl_run_state state)
{
    static const char *const names[] = {"live", "finished", "stopped", "imported"};
    return names[state];
}

/* ---- files ------------------------------------------------------------------------------------------------- */

/* The last bytes of a regular file; NULL: none, or no memory, and then *failed. */
static char *read_tail(const char *path, size_t most, bool *failed)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char *text = NULL;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        size_t bytes = info.st_size < (off_t)most ? (size_t)info.st_size : most;
        text = malloc(bytes + 1);
        *failed = *failed || text == NULL;
        ssize_t got = text ? pread(fd, text, bytes, info.st_size - (off_t)bytes) : -1;
        if (text)
            text[got > 0 ? got : 0] = '\0';
    }
    if (fd >= 0)
        close(fd);
    return text;
}

static json_t *read_summary(const char *folder, bool *failed)
{
    char *path = sl_path_join(folder, "summary.json");
    char *text = path ? read_tail(path, SUMMARY_LIMIT, failed) : NULL;
    *failed = *failed || path == NULL;
    bool no_memory = false;
    json_t *root = text ? sl_json_load(text, strlen(text), 0, NULL, &no_memory) : NULL;
    *failed = *failed || no_memory;
    free(text);
    free(path);
    return root;
}

/* ---- facts ------------------------------------------------------------------------------------------------- */

struct collector {
    struct sl_arena *arena;
    struct sl_run_facts *run;
    struct sl_run_metric metrics[METRICS_MOST];
};

/* Numbers below 0 are not what the program wrote. */
static double find_number(json_t *object, const char *key, double otherwise)
{
    json_t *value = json_object_get(object, key);
    return json_is_number(value) && json_number_value(value) >= 0 ? json_number_value(value) : otherwise;
}

static int64_t find_count(json_t *object, const char *key, int64_t otherwise)
{
    json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) >= 0 ? (int64_t)json_integer_value(value) : otherwise;
}

/* A later value takes the place of an earlier one. */
static bool take_metrics(struct collector *to, const char *split, json_t *metrics)
{
    const char *name;
    json_t *value;
    json_object_foreach(metrics, name, value)
    {
        double number = json_is_number(value) ? json_number_value(value) : NAN;
        size_t m = 0, count = to->run->metric_count;
        while (m < count && (strcmp(to->metrics[m].split, split) != 0 || strcmp(to->metrics[m].name, name) != 0))
            m++;
        if (!isfinite(number) || m == METRICS_MOST)
            continue;
        if (m == count) {
            to->metrics[m].split = sl_arena_strdup(to->arena, split);
            to->metrics[m].name = sl_arena_strdup(to->arena, name);
            if (to->metrics[m].split == NULL || to->metrics[m].name == NULL)
                return false;
            to->run->metric_count++;
        }
        to->metrics[m].value = number;
    }
    return true;
}

static bool take_summary(struct collector *to, json_t *summary)
{
    const char *split;
    json_t *metrics;
    const char *end = json_string_value(json_object_get(summary, "end"));
    to->run->end = end ? sl_arena_strdup(to->arena, end) : "";
    to->run->updates = find_count(summary, "updates", -1);
    to->run->epochs = find_number(summary, "epochs", NAN);
    to->run->seconds = find_number(summary, "seconds", NAN);
    bool fine = to->run->end != NULL;
    json_object_foreach(json_object_get(summary, "metrics"), split, metrics) fine =
        fine && take_metrics(to, split, metrics);
    return fine;
}

/* The rows at the end of metrics.jsonl. Reports within an epoch say less of it than its mean. */
static bool take_rows(struct collector *to)
{
    char *path = sl_path_join(to->run->folder, "metrics.jsonl"), *rest = NULL;
    bool failed = path == NULL;
    char *text = path ? read_tail(path, TAIL_BYTES, &failed) : NULL;
    bool fine = !failed;
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && fine; line = strtok_r(NULL, "\n", &rest)) {
        json_t *row = sl_json_load(line, strlen(line), 0, NULL, &failed);
        const char *split = json_string_value(json_object_get(row, "split"));
        fine = !failed;
        if (split) {
            to->run->updates = find_count(row, "update", to->run->updates);
            to->run->epochs = find_number(row, "epoch", to->run->epochs);
            to->run->seconds = find_number(row, "seconds", to->run->seconds);
            fine = take_metrics(to, split, json_object_get(row, "metrics"));
        }
        json_decref(row);
    }
    free(text);
    free(path);
    return fine;
}

/* Weights that no training left: it would have logged its updates. */
static bool is_imported(const struct sl_run_facts *run)
{
    return sl_file_is_in(run->folder, "final.safetensors") && !sl_file_is_in(run->folder, "metrics.jsonl") &&
           !sl_file_is_in(run->folder, "checkpoints");
}

static enum sl_run_state judge_state(const struct sl_run_facts *run, bool live, bool has_summary)
{
    if (live)
        return SL_RUN_LIVE;
    return has_summary ? SL_RUN_FINISHED : is_imported(run) ? SL_RUN_IMPORTED : SL_RUN_STOPPED;
}

static bool find_state(struct collector *to, bool has_summary)
{
    char holder[SL_FILE_LOCK_HOLDER_BYTES] = "";
    struct stat config;
    char *lock = sl_path_join(to->run->folder, "lock"), *path = sl_path_join(to->run->folder, "config.yaml");
    const bool fine = lock && path, live = lock && sl_file_lock_find_holder(lock, holder);
    to->run->state = judge_state(to->run, live, has_summary);
    to->run->holder = sl_arena_strdup(to->arena, holder);
    to->run->started = path && stat(path, &config) == 0 ? (int64_t)config.st_mtime : 0;
    free(path);
    free(lock);
    return fine && to->run->holder;
}

bool sl_run_facts_read(struct sl_arena *arena, const char *folder, const char *name, struct sl_run_facts *out)
{
    *out = (struct sl_run_facts){.name = sl_arena_strdup(arena, name),
                                 .folder = sl_arena_strdup(arena, folder),
                                 .end = "",
                                 .updates = -1,
                                 .epochs = NAN,
                                 .seconds = NAN};
    if (out->name == NULL || out->folder == NULL)
        return false;
    struct collector to = {.arena = arena, .run = out};
    bool failed = false;
    json_t *summary = read_summary(folder, &failed);
    bool fine = !failed && find_state(&to, summary != NULL) &&
                (out->state == SL_RUN_FINISHED ? take_summary(&to, summary) : take_rows(&to));
    json_decref(summary);
    struct sl_run_metric *metrics = SL_ARENA_ARRAY(arena, struct sl_run_metric, out->metric_count);
    if (!fine || metrics == NULL)
        return false;
    memcpy(metrics, to.metrics, out->metric_count * sizeof *metrics);
    out->metrics = metrics;
    return true;
}

double sl_run_facts_find_metric(const struct sl_run_facts *run, const char *split, const char *name)
{
    for (size_t m = 0; m < run->metric_count; m++)
        if (strcmp(run->metrics[m].split, split) == 0 && strcmp(run->metrics[m].name, name) == 0)
            return run->metrics[m].value;
    return NAN;
}
