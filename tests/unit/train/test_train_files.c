/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a run: weights, checkpoints and event files; what is damaged or foreign is told. */
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

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "oom.h"
#include "scratch.h"
#include "train/checkpoint/checkpoint.h"
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
    static const struct sl_safetensors_text texts[] = {{"config", "x: 1\n"}, {"plan", "y"}, {"data", "z"}};
    fake_params_init(&a);
    fake_params_init(&b);
    a.values[1] = 77;
    a.values[16] = -1;
    a.values[25] = 5;
    assert_int_equal(sl_weights_save(&a.params, scratch_path("w"), texts, 3, &err), SEQLSTM_OK);
    assert_int_equal(sl_weights_load(&b.params, scratch_path("w"), 0, &report, &err), SEQLSTM_OK);
    assert_memory_equal(a.values, b.values, sizeof a.values);
    assert_int_equal(report.loaded, 3);
    assert_int_equal(b.params.version, 1);
    struct sl_safetensors *file = NULL;
    assert_int_equal(sl_safetensors_open(scratch_path("w"), &file, &err), SEQLSTM_OK);
    assert_string_equal(sl_safetensors_find_text(file, "format"), "seqlstm.weights");
    for (int k = 0; k < 3; k++)
        assert_string_equal(sl_safetensors_find_text(file, texts[k].key), texts[k].value);
    /* A bias is a vector; a matrix of one row or column stays a matrix. */
    assert_int_equal(sl_safetensors_find(file, "dense.bias")->rank, 1);
    assert_int_equal(sl_safetensors_find(file, "dense.w")->rank, 2);
    assert_int_equal(sl_safetensors_find(file, "frozen.w")->rank, 2);
    sl_safetensors_close(file);
}

/* Only files that say what they are, in the version that is read, are checkpoints. */
static void checkpoints_say_what_they_are(void **unused)
{
    (void)unused;
    static const struct {
        const char *format, *version, *message; /* NULL: there is none; no message: it is one */
    } rows[] = {
        {"seqlstm.checkpoint", "1", NULL},
        {"seqlstm.checkpoint", "2", "is a checkpoint of version 2, this program reads version 1; use the version of "},
        {"seqlstm.checkpoint", "10",
         "is a checkpoint of version 10, this program reads version 1; use the version of "},
        {"seqlstm.checkpoint", NULL, "is a checkpoint of version ?, this program reads version 1; use the version of "},
        {"seqlstm.weights", "1", "is no checkpoint of seqlstm"},
        {"seqlstm.checkpoints", "1", "is no checkpoint of seqlstm"},
        {NULL, "1", "is no checkpoint of seqlstm"},
    };
    static const float data[1] = {5};
    const struct sl_safetensors_entry entry = {
        .name = "dense.bias", .dtype = SL_SAFETENSORS_F32, .rank = 1, .shape = {1}, .data = data};
    struct sl_train_state state = {.updates = 77};
    struct fake_params params;
    char path[256], expected[400];
    fake_params_init(&params);
    snprintf(path, sizeof path, "%s", scratch_path("said"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_safetensors_text texts[2];
        struct sl_safetensors *file = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        int32_t count = 0;
        if (rows[i].format)
            texts[count++] = (struct sl_safetensors_text){"format", rows[i].format};
        if (rows[i].version)
            texts[count++] = (struct sl_safetensors_text){"version", rows[i].version};
        const struct sl_safetensors_content content = {&entry, 1, texts, count, true};
        assert_int_equal(sl_safetensors_write(path, &content, &err), SEQLSTM_OK);
        const seqlstm_status status = sl_checkpoint_open(path, &file, &err);
        assert_int_equal(status, rows[i].message ? SEQLSTM_CORRUPT_DATA : SEQLSTM_OK);
        snprintf(expected, sizeof expected, "`%s` %s", path, rows[i].message ? rows[i].message : "");
        if (rows[i].message && strncmp(err.message, expected, strlen(expected)) != 0)
            fail_msg("row %zu: %s", i, err.message);
        assert_true((file == NULL) == (rows[i].message != NULL));
        if (file) { /* but it lacks what else a checkpoint has */
            const struct sl_checkpoint_target target = {.params = &params.params, .state = &state};
            assert_int_equal(sl_checkpoint_load(file, &target, &err), SEQLSTM_CORRUPT_DATA);
            assert_string_equal(err.message, "the checkpoint holds no state of a run");
            assert_true(params.params.version == 0 && state.updates == 77);
        }
        sl_safetensors_close(file);
    }
}

/* Weights that were damaged are not used, though they are no checkpoint. */
static void damaged_weights_are_refused(void **state)
{
    (void)state;
    struct fake_params a, b;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *bytes = NULL;
    size_t count = 0;
    fake_params_init(&a);
    fake_params_init(&b);
    const struct fake_params before = b;
    a.values[1] = 77;
    assert_int_equal(sl_weights_save(&a.params, scratch_path("damaged"), NULL, 0, &err), SEQLSTM_OK);
    assert_int_equal(sl_file_read(scratch_path("damaged"), 1 << 20, &bytes, &count, &err), SEQLSTM_OK);
    bytes[count - 1] ^= 1;
    assert_int_equal(sl_file_write(scratch_path("damaged"), bytes, count, &err), SEQLSTM_OK);
    assert_int_equal(sl_weights_load(&b.params, scratch_path("damaged"), 0, NULL, &err), SEQLSTM_CORRUPT_DATA);
    assert_memory_equal(&before.values, &b.values, sizeof b.values);
    free(bytes);
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

/* ---- other files -------------------------------------------------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_come_back),
        cmocka_unit_test(checkpoints_say_what_they_are),
        cmocka_unit_test(damaged_weights_are_refused),
        cmocka_unit_test(foreign_weights_are_told),
        cmocka_unit_test(logs_for_tensorboard_do_not_meet),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
