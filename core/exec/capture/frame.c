/* SPDX-License-Identifier: Apache-2.0 */
/* What changes from run to run, on the device. Calls and captures read it in one block, in device_place:
 *
 *   step block | ids [N] | positions [N] || ids and positions of the source's sequences    N: sequences of the envelope
 *
 * Before a step for whose calls the host waits, it fills the block in pinned memory and copies it as a whole. A step
 * that is captured or started ahead has a frame (ext/draft/frame.h), which also brings the fields of the batch:
 *
 *   slot of the ring   order | step block | ids, positions, fields of the batch, one after the other
 *
 * A launch fills a slot in pinned memory, copies it on a lane, and lets the queue wait for the copy. The step begins
 * with the copies from the slot and ends with the report. While the device computes a step, the host can launch the
 * next one: what that one depends on (which updates changed something, the loss scale, whether states are reset) is
 * decided on the device, by the rules of the trainer.
 *
 * Invariants:
 *  1. A slot is filled only when the step that used it before has landed: at most SL_EXEC_AHEAD steps are under way.
 *  2. When no step is under way, the host's numbers count, not those that the device has kept.
 */
#include "exec/capture/frame.h"

#include <string.h>

#include "base/memory/alignment.h"
#include "base/system/trace.h"
#include "exec/place/place.h"
#include "exec/rows.h"

enum { STEP_ROOM = 128 }; /* order and step block */

static struct sl_domain *get_domain(const struct sl_exec *exec)
{
    return exec->places[exec->device_place].domain;
}

/* ---- the block that calls read ------------------------------------------------------------------------------------
 */

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
    SEQLSTM_TRY(sl_exec_allocate(exec, &exec->places[exec->device_place], bytes, &device, err));
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

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

static int64_t count_slot_bytes(const struct sl_exec *exec)
{
    const int64_t n = exec->graph->facts.envelope.sequences;
    int64_t bytes = STEP_ROOM + SL_EXEC_SIDES * (sl_align(8 * n) + sl_align(4 * n));
    for (int32_t t = 0; t < exec->graph->tensor_count; t++) {
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        if (sl_tensor_role_is_field(tensor->role))
            bytes +=
                sl_align(sl_graph_get_rows(exec->graph, tensor) * tensor->features * sl_dtype_bytes(tensor->dtype));
    }
    return bytes;
}

static seqlstm_status open_memory(struct sl_exec *exec, struct seqlstm_error *err)
{
    struct sl_exec_ring *ring = &exec->ring;
    struct sl_domain *domain = get_domain(exec);
    struct sl_exec_place *place = &exec->places[exec->device_place];
    void *memory[4];
    ring->slot_bytes = count_slot_bytes(exec);
    SEQLSTM_TRY(sl_exec_allocate(exec, place, SL_EXEC_AHEAD * ring->slot_bytes, &memory[0], err));
    ring->device = memory[0];
    SEQLSTM_TRY(sl_exec_allocate(exec, place, sizeof(struct seqlstm_progress), &memory[1], err));
    ring->progress = memory[1];
    SEQLSTM_TRY(sl_domain_allocate_pinned(domain, SL_EXEC_AHEAD * ring->slot_bytes, &memory[2], err));
    ring->pinned = memory[2];
    SEQLSTM_TRY(sl_domain_allocate_pinned(domain, SL_EXEC_AHEAD * sizeof *ring->outcomes, &memory[3], err));
    ring->outcomes = memory[3];
    memset(ring->pinned, 0, (size_t)(SL_EXEC_AHEAD * ring->slot_bytes));
    memset(ring->outcomes, 0, SL_EXEC_AHEAD * sizeof *ring->outcomes);
    return sl_domain_finish(domain, err); /* the ring is cleared before the lane writes to it */
}

seqlstm_status sl_exec_open_frame(struct sl_exec *exec, struct seqlstm_error *err)
{
    struct sl_exec_ring *ring = &exec->ring;
    SEQLSTM_TRY(open_memory(exec, err));
    SEQLSTM_TRY(sl_lane_open(&ring->lane, get_domain(exec), err));
    for (int k = 0; k < SL_EXEC_MARKS; k++) {
        SEQLSTM_TRY(sl_event_create(get_domain(exec), &ring->marks[k].sent, err));
        SEQLSTM_TRY(sl_event_create(get_domain(exec), &ring->marks[k].begun, err));
        SEQLSTM_TRY(sl_event_create(get_domain(exec), &ring->marks[k].ended, err));
    }
    return SEQLSTM_OK;
}

