/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the C library on models of each kind, with arguments that it takes and that it refuses: all that it
 * returns, writes and reports, as a whole. Compared with tests/fixtures/reports/c_calls.txt; see golden.h.
 */
#include <math.h>
#include <unistd.h>

#include "golden.h"

#include <seqlstm/seqlstm.h>

#include "base/value/buf.h"
#include "scratch.h"

enum { VALUES_SHOWN = 12, VALUES_MOST = 4096 };

static const struct kind {
    const char *name, *file, *data, *yaml;
} kinds[] = {
    {"steps", "train.csv",
     "id,a,b,y\n1,100,2,30\n1,300,1,50\n1,200,2,10\n2,100,3,20\n2,400,1,60\n3,100,1,20\n3,300,2,40\n",
     "  {type: csv, group: id, inputs: [a, b], targets: [y], scale: standard, train: {file: train.csv}, valid: {file: "
     "train.csv}, batch_size: 2}\nmodel:\n  - {type: lstm, units: 3, return_sequences: true}\n"
     "  - {type: dense, units: from_target}\ntrain: {epochs: 2, metrics: [mae, rmse]}\n"},
    {"rows", "train.csv", "a,b,y\n1,2,x\n2,1,z\n3,2,x\n4,0,z\n",
     "  {type: csv, inputs: [a, b], label: y, train: {file: train.csv}, batch_size: 2}\nmodel:\n"
     "  - {type: dense, units: from_target, activation: softmax}\ntrain: {epochs: 1, task: classify, metrics: "
     "[accuracy]}\n"},
    {"classes", "train.txt", "good a fine day\nbad a grey day\nfair mild day\nbad cold day\n",
     "  {type: lines, label: first, train: {file: train.txt}, tokenizer: {type: whitespace, specials: [unk]}, "
     "batch_size: 2}\nmodel:\n  - {type: embedding, dim: 3}\n  - {type: lstm, units: 3, direction: bidirectional}\n"
     "  - {type: output, activation: softmax}\ntrain: {epochs: 1, metrics: [accuracy]}\n"},
    {"letters", "train.txt", "the cat sat.\na dog ran.\nthe dog sat.\n",
     "  {type: text, train: {file: train.txt}, tokenizer: {type: char, specials: [bos, eos]}, batching: {unit: "
     "sequence}, batch_size: 2}\nmodel:\n  - {type: embedding, dim: 3}\n"
     "  - {type: gru, units: 4, return_sequences: true}\n  - {type: output, activation: softmax}\n"
     "train: {task: language_model, epochs: 2, metrics: [perplexity]}\n"},
    {"pairs", "unused.txt", "",
     "  {train: {type: generator, name: addition, digits: 1, size: 20}, batch_size: 4}\nmodel:\n  encoder:\n"
     "    - {type: embedding, dim: 2}\n    - {type: lstm, units: 3}\n  decoder:\n    - {type: embedding, dim: 2}\n"
     "    - {type: lstm, units: 3, return_sequences: true}\n    - {type: output, activation: softmax}\n"
     "train: {epochs: 1, loss: cross_entropy}\ndecode: {beam: 2, n_best: 2, max_length: 3}\n"},
    {"tags", "train.txt", "a\tX\nb\tY\n\nb\tX\n\na\tX\nc\tZ\nb\tY\n",
     "  {type: conll, label: last, train: {file: train.txt}, tokenizer: {type: whitespace, specials: [unk]}, "
     "batch_size: "
     "2}\nmodel:\n  - {type: embedding, dim: 3}\n  - {type: rnn, units: 3, return_sequences: true}\n"
     "  - {type: output, activation: softmax}\ntrain: {task: tag, epochs: 1, metrics: [accuracy]}\n"},
};
enum { STEPS, ROWS, CLASSES, LETTERS, PAIRS, TAGS, KIND_COUNT };

static struct sl_buf out;

static void write_file(const char *name, const char *content)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, strlen(content), file), strlen(content));
    assert_int_equal(fclose(file), 0);
}

/* ---- what is said ----------------------------------------------------------------------------------------------- */

