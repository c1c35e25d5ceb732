/* SPDX-License-Identifier: Apache-2.0 */
/* The C library as a program uses it: what it computes from memory is what it computes from a file. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/seqlstm.h>

#include "descriptors.h"
#include "ok.h"
#include "scratch.h"

enum { RECORDS = 12, STEPS = 5, FEATURES = 2 };

/* Two columns in very different units, so that each offset and factor of the scaling counts. */
static double get_value(int record, int step, int feature)
{
    const double wave = sin(1.3 * record + 0.7 * step + feature);
    return feature ? 40 + 3 * wave : 1000 * wave - 250;
}

static void write_file(const char *name, bool targets)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    fprintf(file, targets ? "id,a,b,y\n" : "id,a,b\n");
    for (int r = 0; r < RECORDS; r++)
        for (int t = 0; t < STEPS; t++) {
            fprintf(file, "%d,%.3f,%.3f", r, get_value(r, t, 0), get_value(r, t, 1));
            fprintf(file, targets ? ",%.3f\n" : "\n", 7 + get_value(r, t, 0) / 100 + get_value(r, t, 1));
        }
    fclose(file);
}

static void write_model(const char *loss)
{
    FILE *file = fopen(scratch_path("m.yaml"), "w");
    assert_non_null(file);
    fprintf(file,
            "seqlstm: 1\nseed: 1\ndata:\n  type: csv\n  group: id\n  inputs: [a, b]\n  targets: [y]\n"
            "  scale: standard\n  train: {file: train.csv}\n  batch_size: 4\nmodel:\n"
            "  - {type: lstm, units: 4, return_sequences: true}\n  - {type: dense, units: from_target}\n"
            "train: {epochs: 3, loss: %s}\nbackends: [reference]\ndispatch: {policy: order}\n",
            loss);
    fclose(file);
}

struct predictions {
    float values[RECORDS][STEPS];
    int count;
};

static seqlstm_status keep(void *context, int64_t record, const float *values, int64_t rows, int64_t features)
{
    struct predictions *all = context;
    assert_int_equal(record, all->count);
    assert_true(rows == STEPS && features == 1);
    memcpy(all->values[all->count++], values, sizeof all->values[0]);
    return SEQLSTM_OK;
}

static struct seqlstm_session *train(seqlstm_status wanted, struct seqlstm_error *err)
{
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    char out[256];
    static int runs;
    snprintf(out, sizeof out, "%s-%d", scratch_path("run"), runs++);
    options.out_dir = out;
    options.threads = 1;
    ok(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, err), err);
    assert_int_equal(seqlstm_train(session, NULL, NULL, err), wanted);
    return session;
}

