/* SPDX-License-Identifier: Apache-2.0 */
/* Acts that may fail: then they say so, and leave no file, thread, descriptor or block of memory behind, or do without
 * what has failed and come to the same result. With the models and runs of which acts are. */
#ifndef TEST_FAILING_ACTS_H
#define TEST_FAILING_ACTS_H

#include "opened_run.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <unistd.h>

#include <seqlstm/run.h>

#include "base/value/hash.h"
#include "descriptors.h"
#include "oom.h"
#include "predict/stream.h"
#include "session/api.h"
#include "session/predict/predictor.h"
#include "session/record/session_record.h"
#include "session/run_folder/plan_json.h"

/* ---- models ----------------------------------------------------------------------------------------------------- */

#define LINES(batching)                                                                                                \
    "seqlstm: 1\nname: m\nseed: 3\ndata:\n  type: lines\n  label: first\n  train: {file: lines.txt}\n"                 \
    "  valid: {file: others.txt}\n  test: {file: others.txt}\n  tokenizer: {type: whitespace, specials: [unk]}\n"      \
    "  batch_size: 2\n" batching "backends: [reference]\ndispatch: {policy: order}\noutput: {tensorboard: true}\n"
#define CLASSES(train, vectors)                                                                                        \
    LINES("")                                                                                                          \
    "model:\n  - {type: embedding, dim: 3" vectors "}\n  - {type: lstm, units: 4, name: reader}\n"                     \
    "  - {type: output, activation: softmax}\n"                                                                        \
    "train: {epochs: 2, metrics: [loss, accuracy], class_weight: balanced, validate: {metrics: [loss]}, "              \
    "ema: {decay: 0.5}, early_stopping: {patience: 5, restore_best: true}, "                                           \
    "checkpoint: {every: 1e, keep_last: 1, keep_best: 1}" train "}\n"
#define TEXTS                                                                                                          \
    "seqlstm: 1\nname: m\nseed: 3\ndata:\n  type: text\n  train: {file: lines.txt}\n  tokenizer: {type: whitespace}\n" \
    "  batching: {unit: stream, bptt: 3}\n  batch_size: 2\nmodel:\n  - {type: embedding, dim: 3}\n"                    \
    "  - {type: gru, units: 4, return_sequences: true}\n  - {type: output, activation: softmax}\n"                     \
    "train: {updates: 3}\nbackends: [reference]\ndispatch: {policy: order}\n"
#define TABLE                                                                                                          \
    "seqlstm: 1\nname: m\nseed: 3\ndata:\n  type: csv\n  group: id\n  inputs: [a, b]\n  targets: [y]\n"                \
    "  scale: standard\n  train: {file: table.csv}\n  batch_size: 2\nmodel:\n"                                         \
    "  - {type: lstm, units: 3, return_sequences: true}\n  - {type: dense, units: from_target}\n"                      \
    "train: {updates: 2, loss: mse}\nbackends: [reference]\ndispatch: {policy: order}\n"
#define PAIRS                                                                                                          \
    "seqlstm: 1\nname: m\nseed: 3\ndata:\n  train: {type: generator, name: addition, digits: 1, size: 8, seed: 5}\n"   \
    "  valid: {type: generator, name: addition, digits: 1, size: 3, seed: 6}\n  batch_size: 4\nmodel:\n"               \
    "  encoder:\n    - {type: embedding, dim: 2}\n    - {type: lstm, units: 3, name: reader}\n"                        \
    "  decoder:\n    - {type: embedding, dim: 2}\n"                                                                    \
    "    - {type: lstm, units: 3, return_sequences: true, initial_state: reader}\n"                                    \
    "    - {type: output, activation: softmax}\ndecode: {beam: 2, max_length: 4}\n"                                    \
    "train: {epochs: 1, teacher_forcing: {type: constant, probability: 0.5}, validate: {metrics: [loss, bleu]}}\n"     \
    "dispatch: {policy: order}\nbackends: [reference]\n"

static void train_as(const char *name, const char *text)
{
    struct opened_run run;
    struct sl_run_result result;
    open_text(&run, name, text);
    ok(train_run(&run, &result), &run.err);
    close_run(&run);
}

static void export_as(const char *name, enum sl_weights_format format)
{
    struct opened_run run;
    struct sl_buf notes = {0};
    open_to_read(&run, "classes");
    ok(sl_session_export(run.session, format, scratch_path(name), &notes, &run.err), &run.err);
    sl_buf_deinit(&notes);
    close_run(&run);
}

