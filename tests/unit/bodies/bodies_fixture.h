/* SPDX-License-Identifier: Apache-2.0 */
/* Models of every kind of input, without weights: requests are read for them, and answers are made up. */
#ifndef SL_TESTS_UNIT_SERVE_BODIES_FIXTURE_H
#define SL_TESTS_UNIT_SERVE_BODIES_FIXTURE_H

#include "data_fixture.h"

#include <math.h>

#include "serve/body/completion_read.h"
#include "serve/body/completion_write.h"
#include "serve/body/infer_read.h"
#include "serve/body/infer_write.h"

enum kind { VALUES, ROWS, IDS, TEXTS, DECODER, LETTERS, KINDS };
static const char *const kinds[KINDS] = {"values", "rows", "ids", "texts", "pairs", "letters"};

static struct data_open classify, letters;
static struct sl_served_model models[KINDS];

static int setup(void **state)
{
    if (data_setup(state) != 0)
        return -1;
    data_write("train.txt", "yes a b c\nno c \"b\" a\n");
    classify = data_open_train("type: lines, train: {file: train.txt}, label: first, batch_size: 2, "
                               "tokenizer: {type: whitespace, specials: [unk]}",
                               MODEL_CLASSIFY, "task: classify");
    data_write("text.txt", "abc\nab\n");
    letters =
        data_open_train("type: text, train: {file: text.txt}, batch_size: 1, tokenizer: {type: char, specials: []}, "
                        "batching: {unit: stream, bptt: 2}",
                        MODEL_LM, "task: language_model");
    const int64_t letter_count = sl_vocabulary_get_size(sl_data_state_find_vocabulary(letters.state));
    models[VALUES] = (struct sl_served_model){
        .reads_steps = true, .gives_steps = true, .input_features = 2, .output_features = 3, .steps = 4};
    models[VALUES].streams = true;
    models[ROWS] = (struct sl_served_model){.input_features = 1, .output_features = 1, .steps = 4};
    models[IDS] = (struct sl_served_model){.reads_ids = true,
                                           .reads_steps = true,
                                           .input_features = 1,
                                           .input_classes = 5,
                                           .output_features = 2,
                                           .steps = 3};
    models[TEXTS] = models[IDS];
    models[TEXTS].reads_text = true;
    models[TEXTS].state = classify.state;
    models[TEXTS].classes = sl_data_state_find_classes(classify.state);
    models[DECODER] = (struct sl_served_model){.reads_text = true,
                                               .decodes = true,
                                               .state = classify.state,
                                               .input_features = 1,
                                               .output_features = 1,
                                               .steps = 3};
    models[LETTERS] = (struct sl_served_model){.continues = true,
                                               .state = letters.state,
                                               .reads_ids = true,
                                               .reads_steps = true,
                                               .input_features = 1,
                                               .input_classes = letter_count,
                                               .output_features = letter_count,
                                               .steps = 8,
                                               .text_steps = 20};
    for (int k = 0; k < KINDS; k++)
        models[k].name = kinds[k];
    return 0;
}

static int teardown(void **state)
{
    data_close(&classify);
    data_close(&letters);
    return data_teardown(state);
}

/* Made-up results, in which the last class is the likeliest of every second row. */
static void fill_results(struct sl_job *job)
{
    const struct sl_served_model *model = job->model;
    const int64_t features = model->output_features;
    job->out_rows = model->gives_steps || !model->reads_steps ? job->rows : job->count;
    job->y = malloc((size_t)(job->out_rows * features) * sizeof *job->y + 1);
    assert_non_null(job->y);
    for (int64_t k = 0; k < job->out_rows * features; k++)
        job->y[k] = k == 4 ? (float)NAN : (float)((k * 3) % 7) / 8 + 0.1f;
    for (int64_t k = 0; job->written && k < job->count; k++)
        if (k != 1) { /* the second text is empty */
            job->written[k].text = strdup(k ? "c\n\"d\"" : "a\n\"b\"");
            job->written[k].bytes = 5;
        }
}

static const struct sl_served_model *find_model(void *context, const char *name)
{
    (void)context;
    for (int k = 0; k < KINDS; k++)
        if (strcmp(kinds[k], name) == 0)
            return &models[k];
    return NULL;
}

#define X(type, shape, data) "{\"name\":\"x\",\"datatype\":\"" type "\",\"shape\":" shape ",\"data\":" data "}"
#define LENGTHS(shape, data) "{\"name\":\"lengths\",\"datatype\":\"INT64\",\"shape\":" shape ",\"data\":" data "}"
#define TEXT(shape, data)    "{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":" shape ",\"data\":" data "}"
#define BINARY(name, type, shape, bytes)                                                                               \
    "{\"name\":\"" name "\",\"datatype\":\"" type "\",\"shape\":" shape ",\"parameters\":{\"binary_data_size\":" bytes \
    "}}"
#define INPUTS(inputs)     "{\"inputs\":[" inputs "]}"
#define MORE(inputs, more) "{\"inputs\":[" inputs "]," more "}"
#define ONE                X("FP32", "[1,2]", "[1,2]")

#endif
