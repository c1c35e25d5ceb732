/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a packed segment into slices of sequences, and these into rectangles of equal batch size. */
#include "cpu-onednn/recurrent/recurrent.h"

enum { ROOM_LEAST = 16 };

/* The number of sequences of slice m at a step with n sequences. */
static int64_t share(int64_t n, int32_t m, int32_t slices)
{
    return n > m ? (n - m + slices - 1) / slices : 0;
}

/* Visits each rectangle of the slice in order of time, and counts them; writes those for which there is room. */
static void cut(const struct odn_recurrent_binding *b, int32_t m, struct odn_slice *s)
{
    const int32_t *sizes = b->axis->batch_sizes;
    int64_t row = 0;
    s->rectangle_count = 0;
    for (int64_t t = b->t0, end; t < b->t1; t = end) {
        const int64_t n = share(sizes[t], m, b->slices_count);
        for (end = t + 1; end < b->t1 && share(sizes[end], m, b->slices_count) == n; end++) {
        }
        if (n == 0)
            break;
        for (int64_t left = end - t, steps; left > 0; left -= steps) {
            steps = left;
            if (t > b->t0 || end < b->t1)
                for (steps = 1; steps * 2 <= left; steps *= 2) {
                }
            if (s->rectangle_count < s->room)
                s->rectangles[s->rectangle_count] = (struct odn_rectangle){.steps = steps, .n = n, .row = row};
            s->rectangle_count++;
            row += steps * n;
        }
    }
    s->rows = row;
    s->sequences = share(sizes[b->t0], m, b->slices_count);
}

/* Assigns rows of the state vectors, for both orders of execution. */
static void place_states(struct odn_slice *s)
{
    const int32_t count = s->rectangle_count;
    int64_t end[ODN_WAYS] = {0, 0};
    for (int way = 0; way < ODN_WAYS; way++) {
        int64_t before = 0; /* sequences of the rectangle that ran before */
        for (int32_t i = 0; i < count; i++) {
            struct odn_rectangle *rectangle = &s->rectangles[way ? count - 1 - i : i];
            rectangle->in_row[way] = end[way];
            end[way] += before > rectangle->n ? before : rectangle->n;
            rectangle->out_row[way] = end[way];
            before = rectangle->n;
        }
        end[way] += before;
    }
    s->state_rows = end[0] > end[1] ? end[0] : end[1];
}

static bool is_like(const struct odn_rectangle *a, const struct odn_rectangle *b)
{
    return a->n == b->n && a->steps == b->steps;
}

/* Numbers the shapes in order of their first rectangles. */
static void number_shapes(struct odn_slice *s)
{
    s->shape_count = 0;
    for (int32_t i = 0; i < s->rectangle_count; i++) {
        struct odn_rectangle *rectangle = &s->rectangles[i];
        int32_t first = 0;
        while (!is_like(&s->rectangles[first], rectangle))
            first++;
        rectangle->shape = first < i ? s->rectangles[first].shape : s->shape_count++;
    }
}

static seqlstm_status make_room(struct odn_recurrent_binding *b, int32_t m, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = b->r->op->instance->host;
    struct odn_slice *s = &b->slices[m];
    if (m < b->slices_count)
        cut(b, m, s);
    const int32_t room = s->rectangle_count < ROOM_LEAST / 2 ? ROOM_LEAST : 2 * s->rectangle_count;
    s->rectangle_count = 0;
    s->rectangles = host_allocate(host, (uint64_t)room * sizeof *s->rectangles);
    s->shapes = host_allocate(host, (uint64_t)room * sizeof *s->shapes);
    if (s->rectangles == NULL || s->shapes == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the rectangles of a batch");
    s->room = room;
    return SEQLSTM_OK;
}

seqlstm_status odn_slices_make(struct odn_recurrent_binding *b, struct seqlstm_error *err)
{
    b->slices = host_allocate(b->r->op->instance->host, (uint64_t)b->slices_room * sizeof *b->slices);
    if (b->slices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the slices of a batch");
    for (int32_t m = 0; m < b->slices_room; m++)
        SEQLSTM_TRY(make_room(b, m, err));
    return SEQLSTM_OK;
}

seqlstm_status odn_slices_cut(struct odn_recurrent_binding *b, struct seqlstm_error *err)
{
    for (int32_t m = 0; m < b->slices_count; m++) {
        struct odn_slice *s = &b->slices[m];
        cut(b, m, s);
        if (s->rectangle_count > s->room) {
            const int32_t count = s->rectangle_count;
            s->rectangle_count = 0;
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the binding has room for %d rectangles, and the shape has %d",
                         (int)s->room, (int)count);
        }
        place_states(s);
        number_shapes(s);
        for (int32_t i = 0; i < s->rectangle_count; i++) {
            struct odn_shape *shape = &s->shapes[s->rectangles[i].shape];
            shape->n = s->rectangles[i].n;
            shape->steps = s->rectangles[i].steps;
        }
    }
    return SEQLSTM_OK;
}

void odn_slices_release(struct odn_recurrent_binding *b)
{
    const struct seqlstm_host *host = b->r->op->instance->host;
    for (int32_t m = 0; b->slices != NULL && m < b->slices_room; m++) {
        host_release(host, b->slices[m].rectangles);
        host_release(host, b->slices[m].shapes);
    }
    host_release(host, b->slices);
}

seqlstm_status odn_binding_suppose(struct odn_recurrent_binding *b, struct odn_recurrent *r,
                                   const struct seqlstm_axis *axis, int32_t slices_most, struct seqlstm_error *err)
{
    const int32_t slices = axis->sequences < slices_most ? (int32_t)axis->sequences : slices_most;
    *b = (struct odn_recurrent_binding){
        .r = r, .axis = axis, .t1 = axis->steps, .rows = axis->rows, .slices_count = slices, .slices_room = slices};
    seqlstm_status status = odn_slices_make(b, err);
    if (status == SEQLSTM_OK)
        status = odn_slices_cut(b, err);
    if (status != SEQLSTM_OK)
        odn_slices_release(b);
    return status;
}