/* Without the folder of the test. */
static void say_text(const char *text)
{
    for (const char *at; (at = strstr(text, scratch_folder)) != NULL; text = at + strlen(scratch_folder))
        sl_buf_printf(&out, "%.*sFOLDER", (int)(at - text), text);
    sl_buf_append_text(&out, text);
}

static void say_values(const float *values, int64_t count)
{
    for (int64_t k = 0; k < count && k < VALUES_SHOWN; k++)
        sl_buf_printf(&out, " %.4g", (double)values[k]);
    sl_buf_append_text(&out, count > VALUES_SHOWN ? " ...\n" : "\n");
}

static bool say(const char *call, seqlstm_status status, const struct seqlstm_error *err)
{
    sl_buf_printf(&out, "%s: ", call);
    if (status == SEQLSTM_OK) {
        sl_buf_append_text(&out, "ok\n");
        return true;
    }
    sl_buf_printf(&out, "%d%s %s", (int)status, err->code == status ? "" : " (the record says another)",
                  seqlstm_find_error_code(err));
    const bool in_source = strstr(err->where, ".c:") != NULL; /* lines of the source change */
    if (err->where[0] && !in_source && strncmp(err->message, "error[", 6) == 0) {
        sl_buf_append_text(&out, " at ");
        say_text(err->where);
    }
    sl_buf_append_text(&out, " \"");
    say_text(err->message);
    sl_buf_append_text(&out, "\"\n");
    return false;
}

static void say_log(void *context, int32_t level, const char *message)
{
    (void)context;
    if (level > 2)
        return;
    sl_buf_printf(&out, "  log %d: ", (int)level);
    say_text(message);
    sl_buf_append_char(&out, '\n');
}

static seqlstm_status say_row(void *context, const struct seqlstm_metric_row *row)
{
    sl_buf_printf(&out, "  %u %lld %.4g %s %s", row->struct_size, (long long)row->update, row->epoch, row->split,
                  row->interval);
    for (int32_t k = 0; k < row->metric_count; k++)
        sl_buf_printf(&out, " %s=%.4g", row->metrics[k].name, row->metrics[k].value);
    sl_buf_append_char(&out, '\n');
    return context && --*(int *)context == 0 ? SEQLSTM_CANCELLED : SEQLSTM_OK;
}

/* The context counts down the calls to the one that ends it. */
static seqlstm_status say_prediction(void *context, int64_t record, const float *values, int64_t rows, int64_t features)
{
    sl_buf_printf(&out, "  %lld [%lld, %lld]", (long long)record, (long long)rows, (long long)features);
    say_values(values, rows * features);
    return context && --*(int *)context == 0 ? SEQLSTM_CANCELLED : SEQLSTM_OK;
}

static seqlstm_status say_part(void *context, const char *text, size_t bytes)
{
    char *copy = strndup(text, bytes);
    sl_buf_append_text(&out, "  \"");
    say_text(copy);
    sl_buf_append_text(&out, "\"\n");
    free(copy);
    return context && --*(int *)context == 0 ? SEQLSTM_CANCELLED : SEQLSTM_OK;
}

static seqlstm_status say_reply(void *context, const struct seqlstm_reply *reply)
{
    sl_buf_printf(&out, "  %u %lld [%lld, %lld]", reply->struct_size, (long long)reply->record, (long long)reply->rows,
                  (long long)reply->features);
    for (int64_t k = 0; k < reply->text_count; k++)
        sl_buf_printf(&out, " \"%.*s\" %.4g", (int)reply->texts[k].bytes, reply->texts[k].text, reply->texts[k].score);
    say_values(reply->values, reply->values ? reply->rows * reply->features : 0);
    return context && --*(int *)context == 0 ? SEQLSTM_CANCELLED : SEQLSTM_OK;
}

/* ---- sessions --------------------------------------------------------------------------------------------------- */

