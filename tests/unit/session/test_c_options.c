/* SPDX-License-Identifier: Apache-2.0 */
/* Every option and every argument of include/seqlstm/seqlstm.h has its effect, which a caller sees. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/seqlstm.h>

#include "scratch.h"

static const char text[] =
    "the cat sat. a dog ran. the dog sat. the cat ran. a cat sat. the dog ran. a dog sat. the zoo.";

static void write_file(const char *name, const char *content)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, strlen(content), file), strlen(content));
    assert_int_equal(fclose(file), 0);
}

static void write_letters(void)
{
    write_file("text.txt", text);
    write_file("letters.yaml",
               "seqlstm: 1\nname: letters\nseed: 3\ndata:\n  type: text\n  train: {file: text.txt}\n"
               "  valid: {split: 0.3}\n  tokenizer: {type: char}\n  batch_size: 2\n"
               "  batching: {unit: stream, bptt: 5}\nmodel:\n  - {type: embedding, dim: 3}\n"
               "  - {type: lstm, units: 4, return_sequences: true}\n  - {type: output, activation: softmax}\n"
               "train: {task: language_model, epochs: 2, metrics: [loss, accuracy, perplexity]}\n"
               "backends: [reference]\ndispatch: {policy: order}\n");
}

static void write_classes(void)
{
    write_file("lines.txt", "good fine day\nbad grey day\nfair mild day\nbad cold day\ngood warm day\nfair day\n");
    write_file("new.txt", "fine\ncold day\nmild\n");
    write_file("classes.yaml", "seqlstm: 1\nname: classes\nseed: 3\ndata:\n  type: lines\n  label: first\n"
                               "  train: {file: lines.txt}\n  tokenizer: {type: whitespace, specials: [unk]}\n"
                               "  batch_size: 2\nmodel:\n  - {type: embedding, dim: 3}\n  - {type: lstm, units: 4}\n"
                               "  - {type: output, activation: softmax}\ntrain: {epochs: 2}\n"
                               "backends: [reference]\ndispatch: {policy: order}\n");
}

/* ---- options ---------------------------------------------------------------------------------------- */

struct caller {
    struct seqlstm_options options;
    struct seqlstm_session *session;
    struct seqlstm_error err;
    char out[256];
    int messages[6]; /* of each level */
};

static void count_message(void *context, int32_t level, const char *message)
{
    struct caller *caller = context;
    assert_in_range(level, 1, 5);
    assert_true(strlen(message) > 0);
    caller->messages[level]++;
}

static void prepare(struct caller *c, const char *out)
{
    *c = (struct caller){.options = SEQLSTM_OPTIONS_INIT, .err = SEQLSTM_ERROR_INIT};
    snprintf(c->out, sizeof c->out, "%s", scratch_path(out));
    c->options.out_dir = c->out;
    c->options.threads = 1;
}

static void open_model(struct caller *c, const char *name)
{
    if (seqlstm_open_model(scratch_path(name), &c->options, &c->session, &c->err) != SEQLSTM_OK)
        fail_msg("%s", c->err.message);
}

static void train(struct caller *c, seqlstm_status wanted)
{
    seqlstm_status status = seqlstm_train(c->session, NULL, NULL, &c->err);
    if (status != wanted)
        fail_msg("status %d, expected %d: %s", (int)status, (int)wanted, c->err.message);
}

