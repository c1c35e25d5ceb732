/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions do where an allocation or a write fails: they say so, leave no file, thread or descriptor behind, or do
 * without what has failed and come to the same result. */
#include "opened_run.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <jansson.h>
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

#define LINES                                                                                                          \
    "seqlstm: 1\nname: m\nseed: 3\ndata:\n  type: lines\n  label: first\n  train: {file: lines.txt}\n"                 \
    "  valid: {file: others.txt}\n  test: {file: others.txt}\n  tokenizer: {type: whitespace, specials: [unk]}\n"      \
    "  batch_size: 2\nbackends: [reference]\ndispatch: {policy: order}\noutput: {tensorboard: true}\n"
#define CLASSES(train, vectors)                                                                                        \
    LINES "model:\n  - {type: embedding, dim: 3" vectors "}\n  - {type: lstm, units: 4, name: reader}\n"               \
          "  - {type: output, activation: softmax}\n"                                                                  \
          "train: {epochs: 2, metrics: [loss, accuracy], class_weight: balanced, validate: {metrics: [loss]}, "        \
          "ema: {decay: 0.5}, early_stopping: {patience: 5, restore_best: true}, "                                     \
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
    json_set_alloc_funcs(oom_allocate, free);
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

static enum { WHOLE, MEMORY, WRITES } failing;
static int failing_write;