static void memory_and_file_predict_the_same(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct predictions from_file = {.count = 0}, from_memory = {.count = 0};
    float values[RECORDS * STEPS * FEATURES];
    int64_t lengths[RECORDS];
    write_file("train.csv", true);
    write_file("in.csv", false);
    write_model("mse");
    struct seqlstm_session *session = train(SEQLSTM_OK, &err);
    for (int r = 0; r < RECORDS; r++) {
        lengths[r] = STEPS;
        for (int t = 0; t < STEPS; t++)
            for (int f = 0; f < FEATURES; f++)
                values[(r * STEPS + t) * FEATURES + f] = (float)get_value(r, t, f);
    }
    ok(seqlstm_predict_file(session, scratch_path("in.csv"), keep, &from_file, &err), &err);
    ok(seqlstm_predict_values(session, values, lengths, RECORDS, keep, &from_memory, &err), &err);
    assert_true(from_file.count == RECORDS && from_memory.count == RECORDS);
    for (int r = 0; r < RECORDS; r++)
        for (int t = 0; t < STEPS; t++) /* the file has three digits after the point */
            assert_true(fabsf(from_file.values[r][t] - from_memory.values[r][t]) <= 1e-3f);
    assert_true(fabsf(from_file.values[0][0] - from_file.values[5][4]) > 1e-2f); /* not all are the same */
    struct seqlstm_metric metrics[4];
    int32_t count = 0;
    ok(seqlstm_evaluate(session, "train", metrics, 4, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_string_equal(metrics[0].name, "loss");
    assert_true(isfinite(metrics[0].value));
    seqlstm_close(session);
}

static void divergence_is_an_error(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    write_file("train.csv", true);
    write_model("mse, optimizer: {type: sgd, learning_rate: 1e30}, on_divergence: skip");
    struct seqlstm_session *session = train(SEQLSTM_NUMERIC, &err);
    assert_non_null(strstr(err.message, "training diverged: the loss of the last epoch"));
    seqlstm_close(session);
}

static bool is_fit(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' && *text != '\n' && *text != '\t')
            return false;
    return true;
}

static void check_log(void *context, int32_t level, const char *message)
{
    (void)level;
    ++*(int *)context;
    assert_true(is_fit(message));
}

/* Control characters of files do not reach a terminal that shows a message. */
static void messages_are_fit_for_a_terminal(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    int shown = 0;
    char out[256];
    snprintf(out, sizeof out, "%s", scratch_path("fit"));
    options.context = &shown;
    options.log = check_log;
    options.out_dir = out;
    write_file("train.csv", true);
    write_model("\"\\e[31mred\"");
    assert_int_equal(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err), SEQLSTM_INVALID_CONFIG);
    assert_true(is_fit(err.message));
    assert_non_null(strstr(err.message, "`\\x1b[31mred`"));
    /* findings of a record that is too short for them */
    struct {
        struct seqlstm_error err;
        char behind[8];
    } small = {.err = {.struct_size = 64, .message = "kept"}};
    assert_int_equal(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &small.err),
                     SEQLSTM_INVALID_CONFIG);
    assert_string_equal(small.err.message, "kept");
    /* a column of a file, in an error of a later call */
    FILE *file = fopen(scratch_path("train.csv"), "w");
    assert_non_null(file);
    fprintf(file, "id,a,\x1b[31mb,y\n0,1,2,3\n");
    fclose(file);
    write_model("mse");
    ok(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err), &err);
    assert_true(seqlstm_train(session, NULL, NULL, &err) != SEQLSTM_OK);
    assert_true(is_fit(err.message));
    if (strstr(err.message, "\\x1b[31mb") == NULL)
        fail_msg("%s", err.message);
    int32_t count;
    assert_int_equal(seqlstm_evaluate(session, "\x1b[31m", NULL, 0, &count, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "no split `\\x1b[31m`, expected train, valid or test");
    seqlstm_close(session);
}

/* Of a file and of data in memory, after a success and after a failure. */
static void what_is_opened_is_closed(void **state)
{
    (void)state;
    static const char table[] = "id,a,b,y\n0,1,2,3\n0,2,3,4\n", other[] = "id,a,b,y\n1,1,2,3\n";
    const struct seqlstm_file files[] = {{"train.csv", table, sizeof table - 1},
                                         {"valid.csv", other, sizeof other - 1}};
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    options.files = files;
    options.file_count = 2;
    const int before = descriptors_count();
    const char *const overrides[] = {"data.train={file: memory:train.csv}", "data.valid={file: memory:valid.csv}"};
    options.overrides = overrides;
    options.override_count = 2;
    write_model("mse");
    ok(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err), &err);
    seqlstm_close(session);
    assert_int_equal(descriptors_count(), before);
    write_model("none");
    assert_int_equal(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err), SEQLSTM_INVALID_CONFIG);
    assert_int_equal(descriptors_count(), before);
}

/* Where no descriptor is left for data in memory, that is what the message says, of whichever file. */
static void without_descriptors_nothing_is_opened(void **state)
{
    (void)state;
    static const struct seqlstm_file files[] = {{"train.csv", "a,y\n1,2\n", 8}, {"valid.csv", "", 0}};
    const int before = descriptors_count(), next = dup(0);
    struct rlimit limit;
    assert_true(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t usual = limit.rlim_cur;
    write_model("mse");
    for (int k = 0; k < 2; k++) {
        struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_session *session = NULL;
        char expected[120];
        options.files = files;
        options.file_count = 2;
        limit.rlim_cur = (rlim_t)(next + k);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const seqlstm_status status = seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err);
        limit.rlim_cur = usual;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(status, SEQLSTM_IO);
        snprintf(expected, sizeof expected, "cannot make a file in memory for `memory:%s`: Too many open files",
                 files[k].name);
        assert_string_equal(err.message, expected);
        assert_int_equal(descriptors_count(), before);
    }
}

