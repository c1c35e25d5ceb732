/* SPDX-License-Identifier: Apache-2.0 */
/* What `seqlstm runs` and checksums read in a run folder of anyone: whatever the bytes are, there is an answer, numbers
 * are finite or missing, and texts are complete. The first byte chooses the file; of metrics.jsonl and summary.json the
 * first line is also a condition of --where. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/memory/arena.h"
#include "base/system/log.h"
#include "fuzz.h"
#include "model/load/entries.h"
#include "runs/condition.h"
#include "runs/metric_rows.h"
#include "runs/run_facts.h"
#include "runs/run_value.h"
#include "train/checkpoint/checksums.h"

static const struct {
    const char *name, *good;
} files[] = {
    {"summary.json", "updates>=3\n{\"end\": \"epochs\", \"updates\": 4, \"epochs\": 2, \"seconds\": 0.5, \"metrics\": "
                     "{\"train\": {\"loss\": 1.5}, \"test\": {\"loss\": 2, \"accuracy\": 0.5}}}"},
    {"metrics.jsonl",
     "train.loss != 2\n{\"span\": \"epoch\", \"update\": 4, \"epoch\": 1, \"seconds\": 1, \"metrics\": "
     "{\"loss\": 2}}\n{\"span\": \"valid\", \"update\": 4, \"metrics\": {\"loss\": 3}}\n"},
    {"config.yaml", "seqlstm: 1\ntrain:\n  optimizer:\n    type: adam\nmodel:\n  - type: lstm\n    name: \"a\"\n"},
    {"checksums.json", "{\"schema\": \"seqlstm.checksums/1\", \"files\": {\"config.yaml\": \"0123456789abcdef\"}}"},
};
enum { FILES = sizeof files / sizeof *files };

static const char *folder;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    folder = fuzz_make_folder();
    for (int f = 0; f < FILES; f++)
        fuzz_write_seed(f, files[f].good, strlen(files[f].good));
    return 0;
}

static void get_path(int file, char path[600])
{
    snprintf(path, 600, "%s/%s", folder, files[file].name);
}

static void check_values(struct sl_arena *arena, const struct sl_run_facts *run, const char *condition_text)
{
    static const char *const keys[] = {"name",          "state",       "end",
                                       "started",       "updates",     "epochs",
                                       "seconds",       "test.loss",   "train.optimizer.type",
                                       "model[0].name", "model.a.type"};
    struct sl_config_entries config = {0};
    struct sl_run_value value, other = {.kind = SL_RUN_VALUE_NONE};
    struct sl_run_condition condition;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        fuzz_require(sl_run_value_find(arena, run, &config, keys[k], &value));
        fuzz_require(value.kind != SL_RUN_VALUE_NUMBER || !isnan(value.number));
        fuzz_require(sl_run_value_compare(&value, &other) == -sl_run_value_compare(&other, &value));
        other = value;
    }
    const seqlstm_status status = sl_run_condition_read(arena, condition_text, &condition, &err);
    fuzz_require(status == SEQLSTM_OK || (status == SEQLSTM_INVALID_CONFIG && err.message[0]));
    if (status == SEQLSTM_OK && sl_run_value_find(arena, run, &config, condition.key, &value))
        sl_run_condition_holds(&condition, &value);
}

static void check_run(const char *condition)
{
    struct sl_arena arena;
    struct sl_run_facts run;
    sl_arena_init(&arena);
    fuzz_require(sl_run_facts_read(&arena, folder, "run", &run));
    fuzz_require(run.end && run.holder && !isinf(run.epochs) && !isinf(run.seconds) && run.updates >= -1);
    for (size_t m = 0; m < run.metric_count; m++)
        fuzz_require(isfinite(run.metrics[m].value) && run.metrics[m].split && run.metrics[m].name);
    check_values(&arena, &run, condition);
    sl_arena_deinit(&arena);
    json_t *rows = sl_metric_rows_read(folder);
    fuzz_require(json_is_array(rows));
    json_decref(rows);
}

static void check_checksums(void)
{
    static const char *const names[] = {"config.yaml", "metrics.jsonl", NULL};
    static const struct sl_log silent;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_checksums_compare(folder, names, &silent);
    fuzz_require(sl_checksums_forget(folder, "config.yaml", NULL, &err) == SEQLSTM_OK);
    fuzz_require(sl_checksums_note_bytes(folder, "config.yaml", &err) == SEQLSTM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[600], condition[200];
    if (size == 0)
        return 0;
    const int file = data[0] % FILES;
    const char *text = (const char *)data + 1, *end = memchr(text, '\n', size - 1);
    const size_t line = end ? (size_t)(end - text) : size - 1, skipped = file < 2 && end ? line + 1 : 0;
    snprintf(condition, sizeof condition, "%.*s", line < sizeof condition ? (int)line : 0, text);
    for (int f = 0; f < FILES; f++) {
        get_path(f, path);
        remove(path);
    }
    get_path(file, path);
    fuzz_write_file(path, text + skipped, size - 1 - skipped);
    check_run(condition);
    check_checksums();
    return 0;
}