/* Whether a file of the run holds `part`. */
static bool run_says(const struct caller *c, const char *name, const char *part)
{
    char path[320], content[20000];
    snprintf(path, sizeof path, "%s/%s", c->out, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    return strstr(content, part) != NULL;
}

static void overrides_change_the_model(void **state)
{
    (void)state;
    static const char *const overrides[] = {"train.epochs=1", "seed=77", "train.epochs=9"};
    struct caller c;
    write_letters();
    prepare(&c, "overrides");
    c.options.overrides = overrides;
    c.options.override_count = 2; /* the third one is not counted */
    open_model(&c, "letters.yaml");
    assert_null(seqlstm_get_folder(c.session)); /* nothing is written yet */
    train(&c, SEQLSTM_OK);
    assert_string_equal(seqlstm_get_folder(c.session), c.out);
    assert_true(run_says(&c, "config.yaml", "epochs: 1\n") && run_says(&c, "config.yaml", "seed: 77\n"));
    seqlstm_close(c.session);
    static const char *const wrong[] = {"train.epoch=1"};
    c.options.overrides = wrong;
    c.options.override_count = 1;
    assert_int_equal(seqlstm_open_model(scratch_path("letters.yaml"), &c.options, &c.session, &c.err),
                     SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(c.err.message, "E0203"));
    assert_non_null(strstr(c.err.message, "override"));
}

static void the_backend_is_the_chosen_one(void **state)
{
    (void)state;
    struct caller c;
    write_letters();
    prepare(&c, "no-backend");
    const char *const folders[] = {"/nowhere/at-all"};
    c.options.backend_folders = folders;
    c.options.folder_count = 1;
    c.options.backend = "no-such-backend";
    open_model(&c, "letters.yaml");
    assert_true(seqlstm_train(c.session, NULL, NULL, &c.err) != SEQLSTM_OK);
    if (!strstr(c.err.message, "no-such-backend"))
        fail_msg("%s", c.err.message);
    seqlstm_close(c.session);
    prepare(&c, "backend");
    c.options.backend = "reference";
    open_model(&c, "letters.yaml");
    train(&c, SEQLSTM_OK);
    assert_true(run_says(&c, "plan.json", "\"reference\""));
    seqlstm_close(c.session);
}

static void threads_are_planned_for(void **state)
{
    (void)state;
    struct caller c;
    write_letters();
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        char name[32], part[32];
        snprintf(name, sizeof name, "threads-%d", (int)threads);
        snprintf(part, sizeof part, "\"threads\": %d", (int)threads);
        prepare(&c, name);
        c.options.threads = threads;
        open_model(&c, "letters.yaml");
        train(&c, SEQLSTM_OK);
        assert_true(run_says(&c, "plan.json", part));
        seqlstm_close(c.session);
    }
}

static void messages_are_logged(void **state)
{
    (void)state;
    struct caller c;
    write_letters();
    prepare(&c, "log");
    c.options.log = count_message;
    c.options.context = &c;
    open_model(&c, "letters.yaml");
    train(&c, SEQLSTM_OK);
    assert_true(c.messages[2] + c.messages[3] > 0); /* a token of valid that train lacks, or what is left out */
    seqlstm_close(c.session);
}

struct said {
    int32_t level;
    int count;
    char text[2048];
};

static void keep_warning(void *context, int32_t level, const char *message)
{
    struct said *said = context;
    if (strstr(message, "W0301") == NULL)
        return;
    said->level = level;
    said->count++;
    snprintf(said->text, sizeof said->text, "%s", message);
}

static seqlstm_status keep_text(void *context, const char *part, size_t bytes)
{
    struct said *said = context;
    said->count++;
    snprintf(said->text, sizeof said->text, "%.*s", (int)bytes, part);
    return SEQLSTM_OK;
}

/* Warnings about a model that opens are logged as it opens, and not again by what follows. A plan can be had before
 * there is a run. */
static void warnings_of_a_model_are_logged_once(void **state)
{
    (void)state;
    static const char *const overrides[] = {"model[1].activation=relu"};
    struct said said = {.count = 0}, plan = {.count = 0}, later = {.count = 0};
    struct caller c;
    write_letters();
    prepare(&c, "warned");
    c.options.log = keep_warning;
    c.options.context = &said;
    c.options.overrides = overrides;
    c.options.override_count = 1;
    open_model(&c, "letters.yaml");
    assert_true(said.count == 1 && said.level == 2);
    assert_non_null(strstr(said.text, "the states of lstm_1 can grow without bound with relu inside the cell"));
    assert_int_equal(seqlstm_write_plan(c.session, keep_text, &plan, &c.err), SEQLSTM_OK);
    assert_null(seqlstm_get_folder(c.session)); /* no run has begun */
    assert_non_null(strstr(plan.text, "\"schema\": \"seqlstm.plan/1\""));
    assert_non_null(strstr(plan.text, "\"reference\""));
    train(&c, SEQLSTM_OK);
    assert_int_equal(seqlstm_write_plan(c.session, keep_text, &later, &c.err), SEQLSTM_OK);
    assert_true(run_says(&c, "plan.json", later.text)); /* that of the run */
    assert_int_equal(said.count, 1);
    seqlstm_close(c.session);
}

/* ---- training --------------------------------------------------------------------------------------- */

struct progress {
    int calls;
    int64_t update;
    double epoch, loss;
};

static int32_t stop_at_once(void *context, int64_t update, double epoch, double loss)
{
    struct progress *p = context;
    p->calls++;
    p->update = update;
    p->epoch = epoch;
    p->loss = loss;
    return 1;
}

