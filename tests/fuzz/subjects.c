/* SPDX-License-Identifier: Apache-2.0 */
#include "subjects.h"

#include <stdio.h>
#include <stdlib.h>

#include "data/dataset/dataset.h"
#include "data/dataset/state.h"
#include "fuzz.h"
#include "model/model.h"
#include "model/yaml/diagnostics.h"

#define FIXTURES "tests/fixtures/interop/"

static const char *const FOLDERS[SUBJECTS] = {"classifier", "gru-before",   "language", "last-state",
                                              "lstm",       "lstm-options", "stack"};

struct subject subjects[SUBJECTS];

static struct subject open_subject(const char *folder)
{
    struct subject subject = {0};
    struct sl_diagnostics *diagnostics = NULL;
    struct sl_dataset *data = NULL;
    char path[256];
    snprintf(path, sizeof path, FIXTURES "%s/model.yaml", folder);
    const struct sl_model_request request = {.path = path};
    fuzz_require(sl_diagnostics_create(&diagnostics, NULL) == SEQLSTM_OK);
    fuzz_require(sl_model_load(&request, diagnostics, &subject.model, NULL) == SEQLSTM_OK);
    fuzz_require(sl_dataset_open_train(subject.model, &data, &subject.state, NULL) == SEQLSTM_OK);
    const struct sl_graph_request graph = {.model = subject.model,
                                           .facts = sl_data_state_get_facts(subject.state),
                                           .phase = SL_PHASE_PREDICT,
                                           .need_output = true};
    fuzz_require(sl_graph_create(&graph, &subject.graph, NULL) == SEQLSTM_OK);
    subject.values = calloc((size_t)subject.graph->param_count + 1, sizeof *subject.values);
    fuzz_require(subject.values != NULL);
    for (int32_t p = 0; p < subject.graph->param_count; p++) {
        const struct sl_param *param = &subject.graph->params[p];
        subject.values[p] = calloc((size_t)(param->rows * param->columns) + 1, sizeof(float));
        fuzz_require(subject.values[p] != NULL);
    }
    sl_dataset_close(data);
    sl_diagnostics_destroy(diagnostics);
    return subject;
}

void open_subjects(void)
{
    setenv("SEQLSTM_CACHE", "", 1);
    for (int s = 0; s < SUBJECTS; s++)
        subjects[s] = open_subject(FOLDERS[s]);
}

void write_subject_seed(int subject, const char *file, int choice)
{
    static char bytes[1 << 20];
    char path[256];
    snprintf(path, sizeof path, FIXTURES "%s/%s", FOLDERS[subject], file);
    FILE *from = fopen(path, "rb");
    if (from == NULL)
        return;
    const size_t count = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    fuzz_write_seed(choice, bytes, count);
}