static struct seqlstm_session *open_kind(const struct kind *kind, const char *folder)
{
    static char path[256], text[2048];
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_session *session = NULL;
    write_file(kind->file, kind->data);
    snprintf(text, sizeof text,
             "seqlstm: 1\nname: %s\nseed: 5\ndata:\n%sbackends: [reference]\ndispatch: {policy: order}\n", kind->name,
             kind->yaml);
    write_file("m.yaml", text);
    snprintf(path, sizeof path, "%s", scratch_path(folder));
    options.out_dir = path;
    options.threads = 1;
    options.log = say_log;
    if (!say("open", seqlstm_open_model(scratch_path("m.yaml"), &options, &session, &err), &err))
        fail_msg("%s", err.message);
    return session;
}

static void show_evaluations(struct seqlstm_session *session)
{
    static const char *const splits[] = {"train", "valid", "test", "dev", ""};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int s = 0; s < 5; s++)
        for (int32_t capacity = s == 0 ? 0 : 4; capacity < 5; capacity++) {
            struct seqlstm_metric metrics[5] = {{"kept", 1}, {"kept", 1}, {"kept", 1}, {"kept", 1}, {"kept", 1}};
            int32_t count = -1;
            const seqlstm_status status = seqlstm_evaluate(session, splits[s], metrics, capacity, &count, &err);
            sl_buf_printf(&out, "evaluate \"%s\", room for %d: %d of", splits[s], capacity, count);
            for (int k = 0; k < 5; k++)
                sl_buf_printf(&out, " %s=%.4g", metrics[k].name, metrics[k].value);
            say("", status, &err);
        }
}

static void show_weights(struct seqlstm_session *session)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_weight weight = {.struct_size = sizeof weight};
    int64_t count = -1;
    say("get_weight before load", seqlstm_get_weight(session, 0, &weight, &err), &err);
    say("load_weights", seqlstm_load_weights(session, &count, &err), &err);
    for (int64_t k = -1; k <= count; k++)
        if (say("get_weight", seqlstm_get_weight(session, k, &weight, &err), &err)) {
            sl_buf_printf(&out, "  %u %s of %s [%lld, %lld]%s", weight.struct_size, weight.name, weight.layer,
                          (long long)weight.rows, (long long)weight.columns, weight.is_trainable ? " trained" : "");
            say_values(weight.values, weight.rows * weight.columns);
        }
    struct seqlstm_weight less = {.struct_size = offsetof(struct seqlstm_weight, rows), .rows = -3};
    say("get_weight of an older program", seqlstm_get_weight(session, 0, &less, &err), &err);
    sl_buf_printf(&out, "  %u %s %lld\n", less.struct_size, less.layer, (long long)less.rows);
}

static void show_files(struct seqlstm_session *session, const struct kind *kind)
{
    static const char *const formats[] = {"safetensors", "pytorch-names", "keras-names", "onnx", "auto", "npz"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char file[256], folder[64];
    for (int f = 0; f < 6; f++) {
        snprintf(file, sizeof file, "%s", scratch_path(f == 3 ? "w.onnx" : "w.safetensors"));
        unlink(file);
        sl_buf_printf(&out, "%s: ", formats[f]);
        say("export", seqlstm_export(session, formats[f], file, &err), &err);
        snprintf(folder, sizeof folder, "%s-%d", kind->name, f);
        struct seqlstm_session *other = open_kind(kind, folder);
        int64_t count = -1;
        if (say("import", seqlstm_import(other, formats[f], file, &err), &err))
            say("load_weights", seqlstm_load_weights(other, &count, &err), &err);
        sl_buf_printf(&out, "%lld weights\n", (long long)count);
        seqlstm_close(other);
    }
}

static void show_session(struct seqlstm_session *session)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int64_t count = -1;
    int calls = 2;
    sl_buf_printf(&out, "folder: %s\n", seqlstm_get_folder(session) ? "there" : "none");
    say("metrics before training", seqlstm_read_metrics(session, say_row, NULL, &err), &err);
    say("load_weights before training", seqlstm_load_weights(session, &count, &err), &err);
    say("train", seqlstm_train(session, NULL, NULL, &err), &err);
    sl_buf_append_text(&out, "folder: ");
    say_text(seqlstm_get_folder(session));
    sl_buf_append_char(&out, '\n');
    say("metrics", seqlstm_read_metrics(session, say_row, NULL, &err), &err);
    say("two metrics", seqlstm_read_metrics(session, say_row, &calls, &err), &err);
    for (int64_t k = -1; k < 40; k++)
        sl_buf_printf(&out, "%s%s", k < 0 ? "classes: " : " ",
                      seqlstm_find_class(session, k) ? seqlstm_find_class(session, k) : "-");
    sl_buf_append_char(&out, '\n');
    show_evaluations(session);
    show_weights(session);
}

