/* SPDX-License-Identifier: Apache-2.0 */
/* The C library: models and data in memory, and what a run holds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <seqlstm/seqlstm.h>

#include "npy_fixture.h"
#include "ok.h"
#include "scratch.h"

enum { RECORDS = 8, STEPS = 3 };

#define MODEL                                                                                                          \
    "{\"seqlstm\": 1, \"seed\": 1, \"data\": {\"train\": {\"type\": \"npy\", \"x\": \"memory:x\", \"y\": "             \
    "\"memory:y\"}, \"valid\": {\"split\": 0.25}, \"batch_size\": 2}, \"model\": [{\"type\": \"lstm\", \"units\": 4, " \
    "\"name\": \"first\"}, {\"type\": \"dense\", \"units\": \"from_target\"}], \"train\": {\"epochs\": 2, \"loss\": "  \
    "\"mse\", \"metrics\": [\"rmse\", \"mae\"]}, \"backends\": [\"reference\"], \"dispatch\": {\"policy\": "           \
    "\"order\"}}"

/* The bytes of a .npy file. */
struct npy {
    char header[NPY_HEADER];
    float values[RECORDS * STEPS];
};

static void fill_npy(struct npy *out, const char *shape, int count)
{
    npy_write_header(out->header, "<f4", shape);
    for (int k = 0; k < count; k++)
        out->values[k] = sinf(0.7f * (float)k);
}

struct memory {
    struct npy x, y;
    struct seqlstm_file files[2];
    struct seqlstm_options options;
    char warnings[4096], folder[256];
};

static void keep_warning(void *context, int32_t level, const char *message)
{
    struct memory *m = context;
    if (level <= 2)
        strncat(m->warnings, message, sizeof m->warnings - strlen(m->warnings) - 1);
}

static void fill(struct memory *m, const char *run)
{
    *m = (struct memory){.options = SEQLSTM_OPTIONS_INIT};
    fill_npy(&m->x, "(8, 3, 1)", RECORDS * STEPS);
    fill_npy(&m->y, "(8, 1)", RECORDS);
    m->files[0] = (struct seqlstm_file){"x", &m->x, NPY_HEADER + sizeof(float) * RECORDS * STEPS};
    m->files[1] = (struct seqlstm_file){"y", &m->y, NPY_HEADER + sizeof(float) * RECORDS};
    m->options.files = m->files;
    m->options.file_count = 2;
    m->options.threads = 1;
    snprintf(m->folder, sizeof m->folder, "%s", scratch_path(run));
    m->options.out_dir = m->folder;
    m->options.context = m;
    m->options.log = keep_warning;
}

static struct seqlstm_session *train(struct memory *m, const char *run)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    fill(m, run);
    ok(seqlstm_open_text("model", MODEL, strlen(MODEL), &m->options, &session, &err), &err);
    ok(seqlstm_train(session, NULL, NULL, &err), &err);
    return session;
}

struct seen {
    const char *line; /* of metrics.jsonl: what the next row is read from */
    int rows, valid;
    double last_epoch, metrics[3]; /* of the last validation: loss, mae, rmse */
    char text[65536];
};

/* The number behind the name in a line. */
static double find_number(const char *line, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = strstr(line, key);
    if (!found || found > line + strcspn(line, "\n"))
        fail_msg("no `%s` in %s", name, line);
    return strtod(found + strlen(key), NULL);
}

static void expect_line(const struct seqlstm_metric_row *row, const char *line)
{
    char text[128];
    snprintf(text, sizeof text, "\"split\":\"%s\",\"span\":\"%s\"", row->split, row->interval);
    const char *found = strstr(line, text);
    assert_true(found && found < line + strcspn(line, "\n"));
    assert_true(row->update == (int64_t)find_number(line, "update") && row->epoch == find_number(line, "epoch") &&
                row->seconds == find_number(line, "seconds"));
    assert_true(row->metric_count >= 3);
    for (int32_t k = 0; k < row->metric_count; k++)
        assert_true(row->metrics[k].value == find_number(line, row->metrics[k].name));
}

