/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a run: weights, metrics.jsonl, the state of a checkpoint; what is damaged or foreign is told. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/value/buf.h"
#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "oom.h"
#include "scratch.h"
#include "train/checkpoint/checkpoint.h"
#include "train/metrics_log.h"
#include "train/checkpoint/weights.h"
#include "train/tensorboard_log.h"
#include "train_fake.h"

/* ---- weights ----------------------------------------------------------------------------------------- */

static void weights_come_back(void **state)
{
    (void)state;
    struct fake_params a, b;
    struct sl_weights_report report;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors_text text = {"config", "x: 1\n"};
    fake_params_init(&a);
    fake_params_init(&b);
    a.values[1] = 77;
    a.values[16] = -1;
    a.values[25] = 5;
    assert_int_equal(sl_weights_save(&a.params, scratch_path("w"), &text, 1, &err), SEQLSTM_OK);
    assert_int_equal(sl_weights_load(&b.params, scratch_path("w"), 0, &report, &err), SEQLSTM_OK);
    assert_memory_equal(a.values, b.values, sizeof a.values);
    assert_int_equal(report.loaded, 3);
    assert_int_equal(b.params.version, 1);
    struct sl_safetensors *file = NULL;
    assert_int_equal(sl_safetensors_open(scratch_path("w"), &file, &err), SEQLSTM_OK);
    assert_string_equal(sl_safetensors_find_text(file, "format"), "seqlstm.weights");
    assert_string_equal(sl_safetensors_find_text(file, "config"), "x: 1\n");
    /* A bias is a vector; a matrix of one row or column stays a matrix. */
    assert_int_equal(sl_safetensors_find(file, "dense.bias")->rank, 1);
    assert_int_equal(sl_safetensors_find(file, "dense.w")->rank, 2);
    assert_int_equal(sl_safetensors_find(file, "frozen.w")->rank, 2);
    sl_safetensors_close(file);
}

static void foreign_weights_are_told(void **state)
{
    (void)state;
    struct fake_params a, b;
    struct sl_weights_report report;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    fake_params_init(&a);
    fake_params_init(&b);
    a.views[2].name = "other.w";
    a.values[0] = 9;
    assert_int_equal(sl_weights_save(&a.params, scratch_path("foreign"), NULL, 0, &err), SEQLSTM_OK);
    struct fake_params before = b;
    assert_int_equal(sl_weights_load(&b.params, scratch_path("foreign"), 0, NULL, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "frozen.w"));
    assert_int_equal(sl_weights_load(&b.params, scratch_path("foreign"), SL_WEIGHTS_ALLOW_MISSING, NULL, &err),
                     SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "other.w"));
    assert_memory_equal(&before, &b, sizeof b);
    unsigned both = SL_WEIGHTS_ALLOW_MISSING | SL_WEIGHTS_ALLOW_EXTRA;
    assert_int_equal(sl_weights_load(&b.params, scratch_path("foreign"), both, &report, &err), SEQLSTM_OK);
    assert_int_equal(report.loaded, 2);
    assert_int_equal(report.missing, 1);
    assert_int_equal(report.extra, 1);
    assert_true(b.values[0] == 9 && b.values[24] == 3);
    /* Another shape is never allowed: the message has both. */
    b.views[0].rows = FAKE_FEATURES;
    b.views[0].columns = 1;
    assert_int_equal(sl_weights_load(&b.params, scratch_path("foreign"), both, NULL, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "[1, 3]"));
    assert_non_null(strstr(err.message, "[3, 1]"));
    assert_int_equal(sl_weights_load(&b.params, scratch_path("absent"), both, NULL, &err), SEQLSTM_NOT_FOUND);
}

/* ---- checkpoints -------------------------------------------------------------------------------------- */

