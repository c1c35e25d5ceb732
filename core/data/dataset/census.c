/* SPDX-License-Identifier: Apache-2.0 */
/* See census.h. */
#include "data/dataset/census.h"

#include <stdlib.h>

#include "data/dataset/dataset_private.h"
#include "data/dataset/state_private.h"
#include "data/no_memory.h"

seqlstm_status sl_census_take_lengths(const struct sl_dataset *dataset, struct sl_lengths *out_lengths,
                                      struct seqlstm_error *err)
{
    return sl_lengths_init(out_lengths, dataset->length, dataset->records, err);
}

static void count_row(const struct sl_dataset *dataset, int64_t row, int64_t *counts, int64_t classes)
{
    const int32_t id = dataset->target_ids[row];
    if (id >= 0 && id < classes)
        counts[id]++;
}

seqlstm_status sl_census_count_classes(const struct sl_dataset *dataset, int64_t **out_counts, int64_t *out_classes,
                                       struct seqlstm_error *err)
{
    const struct sl_vocabulary *classes = dataset->state->classes;
    *out_counts = NULL;
    *out_classes = 0;
    if (!classes || !dataset->target_ids)
        return SEQLSTM_OK;
    const int64_t size = sl_vocabulary_get_size(classes);
    int64_t *counts = calloc((size_t)size + 1, sizeof *counts);
    if (!counts)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t r = 0; r < dataset->records; r++) {
        const int64_t first = dataset->start[r], end = first + dataset->length[r];
        if (dataset->form == SL_TARGET_RECORD)
            count_row(dataset, dataset->target_row[r], counts, size);
        else if (dataset->form == SL_TARGET_LAST && end > first)
            count_row(dataset, end - 1, counts, size);
        for (int64_t row = first; dataset->form == SL_TARGET_STEP && row < end; row++)
            count_row(dataset, row, counts, size);
    }
    *out_counts = counts;
    *out_classes = size;
    return SEQLSTM_OK;
}