static void open_endless(struct caller *c, const char *name)
{
    static const char *const endless[] = {"train.epochs=1000000"};
    write_letters();
    prepare(c, name);
    c->options.overrides = endless;
    c->options.override_count = 1;
    open_model(c, "letters.yaml");
}

static void training_is_stopped_and_continued(void **state)
{
    (void)state;
    struct caller c;
    struct progress p = {0};
    int32_t stop = 1;
    open_endless(&c, "stopped");
    assert_int_equal(seqlstm_train(c.session, stop_at_once, &p, &c.err), SEQLSTM_CANCELLED);
    assert_non_null(strstr(c.err.message, c.out));
    assert_int_equal(p.calls, 1);
    assert_true(p.update > 0 && isfinite(p.loss) && p.loss > 0.1);
    assert_true(fabs(p.epoch - (double)p.update / 7) < 1); /* 67 letters, two streams, five steps */
    seqlstm_close(c.session);
    c.options.stop = &stop;
    c.options.override_count = 0;
    assert_int_equal(seqlstm_open_run(c.out, &c.options, &c.session, &c.err), SEQLSTM_OK);
    assert_string_equal(seqlstm_get_folder(c.session), c.out);
    assert_int_equal(seqlstm_train(c.session, NULL, NULL, &c.err), SEQLSTM_CANCELLED);
    seqlstm_close(c.session);
}

static int32_t stop_for_ever(void *context, int64_t update, double epoch, double loss)
{
    int *calls = context;
    (void)update, (void)epoch, (void)loss;
    return ++*calls == 1; /* what it says later does not take this back */
}

static void a_stopped_training_does_not_go_on(void **state)
{
    (void)state;
    struct caller c;
    int calls = 0;
    open_endless(&c, "stopped-once");
    assert_int_equal(seqlstm_train(c.session, stop_for_ever, &calls, &c.err), SEQLSTM_CANCELLED);
    assert_int_equal(calls, 1);
    seqlstm_close(c.session);
}

struct answers {
    int64_t end_at; /* record that ends the prediction; -1: none */
    seqlstm_status end;
    int64_t count, features;
    float values[8][3];
};

static seqlstm_status keep(void *context, int64_t record, const float *values, int64_t rows, int64_t features)
{
    struct answers *a = context;
    assert_int_equal(record, a->count);
    assert_int_equal(rows, 1);
    a->features = features;
    memcpy(a->values[a->count++], values, (size_t)features * sizeof *values);
    return record == a->end_at ? a->end : SEQLSTM_OK;
}

/* ---- what is refused --------------------------------------------------------------------------------- */

/* The message has all findings, the place is that of the first error, and none of them is said again. */
static void findings_are_those_of_one_call(void **state)
{
    (void)state;
    struct caller c;
    write_letters();
    write_file("wrong.yaml", "seqlstm: 1\ndata:\n  type: text\n  train: {file: text.txt}\n  valid: {split: 0}\n"
                             "  tokenizer: {type: chars}\nmodel:\n  - {type: embedding, dime: 3}\n"
                             "  - {type: lstm, units: 4, return_sequences: true}\n"
                             "  - {type: output, activation: softmax}\ntrain: {task: language_model, epoch: 2}\n");
    prepare(&c, "wrong");
    assert_int_equal(seqlstm_open_model(scratch_path("wrong.yaml"), &c.options, &c.session, &c.err),
                     SEQLSTM_INVALID_CONFIG);
    const char *line = strstr(c.err.message, "wrong.yaml:"), *where = strstr(c.err.where, "wrong.yaml:");
    assert_true(line && where);
    assert_non_null(strstr(c.err.message, "dime"));
    assert_non_null(strstr(c.err.message, "epoch"));
    assert_int_equal(strncmp(line, where, strlen(where)), 0);
    c.options.overrides = (const char *const[]){"model.lstm_1.unit=5", "seed=many"};
    c.options.override_count = 2;
    assert_int_equal(seqlstm_open_model(scratch_path("letters.yaml"), &c.options, &c.session, &c.err),
                     SEQLSTM_INVALID_CONFIG);
    assert_null(strstr(c.err.message, "dime"));
}

/* A call that fails says nothing of one that failed before it. */
static void each_call_says_its_own_fault(void **state)
{
    (void)state;
    struct caller c;
    struct answers a = {.end_at = -1};
    write_letters();
    prepare(&c, "faults");
    open_model(&c, "letters.yaml");
    assert_int_equal(remove(scratch_path("text.txt")), 0);
    assert_true(seqlstm_train(c.session, NULL, NULL, &c.err) != SEQLSTM_OK);
    assert_non_null(strstr(c.err.message, "text.txt"));
    assert_true(seqlstm_predict_file(c.session, scratch_path("new.txt"), keep, &a, &c.err) != SEQLSTM_OK);
    assert_null(strstr(c.err.message, "text.txt"));
    seqlstm_close(c.session);
}

