/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: their state, what of it and of their tensors must fit, which are found and which stay. */
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
#include "base/system/log.h"
#include "scratch.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/weights.h"
#include "train_fake.h"

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
    static const char twice[] = "{\"updates\":1,\"updates\":1}";
    assert_int_equal(sl_train_state_read(twice, sizeof twice - 1, &b, &err), SEQLSTM_CORRUPT_DATA);
    assert_string_equal(err.message, "the state of the run is no JSON object: duplicate object key near '\"updates\"'");
    sl_buf_deinit(&buf);
    sl_buf_deinit(&again);
}

/* Texts are written for validations only. Of the counts of classes, which are three long arrays at the end of sums,
 * each hundredth and the last one is looked at. */
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
        return at < offsetof(struct sl_metric_sums, hits) || at / 8 % 100 == 0 ||
               at == offsetof(struct sl_metric_sums, alarms[SL_METRIC_CLASSES - 1]);
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

#define LISTS   "`trigger.recent or best_entries`"
#define CLASSES "`epoch_sums.classes (or another count of classes)`"

/* A list that is longer or shorter than what it describes, or holds something else, is told by its name; so is a member
 * of another type. */
static void lists_of_another_length_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *had, *has, *named;
    } cases[] = {
        {"[100,0.25]", "[100,0.25,1]", LISTS},
        {"[100,0.25]", "[100]", LISTS},
        {"[100,0.25]", "[-1,0.25]", LISTS},
        {"[100,0.25]", "[100,null]", LISTS},
        {"[1e-300,", "[1,1e-300,", LISTS},
        {"[1e-300,", "[", LISTS},
        {"[1e-300,", "[\"infinity\",", LISTS},
        {"\"best_entries\":[", "\"best_entries\":{},\"x\":[", LISTS},
        {"\"trigger.recent\":[", "\"trigger.recent\":\"\",\"x\":[", LISTS},
        {"[[2,3,4]", "[[2,3,4,5]", CLASSES},
        {"[[2,3,4]", "[[2,3]", CLASSES},
        {"[[2,3,4]", "[[null,3,4]", CLASSES},
        {"[[2,3,4]", "[[2,null,4]", CLASSES},
        {"[[2,3,4]", "[[2,3,null]", CLASSES},
        {"\"epoch_sums.classes\":[", "\"epoch_sums.classes\":7,\"x\":[", CLASSES},
        {"\"updates\":", "\"updates\":0.5,\"x\":", "`updates`"},
        {"\"applied\":", "\"applied\":-1,\"x\":", "`applied`"},
        {"\"skipped\":", "\"skipped\":2305843009213693952,\"x\":", "`skipped`"},
        {"\"loss_scale.scale\":", "\"loss_scale.scale\":true,\"x\":", "`loss_scale.scale`"},
        {"\"stopping.has_best\":", "\"stopping.has_best\":1,\"x\":", "`stopping.has_best`"},
        {"\"skipped_in_row\":", "\"skipped in row\":", "`skipped_in_row`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_train_state s;
        struct sl_buf buf = {0}, other = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        fill_state(&s);
        s.epoch_sums.hits[0] = 2;
        s.epoch_sums.missed[0] = 3;
        s.epoch_sums.alarms[0] = 4;
        sl_train_state_write(&s, &buf);
        const char *at = strstr(buf.data, cases[i].had);
        assert_non_null(at);
        sl_buf_printf(&other, "%.*s%s%s", (int)(at - buf.data), buf.data, cases[i].has, at + strlen(cases[i].had));
        assert_int_equal(sl_train_state_read(other.data, other.length_bytes, &s, &err), SEQLSTM_CORRUPT_DATA);
        assert_non_null(strstr(err.message, cases[i].named));
        sl_buf_deinit(&buf);
        sl_buf_deinit(&other);
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
    static const struct sl_safetensors_text texts[] = {{"config", "x: 1\n"}, {"plan", "y"}};
    struct sl_checkpoint_content content = {
        .params = &a.params, .carried = carried, .carried_elems = 5, .state = &s, .texts = texts, .text_count = 2};
    assert_int_equal(sl_checkpoint_write(scratch_path("none/er"), &content, &path, &err), SEQLSTM_NOT_FOUND);
    assert_false(sl_file_exists(scratch_path("none"))); /* a run folder that is gone is not made again */
    assert_int_equal(sl_checkpoint_write(scratch_path("deeper"), &content, &path, &err), SEQLSTM_OK);
    assert_non_null(strstr(path, "deeper/update-000000000012.safetensors"));
    assert_int_equal(sl_checkpoint_open(path, &file, &err), SEQLSTM_OK);
    for (int k = 0; k < 2; k++)
        assert_string_equal(sl_safetensors_find_text(file, texts[k].key), texts[k].value);
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

/* As many states as an optimizer has, up to three, come back, each in its place. */
static void all_states_of_an_optimizer_are_kept(void **state)
{
    (void)state;
    for (int count = 0; count <= 3; count++) {
        struct fake_params a, b;
        struct sl_train_state s, back;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_safetensors *file = NULL;
        char *path = NULL;
        float written[3][FAKE_ELEMS], read[3][FAKE_ELEMS];
        fake_params_init(&a);
        fake_params_init(&b);
        fill_state(&s);
        s.updates = 20 + count;
        s.stopping.has_best = s.averaging = false;
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < FAKE_ELEMS; i++) {
                written[k][i] = (float)(100 * k + i);
                read[k][i] = -1;
            }
            a.params.states[k] = k < count ? written[k] : NULL;
            b.params.states[k] = k < count ? read[k] : NULL;
        }
        const struct sl_checkpoint_content content = {.params = &a.params, .state = &s};
        const struct sl_checkpoint_target target = {.params = &b.params, .state = &back};
        assert_int_equal(sl_checkpoint_write(scratch_path("states"), &content, &path, &err), SEQLSTM_OK);
        assert_int_equal(sl_checkpoint_open(path, &file, &err), SEQLSTM_OK);
        if (sl_checkpoint_load(file, &target, &err) != SEQLSTM_OK)
            fail_msg("%d states: %s", count, err.message);
        for (int k = 0; k < 3; k++)
            for (int v = 0; v < 2; v++) /* the third is frozen */
                for (int64_t i = 0; i < a.views[v].elems; i++) {
                    const int64_t at = a.views[v].offset_elems + i;
                    assert_true(read[k][at] == (k < count ? written[k][at] : -1));
                }
        sl_safetensors_close(file);
        free(path);
    }
}