static void show_predictions(struct seqlstm_session *session, const char *input)
{
    static const float values[] = {100, 2, 300, 1, 200, 2, 50, 3};
    static const int64_t lengths[][3] = {{1, 3, 0}, {4, 0, 0}, {2, -1, 1}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char path[256];
    int calls = 2;
    write_file("in.txt", input);
    snprintf(path, sizeof path, "%s", scratch_path("in.txt"));
    say("predict_file", seqlstm_predict_file(session, path, say_prediction, NULL, &err), &err);
    say("two of them", seqlstm_predict_file(session, path, say_prediction, &calls, &err), &err);
    say("no file", seqlstm_predict_file(session, scratch_path("none"), say_prediction, NULL, &err), &err);
    for (int k = 0; k < 3; k++)
        say("predict_values", seqlstm_predict_values(session, values, lengths[k], 3, say_prediction, NULL, &err), &err);
    calls = 1;
    say("one value", seqlstm_predict_values(session, values, lengths[0], 3, say_prediction, &calls, &err), &err);
    say("no value", seqlstm_predict_values(session, values, lengths[0], 0, say_prediction, NULL, &err), &err);
    say("less than no value", seqlstm_predict_values(session, values, lengths[0], -1, say_prediction, NULL, &err),
        &err);
}

static void show_texts(struct seqlstm_session *session, int prompts)
{
    static const struct {
        const char *prompt;
        int64_t length;
        double temperature;
        uint64_t seed;
    } cases[] = {{"the ", 9, 1, 1}, {"the ", 9, 1, 2}, {"the ", 9, 0, 1}, {"", 5, 0.5, 3},
                 {"a", 0, 1, 1},    {"a", -1, 1, 1},   {"a", 3, -1, 1},   {"Q", 3, 1, 1}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int calls = 2;
    for (int k = 0; k < prompts; k++)
        say("generate",
            seqlstm_generate(session, cases[k].prompt, cases[k].length, cases[k].temperature, cases[k].seed, say_part,
                             NULL, &err),
            &err);
    say("two parts", seqlstm_generate(session, "the ", 9, 1, 1, say_part, &calls, &err), &err);
}

/* ---- predictors ------------------------------------------------------------------------------------------------- */

static struct seqlstm_predictor *show_predictor(struct seqlstm_session *session, struct seqlstm_predictor_options o)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_predictor *predictor = NULL;
    struct seqlstm_predictor_info i = {.struct_size = sizeof i};
    o.struct_size = sizeof o;
    if (!say("predictor_open", seqlstm_predictor_open(session, &o, &predictor, &err), &err))
        return NULL;
    seqlstm_predictor_get_info(predictor, &i);
    sl_buf_printf(&out, "  input %u, %son steps, %lld of %lld; output %u, %son steps, %lld; %u streams of %lld%s; %u",
                  i.input, i.input_on_steps ? "" : "not ", (long long)i.input_features, (long long)i.input_classes,
                  i.output, i.output_on_steps ? "" : "not ", (long long)i.output_features, i.streams,
                  (long long)i.stream_bytes, i.reserved0 ? "!" : "", i.texts);
    sl_buf_printf(&out, " texts; %lld steps; \"", (long long)i.steps);
    say_text(i.stream_reason);
    sl_buf_append_text(&out, "\"\n");
    return predictor;
}

static void show_predictor_options(struct seqlstm_session *session)
{
    const struct seqlstm_predictor_options wanted[] = {
        {.flags = SEQLSTM_PREDICTOR_EMBED},
        {.flags = SEQLSTM_PREDICTOR_REPRODUCIBLE, .threads = 2},
        {.flags = SEQLSTM_PREDICTOR_SHARED_LOCK},
        {.layer = "dense_1"},
        {.layer = "lstm_1", .steps = 3},
        {.layer = "none"},
        {.flags = SEQLSTM_PREDICTOR_EMBED, .layer = "lstm_1"},
        {.flags = 1u << 9},
        {.sequences = -1},
        {.steps = -1},
        {.rows = -1},
        {.rows = 2, .steps = 3},
        {.streams = -1},
        {.stream_steps = -2},
        {.threads = -1},
        {.threads = 1025},
        {.reserved0 = 1},
    };
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        seqlstm_predictor_close(show_predictor(session, wanted[k]));
}

static void show_whole(struct seqlstm_predictor *predictor, const void *x)
{
    static const int64_t lengths[][3] = {{1, 3, 0}, {5, 1, 1}, {6, 0, 0}, {2, -1, 1}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_context *context = NULL;
    float y[VALUES_MOST];
    if (!say("context_open", seqlstm_context_open(predictor, &context, &err), &err))
        return;
    for (int k = 0; k < 4; k++) {
        for (int v = 0; v < VALUES_MOST; v++)
            y[v] = -7;
        say("predict", seqlstm_predict(context, x, lengths[k], 3, y, &err), &err);
        say_values(y, VALUES_SHOWN);
    }
    say("predict nothing", seqlstm_predict(context, x, lengths[0], 0, y, &err), &err);
    say("predict less than nothing", seqlstm_predict(context, x, lengths[0], -1, y, &err), &err);
    say("predict rows", seqlstm_predict(context, x, NULL, 2, y, &err), &err);
    say_values(y, VALUES_SHOWN);
    seqlstm_context_close(context);
}

static void show_replies(struct seqlstm_predictor *predictor, const char *const texts[4])
{
    static const size_t bytes[] = {3, 1, 4, 2};
    static const char *const wrong[] = {"", "a\nb", "\na", "a\n\nb", "a\n", "\xff", "a \xE2\x98\x83 day", " "};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_context *context = NULL;
    int calls = 2;
    if (!say("context_open", seqlstm_context_open(predictor, &context, &err), &err))
        return;
    say("texts", seqlstm_predict_texts(context, texts, NULL, 4, say_reply, NULL, &err), &err);
    say("their beginnings", seqlstm_predict_texts(context, texts, bytes, 4, say_reply, NULL, &err), &err);
    say("two of them", seqlstm_predict_texts(context, texts, NULL, 4, say_reply, &calls, &err), &err);
    say("no texts", seqlstm_predict_texts(context, texts, NULL, 0, say_reply, NULL, &err), &err);
    say("less than no texts", seqlstm_predict_texts(context, texts, NULL, -1, say_reply, NULL, &err), &err);
    for (int k = 0; k < 8; k++)
        say("a wrong text", seqlstm_predict_texts(context, wrong + k, NULL, 1, say_reply, NULL, &err), &err);
    seqlstm_context_close(context);
}

static void show_tokens(struct seqlstm_predictor *predictor, const char *text, int ways)
{
    static const int64_t rooms[] = {0, 2, 40};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int k = 0; k < ways; k++) {
        int32_t ids[40] = {-1, -1, -1};
        char back[80] = "..................";
        int64_t count = -1;
        size_t bytes = 0;
        say(k < 3 ? "encode" : "encode whole",
            seqlstm_encode(predictor, text, strlen(text), k >= 3, ids, rooms[k % 3], &count, &err), &err);
        sl_buf_printf(&out, "  %lld:", (long long)count);
        for (int n = 0; n < 16; n++)
            sl_buf_printf(&out, " %d", ids[n]);
        const int64_t taken = count < rooms[k % 3] ? count : rooms[k % 3];
        say("\ndecode", seqlstm_decode(predictor, ids, taken, back, k % 3 == 2 ? 40 : 1, &bytes, &err), &err);
        sl_buf_printf(&out, "  %zu \"%s\"\n", bytes, back);
    }
    const int32_t wrong[] = {1, -1, 1000};
    char back[8];
    size_t bytes;
    say("decode -1", seqlstm_decode(predictor, wrong, 2, back, sizeof back, &bytes, &err), &err);
    say("decode 1000", seqlstm_decode(predictor, wrong + 2, 1, back, sizeof back, &bytes, &err), &err);
    for (int64_t k = -1; k < 40; k++)
        sl_buf_printf(&out, " %s",
                      seqlstm_predictor_find_class(predictor, k) ? seqlstm_predictor_find_class(predictor, k) : "-");
    sl_buf_append_char(&out, '\n');
}

static void say_position(const char *what, const struct seqlstm_stream *stream, const float *y, int64_t count)
{
    sl_buf_printf(&out, "  %s at %lld:", what, (long long)seqlstm_stream_get_position(stream));
    say_values(y, count);
}

static void show_saved(struct seqlstm_context *context, struct seqlstm_stream *from, struct seqlstm_stream *to,
                       const float *x)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    unsigned char bytes[512];
    size_t size = 0;
    float y[VALUES_MOST] = {0};
    say("save, only the size", seqlstm_stream_save(from, NULL, &size, &err), &err);
    sl_buf_printf(&out, "  %zu bytes\n", size);
    size_t less = size - 1;
    say("save in too little", seqlstm_stream_save(from, bytes, &less, &err), &err);
    size = sizeof bytes;
    say("save", seqlstm_stream_save(from, bytes, &size, &err), &err);
    for (size_t at = 0; at < 48; at += 8) {
        bytes[at] ^= 1;
        say("load what is damaged", seqlstm_stream_load(to, bytes, size, &err), &err);
        bytes[at] ^= 1;
    }
    say("load a part", seqlstm_stream_load(to, bytes, size - 1, &err), &err);
    say_position("before", to, y, 0);
    say("load", seqlstm_stream_load(to, bytes, size, &err), &err);
    say("step", seqlstm_stream_step(context, to, x, 1, y, &err), &err);
    say_position("loaded", to, y, 1);
    say("step", seqlstm_stream_step(context, from, x, 1, y, &err), &err);
    say_position("saved", from, y, 1);
}

