/* SPDX-License-Identifier: Apache-2.0 */
/* See packer.h. */
#include "predict/packer.h"

#include <stdlib.h>
#include <string.h>

static void *make(size_t count, size_t bytes, bool *failed)
{
    void *array = NULL;
    if (posix_memalign(&array, SEQLSTM_ALIGNMENT, (count + 1) * bytes + SEQLSTM_ALIGNMENT) != 0) {
        *failed = true;
        return NULL;
    }
    memset(array, 0, (count + 1) * bytes + SEQLSTM_ALIGNMENT); /* the pages are there before the first use */
    return array;
}

seqlstm_status sl_packer_init(struct sl_packer *packer, const struct sl_data_facts *facts,
                              const struct sl_envelope *envelope, struct seqlstm_error *err)
{
    const size_t sequences = (size_t)envelope->sequences, steps = (size_t)envelope->steps;
    const int64_t rows = facts->input.on_steps ? envelope->rows : envelope->sequences;
    bool failed = false;
    *packer = (struct sl_packer){.sequences = envelope->sequences, .steps = envelope->steps, .rows = envelope->rows};
    packer->order = make(sequences, sizeof *packer->order, &failed);
    packer->begins = make(sequences, sizeof *packer->begins, &failed);
    packer->lengths = make(sequences, sizeof *packer->lengths, &failed);
    packer->batch_sizes = make(steps, sizeof *packer->batch_sizes, &failed);
    packer->counts = make(steps + 1, sizeof *packer->counts, &failed);
    packer->row_offsets = make(steps + 1, sizeof *packer->row_offsets, &failed);
    packer->samples = make(sequences, sizeof *packer->samples, &failed);
    packer->ids = make(sequences, sizeof *packer->ids, &failed);
    packer->positions = make(sequences, sizeof *packer->positions, &failed);
    packer->input = make((size_t)rows * (size_t)facts->input.features, sizeof(float), &failed);
    if (failed) {
        sl_packer_deinit(packer);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the input");
    }
    packer->batch.axis = (struct seqlstm_axis){.struct_size = (uint32_t)sizeof(struct seqlstm_axis),
                                               .lengths = packer->lengths,
                                               .batch_sizes = packer->batch_sizes,
                                               .row_offsets = packer->row_offsets,
                                               .sequence_id = packer->ids,
                                               .position0 = packer->positions};
    packer->batch.input = (struct sl_field){
        .kind = facts->input.kind, .on_steps = facts->input.on_steps, .features = facts->input.features};
    packer->batch.input.values = packer->input;
    packer->batch.sample = packer->samples;
    packer->batch.sample_step = packer->samples;
    packer->batch.last_segment = true;
    return SEQLSTM_OK;
}

void sl_packer_deinit(struct sl_packer *packer)
{
    void *const owned[] = {packer->order,       packer->begins,  packer->lengths, packer->batch_sizes, packer->counts,
                           packer->row_offsets, packer->samples, packer->ids,     packer->positions,   packer->input};
    for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
        free(owned[k]);
    *packer = (struct sl_packer){.sequences = 0};
}

/* Counting sort: `counts[t]` is where the next sequence of length t goes. Returns the longest length. */
static int64_t sort(struct sl_packer *packer, const int64_t *lengths, int64_t count)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++)
        longest = lengths[i] > longest ? lengths[i] : longest;
    memset(packer->counts, 0, (size_t)(longest + 1) * sizeof *packer->counts);
    for (int64_t i = 0; i < count; i++)
        packer->counts[lengths[i]]++;
    int32_t begin = 0;
    for (int64_t t = longest; t >= 0; t--) {
        const int32_t equal = packer->counts[t];
        packer->counts[t] = begin;
        begin += equal;
    }
    for (int64_t i = 0, row = 0; i < count; row += lengths[i++]) {
        const int32_t k = packer->counts[lengths[i]]++;
        packer->order[k] = (int32_t)i;
        packer->lengths[k] = (int32_t)lengths[i];
        packer->begins[i] = row;
    }
    return longest;
}