static void arm(void)
{
    if (failing == MEMORY)
        oom_fail_anew(6);
    else if (failing == WRITES)
        io_fail_at(failing_write, ENOSPC, 3);
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

static bool perform(const struct act *act, seqlstm_status *out_status, double *out, struct seqlstm_error *err)
{
    struct opened_run run = {.err = SEQLSTM_ERROR_INIT};
    const int descriptors = descriptors_count(), threads = count_threads();
    char where[512] = "";
    *out = 0;
    oom_watch();
    *out_status = act->run(&run, out);
    const bool failed = failing == WRITES ? io_disarm() : oom_disarm();
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

static void expect_failures(const struct act *act)
{
    const seqlstm_status expected = failing == WRITES ? SEQLSTM_IO : SEQLSTM_NO_MEMORY;
    struct seqlstm_error err;
    seqlstm_status status;
    double whole, result;
    int failures = 0, told = 0, wrong = 0;
    const int kind = failing;
    failing = WHOLE;
    perform(act, &status, &whole, &err);
    ok(status, &err);
    failing = kind;
    for (failing_write = 1;; failing_write++) {
        const bool failed = perform(act, &status, &result, &err);
        if (!failed)
            break;
        failures++;
        told += status != SEQLSTM_OK;
        if (status != SEQLSTM_OK &&
            (status != expected || err.code != status || err.message[0] == '\0' || strcmp(err.where, LEFT) == 0))
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

/* ---- acts ------------------------------------------------------------------------------------------------------- */

/* While allocations fail. */
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

static seqlstm_status sum_values(void *context, const struct sl_prediction *p, struct seqlstm_error *err)
{
    double *sum = context;
    (void)err;
    for (int64_t k = 0; p->values && k < p->rows * p->features; k++)
        *sum += (double)p->values[k] * (double)(p->record + k + 1);
    for (int32_t t = 0; t < p->text_count; t++)
        *sum += (double)(sl_crc64(0, p->texts[t].text, p->texts[t].bytes) >> 40) * (t + 1) + p->texts[t].score;
    *sum += (double)p->record;
    return SEQLSTM_OK;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static void remove_new(void)
{
    enum { DESCRIPTORS = 8 };
    nftw("new", remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    assert_false(sl_file_exists("new"));
}

static seqlstm_status train(struct opened_run *run, const char *text, double *out)
{
    struct sl_run_result result;
    remove_new();
    open_text(run, "new", text);
    arm();
    SEQLSTM_TRY(train_run(run, &result));
    *out = result.train.train.items[0].value + (double)result.train.end;
    return SEQLSTM_OK;
}

static seqlstm_status train_classes(struct opened_run *run, double *out)
{
    return train(run, CLASSES("", ", weights: some.vec"), out);
}

static seqlstm_status train_from_another(struct opened_run *run, double *out)
{
    return train(run, CLASSES(", init_from: classes", ""), out);
}

static seqlstm_status train_texts(struct opened_run *run, double *out)
{
    return train(run, TEXTS, out);
}

static seqlstm_status train_table(struct opened_run *run, double *out)
{
    return train(run, TABLE, out);
}

static seqlstm_status train_pairs(struct opened_run *run, double *out)
{
    return train(run, PAIRS, out);
}

/* It is over, and keeps what its summary says of the training. */
static seqlstm_status train_no_more(struct opened_run *run, double *out)
{
    struct sl_run_result result;
    remove_new();
    assert_int_equal(system("cp -r classes new"), 0);
    prepare_run(run, "new");
    run->options.writes = true;
    arm();
    SEQLSTM_TRY(sl_session_open_run(run->out, &run->options, run->diagnostics, &run->session, &run->err));
    SEQLSTM_TRY(train_run(run, &result));
    *out = hash_file("new/summary.json");
    return SEQLSTM_OK;
}

static seqlstm_status train_on(struct opened_run *run, double *out)
{
    static const struct sl_override more[] = {{.origin = "--set", .assignment = "train.epochs=3"}};
    struct sl_run_result result;
    remove_new();
    assert_int_equal(system("cp -r classes new"), 0);
    prepare_run(run, "new");
    run->request.overrides = more;
    run->request.override_count = 1;
    run->options.writes = true;
    arm();
    SEQLSTM_TRY(sl_session_open_run(run->out, &run->options, run->diagnostics, &run->session, &run->err));
    SEQLSTM_TRY(train_run(run, &result));
    *out = result.train.train.items[0].value + (double)result.train.end;
    return SEQLSTM_OK;
}

static seqlstm_status open_armed(struct opened_run *run, const char *name)
{
    prepare_run(run, name);
    arm();
    return sl_session_open_run(run->out, &run->options, run->diagnostics, &run->session, &run->err);
}

static seqlstm_status evaluate(struct opened_run *run, const char *name, enum sl_split split, double *out)
{
    struct sl_evaluation evaluation;
    SEQLSTM_TRY(open_armed(run, name));
    SEQLSTM_TRY(sl_session_evaluate(run->session, split, &evaluation, &run->err));
    for (int32_t k = 0; k < evaluation.values.count; k++)
        *out += evaluation.values.items[k].value * (k + 1);
    return SEQLSTM_OK;
}

static seqlstm_status evaluate_classes(struct opened_run *run, double *out)
{
    return evaluate(run, "classes", SL_SPLIT_TRAIN, out);
}

static seqlstm_status evaluate_pairs(struct opened_run *run, double *out)
{
    return evaluate(run, "pairs", SL_SPLIT_VALID, out);
}

static seqlstm_status predict_file(struct opened_run *run, const char *name, const char *file, double *out)
{
    const struct sl_input_request input = {.path = file};
    SEQLSTM_TRY(open_armed(run, name));
    return sl_session_predict(run->session, &input, false, sum_values, out, &run->err);
}

static seqlstm_status predict_classes(struct opened_run *run, double *out)
{
    return predict_file(run, "classes", "inputs.txt", out);
}

static seqlstm_status predict_pairs(struct opened_run *run, double *out)
{
    return predict_file(run, "pairs", "sums.txt", out);
}

static seqlstm_status embed(struct opened_run *run, double *out)
{
    const struct sl_input_request input = {.path = "inputs.txt"};
    SEQLSTM_TRY(open_armed(run, "classes"));
    return sl_session_embed(run->session, &input, NULL, sum_values, out, &run->err);
}

static seqlstm_status predict_lines(struct opened_run *run, double *out)
{
    SEQLSTM_TRY(open_armed(run, "classes"));
    return sl_session_predict_lines(run->session, "inputs.txt", sum_values, out, &run->err);
}

static seqlstm_status predict_steps(struct opened_run *run, double *out)
{
    SEQLSTM_TRY(open_armed(run, "table"));
    return sl_session_predict_lines(run->session, "steps.csv", sum_values, out, &run->err);
}

static seqlstm_status predict_values(struct opened_run *run, double *out)
{
    static const float values[] = {1, 20, 2, 24, 3, 22};
    static const int64_t lengths[] = {2, 1};
    SEQLSTM_TRY(open_armed(run, "table"));
    SEQLSTM_TRY(sl_session_predict_values(run->session, values, lengths, 2, sum_values, out, &run->err));
    return sl_session_predict_values(run->session, values, lengths, 1, sum_values, out, &run->err);
}

static seqlstm_status step_streams(struct sl_context *context, struct sl_stream **streams, double *out,
                                   struct seqlstm_error *err)
{
    static const float x[] = {1, 20, 2, 24};
    float y[4] = {0};
    SEQLSTM_TRY(sl_streams_step(context, streams, 2, x, y, err));
    SEQLSTM_TRY(sl_stream_step(context, streams[0], x, 1, y + 2, err));
    const struct sl_chunk chunks[] = {{.stream = streams[1], .x = x, .steps = 2, .y = y + 2}};
    SEQLSTM_TRY(sl_streams_advance(context, chunks, 1, err));
    for (int k = 0; k < 4; k++)
        *out += (double)y[k] * (k + 1);
    return SEQLSTM_OK;
}

/* A predictor that stays, for two threads, and two streams of it. */
static seqlstm_status predict_streams(struct opened_run *run, double *out)
{
    const struct sl_predictor_limits limits = {.threads = 2, .streams = 2, .chunk_steps = 3, .sequences = 10};
    struct sl_predictor *predictor = NULL;
    struct sl_context *context = NULL;
    struct sl_stream *streams[2] = {NULL, NULL};
    SEQLSTM_TRY(open_armed(run, "table"));
    seqlstm_status status = sl_session_open_predictor(run->session, &limits, &predictor, &run->err);
    if (status == SEQLSTM_OK)
        status = sl_context_open(predictor, &context, &run->err);
    for (int s = 0; s < 2 && status == SEQLSTM_OK; s++)
        status = sl_stream_open(predictor, &streams[s], &run->err);
    if (status == SEQLSTM_OK)
        status = step_streams(context, streams, out, &run->err);
    for (int s = 0; s < 2; s++)
        sl_stream_close(streams[s]);
    sl_context_close(context);
    sl_predictor_destroy(predictor);
    return status;
}

static seqlstm_status sum_text(void *context, const char *text, size_t bytes, struct seqlstm_error *err)
{
    double *sum = context;
    (void)err;
    *sum = *sum / 2 + (double)(sl_crc64(0, text, bytes) >> 40);
    return SEQLSTM_OK;
}

static seqlstm_status generate(struct opened_run *run, double *out)
{
    const struct sl_generate_request request = {.prompt = "good", .length = 4, .temperature = 1, .top_p = 1, .seed = 7};
    SEQLSTM_TRY(open_armed(run, "texts"));
    return sl_session_generate(run->session, &request, sum_text, out, &run->err);
}

static seqlstm_status export_to(struct opened_run *run, const char *name, enum sl_weights_format format,
                                const char *file, const char *second, double *out)
{
    struct sl_buf notes = {0};
    seqlstm_status status = open_armed(run, name);
    if (status == SEQLSTM_OK)
        status = sl_session_export(run->session, format, file, &notes, &run->err);
    sl_buf_deinit(&notes);
    *out = status == SEQLSTM_OK ? hash_file(second) : 0;
    return status;
}

static seqlstm_status export_canonical(struct opened_run *run, double *out)
{
    return export_to(run, "classes", SL_WEIGHTS_CANONICAL, "a.safetensors", "a.safetensors", out);
}

static seqlstm_status export_keras(struct opened_run *run, double *out)
{
    return export_to(run, "classes", SL_WEIGHTS_KERAS, "b.safetensors", "b.safetensors", out);
}

static seqlstm_status export_pairs(struct opened_run *run, double *out)
{
    return export_to(run, "pairs", SL_WEIGHTS_ONNX, "p.onnx", "p.decoder.onnx", out);
}

static seqlstm_status import(struct opened_run *run, const char *file, double *out)
{
    struct sl_buf notes = {0};
    const struct sl_import_request request = {.path = file, .format = SL_WEIGHTS_AUTO};
    remove_new();
    open_text(run, "new", CLASSES("", ""));
    arm();
    const seqlstm_status status = sl_session_import(run->session, &request, &notes, &run->err);
    sl_buf_deinit(&notes);
    if (status != SEQLSTM_OK) {
        if (sl_file_exists(run->out))
            snprintf(run->err.where, sizeof run->err.where, "%s", LEFT);
        return status;
    }
    for (int64_t i = 0; i < run->session->params->elems; i++)
        *out += (double)run->session->params->values[i];
    return SEQLSTM_OK;
}

static seqlstm_status import_canonical(struct opened_run *run, double *out)
{
    return import(run, "plain.safetensors", out);
}

static seqlstm_status import_torch(struct opened_run *run, double *out)
{
    return import(run, "torch.safetensors", out);
}

static seqlstm_status import_onnx(struct opened_run *run, double *out)
{
    return import(run, "whole.onnx", out);
}

static seqlstm_status check_data(struct opened_run *run, double *out)
{
    remove_new();
    open_text(run, "new", CLASSES("", ", weights: some.vec"));
    arm();
    *out = 0;
    return sl_session_check_data(run->session, &run->err);
}

static seqlstm_status plan(struct opened_run *run, double *out)
{
    const struct sl_plan *made = NULL;
    struct sl_buf json = {0}, table = {0};
    remove_new();
    open_text(run, "new", PAIRS);
    arm();
    seqlstm_status status = sl_session_make_plan(run->session, &made, &run->err);
    if (status == SEQLSTM_OK)
        status = sl_session_write_plan_json(run->session, made, &json, &run->err);
    if (status == SEQLSTM_OK)
        sl_session_write_plan_table(run->session, made, false, &table);
    if (status == SEQLSTM_OK && (json.failed || table.failed))
        status = seqlstm_error_set(&run->err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the text");
    *out = status == SEQLSTM_OK ? (double)made->call_count : 0;
    sl_buf_deinit(&json);
    sl_buf_deinit(&table);
    return status;
}

static seqlstm_status sum_plan(void *context, const char *text, size_t bytes)
{
    return sum_text(context, text, bytes, NULL);
}

/* The plan that the run has, and no other. */
static seqlstm_status write_plan(struct opened_run *run, double *out)
{
    SEQLSTM_TRY(open_armed(run, "classes"));
    struct seqlstm_session session = {.session = run->session, .diagnostics = run->diagnostics};
    return seqlstm_write_plan(&session, sum_plan, out, &run->err);
}

static const struct act acts[] = {
    {"training of classes", train_classes, true},
    {"training from another run", train_from_another, false},
    {"training of texts", train_texts, true},
    {"training of a table", train_table, false},
    {"training of pairs", train_pairs, false},
    {"training that goes on", train_on, true},
    {"training that is over", train_no_more, false},
    {"evaluation of classes", evaluate_classes, false},
    {"evaluation of pairs", evaluate_pairs, false},
    {"prediction of classes", predict_classes, false},
    {"prediction of pairs", predict_pairs, false},
    {"text vectors", embed, false},
    {"prediction of lines", predict_lines, false},
    {"prediction of steps", predict_steps, false},
    {"prediction of values", predict_values, false},
    {"prediction of streams", predict_streams, false},
    {"generation", generate, false},
    {"export", export_canonical, true},
    {"export for Keras", export_keras, true},
    {"export of pairs", export_pairs, true},
    {"import", import_canonical, true},
    {"import of PyTorch", import_torch, false},
    {"import of ONNX", import_onnx, false},
    {"check of data", check_data, false},
    {"plan", plan, false},
    {"plan of a run", write_plan, false},
};
enum { ACTS = sizeof acts / sizeof *acts };

static void test_without_memory(void **state)
{
    (void)state;
    failing = MEMORY;
    for (int a = 0; a < ACTS; a++)
        expect_failures(&acts[a]);
}

static void test_on_a_full_disk(void **state)
{
    (void)state;
    failing = WRITES;
    for (int a = 0; a < ACTS; a++)
        if (acts[a].writes)
            expect_failures(&acts[a]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_on_a_full_disk),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
