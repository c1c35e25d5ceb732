/* SPDX-License-Identifier: Apache-2.0 */
/* What changes from run to run, on the device: one block, which every run fills in pinned memory and copies as a whole
 * before its calls, so that neither calls nor captures have to copy it.
 *
 *   step | ids [N] | positions [N] || ids and positions of the source's sequences        N: sequences of the envelope
 *
 * A run ends when the device has finished it, so the pinned block is free when the next one is filled.
 */
#include "exec/live.h"

#include <string.h>

#include "base/memory/alignment.h"

/* Offset of the ids of a side; its positions follow. */
static int64_t find_ids(const struct sl_exec *exec, int side)
{
    const int64_t n = exec->graph->facts.envelope.sequences;
    return sl_align(sizeof(struct seqlstm_step)) + side * (sl_align(8 * n) + sl_align(4 * n));
}

static int64_t find_positions(const struct sl_exec *exec, int side)
{
    return find_ids(exec, side) + sl_align(8 * exec->graph->facts.envelope.sequences);
}

seqlstm_status sl_exec_open_live(struct sl_exec *exec, struct seqlstm_error *err)
{
    struct sl_domain *domain = exec->places[exec->device_place].domain;
    const int64_t bytes = find_ids(exec, SL_EXEC_SIDES);
    void *device, *pinned;
    SEQLSTM_TRY(sl_domain_allocate(domain, bytes, &device, err));
    exec->live.device = device;
    SEQLSTM_TRY(sl_domain_allocate_pinned(domain, bytes, &pinned, err));
    exec->live.pinned = pinned;
    memset(pinned, 0, (size_t)bytes);
    exec->step.device = (const struct seqlstm_step *)device;
    return SEQLSTM_OK;
}

void sl_exec_close_live(struct sl_exec *exec)
{
    if (exec->device_place == SL_PLACE_HOST)
        return;
    sl_domain_release(exec->places[exec->device_place].domain, exec->live.device);
    sl_domain_release_pinned(exec->places[exec->device_place].domain, exec->live.pinned);
}

void sl_exec_attach_live(struct sl_exec *exec, struct sl_exec_shape *shape)
{
    for (int side = 0; exec->live.device && side < SL_EXEC_SIDES; side++) {
        struct sl_exec_axes *axes = &shape->sides[side];
        if (axes->id_count > exec->graph->facts.envelope.sequences)
            continue;
        axes->steps.device_sequence_id = (const uint64_t *)(const void *)(exec->live.device + find_ids(exec, side));
        axes->steps.device_position0 = (const uint32_t *)(const void *)(exec->live.device + find_positions(exec, side));
        axes->rows.device_sequence_id = axes->steps.device_sequence_id;
        axes->rows.device_position0 = axes->steps.device_position0;
    }
}

seqlstm_status sl_exec_renew_live(struct sl_exec *exec, struct seqlstm_error *err)
{
    char *pinned = exec->live.pinned;
    if (pinned == NULL)
        return SEQLSTM_OK;
    memcpy(pinned, &exec->step, sizeof exec->step);
    for (int side = 0; side < SL_EXEC_SIDES; side++) {
        const struct seqlstm_axis *axis = &exec->shape->sides[side].steps;
        const size_t n = axis->device_sequence_id ? (size_t)exec->shape->sides[side].id_count : 0;
        memcpy(pinned + find_ids(exec, side), axis->sequence_id, n * sizeof *axis->sequence_id);
        memcpy(pinned + find_positions(exec, side), axis->position0, n * sizeof *axis->position0);
    }
    return sl_domain_upload(exec->places[exec->device_place].domain, exec->live.device, pinned,
                            find_ids(exec, SL_EXEC_SIDES), err);
}