void sl_exec_close_frame(struct sl_exec *exec)
{
    struct sl_exec_ring *ring = &exec->ring;
    if (exec->device_place == SL_PLACE_HOST)
        return;
    sl_lane_finish(&ring->lane, NULL);
    sl_lane_close(&ring->lane);
    for (int k = 0; k < SL_EXEC_MARKS; k++) {
        sl_event_destroy(get_domain(exec), ring->marks[k].sent);
        sl_event_destroy(get_domain(exec), ring->marks[k].begun);
        sl_event_destroy(get_domain(exec), ring->marks[k].ended);
    }
    sl_domain_release(get_domain(exec), ring->device);
    sl_domain_release(get_domain(exec), ring->progress);
    sl_domain_release_pinned(get_domain(exec), ring->pinned);
    sl_domain_release_pinned(get_domain(exec), ring->outcomes);
}

/* ---- both ends ----------------------------------------------------------------------------------------------------
 */

void sl_exec_note_frame(struct sl_exec *exec)
{
    for (int32_t t = 0; t < exec->graph->tensor_count; t++) {
        const enum sl_tensor_role role = exec->graph->tensors[t].role;
        if (sl_tensor_role_is_field(role))
            exec->valid[t] |= (uint8_t)(1u << exec->device_place);
        else if (role == SL_TENSOR_STATE_IN && !exec->batch->carry_state)
            sl_exec_note_written(exec, exec->device_place, t);
    }
    if (exec->graph->sums >= 0)
        sl_exec_note_written(exec, exec->device_place, exec->graph->sums);
}

/* The host's address of what entry `e` of a slot holds. */
static const void *find_entry(const struct sl_exec *exec, const struct sl_exec_entry *e)
{
    if (e->tensor >= 0)
        return sl_exec_at((struct sl_exec *)exec, SL_PLACE_HOST, e->tensor);
    const struct seqlstm_axis *axis = &exec->shape->sides[e->side].steps;
    return e->is_position ? (const void *)axis->position0 : (const void *)axis->sequence_id;
}

static void add_entry(struct sl_exec_capture *capture, struct sl_exec_entry entry, void *to, int64_t bytes)
{
    struct seqlstm_frame *frame = &capture->begin;
    if (bytes <= 0 || to == NULL)
        return;
    entry.offset = capture->slot_bytes;
    entry.bytes = bytes;
    capture->entries[capture->entry_count++] = entry;
    capture->slot_bytes += sl_align(bytes);
    frame->copies[frame->copy_count++] =
        (struct seqlstm_frame_copy){.to = to, .offset = (uint64_t)entry.offset, .bytes = (uint64_t)bytes};
}

static void add_ids(const struct sl_exec *exec, struct sl_exec_capture *capture)
{
    for (int side = 0; side < SL_EXEC_SIDES; side++) {
        const struct seqlstm_axis *axis = &exec->shape->sides[side].steps;
        const int64_t n = axis->device_sequence_id ? exec->shape->sides[side].id_count : 0;
        add_entry(capture, (struct sl_exec_entry){.tensor = -1, .side = side},
                  (void *)(uintptr_t)axis->device_sequence_id, 8 * n);
        add_entry(capture, (struct sl_exec_entry){.tensor = -1, .side = side, .is_position = true},
                  (void *)(uintptr_t)axis->device_position0, 4 * n);
    }
}

static void add_fields(struct sl_exec *exec, struct sl_exec_capture *capture)
{
    bool added[SL_EXEC_FIELDS] = {false};
    for (int32_t t = 0; t < exec->graph->tensor_count; t++) {
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        if (!sl_tensor_role_is_field(tensor->role) || added[tensor->role - SL_TENSOR_INPUT] ||
            sl_exec_at(exec, SL_PLACE_HOST, t) == NULL)
            continue;
        added[tensor->role - SL_TENSOR_INPUT] = true;
        add_entry(capture, (struct sl_exec_entry){.tensor = t}, sl_exec_at(exec, exec->device_place, t),
                  sl_exec_get_bytes(exec, t));
    }
}

