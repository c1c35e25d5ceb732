/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of core/data: a folder of its own, files in it, models out of YAML. */
#ifndef SL_TESTS_DATA_FIXTURE_H
#define SL_TESTS_DATA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "descriptors.h"
#include "npy_fixture.h"
#include "oom.h"
#include "temporary.h"
#include "base/value/buf.h"
#include "data/batch/batcher.h"
#include "data/dataset/dataset.h"
#include "model/yaml/diagnostics.h"
#include "model/model.h"

#define MODEL_LM                                                                                                       \
    "[{type: embedding, dim: 2}, {type: lstm, units: 3, return_sequences: true}, {type: output, activation: "          \
    "softmax}]"
#define MODEL_CLASSIFY        "[{type: embedding, dim: 2}, {type: lstm, units: 3}, {type: output, activation: softmax}]"
#define MODEL_CLASSIFY_VALUES "[{type: lstm, units: 3}, {type: output, activation: softmax}]"
#define MODEL_TAG             MODEL_LM
#define MODEL_PAIRS                                                                                                    \
    "{encoder: [{type: embedding, dim: 2}, {type: lstm, units: 3}], decoder: [{type: embedding, dim: 2}, {type: "      \
    "lstm, units: 3, return_sequences: true}, {type: output, activation: softmax}]}"
#define PAIRS               "task: seq2seq"
#define MODEL_REGRESS       "[{type: lstm, units: 3}, {type: output}]"
#define MODEL_REGRESS_STEPS "[{type: lstm, units: 3, return_sequences: true}, {type: output}]"
#define MODEL_DENSE         "[{type: dense, units: 3}, {type: output}]"

static char data_folder[TEMPORARY_BYTES];
static int data_descriptors;

static inline int data_setup(void **state)
{
    (void)state;
    data_descriptors = descriptors_count();
    /* In memory where that can be: thousands of files are written and removed. */
    if (access("/dev/shm", W_OK) == 0)
        strcpy(data_folder, "/dev/shm/seqlstm-data-XXXXXX");
    else
        temporary_template(data_folder, "data");
    oom_watch();
    return mkdtemp(data_folder) ? 0 : -1;
}

static inline int data_teardown(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", data_folder);
    if (descriptors_count() != data_descriptors) {
        print_error("%d file descriptors were left open\n", descriptors_count() - data_descriptors);
        return -1;
    }
    return system(command) == 0 ? oom_end() : -1;
}

static inline void data_write_bytes(const char *name, const void *bytes, size_t count)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", data_folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline void data_write(const char *name, const char *text)
{
    data_write_bytes(name, text, strlen(text));
}

static inline void data_write_npy(const char *name, const char *type, const char *shape, const void *values,
                                  size_t bytes)
{
    struct sl_buf file = {0};
    char header[NPY_HEADER];
    npy_write_header(header, type, shape);
    sl_buf_append(&file, header, sizeof header);
    sl_buf_append(&file, values, bytes);
    data_write_bytes(name, file.data, file.length_bytes);
    sl_buf_deinit(&file);
}

/* `data` and `train` are what stands in those maps (flow style, without braces); loss may be inside train. */
static inline struct sl_model *data_model(const char *data, const char *layers, const char *train)
{
    struct sl_buf yaml = {0}, text = {0};
    struct sl_diagnostics *diagnostics;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_model *model = NULL;
    char path[160];
    snprintf(path, sizeof path, "%s/model.yaml", data_folder);
    sl_buf_printf(&yaml, "seqlstm: 1\nseed: 7\ndata: {%s}\nmodel: %s\ntrain: {epochs: 1, %s}\n", data, layers, train);
    struct sl_model_request request = {.path = path};
    assert_int_equal(sl_diagnostics_create(&diagnostics, &err), SEQLSTM_OK);
    seqlstm_status status =
        sl_model_load_text(path, sl_buf_text(&yaml), yaml.length_bytes, &request, diagnostics, &model, &err);
    if (status != SEQLSTM_OK) {
        sl_diagnostics_render(diagnostics, false, &text, &err);
        fail_msg("model: %s\n%s", sl_buf_text(&yaml), sl_buf_text(&text));
    }
    sl_diagnostics_destroy(diagnostics);
    sl_buf_deinit(&yaml);
    sl_buf_deinit(&text);
    return model;
}

struct data_open {
    struct sl_model *model;
    struct sl_data_state *state;
    struct sl_dataset *train;
};

static inline struct data_open data_open_train(const char *data, const char *layers, const char *train)
{
    struct data_open o = {.model = data_model(data, layers, train)};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_dataset_open_train(o.model, &o.train, &o.state, &err) != SEQLSTM_OK)
        fail_msg("open train: %s", err.message);
    return o;
}

static inline void data_close(struct data_open *o)
{
    sl_dataset_close(o->train);
    sl_data_state_destroy(o->state);
    sl_model_destroy(o->model);
}

static inline struct sl_dataset *data_open_split(const struct data_open *o, enum sl_split split)
{
    struct sl_dataset *dataset = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_dataset_open(o->model, split, o->state, &dataset, &err) != SEQLSTM_OK)
        fail_msg("open: %s", err.message);
    return dataset;
}

/* Opening train must fail with this status and a message that holds `part`. */
static inline void data_expect_failure(const char *data, const char *layers, const char *train, seqlstm_status expected,
                                       const char *part)
{
    struct sl_model *model = data_model(data, layers, train);
    struct sl_dataset *dataset = NULL;
    struct sl_data_state *state = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_dataset_open_train(model, &dataset, &state, &err);
    if (status != expected || !strstr(err.message, part))
        fail_msg("status %d (expected %d), message \"%s\" (expected \"%s\" in it)", (int)status, (int)expected,
                 err.message, part);
    assert_null(dataset);
    assert_null(state);
    sl_model_destroy(model);
}

static inline struct sl_batcher *data_batcher(const struct sl_dataset *dataset, enum sl_batching_phase phase,
                                              uint64_t seed, int64_t batch_size, int64_t max_tokens)
{
    struct sl_batcher_request request = {
        .phase = phase, .seed = seed, .batch_size = batch_size, .max_tokens = max_tokens};
    struct sl_batcher *batcher = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_batcher_open(dataset, &request, &batcher, &err) != SEQLSTM_OK)
        fail_msg("batcher: %s", err.message);
    return batcher;
}

static inline struct sl_batch *data_next(struct sl_batcher *batcher)
{
    struct sl_batch *batch = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_batcher_next(batcher, &batch, &err) != SEQLSTM_OK)
        fail_msg("next: %s", err.message);
    return batch;
}

static inline const char *data_token(const struct sl_data_state *state, int32_t id)
{
    return sl_vocabulary_get_text(sl_data_state_find_vocabulary(state), id, NULL);
}

#endif
