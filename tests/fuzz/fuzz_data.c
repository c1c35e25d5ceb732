/* SPDX-License-Identifier: Apache-2.0 */
/* Data files: whatever the bytes are, opening ends with a message or with a dataset whose batches can be made. The
 * first byte of the input chooses among the formats below, the rest is the file `f` of that format. */
#include <stdio.h>
#include <stdlib.h>

#include "base/batch/batch.h"
#include "base/value/buf.h"
#include "data/batch/batcher.h"
#include "data/dataset/dataset.h"
#include "data/dataset/state.h"
#include "fuzz.h"
#include "model/yaml/diagnostics.h"
#include "model/model.h"

#define LM                                                                                                             \
    "[{type: embedding, dim: 2}, {type: lstm, units: 3, return_sequences: true}, "                                     \
    "{type: output, activation: softmax}]"
#define PAIRS                                                                                                          \
    "{encoder: [{type: embedding, dim: 2}, {type: lstm, units: 3}], decoder: [{type: embedding, dim: 2}, "             \
    "{type: lstm, units: 3, return_sequences: true}, {type: output, activation: softmax}]}"
#define ONE "[{type: lstm, units: 3}, {type: output}]"
#define NPY_PAIRS                                                                                                      \
    "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 2), }"                                \
    "                                                        \n"                                                       \
    "\0\0\0\0\0\0\x80\x3f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define NPY_CLASSES                                                                                                    \
    "\x93NUMPY\1\0\x76\0{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }"                                     \
    "                                                             \n\0\0\0\0\1\0\0\0"

