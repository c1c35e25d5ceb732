/* SPDX-License-Identifier: Apache-2.0 */
/* See run_value.h. */
#include "runs/run_value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory/arena.h"
#include "base/system/file.h"
#include "base/value/buf.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "model/load/entries.h"

enum { CONFIG_LIMIT = 1 << 24, COUNT_DIGITS = 15, TIME_DIGITS = 4, METRIC_DIGITS = 5 };

static bool set_number(struct sl_arena *arena, double number, int digits, struct sl_run_value *out)
{
    if (!isfinite(number))
        return true;
    *out = (struct sl_run_value){SL_RUN_VALUE_NUMBER, number, sl_arena_printf(arena, "%.*g", digits, number)};
    return out->text != NULL;
}

/* In local time, as `ls` shows it. */
static bool set_time(struct sl_arena *arena, int64_t seconds, struct sl_run_value *out)
{
    time_t when = (time_t)seconds;
    struct tm parts;
    char text[32] = "";
    if (localtime_r(&when, &parts))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
    *out = (struct sl_run_value){SL_RUN_VALUE_NUMBER, (double)seconds, sl_arena_strdup(arena, text)};
    return out->text != NULL;
}

bool sl_run_value_read(struct sl_arena *arena, const char *text, struct sl_run_value *out)
{
    size_t bytes = strlen(text);
    const bool quoted = bytes >= 2 && (text[0] == '"' || text[0] == '\'') && text[bytes - 1] == text[0];
    *out = (struct sl_run_value){SL_RUN_VALUE_TEXT, NAN, sl_arena_strndup(arena, text + quoted, bytes - 2 * quoted)};
    if (!quoted && sl_text_parse_float64(text, bytes, &out->number) && isfinite(out->number)) {
        char shortest[SL_TEXT_NUMBER_BYTES]; /* 1e-3 and 0.001 look the same */
        sl_text_print_float64(shortest, out->number);
        out->kind = SL_RUN_VALUE_NUMBER;
        out->text = sl_arena_strdup(arena, shortest);
    }
    return out->text != NULL;
}

bool sl_run_config_read(struct sl_arena *arena, const struct sl_run_facts *run, struct sl_config_entries *out)
{
    char *path = sl_path_join(run->folder, "config.yaml"), *text = NULL;
    const seqlstm_status status = path ? sl_file_read(path, CONFIG_LIMIT, &text, NULL, NULL) : SEQLSTM_NO_MEMORY;
    const bool fine = status == SEQLSTM_OK ? sl_config_entries_read(arena, text, out) : status != SEQLSTM_NO_MEMORY;
    free(text);
    free(path);
    return fine;
}

/* "model.lstm_1.units" → the entry "model[1].units", where "model[1].name" is lstm_1. */
static const char *find_by_name(const struct sl_config_entries *config, const char *key)
{
    const char *layer = strncmp(key, "model.", 6) == 0 ? key + 6 : "", *rest = strrchr(layer, '.');
    for (size_t i = 0; rest && i < config->count; i++) {
        const struct sl_config_entry *e = &config->items[i];
        size_t path_bytes = strlen(e->path), layer_bytes = (size_t)(rest - layer);
        if (path_bytes < 5 || strncmp(e->path, "model", 5) != 0 || strcmp(e->path + path_bytes - 5, ".name") != 0 ||
            strlen(e->value) != layer_bytes || memcmp(e->value, layer, layer_bytes) != 0)
            continue;
        struct sl_buf path = {0};
        sl_buf_append(&path, e->path, path_bytes - 5);
        sl_buf_append_text(&path, rest);
        const char *value = sl_config_entries_find(config, sl_buf_text(&path));
        sl_buf_deinit(&path);
        return value;
    }
    return NULL;
}

static bool find_in_config(struct sl_arena *arena, const struct sl_run_facts *run, struct sl_config_entries *config,
                           const char *key, struct sl_run_value *out)
{
    if (config->items == NULL && !sl_run_config_read(arena, run, config))
        return false;
    const char *value = sl_config_entries_find(config, key);
    if (value == NULL)
        value = find_by_name(config, key);
    return value == NULL || sl_run_value_read(arena, value, out);
}

bool sl_run_value_find(struct sl_arena *arena, const struct sl_run_facts *run, struct sl_config_entries *config,
                       const char *key, struct sl_run_value *out)
{
    *out = (struct sl_run_value){.kind = SL_RUN_VALUE_NONE, .number = NAN, .text = "-"};
    if (strcmp(key, "name") == 0) /* "001" is a name, not a number */
        *out = (struct sl_run_value){SL_RUN_VALUE_TEXT, NAN, run->name};
    else if (strcmp(key, "state") == 0)
        *out = (struct sl_run_value){SL_RUN_VALUE_TEXT, NAN, sl_run_state_get_name(run->state)};
    else if (strcmp(key, "end") == 0)
        return run->end[0] == '\0' || sl_run_value_read(arena, run->end, out);
    else if (strcmp(key, "started") == 0)
        return set_time(arena, run->started, out);
    else if (strcmp(key, "updates") == 0)
        return run->updates < 0 || set_number(arena, (double)run->updates, COUNT_DIGITS, out);
    else if (strcmp(key, "epochs") == 0)
        return set_number(arena, run->epochs, TIME_DIGITS, out);
    else if (strcmp(key, "seconds") == 0)
        return set_number(arena, run->seconds, TIME_DIGITS, out);
    else {
        const char *dot = strchr(key, '.');
        char split[16] = "";
        if (dot && (size_t)(dot - key) < sizeof split)
            memcpy(split, key, (size_t)(dot - key));
        const double metric = dot ? sl_run_facts_find_metric(run, split, dot + 1) : NAN;
        return isfinite(metric) ? set_number(arena, metric, METRIC_DIGITS, out)
                                : find_in_config(arena, run, config, key, out);
    }
    return true;
}

int sl_run_value_compare(const struct sl_run_value *a, const struct sl_run_value *b)
{
    static const int ranks[] = {[SL_RUN_VALUE_NUMBER] = 0, [SL_RUN_VALUE_TEXT] = 1, [SL_RUN_VALUE_NONE] = 2};
    if (a->kind != b->kind)
        return ranks[a->kind] < ranks[b->kind] ? -1 : 1;
    if (a->kind == SL_RUN_VALUE_NUMBER)
        return (a->number > b->number) - (a->number < b->number);
    return a->kind == SL_RUN_VALUE_TEXT ? strverscmp(a->text, b->text) : 0;
}