/* The place of an error is not that of a warning before it. */
static void an_error_has_its_own_place(void **state)
{
    (void)state;
    static const char text[] =
        "seqlstm: 1\ndata:\n  type: csv\n  train: {file: train.csv}\n  inputs: [load, hour]\n  targets: [load]\n"
        "model: [{type: dense, units: from_target}]\ntrain: {loss: mse, epochs: 1, batch: 3}\n";
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    assert_int_equal(seqlstm_open_text("own.yaml", text, sizeof text - 1, NULL, &session, &err),
                     SEQLSTM_INVALID_CONFIG);
    const char *warned = strstr(err.message, "warning[W0302]"), *failed = strstr(err.message, "error[E0203]");
    assert_true(warned && failed && warned < failed);
    assert_string_equal(err.where, "own.yaml:8:31");
}

/* What a call has found does not come again with the next error of the session. */
static void an_error_is_told_once(void **state)
{
    (void)state;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_error first = SEQLSTM_ERROR_INIT, again = SEQLSTM_ERROR_INIT, other = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    char out[256];
    int32_t count;
    snprintf(out, sizeof out, "%s", scratch_path("once"));
    options.out_dir = out;
    FILE *file = fopen(scratch_path("train.csv"), "w");
    assert_non_null(file);
    fprintf(file, "id,a,b,z\n0,1,2,3\n");
    fclose(file);
    write_model("mse");
    ok(seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &first), &first);
    const seqlstm_status status = seqlstm_train(session, NULL, NULL, &first);
    assert_true(status != SEQLSTM_OK && strncmp(first.message, "error[", 6) == 0);
    assert_true(access(out, F_OK) != 0 && seqlstm_get_folder(session) == NULL); /* it is taken back */
    assert_int_equal(seqlstm_train(session, NULL, NULL, &again), status);
    assert_string_equal(again.message, first.message);
    assert_string_equal(again.where, first.where);
    assert_int_equal(seqlstm_evaluate(session, "none", NULL, 0, &count, &other), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(other.message, "no split `none`, expected train, valid or test");
    assert_string_equal(seqlstm_find_error_code(&other), "E0602");
    file = fopen(scratch_path("train.csv"), "w");
    assert_non_null(file);
    fprintf(file, "id,a,y\n0,1,2\n");
    fclose(file);
    assert_int_equal(seqlstm_train(session, NULL, NULL, &other), status);
    assert_true(strstr(first.message, "no column `y`") && !strstr(first.message, "no column `b`"));
    assert_true(strstr(other.message, "no column `b`") && !strstr(other.message, "no column `y`"));
    write_file("train.csv", true);
    ok(seqlstm_train(session, NULL, NULL, &other), &other); /* and it may go on */
    assert_string_equal(seqlstm_get_folder(session), out);
    seqlstm_close(session);
}

/* A name with an escape sequence reaches neither the message nor the place as it is. */
static void texts_are_fit_for_a_terminal(void **state)
{
    (void)state;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    char path[256];
    snprintf(path, sizeof path, "%s", scratch_path("\x1b[2Jm.yaml"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "seqlstm: 1\ntrain: {epochs: many}\n");
    fclose(file);
    assert_int_equal(seqlstm_open_model(path, &options, &session, &err), SEQLSTM_INVALID_CONFIG);
    assert_null(strchr(err.message, '\x1b'));
    assert_null(strchr(err.where, '\x1b'));
    assert_non_null(strstr(err.where, "\\x1b[2Jm.yaml:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_and_file_predict_the_same),
        cmocka_unit_test(divergence_is_an_error),
        cmocka_unit_test(what_is_opened_is_closed),
        cmocka_unit_test(texts_are_fit_for_a_terminal),
        cmocka_unit_test(messages_are_fit_for_a_terminal),
        cmocka_unit_test(an_error_has_its_own_place),
        cmocka_unit_test(an_error_is_told_once),
        cmocka_unit_test(without_descriptors_nothing_is_opened),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
