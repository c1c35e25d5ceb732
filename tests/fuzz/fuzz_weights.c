/* SPDX-License-Identifier: Apache-2.0 */
/* Files of weights under libFuzzer: whatever the bytes are, reading ends with a message or with a value for each
 * parameter. The first byte of the input chooses a model and a format, the rest is the file.
 *
 *   ninja -C build-fuzz tests/fuzz/fuzz_weights          (build-fuzz: see fuzz_model.c)
 *   mkdir corpus && SEQLSTM_FUZZ_SEEDS=corpus build-fuzz/tests/fuzz/fuzz_weights -max_total_time=600 -max_len=65536
 * corpus
 *
 * To be run in the root of the repository: models and good files are those of tests/fixtures/interop.
 * SEQLSTM_FUZZ_SEEDS names a folder into which these good files are written first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include "base/value/buf.h"
#include "data/dataset/dataset.h"
#include "graph/graph.h"
#include "interop/names.h"
#include "interop/onnx.h"
#include "interop/safetensors.h"
#include "model/model.h"
#include "model/yaml/diagnostics.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIXTURES "tests/fixtures/interop/"

static const char *const FOLDERS[] = {"classifier", "gru-before",   "language", "last-state",
                                      "lstm",       "lstm-options", "stack"};
static const char *const FILES[] = {"model.onnx", "torch.safetensors", "keras.safetensors"};
enum { FORMAT_ONNX, FORMAT_PYTORCH, FORMAT_KERAS, FORMATS };
enum { MODELS = sizeof FOLDERS / sizeof *FOLDERS };

static struct subject {
    struct sl_graph *graph;
    float **values;                     /* of its parameters */
    struct sl_diagnostics *diagnostics; /* what the graph was made of lives as long as the process */
    struct sl_model *model;
    struct sl_dataset *data;
    struct sl_data_state *state;
} subjects[MODELS];

/* What is found ends the process: libFuzzer keeps the input. */
static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static struct subject open_subject(const char *folder)
{
    struct subject s = {NULL};
    char path[256];
    snprintf(path, sizeof path, FIXTURES "%s/model.yaml", folder);
    const struct sl_model_request request = {.path = path};
    require(sl_diagnostics_create(&s.diagnostics, NULL) == SEQLSTM_OK);
    require(sl_model_load(&request, s.diagnostics, &s.model, NULL) == SEQLSTM_OK);
    require(sl_dataset_open_train(s.model, &s.data, &s.state, NULL) == SEQLSTM_OK);
    const struct sl_graph_request graph = {
        .model = s.model, .facts = sl_data_state_get_facts(s.state), .phase = SL_PHASE_PREDICT, .need_output = true};
    require(sl_graph_create(&graph, &s.graph, NULL) == SEQLSTM_OK);
    s.values = calloc((size_t)s.graph->param_count + 1, sizeof *s.values);
    require(s.values != NULL);
    for (int32_t p = 0; p < s.graph->param_count; p++) {
        const struct sl_param *param = &s.graph->params[p];
        s.values[p] = calloc((size_t)(param->rows * param->columns) + 1, sizeof(float));
        require(s.values[p] != NULL);
    }
    return s;
}

/* FOLDER/K, where K also is the first byte. */
static void write_seed(const char *folder, int choice, const char *path)
{
    static char bytes[1 << 20];
    char name[256];
    FILE *from = fopen(path, "rb");
    if (from == NULL) /* not every model has every file */
        return;
    const size_t count = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    snprintf(name, sizeof name, "%s/%d", folder, choice);
    FILE *to = fopen(name, "wb");
    require(to != NULL && fputc(choice, to) == choice && fwrite(bytes, 1, count, to) == count && fclose(to) == 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *seeds = getenv("SEQLSTM_FUZZ_SEEDS");
    (void)argc, (void)argv;
    setenv("SEQLSTM_CACHE", "", 1);
    for (int m = 0; m < MODELS; m++) {
        char path[256];
        subjects[m] = open_subject(FOLDERS[m]);
        for (int f = 0; seeds && f < FORMATS; f++) {
            snprintf(path, sizeof path, FIXTURES "%s/%s", FOLDERS[m], FILES[f]);
            write_seed(seeds, m * FORMATS + f, path);
        }
    }
    return 0;
}

static seqlstm_status read_onnx(const struct subject *subject, const uint8_t *data, size_t size, struct sl_buf *notes,
                                struct seqlstm_error *err)
{
    char path[64];
    const int fd = memfd_create("onnx", 0);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const seqlstm_status status = sl_onnx_read(subject->graph, path, subject->values, notes, err);
    close(fd);
    return status;
}

/* Every entry of a file that opens can be read, if it is of floats. */
static void read_entries(const struct sl_safetensors *file)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_safetensors_verify(file, &err);
    for (int32_t k = 0; k < sl_safetensors_get_count(file); k++) {
        const struct sl_safetensors_entry *entry = sl_safetensors_get_entry(file, k);
        const int64_t elems = sl_safetensors_count_elems(entry);
        require(elems >= 0 && sl_safetensors_find(file, entry->name) == entry);
        float *values = calloc((size_t)elems + 1, sizeof *values);
        require(values != NULL);
        sl_safetensors_read_float32(entry, values, elems, &err);
        free(values);
    }
}

static seqlstm_status read_names(const struct subject *subject, enum sl_convention convention, const uint8_t *data,
                                 size_t size, struct sl_buf *notes, struct seqlstm_error *err)
{
    struct sl_safetensors *file = NULL;
    enum sl_convention guess;
    void *copy = malloc(size + 1); /* of exactly this size, for the address sanitizer */
    require(copy != NULL);
    memcpy(copy, data, size);
    seqlstm_status status = sl_safetensors_open_bytes("file", copy, size, &file, err);
    if (status == SEQLSTM_OK) {
        read_entries(file);
        sl_names_guess(file, &guess);
        status = sl_names_import(subject->graph, convention, file, NULL, 0, subject->values, notes, err);
    }
    sl_safetensors_close(file);
    free(copy);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_buf notes = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (size < 1)
        return 0;
    const struct subject *subject = &subjects[data[0] / FORMATS % MODELS];
    const int format = data[0] % FORMATS;
    const seqlstm_status status =
        format == FORMAT_ONNX
            ? read_onnx(subject, data + 1, size - 1, &notes, &err)
            : read_names(subject, format == FORMAT_KERAS ? SL_CONVENTION_KERAS : SL_CONVENTION_PYTORCH, data + 1,
                         size - 1, &notes, &err);
    require(status == SEQLSTM_OK ||
            ((status == SEQLSTM_CORRUPT_DATA || status == SEQLSTM_INVALID_CONFIG) && err.message[0] != 0));
    sl_buf_deinit(&notes);
    return 0;
}
