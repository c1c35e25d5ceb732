/* SPDX-License-Identifier: Apache-2.0 */
/* See comparison.h. */
#include "runs/comparison.h"

#include <string.h>

#include "base/memory/arena.h"
#include "model/load/entries.h"

struct compared {
    struct sl_arena *arena;
    const struct sl_run_facts *const *runs;
    size_t count;
    struct sl_config_entries configs[SL_COMPARED_MOST];
};

static bool differs(const struct compared *c, const char *path)
{
    const char *first = sl_config_entries_find(&c->configs[0], path);
    for (size_t r = 1; r < c->count; r++) {
        const char *value = sl_config_entries_find(&c->configs[r], path);
        if ((first == NULL) != (value == NULL) || (first && !sl_config_entries_is_same(first, value)))
            return true;
    }
    return false;
}

/* Does an earlier run have it? Then it has been compared. */
static bool is_known(const struct compared *c, size_t before, const char *path)
{
    for (size_t r = 0; r < before; r++)
        if (sl_config_entries_find(&c->configs[r], path))
            return true;
    return false;
}

static bool fill_config_row(struct compared *c, const char *path, struct sl_compared_row *row)
{
    row->key = path;
    for (size_t r = 0; r < c->count; r++) {
        const char *value = sl_config_entries_find(&c->configs[r], path);
        row->values[r] = (struct sl_run_value){.text = "-"};
        if (value && !sl_run_value_read(c->arena, value, &row->values[r]))
            return false;
    }
    return true;
}

static bool fill_metric_row(struct compared *c, const char *key, struct sl_compared_row *row)
{
    row->key = key;
    for (size_t r = 0; r < c->count; r++)
        if (!sl_run_value_find(c->arena, c->runs[r], &c->configs[r], key, &row->values[r]))
            return false;
    return true;
}

static bool compare_configs(struct compared *c, struct sl_run_comparison *out)
{
    size_t most = 0;
    for (size_t r = 0; r < c->count; r++)
        most += c->configs[r].count;
    out->config = SL_ARENA_ARRAY(c->arena, struct sl_compared_row, most);
    if (out->config == NULL)
        return false;
    for (size_t r = 0; r < c->count; r++)
        for (size_t i = 0; i < c->configs[r].count; i++) {
            const char *path = c->configs[r].items[i].path;
            if (is_known(c, r, path) || !differs(c, path))
                continue;
            if (!fill_config_row(c, path, &out->config[out->config_count++]))
                return false;
        }
    return true;
}

static bool has_row(const struct sl_run_comparison *out, const char *key)
{
    for (size_t m = 0; m < out->metric_count; m++)
        if (strcmp(out->metrics[m].key, key) == 0)
            return true;
    return false;
}

static bool compare_metrics(struct compared *c, struct sl_run_comparison *out)
{
    static const char *const splits[] = {"train", "valid", "test"};
    size_t most = 0;
    for (size_t r = 0; r < c->count; r++)
        most += c->runs[r]->metric_count;
    out->metrics = SL_ARENA_ARRAY(c->arena, struct sl_compared_row, most);
    bool fine = out->metrics != NULL;
    for (int s = 0; s < 3; s++)
        for (size_t r = 0; r < c->count; r++)
            for (size_t m = 0; m < c->runs[r]->metric_count && fine; m++) {
                const struct sl_run_metric *metric = &c->runs[r]->metrics[m];
                if (strcmp(metric->split, splits[s]) != 0)
                    continue;
                const char *key = sl_arena_printf(c->arena, "%s.%s", metric->split, metric->name);
                if (key == NULL)
                    fine = false;
                else if (!has_row(out, key))
                    fine = fill_metric_row(c, key, &out->metrics[out->metric_count++]);
            }
    return fine;
}

bool sl_run_comparison_make(struct sl_arena *arena, const struct sl_run_facts *const *runs, size_t count,
                            struct sl_run_comparison *out)
{
    struct compared c = {.arena = arena, .runs = runs, .count = count};
    *out = (struct sl_run_comparison){.run_count = count};
    for (size_t r = 0; r < count; r++)
        if (!sl_run_config_read(arena, runs[r], &c.configs[r]))
            return false;
    return compare_configs(&c, out) && compare_metrics(&c, out);
}