static seqlstm_status see_row(void *context, const struct seqlstm_metric_row *row)
{
    struct seen *seen = context;
    assert_true(row->struct_size == sizeof *row && row->update > 0 && row->seconds >= 0);
    expect_line(row, seen->line);
    seen->line = strchr(seen->line, '\n') + 1;
    seen->rows++;
    seen->last_epoch = row->epoch;
    if (strcmp(row->split, "valid") == 0) {
        seen->valid++;
        assert_string_equal(row->interval, "validation");
        for (int32_t k = 0; k < row->metric_count; k++) {
            const int place = strcmp(row->metrics[k].name, "loss") == 0 ? 0 : row->metrics[k].name[0] == 'm' ? 1 : 2;
            seen->metrics[place] = row->metrics[k].value;
        }
    }
    return SEQLSTM_OK;
}

static seqlstm_status see_text(void *context, const char *text, size_t bytes)
{
    struct seen *seen = context;
    assert_true(bytes < sizeof seen->text && bytes > 0);
    memcpy(seen->text, text, bytes);
    seen->text[bytes] = 0;
    return SEQLSTM_OK;
}

/* A metric without a number, as of a training that diverged. */
static seqlstm_status see_no_number(void *context, const struct seqlstm_metric_row *row)
{
    if (row->update == 999) {
        assert_int_equal(row->metric_count, 2);
        assert_true(isnan(row->metrics[0].value) && row->metrics[1].value == 0.5);
        ++*(int *)context;
    }
    return SEQLSTM_OK;
}

static seqlstm_status stop(void *context, const char *text, size_t bytes)
{
    (void)context;
    (void)text;
    (void)bytes;
    return SEQLSTM_CANCELLED;
}

static void memory_trains_and_metrics_are_read(void **state)
{
    (void)state;
    static struct memory m;
    static struct seen seen;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = train(&m, "memory");
    char log[8192] = "", path[300];
    snprintf(path, sizeof path, "%s/metrics.jsonl", m.folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_in_range(fread(log, 1, sizeof log - 1, file), 1, sizeof log - 2);
    fclose(file);
    seen.line = log;
    ok(seqlstm_read_metrics(session, see_row, &seen, &err), &err);
    assert_int_equal(*seen.line, '\0');
    assert_true(seen.rows >= 4);
    assert_int_equal(seen.valid, 2);
    assert_true(seen.last_epoch >= 2 - 1e-9);
    file = fopen(path, "a");
    assert_non_null(file);
    fputs("{\"update\":999,\"split\":\"train\",\"metrics\":{\"loss\":null,\"mae\":0.5}}\n", file);
    fclose(file);
    int rows = 0;
    ok(seqlstm_read_metrics(session, see_no_number, &rows, &err), &err);
    assert_int_equal(rows, 1);
    struct seqlstm_metric metrics[4];
    int32_t count = 0;
    ok(seqlstm_evaluate(session, "valid", metrics, 4, &count, &err), &err);
    static const char *const names[] = {"loss", "mae", "rmse"};
    assert_int_equal(count, 3);
    for (int k = 0; k < 3; k++) {
        assert_string_equal(metrics[k].name, names[k]);
        assert_true(fabs(metrics[k].value - seen.metrics[k]) <= 1e-9 * fabs(seen.metrics[k]));
    }
    assert_true(fabs(seen.metrics[2] - sqrt(seen.metrics[0])) <= 1e-6);
    ok(seqlstm_write_plan(session, see_text, &seen, &err), &err);
    assert_non_null(strstr(seen.text, "\"first\""));
    ok(seqlstm_write_config(session, see_text, &seen, &err), &err);
    assert_non_null(strstr(seen.text, "memory:x"));
    assert_null(strstr(seen.text, "/proc/"));
    assert_int_equal(seqlstm_write_config(session, stop, NULL, &err), SEQLSTM_CANCELLED);
    seqlstm_close(session);
}

static int32_t keep_first(void *context, int64_t record, const float *values, int64_t rows, int64_t features)
{
    (void)record, (void)rows, (void)features;
    *(float *)context = values[0];
    return SEQLSTM_OK;
}

static float predict_first(struct seqlstm_session *session, const struct memory *m)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int64_t steps = STEPS;
    float y = NAN;
    ok(seqlstm_predict_values(session, m->x.values, &steps, 1, keep_first, &y, &err), &err);
    return y;
}

