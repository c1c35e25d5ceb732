/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a run: weights and event files; what is damaged or foreign is told. */
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
        cmocka_unit_test(damaged_weights_are_refused),
        cmocka_unit_test(foreign_weights_are_told),
        cmocka_unit_test(logs_for_tensorboard_do_not_meet),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