static void show_streams(struct seqlstm_predictor *predictor, const float *x)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_context *context = NULL;
    struct seqlstm_stream *streams[3] = {NULL};
    float y[VALUES_MOST] = {0};
    if (!say("context_open", seqlstm_context_open(predictor, &context, &err), &err))
        return;
    for (int k = 0; k < 3; k++)
        say("stream_open", seqlstm_stream_open(predictor, &streams[k], &err), &err);
    for (int64_t steps = -1; streams[0] && steps < 5; steps++) {
        say("step", seqlstm_stream_step(context, streams[0], x, steps, y, &err), &err);
        say_position("first", streams[0], y, 4);
    }
    for (int64_t count = -1; streams[0] && count < 4; count++) {
        say("streams_step", seqlstm_streams_step(context, streams, count, x, y, &err), &err);
        say_position("last", streams[2], y, 4);
    }
    if (streams[0]) {
        say("step without output", seqlstm_stream_step(context, streams[1], x, 2, NULL, &err), &err);
        say_position("second", streams[1], y, 0);
        seqlstm_stream_reset(streams[1]);
        say_position("reset", streams[1], y, 0);
        show_saved(context, streams[0], streams[1], x);
    }
    for (int k = 0; k < 3; k++)
        seqlstm_stream_close(streams[k]);
    seqlstm_context_close(context);
}

