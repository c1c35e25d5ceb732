/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that end, are interrupted and go on: what is measured at the end, and which files have a checksum meanwhile. */
#include "opened_run.h"

#include <errno.h>

#include "oom.h"
#include "session/record/session_record.h"

#define MODEL(train)                                                                                                   \
    "seqlstm: 1\nname: classes\nseed: 3\ndata:\n  type: lines\n  label: first\n  train: {file: lines.txt}\n"           \
    "  valid: {file: others.txt}\n  tokenizer: {type: whitespace}\n  batch_size: 2\nmodel:\n"                          \
    "  - {type: embedding, dim: 3}\n  - {type: lstm, units: 4}\n  - {type: output, activation: softmax}\n"             \
    "backends: [reference]\ndispatch: {policy: order}\ntrain: {" train "}\n"

static int setup(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    put_file("lines.txt", "good fine day\nbad grey day\nfair mild day\nbad cold day\ngood warm day\n");
    put_file("others.txt", "bad fine day\nfair grey day\ngood cold day\n");
    return 0;
}

static void expect_metrics(const struct sl_metric_values *values, int32_t count, const char *first, const char *second)
{
    assert_int_equal(values->count, count);
    assert_string_equal(values->items[0].name, first);
    if (count > 1)
        assert_string_equal(values->items[1].name, second);
}

/* Restored or averaged weights are measured once more: each split by its own metrics. Other weights are not. */
static void test_each_split_has_its_own_metrics(void **state)
{
    static const struct {
        const char *name, *model;
        bool again, two; /* the training split has two metrics, the validation split one, or the other way round */
    } cases[] = {
        {"plain", MODEL("epochs: 2, metrics: [loss, accuracy], validate: {metrics: [loss]}"), false, true},
        {"restored",
         MODEL("epochs: 2, metrics: [loss, accuracy], validate: {metrics: [loss]}, "
               "early_stopping: {patience: 5, restore_best: true}"),
         true, true},
        {"averaged", MODEL("epochs: 2, metrics: [loss], validate: {metrics: [loss, accuracy]}, ema: {decay: 0.5}"),
         true, false},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct opened_run run;
        struct sl_run_result result;
        struct sl_evaluation evaluation;
        open_text(&run, cases[k].name, cases[k].model);
        ok(train_run(&run, &result), &run.err);
        assert_int_equal(result.train.end, SL_END_EPOCHS);
        assert_int_equal(result.measured_again, cases[k].again);
        expect_metrics(&result.train.train, 1 + cases[k].two, "loss", "accuracy");
        expect_metrics(&result.train.valid, 2 - cases[k].two, "loss", "accuracy");
        const double wanted = result.train.train.items[0].value;
        close_run(&run);
        open_to_read(&run, cases[k].name);
        ok(sl_session_evaluate(run.session, SL_SPLIT_TRAIN, &evaluation, &run.err), &run.err);
        const double got = evaluation.values.items[0].value;
        const bool same = got - wanted <= 1e-6 && wanted - got <= 1e-6;
        if (same != cases[k].again)
            fail_msg("%s: the loss of training is %g, that of the saved weights %g", cases[k].name, wanted, got);
        close_run(&run);
    }
}

static void stop(void *context, const struct sl_train_report *report)
{
    (void)report;
    atomic_store((int *)context, 15);
}

static bool has_checksum(const char *file)
{
    char entry[64];
    snprintf(entry, sizeof entry, "\"%s\": \"", file);
    return file_says("going/checksums.json", entry);
}

/* metrics.jsonl grows while the run goes on, and has no checksum then; other files are as they were written. */
static void test_only_files_that_are_written_have_a_checksum(void **state)
{
    static const struct sl_override more[] = {{.origin = "--set", .assignment = "train.epochs=1000000"}},
                                    four[] = {{.origin = "--set", .assignment = "train.epochs=4"}};
    struct opened_run run;
    struct sl_run_result result;
    (void)state;
    open_text(&run, "going", MODEL("epochs: 2"));
    ok(train_run(&run, &result), &run.err);
    close_run(&run);
    assert_true(has_checksum("metrics.jsonl") && has_checksum("final.safetensors") && has_checksum("data.json"));
    open_to_go_on(&run, "going", more, 1);
    const struct sl_run_observer observer = {.train = {.context = &run.interrupt.stop, .on_step = stop}};
    ok(sl_session_run(run.session, &observer, &result, &run.err), &run.err);
    assert_int_equal(result.train.end, SL_END_INTERRUPTED);
    assert_int_equal(result.train.signal, 15);
    assert_int_equal(result.train.made, 1);
    close_run(&run);
    assert_false(has_checksum("metrics.jsonl"));
    assert_true(has_checksum("final.safetensors") && has_checksum("data.json"));
    assert_true(file_says("going/config.yaml", "epochs: 1000000"));
    open_to_go_on(&run, "going", four, 1);
    assert_null(strstr(sl_buf_text(&run.said), "warning"));
    ok(train_run(&run, &result), &run.err);
    assert_null(strstr(sl_buf_text(&run.said), "warning"));
    assert_int_equal(result.train.end, SL_END_EPOCHS);
    assert_int_equal(result.train.made, 2 * 3 - 1);
    close_run(&run);
    assert_true(has_checksum("metrics.jsonl"));
    assert_true(file_says("going/config.yaml", "epochs: 4"));
    open_to_read(&run, "going");
    assert_string_equal(sl_buf_text(&run.said), "");
    close_run(&run);
}

static void fill_disk(void *context, const struct sl_train_report *report)
{
    (void)context, (void)report;
    io_fail_at(1, ENOSPC, -1);
}

/* A session that has evaluated, and whose training then fails, has the weights of the run again, and not those that the
 * training has left. */
static void test_a_training_that_fails_leaves_the_weights(void **state)
{
    static const struct sl_override more[] = {{.origin = "--set", .assignment = "train.epochs=9"}};
    const struct sl_run_observer observer = {.train = {.on_step = fill_disk}};
    struct opened_run run;
    struct sl_run_result result;
    struct sl_evaluation before, after;
    (void)state;
    open_text(&run, "failing", MODEL("epochs: 2, optimizer: {type: adam, learning_rate: 0.1}"));
    ok(train_run(&run, &result), &run.err);
    close_run(&run);
    open_to_go_on(&run, "failing", more, 1);
    ok(sl_session_evaluate(run.session, SL_SPLIT_TRAIN, &before, &run.err), &run.err);
    assert_int_equal(sl_session_run(run.session, &observer, &result, &run.err), SEQLSTM_IO);
    assert_true(io_disarm());
    ok(sl_session_evaluate(run.session, SL_SPLIT_TRAIN, &after, &run.err), &run.err);
    assert_true(after.values.items[0].value == before.values.items[0].value);
    close_run(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_split_has_its_own_metrics),
        cmocka_unit_test(test_only_files_that_are_written_have_a_checksum),
        cmocka_unit_test(test_a_training_that_fails_leaves_the_weights),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
