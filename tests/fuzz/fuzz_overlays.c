/* SPDX-License-Identifier: Apache-2.0 */
/* A model file, an overlay file over it, and values of --set: whatever they are, loading ends with a model or with
 * diagnostics, and a model that was accepted is printed as one that loads to the same.
 *
 * The input is a model file, a line `%%`, an overlay, a line `%%`, and a `path=value` a line. Without a model file, one
 * of the fuzzer's own is the base. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "round_trip.h"
#include "model/model.h"
#include "model/yaml/diagnostics.h"

enum { SETS_MOST = 8 };

static const char base[] =
    "seqlstm: 1\n"
    "data: {type: csv, train: {file: t.csv}, valid: {split: 0.1}, inputs: [a], targets: [b], window: {length: 3}, "
    "scale: standard, missing: mean, batching: {bucketing: pools}}\n"
    "model:\n"
    "  - {type: lstm, name: a, units: 4, activation: tanh, direction: bidirectional, return_sequences: true}\n"
    "  - {type: gru, name: b, units: 8, initial_state: a, regularizer: ~}\n"
    "  - {type: dense, units: from_target}\n"
    "train: {epochs: 1, loss: mse, optimizer: adam, schedule: cosine, ema: 0.9, clip_norm: 1}\n";
static const char good[] = "\n%%\ntrain: {optimizer: {type: sgd, momentum: 0.9}, ema: {start: 1e}}\n"
                           "data: {valid: {file: v.csv}}\n%%\n"
                           "model.a.activation={forward: relu}\nmodel[1].units=3\ntrain.schedule=\ndata.missing=drop\n";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_write_seed(0, good, sizeof good - 1);
    return 0;
}

/* What stands before the next line `%%`, which `*rest` is then behind; the last part is the rest. */
static char *take_part(char **rest)
{
    char *part = *rest, *end = strstr(part, "\n%%\n");
    *rest = end ? end + 4 : part + strlen(part);
    if (end)
        end[1] = 0;
    return part;
}

static void load(const char *text, const char *overlay, char *sets)
{
    char path[FUZZ_PATH_BYTES], *set;
    struct sl_override overrides[SETS_MOST];
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_model *model = NULL;
    struct sl_buf shown = {0};
    struct sl_model_request request = {.path = "m.yaml", .overrides = overrides};
    const int fd = fuzz_open_memory(overlay, strlen(overlay), path);
    const char *overlays[] = {path};
    request.overlays = overlays;
    request.overlay_count = overlay[0] != 0;
    while ((set = strtok_r(sets, "\n", &sets)) && request.override_count < SETS_MOST)
        overrides[request.override_count++] = (struct sl_override){"--set", set};
    fuzz_require(sl_diagnostics_create(&diagnostics, NULL) == SEQLSTM_OK);
    seqlstm_status status = sl_model_load_text("m.yaml", text, strlen(text), &request, diagnostics, &model, NULL);
    fuzz_require(sl_diagnostics_render(diagnostics, true, &shown, NULL) == SEQLSTM_OK);
    fuzz_require((status == SEQLSTM_OK) == (model != NULL));
    if (model)
        check_round_trip(model);
    else
        fuzz_require(sl_diagnostics_count(diagnostics, SL_SEVERITY_ERROR) > 0 && shown.length_bytes > 0);
    sl_model_destroy(model);
    sl_diagnostics_destroy(diagnostics);
    sl_buf_deinit(&shown);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    fuzz_require(copy != NULL);
    memcpy(copy, data, size);
    copy[size] = 0;
    char *rest = copy + (size > 0), *text = take_part(&rest), *overlay = take_part(&rest);
    load(text[0] == 0 || strcmp(text, "\n") == 0 ? base : text, overlay, rest);
    free(copy);
    return 0;
}
