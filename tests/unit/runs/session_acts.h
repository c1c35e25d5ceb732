/* SPDX-License-Identifier: Apache-2.0 */
/* All that sessions do, as acts that may fail. */
#ifndef TEST_SESSION_ACTS_H
#define TEST_SESSION_ACTS_H

#include "failing_acts.h"

static int writes_left; /* until a writer of results fails; 0: none does */

static seqlstm_status write_one(struct seqlstm_error *err)
{
    if (writes_left > 0 && --writes_left == 0)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "no place for a result");
    return SEQLSTM_OK;
}

static seqlstm_status sum_values(void *context, const struct sl_prediction *p, struct seqlstm_error *err)
{
    double *sum = context;
    SEQLSTM_TRY(write_one(err));
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

/* The edges follow from what steps cost, so that the result is not the same each time. */
static seqlstm_status train_by_buckets(struct opened_run *run, double *out)
{
    double loss;
    *out = 1;
    return train(
        run,
        LINES("  batching: {bucketing: auto}\n") "model:\n  - {type: embedding, dim: 3}\n  - {type: gru, units: 4}\n"
                                                 "  - {type: output, activation: softmax}\ntrain: {updates: 2}\n",
        &loss);
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
    *out = 0;
    hashed = "new/summary.json";
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
    SEQLSTM_TRY(write_one(err));
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
    *out = 0;
    hashed = second;
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

static seqlstm_status read_weights(struct opened_run *run, double *out)
{
    SEQLSTM_TRY(open_armed(run, "classes"));
    SEQLSTM_TRY(sl_session_read_weights(run->session, &run->err));
    for (int64_t i = 0; i < run->session->params->elems; i++)
        *out += (double)run->session->params->values[i] * (double)(i + 1);
    return SEQLSTM_OK;
}

/* Where a run is already: that is refused, and the run stays as it is, without a lock. */
static seqlstm_status train_there(struct opened_run *run, double *out)
{
    struct sl_run_result result;
    open_text(run, "classes", CLASSES("", ""));
    arm();
    const seqlstm_status status = train_run(run, &result);
    expect_nothing_left("training where a run is", "classes");
    *out = 0;
    hashed = "classes/summary.json";
    if (status != SEQLSTM_INVALID_CONFIG || strstr(run->err.message, "`seqlstm resume ") == NULL)
        return status;
    return SEQLSTM_OK;
}

static const struct act acts[] = {
    {"training of classes", train_classes, true},
    {"training by buckets", train_by_buckets, false},
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
    {"weights", read_weights, false},
    {"training where a run is", train_there, false},
};
enum { ACTS = sizeof acts / sizeof *acts };

#endif