/* ---- the tests -------------------------------------------------------------------------------------------------- */

static void show_kind(int k)
{
    static const char *const inputs[KIND_COUNT] = {"id,a,b\n1,100,2\n1,300,1\n2,50,3\n3,0,0\n",
                                                   "a,b\n1,2\n4,0\n",
                                                   "a fine day\nwarm\ncold day\n",
                                                   "the cat\na dog\n",
                                                   "1+2\n7+7\n",
                                                   "a\nb\n\nc\n"};
    static const char *const texts[KIND_COUNT][4] = {[STEPS] = {"1", "2", "3", "4"},
                                                     [ROWS] = {"1", "2", "3", "4"},
                                                     [CLASSES] = {"a fine day", "cold", "grey mild day", "day day"},
                                                     [LETTERS] = {"the cat", "a dog", "tttt", "sat."},
                                                     [PAIRS] = {"1+2", "7+7", "0+0+", "33"},
                                                     [TAGS] = {"a\nb", "cc", "a\nb\nc", "b"}};
    static const float x[] = {100, 2, 300, 1, 200, 2, 50, 3, 0, 0, 400, 1, 10, 3, 20, 0};
    static const int32_t ids[] = {1, 2, 3, 4, 1, 0, 2, 2, 3, 1, 1, 4};
    sl_buf_printf(&out, "%s== %s\n", out.length_bytes ? "\n" : "", kinds[k].name);
    struct seqlstm_session *session = open_kind(&kinds[k], kinds[k].name);
    show_session(session);
    show_predictions(session, inputs[k]);
    show_texts(session, k == LETTERS ? 8 : 1);
    show_files(session, &kinds[k]);
    if (k == STEPS)
        show_predictor_options(session);
    struct seqlstm_predictor *predictor = show_predictor(
        session,
        (struct seqlstm_predictor_options){.steps = 5, .rows = 6, .sequences = 2, .streams = 2, .stream_steps = 2});
    if (predictor) {
        show_whole(predictor, k == CLASSES || k == LETTERS || k == TAGS ? (const void *)ids : x);
        show_replies(predictor, texts[k]);
        show_tokens(predictor, texts[k][0], k == STEPS || k == ROWS ? 1 : 6);
        show_streams(predictor, k == LETTERS || k == TAGS ? (const float *)(const void *)ids : x);
    }
    seqlstm_predictor_close(predictor);
    seqlstm_close(session);
}