static struct seqlstm_frame make_end(const struct sl_exec *exec)
{
    const struct sl_exec_place *place = &exec->places[exec->device_place];
    return (struct seqlstm_frame){.struct_size = sizeof(struct seqlstm_frame),
                                  .slots = SL_EXEC_AHEAD,
                                  .slot_bytes = (uint64_t)exec->ring.slot_bytes,
                                  .ring = exec->ring.device,
                                  .progress = exec->ring.progress,
                                  .outcomes = exec->ring.outcomes,
                                  .step = (struct seqlstm_step *)(void *)exec->live.device,
                                  .sums = place->sums,
                                  .squares = place->scalar,
                                  .states = place->states,
                                  .state_bytes = (uint64_t)exec->state_elems * sizeof(float)};
}

void sl_exec_make_frame(struct sl_exec *exec, struct sl_exec_capture *capture)
{
    capture->entry_count = 0;
    capture->slot_bytes = STEP_ROOM;
    capture->begin = capture->end = make_end(exec);
    add_ids(exec, capture);
    add_fields(exec, capture);
}

seqlstm_status sl_exec_begin_frame(struct sl_exec *exec, struct sl_exec_capture *capture, struct seqlstm_error *err)
{
    return sl_domain_begin_frame(get_domain(exec), &capture->begin, err);
}

bool sl_exec_add_to_frame(struct sl_exec_capture *capture, void *to, const void *from, int64_t bytes)
{
    if (capture->end.copy_count == SEQLSTM_FRAME_COPIES)
        return false;
    capture->end.copies[capture->end.copy_count++] =
        (struct seqlstm_frame_copy){.to = to, .from = from, .bytes = (uint64_t)bytes};
    return true;
}

seqlstm_status sl_exec_end_frame(struct sl_exec *exec, struct sl_exec_capture *capture, struct seqlstm_error *err)
{
    return sl_domain_end_frame(get_domain(exec), &capture->end, err);
}

/* ---- launches -----------------------------------------------------------------------------------------------------
 */

static struct seqlstm_order make_order(const struct sl_exec *exec, const struct sl_exec_step *step)
{
    const struct sl_exec_course *course = &step->course;
    const bool settled = exec->ring.launched == exec->ring.landed;
    return (struct seqlstm_order){
        .flags = (settled ? SEQLSTM_BIT_ORDER_SETTLED : 0) | (exec->batch->carry_state ? 0 : SEQLSTM_BIT_ORDER_RESET) |
                 (step->accumulate ? 0 : SEQLSTM_BIT_ORDER_FIRST) | (step->update ? SEQLSTM_BIT_ORDER_UPDATE : 0) |
                 (course->good_enough > 0 ? SEQLSTM_BIT_ORDER_SCALES : 0) |
                 (course->goes_on ? SEQLSTM_BIT_ORDER_GOES_ON : 0),
        .good = (uint32_t)course->good,
        .updates = course->updates,
        .loss = course->loss,
        .weight = course->weight,
        .good_enough = (uint32_t)course->good_enough,
        .scale_most = (float)course->scale_most};
}

static void fill_slot(const struct sl_exec *exec, const struct sl_exec_capture *capture,
                      const struct sl_exec_step *step, char *slot)
{
    const struct seqlstm_order order = make_order(exec, step);
    memcpy(slot, &order, sizeof order);
    memcpy(slot + SEQLSTM_FRAME_STEP_OFFSET, &exec->step, sizeof exec->step);
    for (int32_t k = 0; k < capture->entry_count; k++)
        memcpy(slot + capture->entries[k].offset, find_entry(exec, &capture->entries[k]),
               (size_t)capture->entries[k].bytes);
}

/* The queue waits for it. */
static seqlstm_status send_slot(struct sl_exec *exec, const struct sl_exec_capture *capture,
                                const struct sl_exec_step *step, struct seqlstm_error *err)
{
    struct sl_exec_ring *ring = &exec->ring;
    const int64_t at = ring->launched % SL_EXEC_AHEAD * ring->slot_bytes;
    void *sent = ring->marks[ring->marked % SL_EXEC_MARKS].sent;
    fill_slot(exec, capture, step, ring->pinned + at);
    SEQLSTM_TRY(sl_lane_upload(&ring->lane, ring->device + at, ring->pinned + at, capture->slot_bytes, err));
    SEQLSTM_TRY(sl_event_record_lane(&ring->lane, sent, err));
    return sl_event_wait(get_domain(exec), sent, err);
}