static void fill_state(struct sl_train_state *s)
{
    memset(s, 0, sizeof *s);
    s->updates = 123456789012345;
    s->applied = 7;
    s->epoch = 3;
    s->ordinal = 5;
    s->epoch_batches = 9;
    s->validation_pending = true;
    s->stopping = (struct sl_monitor){true, 0.1, 4};
    s->schedule.reductions = 2;
    s->trigger = (struct sl_non_monotone){.count = 3, .older_best = -INFINITY, .recent = {1e-300, NAN, -0.0}};
    s->epoch_sums.loss = 1.0 / 3;
    s->epoch_sums.absolute = 0x1.fffffffffffffp+1023;
    s->best_sums.rows = 5e-324;
    s->valid_sums.loss = NAN;
    s->valid_sums.text.bleu.totals[3] = 11;
    s->best_sums.text.chrf.matches[5] = 13;
    s->best_count = 2;
    s->best_entries[0] = (struct sl_best_entry){100, 0.25};
    s->best_entries[1] = (struct sl_best_entry){200, INFINITY};
}

static void states_are_exact(void **state)
{
    (void)state;
    struct sl_train_state a, b;
    struct sl_buf buf = {0}, again = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    fill_state(&a);
    sl_train_state_write(&a, &buf);
    if (sl_train_state_read(buf.data, buf.length_bytes, &b, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    sl_train_state_write(&b, &again);
    assert_string_equal(buf.data, again.data);
    assert_true(signbit(b.trigger.recent[2]) && isnan(b.trigger.recent[1]) && isnan(b.valid_sums.loss));
    assert_true(b.valid_sums.text.bleu.totals[3] == 11 && b.best_sums.text.chrf.matches[5] == 13);
    assert_true(b.epoch_sums.loss == 1.0 / 3 && b.best_sums.rows == 5e-324);
    assert_int_equal(b.best_entries[1].update, 200);
    assert_int_equal(b.updates, a.updates);
    assert_true(b.validation_pending && !b.averaging);
    /* Every member missing or of another type is told, and nothing is written. */
    for (size_t i = 0; i < buf.length_bytes; i++) {
        char *damaged = strdup(buf.data);
        damaged[i] = damaged[i] == '"' ? ' ' : '"';
        struct sl_train_state c = {.updates = -5};
        seqlstm_status status = sl_train_state_read(damaged, buf.length_bytes, &c, NULL);
        assert_int_equal(status, SEQLSTM_CORRUPT_DATA);
        assert_int_equal(c.updates, -5);
        free(damaged);
    }
    static const char negative[] = "{\"updates\":-1}";
    assert_int_equal(sl_train_state_read(negative, sizeof negative - 1, &b, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "`updates`"));
    sl_buf_deinit(&buf);
    sl_buf_deinit(&again);
}

/* Texts are written for validations only. Of the counts of classes, which are three long arrays at the end of sums,
 * each hundredth is looked at. */
static bool is_looked_at(size_t offset)
{
    static const size_t sums[] = {
        offsetof(struct sl_train_state, epoch_sums), offsetof(struct sl_train_state, last_epoch_sums),
        offsetof(struct sl_train_state, interval_sums), offsetof(struct sl_train_state, valid_sums),
        offsetof(struct sl_train_state, best_sums)};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const size_t at = offset - sums[i], text = offsetof(struct sl_metric_sums, text);
        if (offset < sums[i] || at >= sizeof(struct sl_metric_sums))
            continue;
        if (at >= text && at < text + sizeof(struct sl_text_sums))
            return i >= 3;
        return at < offsetof(struct sl_metric_sums, hits) || at / 8 % 100 == 0;
    }
    return true;
}

/* Nothing of the state is forgotten, whatever its name: each of its words alone comes back. All members are int64,
 * float64 or bool in 8 bytes, in each of which the integer 1 is a value: 1, the smallest number, true. */
static void every_word_of_the_state_is_kept(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct sl_train_state) % 8, 0);
    for (size_t at = 0; at < sizeof(struct sl_train_state); at += 8) {
        struct sl_train_state a, b;
        struct sl_buf buf = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const int64_t one = 1;
        if (!is_looked_at(at))
            continue;
        memset(&a, 0, sizeof a);
        a.trigger.count = SL_NON_MONOTONE_MOST; /* so that both lists are full */
        a.best_count = SL_KEEP_BEST_MOST;
        memcpy((char *)&a + at, &one, sizeof one);
        sl_train_state_write(&a, &buf);
        if (sl_train_state_read(buf.data, buf.length_bytes, &b, &err) != SEQLSTM_OK)
            fail_msg("word %zu: %s", at / 8, err.message);
        if (memcmp(&a, &b, sizeof a) != 0)
            fail_msg("the word at byte %zu of the state is not saved", at);
        sl_buf_deinit(&buf);
    }
}