static void every_kind_of_model(void **state)
{
    (void)state;
    for (int k = 0; k < KIND_COUNT; k++)
        show_kind(k);
    golden_expect("reports/c_calls.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* A run folder names a plugin of its own: only a caller who trusts it has it looked for. */
static void show_run(const char *call, const char *run, uint32_t flags)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_options options = SEQLSTM_OPTIONS_INIT;
    struct seqlstm_session *session = NULL;
    int32_t count = -1;
    options.flags = flags;
    options.threads = 1;
    options.log = say_log;
    if (say(call, seqlstm_open_run(run, &options, &session, &err), &err))
        say("  evaluate", seqlstm_evaluate(session, "train", NULL, 0, &count, &err), &err);
    seqlstm_close(session);
}

static void runs_are_opened(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char run[256], command[640];
    struct seqlstm_session *session = open_kind(&kinds[STEPS], "again");
    int calls = 1;
    say("write_config", seqlstm_write_config(session, say_part, NULL, &err), &err);
    say("write_config, ended", seqlstm_write_config(session, say_part, &calls, &err), &err);
    snprintf(run, sizeof run, "%s", scratch_path("again"));
    say("train", seqlstm_train(session, NULL, NULL, &err), &err);
    seqlstm_close(session);
    show_run("open_run", run, 0);
    show_run("open_run, trusted", run, SEQLSTM_OPEN_TRUST);
    snprintf(command, sizeof command,
             "cd '%s' && sed -i 's/- *plugin: reference/- plugin: .\\/x.so/; s/backends: .reference./backends: "
             "[.\\/x.so]/' config.yaml && "
             ": > x.so && sed -i '/config.yaml/d' checksums* 2>/dev/null; true",
             run);
    assert_int_equal(system(command), 0);
    show_run("open_run with a plugin", run, 0);
    show_run("open_run with a plugin, trusted", run, SEQLSTM_OPEN_TRUST);
    show_run("open_run of nothing", scratch_path("nothing"), 0);
    static const char *const codes[] = {"E0203", "W0001", "E9999", "", "E02", "E02031"};
    for (int k = 0; k < 6; k++)
        sl_buf_printf(&out, "%s: %.60s\n", codes[k], seqlstm_explain(codes[k]) ? seqlstm_explain(codes[k]) : "-");
    golden_expect("reports/c_runs.txt", "open_run", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_of_model), cmocka_unit_test(runs_are_opened)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_clear);
}
