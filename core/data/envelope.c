/* SPDX-License-Identifier: Apache-2.0 */
/* The largest batch is bounded by the longest records taken together, whatever the order. */
#include "data/envelope.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset_private.h"

void
sl_stream_cut(int64_t positions, int64_t batch_size, int64_t *out_parts, int64_t *out_steps)
{
    int64_t parts = batch_size < positions ? batch_size : positions;
    *out_parts = parts > 0 ? parts : 0;
    *out_steps = parts > 0 ? positions / parts : 0;
}

static int
descending(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a < b) - (a > b);
}

seqlstm_status
sl_envelope_compute(const struct sl_dataset *dataset, int64_t batch_size, int64_t max_tokens, struct sl_envelope *out,
                    struct seqlstm_error *err)
{
    int64_t bptt = dataset->form == SL_TARGET_NONE ? 0 : dataset->model->data.batching.bptt;
    int64_t size = batch_size < 1 ? 1 : batch_size;
    struct sl_envelope e = {.sequences = size < dataset->records ? size : dataset->records};
    if (dataset->stream) {
        int64_t steps;
        sl_stream_cut(dataset->length[0], size, &e.sequences, &steps);
        e.steps = bptt > 0 && bptt < steps ? bptt : steps;
        e.rows = e.sequences * e.steps;
        e.uniform = e.stream = true;
        *out = e;
        return SEQLSTM_OK;
    }
    if (!dataset->facts.has_steps || dataset->records == 0) {
        *out = e;
        return SEQLSTM_OK;
    }
    size_t count = (size_t)dataset->records;
    int32_t *lengths = malloc(count * sizeof *lengths);
    if (!lengths)
        return SL_DATA_NO_MEMORY(err);
    memcpy(lengths, dataset->length, count * sizeof *lengths);
    qsort(lengths, count, sizeof *lengths, descending);
    int64_t longest = lengths[0];
    e.uniform = lengths[count - 1] == longest && longest > 0;
    e.steps = bptt > 0 && bptt < longest ? bptt : longest;
    for (int64_t i = 0; i < e.sequences; i++)
        e.rows += lengths[i] < e.steps ? lengths[i] : e.steps;
    if (max_tokens > 0) {
        int64_t most = max_tokens > longest ? max_tokens : longest;
        e.rows = e.rows < most ? e.rows : most;
    }
    free(lengths);
    *out = e;
    return SEQLSTM_OK;
}
