/* SPDX-License-Identifier: Apache-2.0 */
/* See sampler.h. */
#include "decode/sampler.h"

#include <stdlib.h>

#include <seqlstm/philox.h>

#include "decode/parts.h"
#include "decode/sample.h"

#define STREAM UINT64_C(0x74656163686572) /* "teacher" */

/* Elements of the stream. */
enum { COIN = 0, DRAW = 4 };

struct sl_sampler {
    struct sl_parts parts;
    bool argmax;
    uint64_t seed;
    struct sl_never never;
    int64_t classes;
    struct sl_sample_candidate *candidates; /* [classes] */
};

seqlstm_status sl_sampler_create(const struct sl_sampler_request *request, struct sl_sampler **out_sampler,
                                 struct seqlstm_error *err)
{
    struct sl_sampler *sampler = calloc(1, sizeof *sampler);
    if (sampler == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for scheduled sampling");
    sampler->argmax = request->argmax;
    sampler->seed = request->seed;
    sampler->never = request->never;
    seqlstm_status status = sl_parts_init(&sampler->parts, request->encoder, request->step, err);
    if (status == SEQLSTM_OK) {
        sampler->classes = sampler->parts.graph->facts.target.classes;
        sampler->candidates = calloc((size_t)sampler->classes + 1, sizeof *sampler->candidates);
    }
    if (status == SEQLSTM_OK && sampler->candidates == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for scheduled sampling");
    if (status == SEQLSTM_OK)
        *out_sampler = sampler;
    else
        sl_sampler_destroy(sampler);
    return status;
}

int64_t sl_sampler_count_bytes(const struct sl_graph *step)
{
    return sl_parts_count_bytes(step) + step->facts.target.classes * (int64_t)sizeof(struct sl_sample_candidate);
}

void sl_sampler_destroy(struct sl_sampler *sampler)
{
    if (sampler == NULL)
        return;
    sl_parts_deinit(&sampler->parts);
    free(sampler->candidates);
    free(sampler);
}

static double draw(uint64_t seed, uint64_t epoch, uint64_t sequence, uint32_t step, uint64_t element)
{
    return (double)seqlstm_uniform(seqlstm_mix64(seed, STREAM, epoch), element, step, sequence);
}

bool sl_sampler_toss(uint64_t seed, uint64_t epoch, uint64_t sequence, uint32_t step, double probability)
{
    return draw(seed, epoch, sequence, step, COIN) < probability;
}

/* The model's prediction after a step: the token that `step` reads. */
static int32_t choose(struct sl_sampler *sampler, const float *probabilities, uint64_t epoch, uint64_t sequence,
                      uint32_t step)
{
    const struct sl_sample_rule plain = {1, 0, 1, sampler->never};
    if (!sampler->argmax)
        return sl_sample_draw(&plain, probabilities, sampler->classes, draw(sampler->seed, epoch, sequence, step, DRAW),
                              sampler->candidates);
    return sl_sample_find_best(&sampler->never, probabilities, sampler->classes);
}

/* The last step that reads a token of the model's own; 0: there is none. */
static int64_t find_last(const struct sl_sampler *sampler, const struct sl_batch *batch, double probability,
                         uint64_t epoch)
{
    const struct seqlstm_axis *axis = &batch->axis;
    for (int64_t t = axis->steps - 1; t > 0; t--)
        for (int32_t k = 0; k < axis->batch_sizes[t]; k++)
            if (!sl_sampler_toss(sampler->seed, epoch, axis->sequence_id[k], (uint32_t)t, probability))
                return t;
    return 0;
}

seqlstm_status sl_sampler_mix(struct sl_sampler *sampler, struct sl_batch *batch, double probability, uint64_t epoch,
                              int64_t *out_own, struct seqlstm_error *err)
{
    const struct seqlstm_axis *axis = &batch->axis;
    int32_t *ids = (int32_t *)batch->input.ids;
    int64_t last = probability < 1 ? find_last(sampler, batch, probability, epoch) : 0;
    *out_own = 0;
    if (last > 0)
        SEQLSTM_TRY(sl_parts_begin(&sampler->parts, batch, err));
    for (int64_t t = 1; t <= last; t++) {
        const float *probabilities;
        int32_t count = axis->batch_sizes[t]; /* those that continue come first */
        for (int32_t k = 0; k < count; k++) {
            sampler->parts.tokens[k] = ids[axis->row_offsets[t - 1] + k];
            sampler->parts.sentences[k] = k;
        }
        SEQLSTM_TRY(sl_parts_step(&sampler->parts, count, t - 1, &probabilities, err));
        for (int32_t k = 0; k < count; k++) {
            uint64_t sequence = axis->sequence_id[k];
            if (sl_sampler_toss(sampler->seed, epoch, sequence, (uint32_t)t, probability))
                continue;
            ids[axis->row_offsets[t] + k] =
                choose(sampler, probabilities + k * sampler->classes, epoch, sequence, (uint32_t)t);
            ++*out_own;
        }
    }
    return SEQLSTM_OK;
}