static int setup(void **state)
{
    if (scratch_make(state) != 0 || chdir(scratch_folder) != 0)
        return -1;
    put_file("lines.txt", "good fine day\nbad grey day\nfair mild day\nbad cold day\ngood warm day\n");
    put_file("others.txt", "bad fine day\nfair grey day\ngood cold day\n");
    put_file("some.vec", "fine 1 2 3\nnowhere 4 5 6\nday 7 8 9\n");
    put_file("table.csv", "id,a,b,y\n1,1,20,3\n1,2,24,5\n2,3,22,4\n2,5,28,1\n2,4,21,2\n");
    put_file("inputs.txt", "warm day\ncold grey day\nfine\n");
    put_file("steps.csv", "b,a\n20,1\n24,2\n\n22,3\n");
    put_file("sums.txt", "1+2\n3+4\n");
    train_as("classes", CLASSES("", ""));
    train_as("texts", TEXTS);
    train_as("table", TABLE);
    train_as("pairs", PAIRS);
    export_as("plain.safetensors", SL_WEIGHTS_CANONICAL);
    export_as("torch.safetensors", SL_WEIGHTS_PYTORCH);
    export_as("whole.onnx", SL_WEIGHTS_ONNX);
    return 0;
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

#define LEFT "a folder is left"

/* A kind of failure. */
struct failing {
    void (*arm)(int n);   /* the n-th of its calls fails, or the first that has not failed before */
    bool (*disarm)(void); /* true: it has failed */
    bool (*expects)(const struct seqlstm_error *err); /* of what is told */
};

static const struct failing *failing; /* NULL: nothing fails */
static int failing_call;

static void arm(void)
{
    if (failing)
        failing->arm(failing_call);
}

/* *out: a number that depends on all of the result. */
struct act {
    const char *name;
    seqlstm_status (*run)(struct opened_run *run, double *out);
    bool writes;
};

static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* A temporary file, or a lock that nothing holds. */
static void expect_nothing_left(const char *act, const char *name)
{
    DIR *folder = opendir(scratch_path(name));
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (strstr(entry->d_name, ".tmp-") || strcmp(entry->d_name, "lock") == 0)
            fail_msg("%s: %s/%s is left", act, name, entry->d_name);
    if (folder)
        closedir(folder);
}

static const char *hashed; /* a file that is part of the result; NULL: none */

static double hash_file(const char *name)
{
    char bytes[4096];
    uint64_t sum = 0;
    FILE *file = fopen(name, "rb");
    for (size_t got; file && (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
        sum = sl_crc64(sum, bytes, got);
    if (file)
        fclose(file);
    return (double)(sum >> 16);
}

static struct opened_run *performing;

static bool perform(const struct act *act, seqlstm_status *out_status, double *out, struct seqlstm_error *err)
{
    struct opened_run run = {.err = SEQLSTM_ERROR_INIT};
    const int descriptors = descriptors_count(), threads = count_threads();
    char where[512] = "";
    *out = 0;
    hashed = NULL;
    performing = &run;
    oom_watch();
    *out_status = act->run(&run, out);
    const bool failed = failing && failing->disarm();
    *out += *out_status == SEQLSTM_OK && hashed ? hash_file(hashed) : 0;
    *err = run.err;
    close_run(&run);
    const int blocks = oom_unwatch(where, sizeof where);
    if (blocks > 0)
        fail_msg("%s: %d blocks of memory, one of %s; %s", act->name, blocks, where, err->message);
    if (descriptors_count() != descriptors)
        fail_msg("%s: %d descriptors, %d before it; %s", act->name, descriptors_count(), descriptors, err->message);
    if (count_threads() != threads)
        fail_msg("%s: %d threads, %d before it; %s", act->name, count_threads(), threads, err->message);
    expect_nothing_left(act->name, "new");
    expect_nothing_left(act->name, "new/checkpoints");
    return failed;
}

static inline void expect_failures(const struct act *act, const struct failing *kind)
{
    struct seqlstm_error err;
    seqlstm_status status;
    double whole, result;
    int failures = 0, told = 0, wrong = 0;
    failing = NULL;
    perform(act, &status, &whole, &err);
    ok(status, &err);
    failing = kind;
    for (failing_call = 1;; failing_call++) {
        const bool failed = perform(act, &status, &result, &err);
        if (!failed)
            break;
        failures++;
        told += status != SEQLSTM_OK;
        if (status != SEQLSTM_OK &&
            (!kind->expects(&err) || err.code != status || err.message[0] == '\0' || strcmp(err.where, LEFT) == 0))
            print_message("%s, failure %d: status %d, code %d: %s (%s)\n", act->name, failures, (int)status,
                          (int)err.code, err.message, err.where);
        else if (status == SEQLSTM_OK && !(fabs(result - whole) <= 1e-12 * fabs(whole)))
            print_message("%s, failure %d: %.17g instead of %.17g\n", act->name, failures, result, whole);
        else
            continue;
        wrong++;
    }
    ok(status, &err);
    print_message("# %s: %d of %d failures are told\n", act->name, told, failures);
    assert_int_equal(wrong, 0);
}

#endif