static const struct format {
    const char *data, *model, *train;
    const char *good;
    size_t good_bytes;
} formats[] = {
#define FORMAT(data, model, train, good)                                                                               \
    {                                                                                                                  \
        data, model, train, good, sizeof good - 1                                                                      \
    }
    FORMAT("type: text, train: {file: f}, tokenizer: {type: word, specials: [unk, eos], lowercase: true}, "
           "batching: {unit: stream, bptt: 2}",
           LM, "task: language_model", "a b \xC3\xA9\nc d\n\nb a\n"),
    FORMAT("type: lines, train: {file: f}, label: {column: first, type: value}, tokenizer: {type: char}",
           "[{type: embedding, dim: 2}, {type: lstm, units: 3}, {type: output}]", "loss: mse", "0 a b\n1 c d\n0 e\n"),
    FORMAT("type: conll, train: {file: f}, label: 2, tokenizer: {type: whitespace}", LM, "task: tag",
           "the\tDET\ncat\tNOUN\n\nruns\tVERB\n"),
    FORMAT("type: tokens, train: {file: f}", LM, "task: language_model", "1 2 3 40\n5 6\n"),
    FORMAT("type: csv, train: {file: f}, time: t, group: g, inputs: [a], targets: [b], window: {length: 1}, "
           "scale: {type: standard}, missing: mean",
           ONE, "loss: mse", "t,g,a,b\r\n2020-01-01,1,\"1.5\",2\r\n2020-01-02,1,3,\"4\"\r\n2020-01-03,2,,6\r\n"),
    FORMAT("type: csv, train: {file: f}, inputs: [a, b], label: g, missing: drop",
           "[{type: dense, units: 3}, {type: output, activation: softmax}]", "loss: cross_entropy",
           "g,a,b\nx,1,2\ny,3,4\nx,,6\n"),
    FORMAT("type: csv, train: {file: f}, time: {column: t, step: 1mo, gaps: break}, inputs: [a], targets: [a], window: "
           "{length: 2}, missing: {type: drop, values: [-9]}",
           ONE, "loss: mse", "t,a\n2020-01-31,1\n2020-02-29,2\n2020-03-31,3\n2020-04-30,-9\n2020-06-30,5\n"),
    FORMAT("type: csv, train: {file: f}, delimiter: \";\", decimal: \",\", time: {column: t, step: 1, gaps: keep}, "
           "group: g, "
           "inputs: [a], targets: [b], missing: {type: drop, targets: ignore}",
           "[{type: lstm, units: 3, return_sequences: true}, {type: output}]", "loss: mse",
           "t;g;a;b\r1;x;0,5;1\r2;x;;2\r4;x;1,5;\r1;y;2;2\r"),
    FORMAT("type: npy, train: {x: f, y: y.npy}", "[{type: lstm, units: 3}, {type: output, activation: softmax}]",
           "task: classify",
           "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 2), }"
           "                                                        \n"
           "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    FORMAT("type: tsv, train: {file: f, source: a, target: b}, tokenizer: {type: char}", PAIRS, "task: seq2seq",
           "a\tb\nxy\tyx\nq\tqq\n\t\n"),
    FORMAT("type: lines, train: {file: f}, tokenizer: {type: word, shared: true}, batching: {unit: sequence, "
           "max_length: 4, on_overflow: split}",
           PAIRS, "task: seq2seq", "a b c d e f g\nh i\n\nj\n"),
    FORMAT("type: csv, train: {file: f, rows: [2, 30]}, delimiter: ';', header: false, columns: [t, a, b], time: "
           "{column: t, format: '%d.%m.%Y %H:%M', step: 1h, gaps: break}, inputs: [a], targets: [b], window: {length: "
           "2, horizon: 2, stride: 1}, scale: {type: minmax}, missing: {type: forward_fill, limit: 2}",
           ONE, "loss: mse",
           "01.02.2020 00:00;1;2\n01.02.2020 01:00;1;2\n01.02.2020 02:00;3;4\n01.02.2020 03:00;;5\n01.02.2020 "
           "04:00;1;1e3\n01.02.2020 07:00;1;2\n01.02.2020 08:00;1;2\n01.02.2020 09:00;1;2\n01.02.2020 "
           "10:00;1;2\n01.02.2020 11:00;1;2\n"),
    FORMAT("type: npy, train: {x: f, y: y.npy, lengths: y.npy}",
           "[{type: lstm, units: 3}, {type: output, activation: softmax}]", "task: classify",
           "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 2), }"
           "                                                        \n"
           "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    FORMAT("type: npy, train: {x: x.npy, y: f}, scale: standard, missing: mean",
           "[{type: lstm, units: 3}, {type: output}]", "loss: mse",
           "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
           "                                                           \n"
           "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    FORMAT("type: csv, train: {file: f}, text: a, label: g, tokenizer: {type: word, vocab_size: 6, min_count: 2, "
           "lowercase: true, specials: [unk, bos, eos]}, encoding: latin-1",
           "[{type: embedding, dim: 2}, {type: lstm, units: 3}, {type: output, activation: softmax}]",
           "loss: cross_entropy, class_weight: balanced", "g,a\nx,\"Hello, wor\"\"ld\"\ny,\"b\nc\"\nx,hello\n"),
    FORMAT("type: text, train: {file: f}, tokenizer: {type: char}, batching: {unit: sequence, max_length: 5, "
           "on_overflow: split, bucketing: [2, 5]}",
           LM, "task: language_model", "abcdefgh\n\xC3\xA9x\nyz\n"),
    FORMAT("type: conll, train: {file: f}, label: 3, text: 2, comment: '#', delimiter: ' ', tokenizer: {type: "
           "whitespace, lowercase: true}",
           LM, "task: tag, metrics: [f1_span]", "# c\n1 the B-X\n2 cat I-X\n\n1 runs O\n"),
    FORMAT("type: tokens, train: {file: f}, batching: {unit: sequence, max_tokens: 7}", LM, "task: language_model",
           "1 2 3 40\n5 6\n"),
};
enum { FORMATS = sizeof formats / sizeof *formats };

static const char *folder; /* of the files */
static struct sl_model *models[FORMATS];

static struct sl_model *load(const struct format *format)
{
    struct sl_buf yaml = {0}, text = {0};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_model *model = NULL;
    char path[600];
    snprintf(path, sizeof path, "%s/model.yaml", folder);
    struct sl_model_request request = {.path = path};
    sl_buf_printf(&yaml, "seqlstm: 1\ndata: {%s, batch_size: 2}\nmodel: %s\ntrain: {epochs: 1, %s}\n", format->data,
                  format->model, format->train);
    fuzz_require(sl_diagnostics_create(&diagnostics, NULL) == SEQLSTM_OK);
    if (sl_model_load_text(path, sl_buf_text(&yaml), yaml.length_bytes, &request, diagnostics, &model, NULL) !=
        SEQLSTM_OK) {
        sl_diagnostics_render(diagnostics, false, &text, NULL);
        fputs(sl_buf_text(&text), stderr);
        abort();
    }
    sl_diagnostics_destroy(diagnostics);
    sl_buf_deinit(&yaml);
    return model;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char x[] = NPY_PAIRS, y[] = NPY_CLASSES;
    char path[600];
    (void)argc, (void)argv;
    fuzz_require(setenv("SEQLSTM_CACHE", "", 1) == 0);
    folder = fuzz_make_folder();
    for (int f = 0; f < FORMATS; f++) {
        models[f] = load(&formats[f]);
        fuzz_write_seed(f, formats[f].good, formats[f].good_bytes);
    }
    snprintf(path, sizeof path, "%s/x.npy", folder);
    fuzz_write_file(path, x, sizeof x - 1);
    snprintf(path, sizeof path, "%s/y.npy", folder);
    fuzz_write_file(path, y, sizeof y - 1);
    return 0;
}

/* The same bytes as an input: each step of a record has a place of its own in the file. */
static void predict(const struct sl_model *model, const struct sl_data_state *state, const uint8_t *data, size_t size)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_dataset *input = NULL;
    struct sl_batcher *batcher = NULL;
    const struct sl_input_request request = {.data = data, .data_bytes = size};
    const struct sl_batcher_request batches = {.phase = SL_BATCHING_PREDICT};
    seqlstm_status status = sl_dataset_open_input(model, state, &request, &input, &err);
    fuzz_require(status == SEQLSTM_OK || err.message[0]);
    int64_t records = status == SEQLSTM_OK ? sl_dataset_get_records(input) : 0;
    for (int64_t r = 0; r < records; r++) {
        int64_t before = -1, steps = sl_dataset_get_file_steps(input, r);
        for (int64_t t = 0; t < sl_dataset_get_length(input, r); t++) {
            int64_t place = sl_dataset_get_file_step(input, r, t);
            fuzz_require(place > before && place < steps);
            before = place;
        }
    }
    if (records > 0)
        fuzz_require(sl_batcher_open(input, &batches, &batcher, &err) == SEQLSTM_OK);
    for (struct sl_batch *batch = NULL; records > 0; sl_batch_destroy(batch)) {
        fuzz_require(sl_batcher_next(batcher, &batch, &err) == SEQLSTM_OK);
        if (!batch)
            break;
    }
    sl_batcher_close(batcher);
    sl_dataset_close(input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_dataset *train = NULL;
    struct sl_data_state *state = NULL;
    struct sl_batcher *batcher = NULL;
    const struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .seed = 1};
    if (size == 0)
        return 0;
    const struct sl_model *model = models[data[0] % FORMATS];
    char path[600];
    snprintf(path, sizeof path, "%s/f", folder);
    fuzz_write_file(path, data + 1, size - 1);
    seqlstm_status status = sl_dataset_open_train(model, &train, &state, &err);
    if (status == SEQLSTM_OK)
        status = sl_batcher_open(train, &request, &batcher, &err);
    const bool opened = status == SEQLSTM_OK;
    fuzz_require(opened || ((status == SEQLSTM_CORRUPT_DATA || status == SEQLSTM_INVALID_CONFIG) && err.message[0]));
    for (struct sl_batch *batch = NULL; opened; sl_batch_destroy(batch)) {
        fuzz_require(sl_batcher_next(batcher, &batch, &err) == SEQLSTM_OK);
        if (!batch)
            break;
        for (int64_t r = 0; batch->target.kind == SL_FIELD_IDS && batch->target.on_steps && r < batch->axis.rows; r++)
            fuzz_require(batch->target.ids[r] >= -1 &&
                         batch->target.ids[r] < sl_dataset_get_facts(train)->target.classes);
        for (int64_t r = 0; batch->input.kind == SL_FIELD_IDS && r < batch->axis.rows; r++)
            fuzz_require(batch->input.ids[r] >= 0 && batch->input.ids[r] < sl_dataset_get_facts(train)->input.classes);
    }
    sl_batcher_close(batcher);
    if (opened)
        predict(model, state, data + 1, size - 1);
    sl_dataset_close(train);
    sl_data_state_destroy(state);
    return 0;
}