static void options_of_a_newer_library_are_refused(void **state)
{
    (void)state;
    static const struct {
        int32_t reserved0;
        uint32_t reserved1;
        const char *message;
    } cases[] = {
        {7, 0, "the options have `reserved0` 7, expected 0"},
        {0, 9, "the options have `reserved1` 9, expected 0"},
        {7, 9, "the options have `reserved0` 7, expected 0"},
    };
    struct caller c;
    write_letters();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        prepare(&c, "newer");
        c.options.reserved0 = cases[k].reserved0;
        c.options.reserved1 = cases[k].reserved1;
        assert_int_equal(seqlstm_open_model(scratch_path("letters.yaml"), &c.options, &c.session, &c.err),
                         SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(c.err.message, cases[k].message);
    }
}

/* An error of an older caller, whose message has less room, is not written. */
static void a_shorter_error_stays_as_it_is(void **state)
{
    (void)state;
    struct caller c;
    prepare(&c, "shorter");
    for (uint32_t less = 1; less <= sizeof c.err.message; less += 128) {
        struct seqlstm_error before;
        memset(&c.err, 0x1b, sizeof c.err); /* a control character, which a message would show as an escape */
        c.err.struct_size = (uint32_t)sizeof c.err - less;
        c.err.where[sizeof c.err.where - 1] = c.err.message[sizeof c.err.message - 1] = '\0';
        before = c.err;
        assert_int_equal(seqlstm_open_model(scratch_path("none.yaml"), &c.options, &c.session, &c.err),
                         SEQLSTM_NOT_FOUND);
        assert_memory_equal(&c.err, &before, sizeof before);
    }
}

/* ---- what a trained session answers ------------------------------------------------------------------ */