/* A session that predicts, trains on and predicts again has the predictions of one that is opened then. */
static void trained_folders_are_free(void **state)
{
    (void)state;
    struct memory m, again;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *first = train(&m, "free"), *second = NULL;
    fill(&again, "free");
    const char *const more[] = {"train.epochs=3"};
    again.options.out_dir = NULL;
    again.options.overrides = more;
    again.options.override_count = 1;
    ok(seqlstm_open_run(again.folder, &again.options, &second, &err), &err);
    const float before = predict_first(second, &again);
    assert_true(before == predict_first(first, &m));
    ok(seqlstm_train(second, NULL, NULL, &err), &err);
    const float after = predict_first(second, &again);
    seqlstm_close(second);
    ok(seqlstm_open_run(again.folder, &again.options, &second, &err), &err);
    assert_true(after != before && after == predict_first(second, &again));
    seqlstm_close(second);
    seqlstm_close(first);
}

static void weights_are_views_of_what_predicts(void **state)
{
    (void)state;
    static struct memory m;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = train(&m, "weights"), *again = NULL;
    struct seqlstm_weight weight = {.struct_size = sizeof weight};
    int64_t count = 0;
    assert_int_equal(seqlstm_get_weight(session, 99, &weight, &err), SEQLSTM_INVALID_ARGUMENT);
    ok(seqlstm_load_weights(session, &count, &err), &err);
    assert_int_equal(count, 5);
    ok(seqlstm_get_weight(session, 0, &weight, &err), &err);
    assert_string_equal(weight.layer, "first");
    assert_string_equal(weight.name, "first.l0.forward.w_x");
    assert_true(weight.rows == 16 && weight.columns == 1 && weight.is_trainable);
    assert_int_equal(seqlstm_get_weight(session, count, &weight, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(seqlstm_get_weight(session, -1, &weight, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(seqlstm_export(session, "nonsense", scratch_path("w.st"), &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "pytorch-names"));
    ok(seqlstm_export(session, "pytorch-names", scratch_path("w.safetensors"), &err), &err);
    /* a new run with these weights has the same */
    static struct memory other;
    fill(&other, "imported");
    ok(seqlstm_open_text("model", MODEL, strlen(MODEL), &other.options, &again, &err), &err);
    ok(seqlstm_import(again, "auto", scratch_path("w.safetensors"), &err), &err);
    ok(seqlstm_load_weights(again, &count, &err), &err);
    struct seqlstm_weight copy = {.struct_size = sizeof copy};
    for (int64_t k = 0; k < count; k++) {
        ok(seqlstm_get_weight(session, k, &weight, &err), &err);
        ok(seqlstm_get_weight(again, k, &copy, &err), &err);
        assert_string_equal(copy.name, weight.name);
        assert_memory_equal(copy.values, weight.values, (size_t)(weight.rows * weight.columns) * sizeof(float));
    }
    seqlstm_close(again);
    seqlstm_close(session);
}

/* A backend that keeps its own form of the weights, if it was built. */
static const char *choose_packing_backend(void)
{
    char path[512];
    const char *folder = getenv("SEQLSTM_BACKEND_PATH");
    snprintf(path, sizeof path, "%s/libseqlstm_backend_cpu-blas.so", folder ? folder : "");
    return access(path, R_OK) == 0 ? "backends=[cpu-blas]" : "backends=[reference]";
}

/* A session that imports, predicts, and imports and predicts again: the second time for sequences of the same lengths.
 */
static void later_weights_predict(void **state)
{
    (void)state;
    static struct memory m[2], other;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    char folder[160], path[400];
    float y[2];
    for (int k = 0; k < 2; k++) {
        const char *const overrides[] = {choose_packing_backend(), k ? "seed=2" : "seed=1"};
        fill(&m[k], k ? "from-1" : "from-0");
        m[k].options.overrides = overrides;
        m[k].options.override_count = 2;
        ok(seqlstm_open_text("model", MODEL, strlen(MODEL), &m[k].options, &session, &err), &err);
        ok(seqlstm_train(session, NULL, NULL, &err), &err);
        y[k] = predict_first(session, &m[k]);
        seqlstm_close(session);
    }
    assert_true(fabsf(y[0] - y[1]) > 1e-3f);
    fill(&other, "imports");
    snprintf(folder, sizeof folder, "output.dir=%s/imports-{run}", scratch_folder);
    const char *const overrides[] = {choose_packing_backend(), folder};
    other.options.out_dir = NULL;
    other.options.overrides = overrides;
    other.options.override_count = 2;
    ok(seqlstm_open_text("model", MODEL, strlen(MODEL), &other.options, &session, &err), &err);
    for (int k = 0; k < 4; k++) {
        snprintf(path, sizeof path, "%s/final.safetensors", m[k % 2].folder);
        ok(seqlstm_import(session, "auto", path, &err), &err);
        const float got = predict_first(session, &other);
        if (!(fabsf(got - y[k % 2]) <= 1e-5f))
            fail_msg("import %d: %.9g, not %.9g", k, got, y[k % 2]);
    }
    seqlstm_close(session);
}

static void embeddings_are_the_output_of_the_layer(void **state)
{
    (void)state;
    static struct memory m;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = train(&m, "embed");
    float y[2][4];
    for (int k = 0; k < 2; k++) {
        struct seqlstm_predictor_options options = SEQLSTM_PREDICTOR_OPTIONS_INIT;
        struct seqlstm_predictor *predictor = NULL;
        struct seqlstm_context *context = NULL;
        const int64_t steps = STEPS;
        options.flags = k ? 0 : SEQLSTM_PREDICTOR_EMBED;
        options.layer = k ? "first" : NULL;
        ok(seqlstm_predictor_open(session, &options, &predictor, &err), &err);
        ok(seqlstm_context_open(predictor, &context, &err), &err);
        ok(seqlstm_predict(context, m.x.values, &steps, 1, y[k], &err), &err);
        seqlstm_context_close(context);
        seqlstm_predictor_close(predictor);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    struct seqlstm_predictor_options both = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_predictor *none = NULL;
    both.flags = SEQLSTM_PREDICTOR_EMBED;
    both.layer = "first";
    assert_int_equal(seqlstm_predictor_open(session, &both, &none, &err), SEQLSTM_INVALID_ARGUMENT);
    struct seqlstm_predictor_options later = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    later.reserved0 = 1;
    assert_int_equal(seqlstm_predictor_open(session, &later, &none, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "`reserved0` 1"));
    seqlstm_close(session);
}

static void reserved_members_of_options_are_zero(void **state)
{
    (void)state;
    static const char text[] = "seqlstm: 1\ndata: {train: {type: npy, x: x.npy, y: y.npy}}\n"
                               "model: [{type: lstm, units: 4}]\ntrain: {loss: mse, epochs: 1}\n";
    for (int k = 0; k < 2; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_session *session = NULL;
        struct seqlstm_options later = SEQLSTM_OPTIONS_INIT;
        later.reserved0 = k == 0 ? -7 : 0;
        later.reserved1 = k == 1 ? UINT32_MAX : 0;
        assert_int_equal(seqlstm_open_text("mine.yaml", text, strlen(text), &later, &session, &err),
                         SEQLSTM_INVALID_ARGUMENT);
        assert_null(session);
        assert_non_null(
            strstr(err.message, k == 0 ? "`reserved0` -7, expected 0" : "`reserved1` 4294967295, expected 0"));
    }
}

static void errors_have_code_place_and_reason(void **state)
{
    (void)state;
    static const char text[] = "seqlstm: 1\ndata: {train: {type: npy, x: x.npy, y: y.npy}}\n"
                               "model: [{type: lstm, hidden_size: 4}]\ntrain: {loss: mse, epochs: 1}\n";
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    assert_int_equal(seqlstm_open_text("mine.yaml", text, strlen(text), NULL, &session, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(seqlstm_find_error_code(&err), "E0203");
    assert_string_equal(err.where, "mine.yaml:3:22");
    assert_non_null(strstr(err.message, "units"));
    assert_non_null(strstr(seqlstm_explain("E0203"), "key"));
    /* only the bytes that are named belong to the file */
    static const char more[] = "seqlstm: 1\nmodel: [{type: lstm, units: 4}]\n][ unread";
    assert_int_equal(seqlstm_open_text("mine.yaml", more, sizeof more - 1 - strlen("][ unread"), NULL, &session, &err),
                     SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "data"));
    assert_null(seqlstm_explain("E9999"));
    /* data that were in memory and are not any more; then in memory, but damaged */
    static struct memory m;
    fill(&m, "gone");
    m.options.file_count = 0;
    ok(seqlstm_open_text("mine.yaml", MODEL, strlen(MODEL), &m.options, &session, &err), &err);
    assert_int_not_equal(seqlstm_train(session, NULL, NULL, &err), SEQLSTM_OK);
    assert_non_null(strstr(err.message, "`memory:x`"));
    assert_non_null(strstr(err.message, "give them again"));
    assert_string_equal(seqlstm_find_error_code(&err), "E0501");
    seqlstm_close(session);
    fill(&m, "damaged");
    m.files[0].size = 40;
    ok(seqlstm_open_text("mine.yaml", MODEL, strlen(MODEL), &m.options, &session, &err), &err);
    assert_int_not_equal(seqlstm_train(session, NULL, NULL, &err), SEQLSTM_OK);
    assert_non_null(strstr(err.message, "memory:x"));
    assert_null(strstr(err.message, "/proc/"));
    seqlstm_close(session);
}

/* The name of one layer begins with that of another. */
static void weights_name_their_layer(void **state)
{
    (void)state;
    static struct memory m;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    struct seqlstm_weight weight = {.struct_size = sizeof weight};
    static const char *const names[] = {"model[0].name=a", "model[1].name=a.l0"};
    int64_t count = 0;
    fill(&m, "names");
    m.options.overrides = names;
    m.options.override_count = 2;
    ok(seqlstm_open_text("model", MODEL, strlen(MODEL), &m.options, &session, &err), &err);
    ok(seqlstm_train(session, NULL, NULL, &err), &err);
    ok(seqlstm_load_weights(session, &count, &err), &err);
    int of_lstm = 0, of_dense = 0;
    for (int64_t k = 0; k < count; k++) {
        ok(seqlstm_get_weight(session, k, &weight, &err), &err);
        of_lstm += strcmp(weight.layer, "a") == 0 && strncmp(weight.name, "a.l0.forward.", 13) == 0;
        of_dense += strcmp(weight.layer, "a.l0") == 0 && strchr(weight.name + 5, '.') == NULL;
    }
    assert_int_equal(of_lstm, 3);
    assert_int_equal(of_dense, 2);
    seqlstm_close(session);
}

static void unknown_flags_are_refused(void **state)
{
    (void)state;
    static struct memory m;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    fill(&m, "flags");
    m.options.flags = 1u << 7;
    assert_int_equal(seqlstm_open_text("m", MODEL, strlen(MODEL), &m.options, &session, &err),
                     SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "0x80"));
    assert_null(session);
}

/* A program that was built before `files` and `threads` existed. */
static void shorter_options_count(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    static const char *const overrides[] = {"model[0].units=nonsense"};
    options.struct_size = (uint32_t)offsetof(struct seqlstm_options, files);
    options.overrides = overrides;
    options.override_count = 1;
    options.files = (const struct seqlstm_file *)(uintptr_t)16; /* not read */
    options.file_count = 7;
    assert_int_equal(seqlstm_open_text("m", MODEL, strlen(MODEL), &options, &session, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "nonsense"));
    static struct memory m;
    struct seqlstm_predictor_options short_ones = SEQLSTM_PREDICTOR_OPTIONS_INIT;
    struct seqlstm_predictor *predictor = NULL;
    session = train(&m, "shorter");
    short_ones.struct_size = (uint32_t)offsetof(struct seqlstm_predictor_options, threads);
    short_ones.threads = -7; /* not read */
    short_ones.steps = STEPS + 4;
    ok(seqlstm_predictor_open(session, &short_ones, &predictor, &err), &err);
    struct seqlstm_predictor_info info = {.struct_size = sizeof info};
    seqlstm_predictor_get_info(predictor, &info);
    assert_int_equal(info.steps, STEPS + 4);
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_trains_and_metrics_are_read),
        cmocka_unit_test(trained_folders_are_free),
        cmocka_unit_test(weights_are_views_of_what_predicts),
        cmocka_unit_test(later_weights_predict),
        cmocka_unit_test(embeddings_are_the_output_of_the_layer),
        cmocka_unit_test(errors_have_code_place_and_reason),
        cmocka_unit_test(weights_name_their_layer),
        cmocka_unit_test(unknown_flags_are_refused),
        cmocka_unit_test(shorter_options_count),
        cmocka_unit_test(reserved_members_of_options_are_zero),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