static void open_written(const struct sl_checkpoint_content *content, struct sl_safetensors **out)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *path = NULL;
    if (sl_checkpoint_write(scratch_folder, content, &path, &err) != SEQLSTM_OK ||
        sl_checkpoint_open(path, out, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    free(path);
}

/* Loads a file whose state says so much and which has so much, where the model wants all of it or nothing. */
static void expect_load(const struct sl_safetensors *file, const bool said[3], const bool there[3], bool wanted)
{
    static const char *const names[] = {SL_CHECKPOINT_AVERAGE, SL_CHECKPOINT_BEST, "carried"};
    struct fake_params params;
    struct sl_train_state back = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_checkpoint_target target = {.params = &params.params, .state = &back};
    float buffers[3][FAKE_ELEMS] = {{0}};
    char expected[200] = "";
    fake_params_init(&params);
    if (wanted) {
        target.average = buffers[0];
        target.best = buffers[1];
        target.carried = buffers[2];
        target.carried_elems = 5;
    }
    for (int k = 2; k >= 0; k--) { /* the first that is wrong is told */
        if (wanted && said[k] != there[k])
            snprintf(expected, sizeof expected, "the checkpoint's state and its tensors `%s…` contradict each other",
                     names[k]);
        else if (!wanted && there[k] && k < 2)
            snprintf(expected, sizeof expected,
                     "the checkpoint holds tensors `%s…`, which this configuration does not use", names[k]);
        else if (!wanted && there[k])
            snprintf(expected, sizeof expected, "the checkpoint carries states of 5 elements, the model has 0");
    }
    const bool loaded = expected[0] == 0;
    const seqlstm_status status = sl_checkpoint_load(file, &target, &err);
    if (status != (loaded   ? SEQLSTM_OK
                   : wanted ? SEQLSTM_CORRUPT_DATA
                            : SEQLSTM_INVALID_CONFIG) ||
        (!loaded && strcmp(err.message, expected) != 0))
        fail_msg("%d %s, expected `%s`", (int)status, err.message, expected);
    assert_true((back.updates > 0) == loaded);
    for (int k = 0; k < 3; k++)
        assert_true(buffers[k][0] == (wanted && loaded && there[k] ? (float)(k + 1) : 0));
}

/* The state says which groups of tensors there are, the target which the model has. */
static void a_state_and_its_tensors_belong_together(void **state)
{
    (void)state;
    float average[FAKE_ELEMS] = {1}, best[FAKE_ELEMS] = {2}, carried[5] = {3};
    for (int n = 0; n < 20; n++) {
        const int row = n < 16 ? n : (n - 16) * 5; /* without carried states only where the others fit */
        const bool said[3] = {row & 1, row & 2, true}, there[3] = {row & 4, row & 8, n < 16};
        struct fake_params params;
        struct sl_train_state s;
        struct sl_safetensors *file = NULL;
        fake_params_init(&params);
        fill_state(&s);
        s.averaging = said[0];
        s.stopping.has_best = said[1];
        const struct sl_checkpoint_content content = {.params = &params.params,
                                                      .average = there[0] ? average : NULL,
                                                      .best = there[1] ? best : NULL,
                                                      .carried = there[2] ? carried : NULL,
                                                      .carried_elems = there[2] ? 5 : 0,
                                                      .state = &s};
        open_written(&content, &file);
        expect_load(file, said, there, true);
        expect_load(file, said, there, false);
        sl_safetensors_close(file);
    }
}

/* What does not fit is named: the group of tensors or the parameter, its type and both shapes. */
static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    struct fake_params a, b;
    struct sl_train_state s, back;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors *file = NULL;
    float carried[5] = {0};
    fake_params_init(&a);
    fake_params_init(&b);
    fill_state(&s);
    s.stopping.has_best = false;
    struct sl_checkpoint_content content = {.params = &a.params, .carried = carried, .carried_elems = 4, .state = &s};
    struct sl_checkpoint_target target = {.params = &b.params, .state = &back, .carried = carried, .carried_elems = 5};
    open_written(&content, &file);
    assert_int_equal(sl_checkpoint_load(file, &target, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "the checkpoint carries states of 4 elements, the model has 5");
    assert_string_equal(err.where, "carried");
    b.params.states[2] = b.m;
    assert_int_equal(sl_checkpoint_load(file, &target, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "the file holds no `optimizer.3.dense.w`");
    assert_string_equal(err.where, "optimizer.3.");
    sl_safetensors_close(file);
    /* of three parameters the second one */
    static const char *const names[] = {"dense.w", "dense.bias", "frozen.w"};
    static const float data[8] = {0};
    struct sl_safetensors_entry entries[3];
    for (int k = 0; k < 3; k++) {
        memset(&entries[k], 0, sizeof entries[k]);
        entries[k].name = names[k];
        entries[k].dtype = k == 1 ? SL_SAFETENSORS_I32 : SL_SAFETENSORS_F32;
        entries[k].rank = k == 1 ? 1 : 2;
        entries[k].shape[0] = b.views[k].rows;
        entries[k].shape[1] = b.views[k].columns;
        entries[k].data = data;
    }
    const struct sl_safetensors_content ints = {.entries = entries, .entry_count = 3};
    assert_int_equal(sl_safetensors_write(scratch_path("ints"), &ints, &err), SEQLSTM_OK);
    assert_int_equal(sl_weights_load(&b.params, scratch_path("ints"), 0, NULL, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "`dense.bias` is I32 [1] in the file, the model has float32 [1]");
    assert_string_equal(err.where, "dense.bias");
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

static char said[1200];

static void keep(void *context, enum sl_log_level level, const char *message)
{
    (void)context;
    assert_int_equal(level, SL_LOG_WARN);
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", message);
}

static bool says_in_order(const char *first, const char *second)
{
    const char *at = strstr(said, first), *line = strchr(said, '\n');
    return at && line && at < line && strstr(line, second) && strchr(line + 1, '\n') == said + strlen(said) - 1;
}

/* The newest that is whole is opened, and each newer one is told, in order. */
static void the_newest_whole_checkpoint_is_opened(void **state)
{
    (void)state;
    static const int64_t whole[] = {10, 20};
    static const char *const damaged[] = {"whole/update-000000000025.safetensors",
                                          "whole/update-000000000030.safetensors"};
    const struct sl_log log = {.write = keep, .level = SL_LOG_WARN};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_safetensors *file = NULL;
    struct fake_params params;
    struct sl_train_state s;
    char folder[128], *path = NULL, *paths[2], expected[256];
    snprintf(folder, sizeof folder, "%s", scratch_path("whole"));
    fake_params_init(&params);
    fill_state(&s);
    const struct sl_checkpoint_content content = {.params = &params.params, .state = &s};
    for (int k = 0; k < 2; k++) {
        s.updates = whole[k];
        assert_int_equal(sl_checkpoint_write(folder, &content, &paths[k], &err), SEQLSTM_OK);
        assert_int_equal(sl_file_write(scratch_path(damaged[k]), "x", 1, &err), SEQLSTM_OK);
    }
    said[0] = 0;
    assert_int_equal(sl_checkpoint_open_latest(folder, &log, &file, &path, &err), SEQLSTM_OK);
    assert_string_equal(path, paths[1]);
    assert_true(says_in_order("update-000000000030", "update-000000000025"));
    sl_safetensors_close(file);
    free(path);
    for (int k = 0; k < 2; k++) {
        unlink(paths[k]);
        free(paths[k]);
    }
    said[0] = 0;
    assert_int_equal(sl_checkpoint_open_latest(folder, &log, &file, &path, &err), SEQLSTM_CORRUPT_DATA);
    snprintf(expected, sizeof expected, "none of the 2 checkpoints in `%s` is valid", folder);
    assert_string_equal(err.message, expected);
    assert_true(says_in_order("update-000000000030", "update-000000000025"));
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
        cmocka_unit_test(states_are_exact),
        cmocka_unit_test(every_word_of_the_state_is_kept),
        cmocka_unit_test(lists_of_another_length_are_told),
        cmocka_unit_test(older_states_are_read),
        cmocka_unit_test(checkpoints_must_fit),
        cmocka_unit_test(all_states_of_an_optimizer_are_kept),
        cmocka_unit_test(a_state_and_its_tensors_belong_together),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(averaged_weights_are_preferred),
        cmocka_unit_test(the_newest_whole_checkpoint_is_opened),
        cmocka_unit_test(the_newest_and_the_best_stay),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