void sl_packer_lay_out(struct sl_packer *packer, const int64_t *lengths, int64_t count)
{
    struct sl_batch *batch = &packer->batch;
    struct seqlstm_axis *axis = &batch->axis;
    batch->sequences = count;
    batch->has_steps = lengths != NULL;
    axis->steps = axis->rows = axis->sequences = 0;
    axis->flags = 0;
    if (lengths)
        axis->steps = sort(packer, lengths, count);
    for (int64_t i = 0; lengths == NULL && i < count; i++) {
        packer->order[i] = (int32_t)i;
        packer->begins[i] = i;
    }
    int64_t alive = count;
    while (alive > 0 && (lengths == NULL || packer->lengths[alive - 1] == 0))
        alive--;
    axis->sequences = alive;
    if (alive > 0 && packer->lengths[alive - 1] == axis->steps)
        axis->flags = SEQLSTM_BIT_AXIS_UNIFORM;
    for (int64_t t = 0; t < axis->steps; t++) {
        while (packer->lengths[alive - 1] <= t)
            alive--;
        packer->batch_sizes[t] = (int32_t)alive;
        packer->row_offsets[t + 1] = packer->row_offsets[t] + alive;
    }
    axis->rows = packer->row_offsets[axis->steps];
    for (int64_t k = 0; k < count; k++) {
        packer->ids[k] = (uint64_t)packer->order[k];
        packer->positions[k] = 0;
    }
}

/* ---- the input -------------------------------------------------------------------------------------------------- */

static void scale(const struct sl_scaling *scaling, const float *from, int64_t features, float *to)
{
    for (int64_t f = 0; f < features; f++) {
        double value = (double)from[f];
        if (f < scaling->columns)
            value = (value - scaling->offset[f]) / scaling->factor[f];
        to[f] = (float)value;
    }
}

/* The row of the input that step t of the batch's sequence k is. */
static int64_t find_row(const struct sl_packer *packer, int64_t k, int64_t t)
{
    return packer->begins[packer->order[k]] + t;
}

static seqlstm_status fill_ids(const struct sl_packer *packer, const struct sl_data_state *state, const int32_t *x,
                               int64_t k, int64_t t, int32_t *to, struct seqlstm_error *err)
{
    const int64_t classes = sl_data_state_get_facts(state)->input.classes, row = find_row(packer, k, t);
    if (x[row] < 0 || x[row] >= classes)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "token %lld of the input has the id %d, expected 0 to %lld",
                     (long long)row, x[row], (long long)classes - 1);
    *to = x[row];
    return SEQLSTM_OK;
}

seqlstm_status sl_packer_fill(struct sl_packer *packer, const struct sl_data_state *state, const void *x,
                              struct seqlstm_error *err)
{
    const struct sl_batch *batch = &packer->batch;
    const struct sl_scaling *scaling = sl_data_state_find_input_scaling(state);
    const int64_t features = batch->input.features, steps = batch->has_steps ? batch->axis.steps : 1;
    for (int64_t t = 0; t < steps; t++) {
        const int64_t first = batch->has_steps ? packer->row_offsets[t] : 0;
        const int64_t count = batch->has_steps ? packer->batch_sizes[t] : batch->sequences;
        for (int64_t k = 0; k < count; k++) {
            const float *from = (const float *)x + find_row(packer, k, t) * features;
            float *to = (float *)packer->input + (first + k) * features;
            if (batch->input.kind == SL_FIELD_IDS)
                SEQLSTM_TRY(fill_ids(packer, state, x, k, t, (int32_t *)packer->input + first + k, err));
            else if (scaling)
                scale(scaling, from, features, to);
            else
                memcpy(to, from, (size_t)features * sizeof *to);
        }
    }
    return SEQLSTM_OK;
}