static seqlstm_status start_calls(struct sl_exec *exec, struct sl_exec_capture *capture,
                                  const struct sl_exec_step *step, sl_exec_calls_fn *calls, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_exec_begin_frame(exec, capture, err));
    SEQLSTM_TRY(calls(exec, step, err));
    return sl_exec_end_frame(exec, capture, err);
}

seqlstm_status sl_exec_launch(struct sl_exec *exec, struct sl_exec_capture *capture, const struct sl_exec_step *step,
                              sl_exec_calls_fn *calls, struct seqlstm_error *err)
{
    struct sl_exec_ring *ring = &exec->ring;
    struct sl_domain *domain = get_domain(exec);
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_PREPARE, "fields");
    const seqlstm_status status = send_slot(exec, capture, step, err);
    sl_trace_end(begin, SL_ACTIVITY_PREPARE, "fields", NULL, 0);
    SEQLSTM_TRY(status);
    SEQLSTM_TRY(sl_exec_mark_begin(exec, err));
    ring->rows[ring->launched % SL_EXEC_AHEAD] = sl_batch_count_computed_rows(exec->batch);
    exec->captures.ahead += ring->launched > ring->landed;
    *(capture->native ? &exec->captures.launched : &exec->captures.uncaptured) += 1;
    ring->launched++;
    SEQLSTM_TRY(capture->native ? sl_domain_launch(domain, capture->native, err)
                                : start_calls(exec, capture, step, calls, err));
    return sl_exec_mark_end(exec, err);
}

seqlstm_status sl_exec_land(struct sl_exec *exec, struct sl_exec_result *out_result, struct seqlstm_error *err)
{
    struct sl_exec_ring *ring = &exec->ring;
    const int64_t slot = ring->landed % SL_EXEC_AHEAD;
    struct sl_exec_marks *marks = &ring->marks[ring->counted % SL_EXEC_MARKS];
    SEQLSTM_TRY(sl_event_synchronize(get_domain(exec), marks->ended, err));
    const struct seqlstm_outcome *outcome = &ring->outcomes[slot];
    if (outcome->step != (uint64_t)ring->landed + 1)
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "the device reports step %llu, expected %lld",
                     (unsigned long long)outcome->step, (long long)ring->landed + 1);
    const double unscale = 1 / (double)outcome->loss_scale;
    *out_result = (struct sl_exec_result){.loss_sum = outcome->loss,
                                          .weight_sum = outcome->weight,
                                          .squares = outcome->squares * unscale * unscale,
                                          .rows = ring->rows[slot]};
    ring->landed++;
    return sl_exec_count_idle(exec, err);
}

/* ---- idle time ----------------------------------------------------------------------------------------------------
 */

seqlstm_status sl_exec_mark_begin(struct sl_exec *exec, struct seqlstm_error *err)
{
    return sl_event_record(get_domain(exec), exec->ring.marks[exec->ring.marked % SL_EXEC_MARKS].begun, err);
}

seqlstm_status sl_exec_mark_end(struct sl_exec *exec, struct seqlstm_error *err)
{
    return sl_event_record(get_domain(exec), exec->ring.marks[exec->ring.marked++ % SL_EXEC_MARKS].ended, err);
}

seqlstm_status sl_exec_count_idle(struct sl_exec *exec, struct seqlstm_error *err)
{
    struct sl_exec_ring *ring = &exec->ring;
    const int64_t now = ring->counted++;
    double ns;
    if (now > ring->paused) {
        SEQLSTM_TRY(sl_event_elapsed(get_domain(exec), ring->marks[(now - 1) % SL_EXEC_MARKS].ended,
                                     ring->marks[now % SL_EXEC_MARKS].begun, &ns, err));
        exec->captures.idle_ns += ns;
        exec->captures.gaps++;
    }
    return SEQLSTM_OK;
}

void sl_exec_pause(struct sl_exec *exec)
{
    exec->ring.paused = exec->ring.marked;
}
