/* SPDX-License-Identifier: Apache-2.0 */
/* See axes.h. */
#include "dispatch/cost/axes.h"

#include <stdlib.h>

seqlstm_status sl_axes_init(struct sl_axes *axes, const struct sl_profile *profile, int64_t steps_most, bool stream,
                            struct seqlstm_error *err)
{
    int64_t n = profile->sequences, alive = 0, steps = 0, rows = 0;
    while (profile->lengths && alive < n && profile->lengths[alive] > 0)
        alive++;
    if (alive > 0)
        steps = profile->lengths[0] < steps_most ? profile->lengths[0] : steps_most;
    size_t words = (size_t)(steps + 1) + (size_t)n + 2, halves = (size_t)n * 3 + (size_t)steps + 1;
    int64_t *offsets = axes->storage = calloc(words * 8 + halves * 4 + 8, 1);
    if (offsets == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the axes of a batch");
    uint64_t *ids = (uint64_t *)(offsets + steps + 1);
    int64_t *one = (int64_t *)(ids + n);
    uint32_t *positions = (uint32_t *)(one + 2);
    int32_t *lengths = (int32_t *)(positions + n), *ones = lengths + n, *sizes = ones + n;
    uint32_t flags = stream ? SEQLSTM_BIT_AXIS_STREAM : 0, uniform = SEQLSTM_BIT_AXIS_UNIFORM;
    for (int64_t k = 0; k < n; k++) {
        ids[k] = (uint64_t)k;
        ones[k] = 1;
        lengths[k] = k >= alive ? 0 : profile->lengths[k] < steps ? profile->lengths[k] : (int32_t)steps;
        if (k < alive && lengths[k] < steps)
            uniform = 0;
    }
    for (int64_t t = 0, live = alive; t < steps; t++) {
        while (live > 0 && lengths[live - 1] <= t)
            live--;
        sizes[t] = (int32_t)live;
        offsets[t] = rows;
        rows += live;
    }
    offsets[steps] = rows;
    one[1] = n;
    axes->steps = (struct seqlstm_axis){.struct_size = sizeof axes->steps,
                                        .flags = flags | uniform,
                                        .sequences = alive,
                                        .steps = steps,
                                        .rows = rows,
                                        .lengths = lengths,
                                        .batch_sizes = sizes,
                                        .row_offsets = offsets,
                                        .sequence_id = ids,
                                        .position0 = positions};
    sizes[steps] = (int32_t)n;
    axes->rows = (struct seqlstm_axis){.struct_size = sizeof axes->rows,
                                       .flags = flags | SEQLSTM_BIT_AXIS_UNIFORM,
                                       .sequences = n,
                                       .steps = 1,
                                       .rows = n,
                                       .lengths = ones,
                                       .batch_sizes = sizes + steps,
                                       .row_offsets = one,
                                       .sequence_id = ids,
                                       .position0 = positions};
    return SEQLSTM_OK;
}

void sl_axes_deinit(struct sl_axes *axes)
{
    free(axes->storage);
    *axes = (struct sl_axes){0};
}
