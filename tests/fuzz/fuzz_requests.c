/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to `seqlstm serve` for predictions and for texts, with their answers: whatever the bytes are, reading ends
 * with a message or with a request that is within the limits of its model and can be answered. The first byte chooses
 * the model and the path, the second how much of the body is JSON, if it is not all. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"
#include "fuzz.h"
#include "model/model.h"
#include "model/yaml/diagnostics.h"
#include "serve/body/completion_read.h"
#include "serve/body/completion_write.h"
#include "serve/body/infer_read.h"
#include "serve/body/infer_write.h"

enum { VALUES, ROWS, IDS, DECODER, COMPLETION, KINDS, STEPS = 40, TOKENS = 6, ALL_JSON = 255 };

static struct sl_served_model models[KINDS];

static const char yaml[] =
    "seqlstm: 1\ndata: {type: text, train: {file: f}, tokenizer: {type: char, specials: [unk, eos]}, "
    "batching: {unit: stream, bptt: 2}, batch_size: 1}\n"
    "model: [{type: embedding, dim: 2}, {type: lstm, units: 3, return_sequences: true}, "
    "{type: output, activation: softmax}]\ntrain: {epochs: 1, task: language_model}\n";

static void load(void)
{
    char path[600];
    const char *folder = fuzz_make_folder();
    struct sl_diagnostics *diagnostics = NULL;
    static struct sl_model *model;
    static struct sl_data_state *state; /* of the models that are served, to the end of the process */
    struct sl_dataset *train = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(path, sizeof path, "%s/f", folder);
    fuzz_write_file(path, "abc d\xC3\xA9\nab", 10);
    snprintf(path, sizeof path, "%s/model.yaml", folder);
    const struct sl_model_request request = {.path = path};
    fuzz_require(sl_diagnostics_create(&diagnostics, NULL) == SEQLSTM_OK);
    fuzz_require(sl_model_load_text(path, yaml, sizeof yaml - 1, &request, diagnostics, &model, NULL) == SEQLSTM_OK);
    fuzz_require(sl_dataset_open_train(model, &train, &state, &err) == SEQLSTM_OK);
    sl_dataset_close(train);
    sl_diagnostics_destroy(diagnostics);
    const int64_t classes = sl_data_state_get_facts(state)->input.classes;
    const struct sl_served_model common = {
        .name = "m", .state = state, .steps = STEPS, .text_steps = STEPS, .sequences = 8, .rows = 64};
    for (int k = 0; k < KINDS; k++)
        models[k] = common;
    models[VALUES].reads_steps = true;
    models[VALUES].input_features = 2;
    models[VALUES].output_features = 3;
    models[ROWS].input_features = 3; /* no steps */
    models[ROWS].output_features = 2;
    models[IDS].reads_ids = models[IDS].reads_steps = models[IDS].reads_text = models[IDS].gives_steps = true;
    models[IDS].classes = sl_data_state_find_vocabulary(state);
    models[IDS].input_features = 1;
    models[IDS].input_classes = models[IDS].output_features = classes;
    models[COMPLETION] = models[IDS];
    models[COMPLETION].continues = true;
    models[DECODER].decodes = models[DECODER].reads_text = true;
    models[DECODER].input_features = models[DECODER].output_features = 1;
}