static void metrics_of_each_split(void **state)
{
    (void)state;
    struct caller c;
    struct seqlstm_metric train_metrics[3], valid[3] = {{"kept", 7}, {"kept", 7}, {"kept", 7}};
    int32_t count = 0;
    write_letters();
    prepare(&c, "metrics");
    open_model(&c, "letters.yaml");
    train(&c, SEQLSTM_OK);
    assert_int_equal(seqlstm_evaluate(c.session, "train", train_metrics, 3, &count, &c.err), SEQLSTM_OK);
    assert_int_equal(count, 3);
    assert_string_equal(train_metrics[0].name, "loss");
    assert_string_equal(train_metrics[1].name, "accuracy");
    assert_string_equal(train_metrics[2].name, "perplexity");
    assert_true(fabs(exp(train_metrics[0].value) - train_metrics[2].value) < 1e-6 * train_metrics[2].value);
    count = 0;
    assert_int_equal(seqlstm_evaluate(c.session, "valid", valid, 2, &count, &c.err), SEQLSTM_OK);
    assert_int_equal(count, 3);
    assert_true(valid[0].value != train_metrics[0].value && valid[2].value == 7); /* as many as there is room for */
    assert_int_equal(seqlstm_evaluate(c.session, "test", valid, 2, &count, &c.err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(c.err.message, "test"));
    seqlstm_close(c.session);
}

static void classes_of_a_file(void **state)
{
    (void)state;
    struct caller c;
    struct answers a = {.end_at = -1}, ended = {.end_at = 1, .end = SEQLSTM_CANCELLED},
                   failed = {.end_at = 2, .end = SEQLSTM_IO};
    write_classes();
    prepare(&c, "classes");
    open_model(&c, "classes.yaml");
    assert_null(seqlstm_find_class(c.session, 0)); /* not known before training */
    train(&c, SEQLSTM_OK);
    assert_string_equal(seqlstm_find_class(c.session, 0), "bad");
    assert_string_equal(seqlstm_find_class(c.session, 1), "fair");
    assert_string_equal(seqlstm_find_class(c.session, 2), "good");
    assert_null(seqlstm_find_class(c.session, 3));
    assert_null(seqlstm_find_class(c.session, -1));
    assert_int_equal(seqlstm_predict_file(c.session, scratch_path("new.txt"), keep, &a, &c.err), SEQLSTM_OK);
    assert_true(a.count == 3 && a.features == 3);
    for (int r = 0; r < 3; r++)
        assert_true(fabsf(a.values[r][0] + a.values[r][1] + a.values[r][2] - 1) < 1e-5f);
    assert_int_equal(seqlstm_predict_file(c.session, scratch_path("new.txt"), keep, &ended, &c.err), SEQLSTM_CANCELLED);
    assert_int_equal(ended.count, 2);
    assert_string_equal(c.err.message, "the caller ended the prediction at record 1");
    assert_int_equal(seqlstm_predict_file(c.session, scratch_path("new.txt"), keep, &failed, &c.err), SEQLSTM_IO);
    assert_string_equal(c.err.message, "the caller ended the prediction at record 2");
    assert_int_equal(seqlstm_predict_file(c.session, scratch_path("none.txt"), keep, &a, &c.err), SEQLSTM_CORRUPT_DATA);
    assert_non_null(strstr(c.err.message, "none.txt"));
    seqlstm_close(c.session);
}

struct written {
    char text[200];
    int parts, most; /* ends after so many; 0: never */
};

static seqlstm_status write_text(void *context, const char *part, size_t bytes)
{
    struct written *w = context;
    strncat(w->text, part, bytes);
    return ++w->parts == w->most ? SEQLSTM_IO : SEQLSTM_OK;
}

static void generate(struct caller *c, const char *prompt, int64_t length, double temperature, uint64_t seed,
                     struct written *out)
{
    *out = (struct written){.parts = 0};
    if (seqlstm_generate(c->session, prompt, length, temperature, seed, write_text, out, &c->err) != SEQLSTM_OK)
        fail_msg("%s", c->err.message);
}

static void texts_depend_on_every_argument(void **state)
{
    (void)state;
    struct caller c;
    struct written a, b;
    write_letters();
    prepare(&c, "generate");
    open_model(&c, "letters.yaml");
    train(&c, SEQLSTM_OK);
    generate(&c, "the ", 60, 1, 4, &a);
    assert_true(a.parts == 60 && strlen(a.text) == 60);
    generate(&c, "the ", 60, 1, 4, &b);
    assert_string_equal(a.text, b.text);
    generate(&c, "the ", 30, 1, 4, &b); /* a shorter one is its beginning */
    assert_true(strlen(b.text) == 30 && strncmp(a.text, b.text, 30) == 0);
    generate(&c, "the ", 60, 1, 5, &b);
    assert_string_not_equal(a.text, b.text);
    generate(&c, "the ", 60, 1, 4 + (UINT64_C(1) << 32), &b);
    assert_string_not_equal(a.text, b.text);
    generate(&c, "the ", 60, 0.1, 4, &b);
    assert_string_not_equal(a.text, b.text);
    generate(&c, "dog ran. a dog sat", 60, 1, 4, &b);
    assert_string_not_equal(a.text, b.text);
    b = (struct written){.most = 3};
    assert_int_equal(seqlstm_generate(c.session, "a", 9, 1, 4, write_text, &b, &c.err), SEQLSTM_IO);
    assert_int_equal(b.parts, 3);
    seqlstm_close(c.session);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    struct caller c;
    prepare(&c, "missing");
    assert_int_equal(seqlstm_open_model(scratch_path("none.yaml"), NULL, &c.session, &c.err), SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(c.err.message, "none.yaml"));
    assert_int_equal(seqlstm_open_run(scratch_path("none"), NULL, &c.session, &c.err), SEQLSTM_NOT_FOUND);
    assert_non_null(strstr(c.err.message, "none"));
    seqlstm_close(NULL);
    int major, minor, patch;
    assert_int_equal(sscanf(seqlstm_get_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overrides_change_the_model),
        cmocka_unit_test(the_backend_is_the_chosen_one),
        cmocka_unit_test(threads_are_planned_for),
        cmocka_unit_test(messages_are_logged),
        cmocka_unit_test(warnings_of_a_model_are_logged_once),
        cmocka_unit_test(training_is_stopped_and_continued),
        cmocka_unit_test(a_stopped_training_does_not_go_on),
        cmocka_unit_test(findings_are_those_of_one_call),
        cmocka_unit_test(each_call_says_its_own_fault),
        cmocka_unit_test(options_of_a_newer_library_are_refused),
        cmocka_unit_test(a_shorter_error_stays_as_it_is),
        cmocka_unit_test(metrics_of_each_split),
        cmocka_unit_test(classes_of_a_file),
        cmocka_unit_test(texts_depend_on_every_argument),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
