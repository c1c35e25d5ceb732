/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of HTTP requests for predictions (Open Inference Protocol): each is refused with a message, or gives a job
 * whose sequences and values agree with the model. The first byte chooses the model, the second where its JSON ends
 * (0: nowhere), the rest is the body. */
#include <string.h>

#include "fuzz.h"
#include "serve/infer_read.h"

static const struct sl_served_model models[] = {
    {.name = "values", .reads_steps = true, .input_features = 2, .output_features = 1, .steps = 5},
    {.name = "rows", .input_features = 3, .output_features = 2, .steps = 1},
    {.name = "ids", .reads_ids = true, .reads_steps = true, .input_features = 1, .input_classes = 7, .steps = 9},
    {.name = "streams", .reads_steps = true, .input_features = 1, .output_features = 1, .steps = 5, .streams = true},
};
enum { MODELS = sizeof models / sizeof *models };

static const char *const good[MODELS] = {
    "\0{\"id\": \"7\", \"inputs\": [{\"name\": \"x\", \"shape\": [3, 2], \"datatype\": \"FP32\", \"data\": [[1, 2], "
    "[3, 4], "
    "[5, 6]]}, {\"name\": \"lengths\", \"shape\": [2], \"datatype\": \"INT64\", \"data\": [1, 2]}]}",
    "\x67"
    "{\"inputs\": [{\"name\": \"x\", \"shape\": [1, 3], \"datatype\": \"FP32\", \"parameters\": "
    "{\"binary_data_size\":12}}]}abcdefghijkl",
    "\0{\"inputs\": [{\"name\": \"x\", \"shape\": [4], \"datatype\": \"INT32\", \"data\": [0, 6, 1, 2]}], \"outputs\": "
    "[{\"name\": \"y\", \"parameters\": {\"binary_data\": true}}]}",
    "\0{\"parameters\": {\"sequence_id\": 5, \"sequence_start\": true}, \"inputs\": [{\"name\": \"x\", \"shape\": [2, "
    "1], "
    "\"datatype\": \"FP64\", \"data\": [0.5, -1]}]}",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    for (int m = 0; m < MODELS; m++)
        fuzz_write_seed(m, good[m], 1 + strlen(good[m] + 1));
    return 0;
}

static void check_job(const struct sl_job *job)
{
    const struct sl_served_model *model = job->model;
    int64_t sum = 0;
    fuzz_require(job->x && job->rows >= 0 && job->count >= 0);
    for (int64_t k = 0; model->reads_steps && k < job->count; k++) {
        fuzz_require(job->lengths[k] >= 0 && job->lengths[k] <= model->steps);
        sum += job->lengths[k];
    }
    fuzz_require(sum == (model->reads_steps ? job->rows : 0));
    for (int64_t r = 0; model->reads_ids && r < job->rows; r++)
        fuzz_require(((int32_t *)job->x)[r] >= 0 && ((int32_t *)job->x)[r] < model->input_classes);
    volatile float seen = 0;
    for (int64_t k = 0; !model->reads_ids && k < job->rows * model->input_features; k++)
        seen = ((float *)job->x)[k]; /* it is there */
    (void)seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (size < 2)
        return 0;
    struct sl_job *job = sl_job_create(&models[data[0] % MODELS], NULL);
    fuzz_require(job != NULL);
    const seqlstm_status status =
        sl_infer_read(job, (const char *)data + 2, size - 2, data[1] == 0 ? -1 : data[1], &err);
    fuzz_require(status == SEQLSTM_OK ||
                 fuzz_failed_well(status, &err, SEQLSTM_INVALID_ARGUMENT, SEQLSTM_INVALID_ARGUMENT));
    if (status == SEQLSTM_OK)
        check_job(job);
    sl_job_destroy(job);
    return 0;
}