static void seed(int kind, int json_bytes, const char *body, size_t bytes)
{
    static int written;
    char all[1024] = {(char)json_bytes};
    memcpy(all + 1, body, bytes);
    fuzz_write_seed(kind + KINDS * written++, all, bytes + 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
#define SEED(kind, json_bytes, text) seed(kind, json_bytes, text, sizeof text - 1)
    (void)argc, (void)argv;
    load();
    SEED(VALUES, ALL_JSON,
         "{\"id\":\"a\",\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2,2],\"data\":[[1,2],[3,"
         "4e9]]},{\"name\":\"lengths\",\"datatype\":\"INT32\",\"shape\":[2],\"data\":[1,1]}],\"outputs\":[{\"name\":"
         "\"y\",\"parameters\":{\"binary_data\":true}}]}");
    SEED(
        VALUES, 95,
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP64\",\"shape\":[1,2],\"parameters\":{\"binary_data_size\":16}}]}"
        "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40");
    SEED(
        ROWS, 95,
        "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,3],\"parameters\":{\"binary_data_size\":12}}]}"
        "abcdefghijkl");
    SEED(IDS, ALL_JSON,
         "{\"parameters\":{\"sequence_id\":7,\"sequence_start\":true},\"inputs\":[{\"name\":\"x\",\"datatype\":"
         "\"INT64\",\"shape\":[3],\"data\":[1,2,0]}]}");
    SEED(
        IDS, ALL_JSON,
        "{\"parameters\":{\"binary_data_output\":true},\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":"
        "[2],\"data\":[\"abc\",\"\"]}]}");
    SEED(DECODER, 97,
         "{\"inputs\":[{\"name\":\"text\",\"datatype\":\"BYTES\",\"shape\":[2],\"parameters\":{\"binary_data_size\":9}}"
         "]}  "
         "\1\0\0\0a\0\0\0\0");
    SEED(COMPLETION, ALL_JSON,
         "{\"model\":\"m\",\"prompt\":[\"ab\",\"c\"],\"max_tokens\":5,\"temperature\":0.5,\"top_p\":0.9,\"top_k\":3,"
         "\"n\":2,\"seed\":1,\"stop\":[\"bc\",\"a\"],\"stream\":true,\"stream_options\":{\"include_usage\":true},"
         "\"echo\":true,\"logprobs\":null,\"ignore_eos\":true}");
    SEED(COMPLETION, ALL_JSON, "{\"model\":\"m\",\"prompt\":[1,2,3],\"best_of\":1,\"logit_bias\":{}}");
    return 0;
}

/* What is sent is JSON. */
static void check_json(const char *text, size_t bytes)
{
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    fuzz_require(json_is_object(root));
    json_decref(root);
}

static void answer(struct sl_job *job)
{
    const struct sl_served_model *model = job->model;
    struct sl_buf out = {0};
    int64_t sum = 0, json_bytes = -1;
    for (int64_t k = 0; job->lengths && k < job->count; k++) {
        fuzz_require(job->lengths[k] >= 0 && job->lengths[k] <= model->steps);
        sum += job->lengths[k];
    }
    fuzz_require(job->lengths == NULL || sum == job->rows);
    for (int64_t r = 0; model->reads_ids && r < job->rows; r++)
        fuzz_require(((int32_t *)job->x)[r] >= 0 && ((int32_t *)job->x)[r] < model->input_classes);
    volatile float seen = 0;
    for (int64_t k = 0; !model->reads_ids && !model->reads_text && k < job->rows * model->input_features; k++)
        seen = ((float *)job->x)[k]; /* it is there */
    (void)seen;
    fuzz_require(job->stream_id == NULL || (job->count == 1 && job->rows > 0));
    job->out_rows = model->gives_steps ? job->rows : job->count;
    job->y = calloc((size_t)(job->out_rows * model->output_features) + 1, sizeof *job->y);
    fuzz_require(job->y != NULL);
    sl_infer_write(job, &out, &json_bytes);
    fuzz_require(!out.failed);
    check_json(out.data, json_bytes < 0 ? out.length_bytes : (size_t)json_bytes);
    sl_buf_deinit(&out);
}

static void complete(struct sl_job *job)
{
    const int64_t classes = job->model->output_features;
    float *probabilities = calloc((size_t)classes, sizeof *probabilities);
    struct sl_sample_candidate *candidates = calloc((size_t)classes, sizeof *candidates);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0}, events = {0};
    fuzz_require(probabilities && candidates && job->count >= 1 && job->count <= SL_CHOICES_MOST);
    for (int64_t c = 0; c < classes; c++)
        probabilities[c] = 1 / (float)classes;
    for (int64_t k = 0; k < job->count; k++) {
        struct sl_choice *choice = &job->completion->choices[k];
        fuzz_require(choice->prompt->count >= 1 &&
                     choice->prompt->count + job->completion->most <= job->model->text_steps);
        for (int t = 0; t < TOKENS && choice->finish == NULL; t++) {
            fuzz_require(sl_choice_take(job, choice, probabilities, candidates, &err) == SEQLSTM_OK);
            fuzz_require(choice->sent <= choice->fixed && choice->fixed <= choice->text.length_bytes);
            sl_completion_write_event(job, k, &events);
        }
    }
    sl_completion_write_end(job, &events);
    sl_completion_write(job, &out);
    fuzz_require(!out.failed && !events.failed);
    check_json(out.data, out.length_bytes);
    sl_buf_deinit(&out);
    sl_buf_deinit(&events);
    free(probabilities);
    free(candidates);
}

static const struct sl_served_model *find(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "m") == 0 ? &models[COMPLETION] : strcmp(name, "x") == 0 ? &models[VALUES] : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (size < 2)
        return 0;
    const int kind = data[0] % KINDS;
    struct sl_job *job = sl_job_create(kind == COMPLETION ? NULL : &models[kind], NULL);
    char *body = malloc(size - 1); /* of the exact size, so that a sanitizer sees what is read behind it */
    fuzz_require(job && body);
    memcpy(body, data + 2, size - 2);
    const seqlstm_status status = kind == COMPLETION
                                      ? sl_completion_read(job, body, size - 2, find, NULL, &err)
                                      : sl_infer_read(job, body, size - 2, data[1] == ALL_JSON ? -1 : data[1], &err);
    fuzz_require(status == SEQLSTM_OK || (kind == COMPLETION && status == SEQLSTM_NOT_FOUND && err.message[0]) ||
                 fuzz_failed_well(status, &err, SEQLSTM_INVALID_ARGUMENT, SEQLSTM_INVALID_ARGUMENT));
    if (status == SEQLSTM_OK && kind == COMPLETION)
        complete(job);
    else if (status == SEQLSTM_OK)
        answer(job);
    free(body);
    sl_job_destroy(job);
    return 0;
}