/* Checkpoints of older versions do not know which update was the best. */
static void older_states_are_read(void **state)
{
    (void)state;
    struct sl_train_state a, b;
    struct sl_buf buf = {0};
    fill_state(&a);
    a.best_update = 88;
    a.best_epochs = 2.5;
    sl_train_state_write(&a, &buf);
    static const char *const added[] = {"\"best_update\":88,", "\"best_epochs\":2.5,"};
    for (int k = 0; k < 2; k++) {
        char *at = strstr(buf.data, added[k]);
        assert_non_null(at);
        memmove(at, at + strlen(added[k]), strlen(at + strlen(added[k])) + 1);
    }
    assert_int_equal(sl_train_state_read(buf.data, strlen(buf.data), &b, NULL), SEQLSTM_OK);
    assert_true(b.best_update == 0 && b.best_epochs == 0 && b.updates == a.updates);
    sl_buf_deinit(&buf);
}

static void checkpoints_must_fit(void **state)
{
    (void)state;
    struct fake_params a, b;
    struct sl_train_state s, back;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors *file = NULL;
    char *path = NULL;
    float carried[5] = {1, 2, 3, 4, 5}, got[5] = {0};
    fake_params_init(&a);
    fake_params_init(&b);
    fill_state(&s);
    s.updates = 12;
    a.m[0] = 0.5f;
    struct sl_checkpoint_content content = {.params = &a.params, .carried = carried, .carried_elems = 5, .state = &s};
    assert_int_equal(sl_checkpoint_write(scratch_path("none/er"), &content, &path, &err), SEQLSTM_NOT_FOUND);
    assert_false(sl_file_exists(scratch_path("none"))); /* a run folder that is gone is not made again */
    assert_int_equal(sl_checkpoint_write(scratch_path("deeper"), &content, &path, &err), SEQLSTM_OK);
    assert_non_null(strstr(path, "deeper/update-000000000012.safetensors"));
    assert_int_equal(sl_checkpoint_open(path, &file, &err), SEQLSTM_OK);
    struct sl_checkpoint_target target = {.params = &b.params, .state = &back, .carried = got, .carried_elems = 5};
    assert_int_equal(sl_checkpoint_load(file, &target, &err), SEQLSTM_OK);
    assert_memory_equal(got, carried, sizeof got);
    assert_true(b.m[0] == 0.5f);
    assert_int_equal(back.updates, 12);
    /* other states of the network, another optimizer: told, nothing changed */
    struct fake_params before = b;
    target.carried_elems = 4;
    assert_int_equal(sl_checkpoint_load(file, &target, &err), SEQLSTM_INVALID_CONFIG);
    target.carried_elems = 5;
    b.params.states[1] = NULL;
    assert_int_equal(sl_checkpoint_load(file, &target, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "optimizer.2."));
    b.params.states[1] = b.v;
    b.params.states[2] = b.m;
    assert_int_equal(sl_checkpoint_load(file, &target, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "optimizer.3.dense.w"));
    b.params.states[2] = NULL;
    assert_memory_equal(&before, &b, sizeof b);
    sl_safetensors_close(file);
    /* A checkpoint is a weights file; a weights file is no checkpoint. */
    assert_int_equal(sl_weights_load(&b.params, path, 0, NULL, &err), SEQLSTM_OK);
    assert_int_equal(sl_weights_save(&a.params, path, NULL, 0, &err), SEQLSTM_OK);
    assert_int_equal(sl_checkpoint_open(path, &file, &err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(err.message, "no checkpoint"));
    /* The only one is no checkpoint: an error, not a fresh start. */
    assert_int_equal(sl_checkpoint_open_latest(scratch_path("deeper"), NULL, &file, NULL, &err), SEQLSTM_CORRUPT_DATA);
    file = (struct sl_safetensors *)&err;
    assert_int_equal(sl_checkpoint_open_latest(scratch_path("nowhere"), NULL, &file, NULL, &err), SEQLSTM_OK);
    assert_null(file);
    free(path);
}

/* Averaged weights are what a checkpoint's user wants. */
static void averaged_weights_are_preferred(void **state)
{
    (void)state;
    struct fake_params a, b;
    struct sl_train_state s;
    char *path = NULL;
    float average[FAKE_ELEMS] = {0};
    fake_params_init(&a);
    fake_params_init(&b);
    fill_state(&s);
    average[0] = 42;
    struct sl_checkpoint_content content = {.params = &a.params, .average = average, .state = &s};
    assert_int_equal(sl_checkpoint_write(scratch_path("averaged"), &content, &path, NULL), SEQLSTM_OK);
    assert_int_equal(sl_weights_load(&b.params, path, 0, NULL, NULL), SEQLSTM_OK);
    assert_true(b.values[0] == 42);
    free(path);
}

/* ---- metrics.jsonl ------------------------------------------------------------------------------------ */

static void append(struct sl_metrics_log *log, int64_t update, const char *span, double loss)
{
    struct sl_metric_values values = {.count = 2,
                                      .items = {{.name = "loss", .value = loss}, {.name = "mae", .value = 0.5}}};
    struct sl_metrics_row row = {.update = update,
                                 .epoch = 0.5,
                                 .seconds = (double)update + 0.0000004,
                                 .split = "train",
                                 .teacher_forcing = NAN,
                                 .span = span,
                                 .learning_rate = 1e-3,
                                 .gradient_norm = NAN,
                                 .rows_per_second = NAN,
                                 .values = &values};
    assert_int_equal(sl_metrics_log_append(log, &row, NULL), SEQLSTM_OK);
}

static char *read_all(const char *path)
{
    static char *text; /* gcc 12 takes a local one for a dangling pointer where this is inlined */
    assert_int_equal(sl_file_read(path, 1 << 20, &text, NULL, NULL), SEQLSTM_OK);
    return text;
}

static void rows_behind_the_checkpoint_go(void **state)
{
    (void)state;
    struct sl_metrics_log *log = NULL;
    double seconds = -1;
    const char *path = scratch_path("metrics.jsonl");
    assert_int_equal(sl_metrics_log_open(path, 0, 0, NULL, &log, &seconds, NULL), SEQLSTM_OK);
    assert_true(seconds == 0);
    append(log, 10, "report", 1.5);
    append(log, 10, "validation", NAN);
    append(log, 20, "report", INFINITY);
    sl_metrics_log_close(log);
    char *text = read_all(path);
    assert_string_equal(text, "{\"update\":10,\"epoch\":0.5,\"seconds\":10,\"split\":\"train\",\"span\":\"report\","
                              "\"learning_rate\":0.001,\"metrics\":{\"loss\":1.5,\"mae\":0.5}}\n"
                              "{\"update\":10,\"epoch\":0.5,\"seconds\":10,\"split\":\"train\",\"span\":\"validation\","
                              "\"learning_rate\":0.001,\"metrics\":{\"loss\":null,\"mae\":0.5}}\n"
                              "{\"update\":20,\"epoch\":0.5,\"seconds\":20,\"split\":\"train\",\"span\":\"report\","
                              "\"learning_rate\":0.001,\"metrics\":{\"loss\":null,\"mae\":0.5}}\n");
    size_t second = (size_t)(strchr(text, '\n') - text) + 1;
    /* a line cut by a crash */
    FILE *file = fopen(path, "a");
    fputs("{\"update\":5,\"epo", file);
    fclose(file);
    assert_int_equal(sl_metrics_log_open(path, 20, 10, NULL, &log, &seconds, NULL), SEQLSTM_OK);
    assert_true(seconds == 20);
    sl_metrics_log_close(log);
    char *now = read_all(path);
    assert_string_equal(now, text);
    free(now);
    /* the checkpoint of update 10 was written before its validation */
    assert_int_equal(sl_metrics_log_open(path, 10, 0, NULL, &log, &seconds, NULL), SEQLSTM_OK);
    append(log, 11, "report", 1);
    sl_metrics_log_close(log);
    now = read_all(path);
    assert_memory_equal(now, text, second);
    assert_memory_equal(now + second, "{\"update\":11,", 13);
    free(now);
    free(text);
    assert_int_equal(sl_metrics_log_open(scratch_path("no/such/folder"), 0, 0, NULL, &log, NULL, NULL), SEQLSTM_IO);
}

/* Logs that begin in the same second of one process have files of their own. */
static void logs_for_tensorboard_do_not_meet(void **state)
{
    (void)state;
    enum { LOGS = 12 };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char folder[400];
    snprintf(folder, sizeof folder, "%s", scratch_path("events"));
    assert_int_equal(sl_file_make_folders(folder, &err), SEQLSTM_OK);
    for (int k = 0; k < LOGS; k++) {
        struct sl_tensorboard_log *log = NULL;
        if (sl_tensorboard_log_open(folder, k, &log, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        sl_tensorboard_log_close(log);
    }
    int files = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        files += strstr(entry->d_name, "events.out.tfevents.") != NULL;
    closedir(entries);
    assert_int_equal(files, LOGS);
}

/* ---- old checkpoints ----------------------------------------------------------------------------------- */

static void make_checkpoints(const char *folder)
{
    static const char *const names[] = {"update-9",  "update-10",  "update-20", "update-100", "update-30",
                                        "update-40", ".update-40", "other-10",  "update-x"};
    char name[128];
    snprintf(name, sizeof name, "mkdir -p '%s'", folder);
    assert_int_equal(system(name), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "%s/%s.safetensors%s", folder, names[i], names[i][0] == '.' ? ".tmp-1-1" : "");
        assert_int_equal(sl_file_write(name, "x", 1, NULL), SEQLSTM_OK);
    }
}

/* The newest and the best ones stay, each once, and files with other names. */
static void the_newest_and_the_best_stay(void **state)
{
    (void)state;
    static const struct {
        int64_t keep_last, updates, best[3]; /* until 0 */
        const char *stay;
    } rows[] = {
        {1, 100, {0}, "100"},
        {0, 100, {0}, "100"},
        {3, 100, {0}, "30 40 100"},
        {9, 100, {0}, "9 10 20 30 40 100"},
        {1, 100, {10}, "10 100"},
        {1, 100, {20, 9}, "9 20 100"},
        {1, 100, {9, 10, 30}, "9 10 30 100"},
        {2, 100, {100, 20}, "20 40 100"},
        {2, 100, {40, 100}, "40 100"},
        {1, 100, {15, 10}, "10 100"},
        {2, 40, {9}, "9 30 40"}, /* 100 is from before a resume */
    };
    static const int updates[] = {9, 10, 20, 30, 40, 100};
    char folder[128], path[192];
    snprintf(folder, sizeof folder, "%s", scratch_path("old"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_train_state s = {.updates = rows[i].updates};
        struct sl_buf stay = {0};
        for (; s.best_count < 3 && rows[i].best[s.best_count]; s.best_count++)
            s.best_entries[s.best_count].update = rows[i].best[s.best_count];
        make_checkpoints(folder);
        sl_checkpoint_prune(folder, rows[i].keep_last, &s, NULL);
        for (size_t k = 0; k < sizeof updates / sizeof *updates; k++) {
            snprintf(path, sizeof path, "%s/update-%d.safetensors", folder, updates[k]);
            if (access(path, F_OK) == 0)
                sl_buf_printf(&stay, "%s%d", stay.length_bytes ? " " : "", updates[k]);
        }
        if (strcmp(sl_buf_text(&stay), rows[i].stay) != 0)
            fail_msg("row %d: %s stay, not %s", (int)i, sl_buf_text(&stay), rows[i].stay);
        sl_buf_deinit(&stay);
        snprintf(path, sizeof path, "%s/.update-40.safetensors.tmp-1-1", folder);
        assert_int_not_equal(access(path, F_OK), 0);
        snprintf(path, sizeof path, "%s/other-10.safetensors", folder);
        assert_int_equal(access(path, F_OK), 0);
        snprintf(path, sizeof path, "%s/update-x.safetensors", folder);
        assert_int_equal(access(path, F_OK), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_come_back),
        cmocka_unit_test(foreign_weights_are_told),
        cmocka_unit_test(states_are_exact),
        cmocka_unit_test(every_word_of_the_state_is_kept),
        cmocka_unit_test(older_states_are_read),
        cmocka_unit_test(checkpoints_must_fit),
        cmocka_unit_test(averaged_weights_are_preferred),
        cmocka_unit_test(the_newest_and_the_best_stay),
        cmocka_unit_test(rows_behind_the_checkpoint_go),
        cmocka_unit_test(logs_for_tensorboard_do_not_meet),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
