/* SPDX-License-Identifier: Apache-2.0 */
/* Several files and flags into one model: overlays, includes, --set, variables in paths, and what the
 * messages then call the place. */
#include "model_fixture.h"
#include "oom.h"
#include "temporary.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file_writer.h"
#include "model/doc_limits.h"

#define BASE                                                                                                           \
    "seqlstm: 1\n"                                                                                                     \
    "data: {train: {type: generator, name: adding_problem, size: 8, length: 5}}\n"                                     \
    "model:\n"                                                                                                         \
    "  - {type: lstm, name: cell, units: 7}\n"                                                                         \
    "  - {type: dense, units: from_target}\n"                                                                          \
    "train: {epochs: 1, optimizer: adam}\n"

static char folder[TEMPORARY_BYTES];

static int make_folder(void **state)
{
    oom_group_begin(state);
    char path[TEMPORARY_BYTES + 8];
    if (mkdtemp(temporary_template(folder, "overlay")) == NULL || chdir(folder) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/sub", folder);
    return mkdir(path, 0700);
}

static int remove_folder(void **state)
{
    char command[TEMPORARY_BYTES + 32];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return oom_group_end(state) != 0 || chdir("/") != 0 || system(command) != 0;
}

static void put(const char *name, const char *text)
{
    assert_int_equal(sl_file_write(name, text, strlen(text), NULL), SEQLSTM_OK);
}

static struct loaded load_sets(const char *text, const char *const *sets, size_t count)
{
    struct sl_override overrides[8];
    for (size_t i = 0; i < count; i++)
        overrides[i] = (struct sl_override){"--set", sets[i]};
    struct sl_model_request request = {.overrides = overrides, .override_count = count};
    return load_text("m.yaml", text, strlen(text), &request);
}

static void test_set(void **state)
{
    (void)state;
    static const char *const sets[] = {"train.optimizer.learning_rate=0.5",
                                       "model[0].units=9",
                                       "model.cell.dropout=0.25",
                                       "seed=0x10",
                                       "train.metrics=[mse]",
                                       "data.batch_size=3",
                                       "train.epochs=",
                                       "train.updates=7"};
    struct loaded l = load_sets(BASE, sets, 8);
    assert_string_equal(sl_buf_text(&l.text), "");
    assert_int_equal(l.status, SEQLSTM_OK);
    assert_int_equal(l.model->train.optimizer.kind, SL_OPTIMIZER_ADAM); /* the word is kept */
    assert_true(l.model->train.optimizer.learning_rate == 0.5);
    assert_int_equal(l.model->layers[0].recurrent.units, 9);
    assert_true(l.model->layers[0].recurrent.dropout == 0.25);
    assert_int_equal(l.model->seed, 16);
    assert_int_equal(l.model->train.metrics.count, 1);
    assert_int_equal(l.model->data.batch_size, 3);
    assert_int_equal(l.model->train.epochs, 0); /* taken away */
    assert_int_equal(l.model->train.updates, 7);
    struct sl_place place = sl_layer_find_option_place(&l.model->layers[0], "dropout");
    assert_string_equal(place.file, "--set model.cell.dropout");
    unload(&l);
}

static void test_set_errors(void **state)
{
    (void)state;
    static const struct {
        const char *set, *expected;
    } cases[] = {
        {"train.epochs", "E0009"},
        {"=3", "E0009"},
        {"train..epochs=3", "E0009"},
        {"model[9].units=3", "E0009"},
        {"model.missing.units=3", "E0009"},
        {"model[x]=3", "E0009"},
        {"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s=3", "E0009"},
        {"train.epoch=3", "did you mean `epochs`?"},
        {"train.epochs=many", "1 | train.epochs=many\n  |              ^^^^"},
        {"train.epochs={", "E0002"},
        {"train.epochs=!!int 3", "E0005"},
        {"model=3", "E0101"},
        {"train.early_stoping=", "E0009"},
        {"model[0]=", "an element of a list cannot be removed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loaded l = load_sets(BASE, &cases[i].set, 1);
        if (l.status == SEQLSTM_OK || strstr(sl_buf_text(&l.text), cases[i].expected) == NULL)
            fail_msg("%s: %s", cases[i].set, sl_buf_text(&l.text));
        unload(&l);
    }
}

#define TABLE                                                                                                          \
    "seqlstm: 1\n"                                                                                                     \
    "data: {type: csv, group: id, inputs: [a], label: kind, train: {file: d.csv}, valid: {split: 0.1}, "               \
    "batching: {bucketing: pools}, scale: standard}\n"                                                                 \
    "model:\n"                                                                                                         \
    "  - {type: lstm, name: a, units: 4, direction: bidirectional, merge: sum, return_sequences: true, "               \
    "activation: tanh}\n"                                                                                              \
    "  - {type: lstm, name: b, units: 8, initial_state: a}\n"                                                          \
    "  - {type: dense, units: from_target, activation: softmax}\n"                                                     \
    "backends: [cpu-blas]\n"                                                                                           \
    "train: {epochs: 1, ema: 0.9, class_weight: balanced, validate: 1e, "                                              \
    "schedule: {type: step, every: 1e, factor: 0.5}}\n"

/* An empty map takes all keys away, as a flag and in an overlay. */
static void test_empty_map(void **state)
{
    (void)state;
    static const char *const sets[] = {"dispatch.pin={cell: cpu-blas}", "dispatch.pin={}"};
    struct loaded l = load_sets(BASE, sets, 1);
    assert_int_equal(l.model->dispatch.pin_count, 1);
    unload(&l);
    l = load_sets(BASE, sets, 2);
    assert_string_equal(sl_buf_text(&l.text), "");
    assert_int_equal(l.model->dispatch.pin_count, 0);
    unload(&l);
    static const char *const emptied[] = {"data={}"};
    l = load_sets(BASE, emptied, 1);
    assert_int_not_equal(l.status, SEQLSTM_OK); /* no data are left */
    unload(&l);
}

/* A map on a bare word, and a map of another form, as an overlay and as a flag: what the configuration then says. */
static void test_map_over_word(void **state)
{
    (void)state;
    static const struct {
        const char *first, *set; /* `first` may be NULL */
        const char *expected;    /* lines of the configuration, joined by `; ` */
    } cases[] = {
        {NULL, "train.class_weight={rare: 2}", "class_weight:; rare: 2"},
        {NULL, "train.class_weight.rare=2", "class_weight:; rare: 2"},
        {"train.class_weight={type: 2}", "train.class_weight={rare: 3}", "class_weight:; type: 2; rare: 3"},
        {NULL, "data.batching.bucketing={count: 3}", "bucketing:; count: 3; "},
        {NULL, "data.batching.bucketing.count=3", "bucketing:; count: 3; "},
        {"data.batching.bucketing={count: 3}", "data.batching.bucketing={generator: greedy}",
         "bucketing:; generator: greedy; "},
        {NULL, "train.ema={decay: 0.8, start: 1e}", "ema:; decay: 0.8; start: 1e"},
        {NULL, "train.ema={start: 1e}", "ema:; decay: 0.9; start: 1e"},
        {NULL, "train.ema.start=1e", "ema:; decay: 0.9; start: 1e"},
        {NULL, "train.validate={metrics: [accuracy]}", "validate:; every: 1e; metrics: [accuracy]"},
        {NULL, "model.b.initial_state={bridge: dense}", "initial_state:; from: a; bridge: dense"},
        {NULL, "model.b.initial_state.bridge=dense", "initial_state:; from: a; bridge: dense"},
        {NULL, "model.a.activation={forward: relu, backward: {type: elu, alpha: 2}}",
         "activation:; forward:; type: relu; backward:; type: elu; alpha: 2"},
        {"model.a.activation={type: elu, alpha: 2}", "model.a.activation={forward: relu, backward: tanh}",
         "activation:; forward:; type: relu; backward:; type: tanh"},
        {NULL, "model.a.activation.forward=relu", "activation:; backward:; type: tanh; forward:; type: relu"},
        {NULL, "model.a.activation={backward: relu}", "activation:; forward:; type: tanh; backward:; type: relu"},
        {"model.a.activation={type: elu, alpha: 2}", "model.a.activation.backward.type=relu",
         "activation:; forward:; type: elu; alpha: 2; backward:; type: relu"},
        {"model.a.activation={forward: relu, backward: elu}", "model.a.activation.forward.type=tanh",
         "activation:; forward:; type: tanh; backward:; type: elu"},
        {"model.a.activation={forward: relu, backward: tanh}", "model.a.activation={type: elu}",
         "activation:; type: elu; "},
        {NULL, "model.a.activation={type: elu, alpha: 2}", "activation:; type: elu; alpha: 2"},
        {NULL, "data.valid={file: v.csv}", "valid:; file: "},
        {NULL, "data.valid.file=v.csv", "valid:; file: "},
        {"data.valid={file: v.csv}", "data.valid={split: 0.2}", "valid:; split: 0.2; "},
        {"data.valid.file=v.csv", "data.valid.split=0.2", "valid:; split: 0.2; "},
        {NULL, "data.label={type: class}", "label:; column: kind; type: class"},
        {NULL, "data.scale={fit: all}", "scale:; type: standard; fit: all"},
        {NULL, "backends[0].require=true", "backends:; - plugin: cpu-blas; require: true"},
        {NULL, "train.schedule={divide_by: 4}", "type: step; every: 1e; divide_by: 4"},
        {NULL, "train.schedule.divide_by=4", "type: step; every: 1e; divide_by: 4"},
        {"init=orthogonal", "init={gain: 2}", "init:; type: orthogonal; gain: 2"},
        {"init=pytorch", "init={type: uniform, range: 1}", "init:; type: uniform; range: 1"},
        {"train.optimizer=rmsprop", "train.optimizer={momentum: 0.5}", "optimizer:; type: rmsprop; momentum: 0.5"},
        {"train.optimizer={type: rmsprop, rho: 0.5}", "train.optimizer={type: sgd}", "optimizer:; type: sgd; "},
        {NULL, "train.class_weight.rare=", "class_weight: balanced"},
        {"model.a.activation={type: elu, alpha: 2}", "model.a.activation.alpha=", "activation:; type: elu; alpha: 1; "},
        {"data.batching.bucketing={count: 3}", "data.batching.bucketing.generator=", "bucketing:; count: 3; "},
        {"data.valid={file: v.csv}", "data.valid.split=", "valid:; file: "},
        {NULL, "train.ema.start=", "ema:; decay: 0.9; "},
        {"train.ema=", "train.ema.start=", "metrics: []"}, /* and no `ema` is made */
        {"train.schedule=", "train.schedule={type: exponential, factor: 0.5, every: 1e}",
         "schedule:; type: exponential; "},
        {"data.label=", "data.label={column: kind}", "label:; column: kind"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *sets[] = {cases[i].first ? cases[i].first : cases[i].set, cases[i].set};
        struct loaded l = load_sets(TABLE, sets + (cases[i].first == NULL), cases[i].first ? 2 : 1);
        if (l.status != SEQLSTM_OK)
            fail_msg("%s: %s", cases[i].set, sl_buf_text(&l.text));
        struct sl_buf config, flat;
        sl_buf_init(&config);
        sl_buf_init(&flat);
        assert_int_equal(sl_model_write_config(l.model, 0, &config, NULL), SEQLSTM_OK);
        for (const char *c = sl_buf_text(&config); *c != 0; c++) {
            if (*c == '\n')
                sl_buf_append_text(&flat, "; ");
            else if (*c != ' ' || (c[1] != ' ' && c[-1] != ' ' && c[-1] != '\n'))
                sl_buf_append_char(&flat, *c);
        }
        if (strstr(sl_buf_text(&flat), cases[i].expected) == NULL)
            fail_msg("%s: not %s in %s", cases[i].set, cases[i].expected, sl_buf_text(&flat));
        if (cases[i].first != NULL && strcmp(cases[i].first, "train.ema=") == 0)
            assert_null(strstr(sl_buf_text(&flat), " ema:"));
        sl_buf_deinit(&config);
        sl_buf_deinit(&flat);
        unload(&l);
    }
}

static struct loaded load_files(const char *path, const char *const *overlays, size_t count)
{
    struct loaded l = {.error = SEQLSTM_ERROR_INIT};
    struct sl_model_request request = {.path = path, .overlays = overlays, .overlay_count = count};
    assert_int_equal(sl_diagnostics_create(&l.diagnostics, &l.error), SEQLSTM_OK);
    l.status = sl_model_load(&request, l.diagnostics, &l.model, &l.error);
    assert_int_equal(sl_diagnostics_render(l.diagnostics, false, &l.text, NULL), SEQLSTM_OK);
    return l;
}

static void test_overlays(void **state)
{
    (void)state;
    put("base.yaml", BASE);
    put("sub/one.yaml", "train: {optimizer: {type: sgd, momentum: 0.5}, ema: 0.9}\n"
                        "output: {dir: here}\nlog: {jsonl: false}\n");
    put("two.yaml", "train: {optimizer: {type: momentum, momentum: 0.25}, ema: ~}\n");
    put("three.yaml", "train: {ema: {start: 2e}}\n");
    static const char *const overlays[] = {"sub/one.yaml", "two.yaml"};
    struct loaded l = load_files("base.yaml", overlays, 2);
    assert_string_equal(sl_buf_text(&l.text), "");
    assert_int_equal(l.model->train.optimizer.kind, SL_OPTIMIZER_MOMENTUM);
    assert_true(l.model->train.optimizer.momentum == 0.25);
    assert_false(l.model->train.ema.enabled);
    assert_false(l.model->log.jsonl);
    assert_int_equal(l.model->train.epochs, 1); /* maps merge */
    struct sl_place place = sl_model_find_place(l.model, "log.jsonl");
    assert_string_equal(place.file, "sub/one.yaml");
    assert_int_equal(place.line, 3);
    unload(&l);

    l = load_files("base.yaml", overlays, 1); /* momentum is no key of sgd */
    assert_non_null(strstr(sl_buf_text(&l.text), "--> sub/one.yaml:1:32"));
    assert_int_equal(l.status, SEQLSTM_INVALID_CONFIG);
    unload(&l);

    static const char *const start[] = {"sub/one.yaml", "three.yaml"};
    l = load_files("base.yaml", start, 2); /* a file on a bare word of another file */
    assert_null(strstr(sl_buf_text(&l.text), "three.yaml"));
    unload(&l);

    static const char *const absent[] = {"none.yaml"};
    l = load_files("base.yaml", absent, 1);
    assert_int_equal(l.status, SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(sl_buf_text(&l.text), "E0001"));
    unload(&l);
    l = load_files("absent.yaml", NULL, 0);
    assert_int_equal(l.status, SEQLSTM_NOT_FOUND);
    unload(&l);

    for (size_t more = 0; more < 2; more++) { /* as large as a model file may be, and by one byte larger */
        char *large = calloc(1, SL_DOC_MAX_BYTES + 2);
        assert_non_null(large);
        memset(large, '#', SL_DOC_MAX_BYTES + more);
        put("large.yaml", large);
        free(large);
        l = load_files("large.yaml", NULL, 0);
        assert_int_equal(l.status, SEQLSTM_INVALID_CONFIG);
        assert_true((strstr(sl_buf_text(&l.text), "the file is empty") != NULL) == (more == 0));
        unload(&l);
    }
}

/* Paths are relative to the file that says them. */
static void test_paths(void **state)
{
    (void)state;
    put("sub/base.yaml", "data: {train: {type: npy, x: x.npy}}\n");
    put("m.yaml", "include: sub/base.yaml\nseqlstm: 1\ndata: {train: {y: y.npy}}\n"
                  "model: [{type: dense, units: 2}]\ntrain: {epochs: 1}\n");
    struct loaded l = load_files("m.yaml", NULL, 0);
    char expected[128];
    assert_string_equal(sl_buf_text(&l.text), "");
    snprintf(expected, sizeof expected, "%s/sub/x.npy", folder);
    assert_string_equal(l.model->data.splits[0].x, expected);
    snprintf(expected, sizeof expected, "%s/y.npy", folder);
    assert_string_equal(l.model->data.splits[0].y, expected);
    unload(&l);

    /* messages call a path what its file calls it, which may be as it is */
    put("sub/m.yaml", "seqlstm: 1\ndata: {train: {type: npy, x: /there/x.npy, y: y.npy}}\n"
                      "model: [{type: dense, units: 2}]\ntrain: {epochs: 1}\n");
    l = load_files("sub/m.yaml", NULL, 0);
    snprintf(expected, sizeof expected, "/there/x.npy %s/sub/y.npy", folder);
    sl_buf_truncate(&l.text, 0);
    sl_diagnostics_write_text(l.diagnostics, expected, &l.text);
    assert_string_equal(sl_buf_text(&l.text), "/there/x.npy sub/y.npy");
    unload(&l);

    setenv("SEQLSTM_TEST_FOLDER", "/there", 1);
    setenv("SEQLSTM_TEST_EMPTY", "", 1);
    static const char *const sets[] = {"data.train.x=${SEQLSTM_TEST_FOLDER}/../a.npy",
                                       "data.train.y=${SEQLSTM_TEST_EMPTY:-/or}/b.npy",
                                       "output.dir=${SEQLSTM_TEST_FOLDER}/{name}"};
    l = load_sets("seqlstm: 1\ndata: {train: {type: npy, x: 1, y: 2}}\nmodel: [{type: dense, units: "
                  "2}]\ntrain: {epochs: 1}\n",
                  sets, 3);
    assert_string_equal(sl_buf_text(&l.text), "");
    assert_string_equal(l.model->data.splits[0].x, "/a.npy");
    assert_string_equal(l.model->data.splits[0].y, "/or/b.npy");
    assert_string_equal(l.model->output.dir, "/there/{name}");
    unload(&l);
}

static void test_includes(void **state)
{
    (void)state;
    put("sub/inner.yaml", "include: ../m.yaml\n");
    put("sub/list.yaml", "- 1\n");
    put("sub/a.yaml", "seed: 1\ntrain: {epochs: 5}\n");
    put("sub/b.yaml", "seed: 2\n");
    put("m.yaml", "include: [sub/a.yaml, sub/b.yaml]\n" BASE);
    struct loaded l = load_files("m.yaml", NULL, 0);
    assert_string_equal(sl_buf_text(&l.text), "");
    assert_int_equal(l.model->seed, 2);         /* the later one */
    assert_int_equal(l.model->train.epochs, 1); /* the file itself lies above */
    unload(&l);
    static const char *const wrong[] = {"sub/inner.yaml", "sub/list.yaml", "{a: b}", "~", "[sub/a.yaml, [b]]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[1024];
        snprintf(text, sizeof text, "include: %s\n" BASE, wrong[i]);
        put("m.yaml", text);
        l = load_files("m.yaml", NULL, 0);
        if (l.status == SEQLSTM_OK || strstr(sl_buf_text(&l.text), i == 1 ? "E0101" : "E0010") == NULL)
            fail_msg("%s: %s", wrong[i], sl_buf_text(&l.text));
        unload(&l);
    }
}

/* What is null in a file is not there: a map laid on it counts as a whole. */
static void test_map_over_null(void **state)
{
    (void)state;
    static const char text[] = "seqlstm: 1\n"
                               "data: {train: {type: generator, name: adding_problem, size: 8, length: 5}}\n"
                               "model: [{type: lstm, units: 7}, {type: dense, units: from_target}]\n"
                               "train: {epochs: 1, optimizer: adam, ema: null, early_stopping: ~}\n";
    static const char *const sets[] = {"train.ema={decay: 0.75}",
                                       "train.early_stopping={monitor: train.loss, patience: 7}"};
    struct loaded l = load_sets(text, sets, 2);
    if (l.status != SEQLSTM_OK)
        fail_msg("%s", sl_buf_text(&l.text));
    assert_true(l.model->train.ema.enabled && l.model->train.ema.decay == 0.75);
    assert_true(l.model->train.early_stopping.enabled && l.model->train.early_stopping.patience == 7);
    unload(&l);
    /* one key below it */
    static const char *const keys[] = {"train.ema.decay=0.75", "train.early_stopping.monitor=train.loss"};
    l = load_sets(text, keys, 2);
    if (l.status != SEQLSTM_OK)
        fail_msg("%s", sl_buf_text(&l.text));
    assert_true(l.model->train.ema.enabled && l.model->train.ema.decay == 0.75);
    assert_true(l.model->train.early_stopping.enabled);
    unload(&l);
    /* the same in a file */
    put("null.yaml", text);
    put("over-null.yaml", "train: {ema: {decay: 0.75}, early_stopping: {monitor: train.loss, patience: 7}}\n");
    static const char *const overlays[] = {"over-null.yaml"};
    l = load_files("null.yaml", overlays, 1);
    if (l.status != SEQLSTM_OK)
        fail_msg("%s", sl_buf_text(&l.text));
    assert_true(l.model->train.ema.enabled && l.model->train.ema.decay == 0.75);
    assert_true(l.model->train.early_stopping.enabled && l.model->train.early_stopping.patience == 7);
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),           cmocka_unit_test(test_set_errors),    cmocka_unit_test(test_empty_map),
        cmocka_unit_test(test_map_over_word), cmocka_unit_test(test_map_over_null), cmocka_unit_test(test_overlays),
        cmocka_unit_test(test_paths),         cmocka_unit_test(test_includes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
