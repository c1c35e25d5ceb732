/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a packed segment into slices of sequences, and these into rectangles of equal batch size. */
#include "cpu-onednn/recurrent/recurrent.h"

/* The number of sequences of slice m at a step with n sequences. */
static int64_t share(int64_t n, int32_t m, int32_t slices)
{
    return n > m ? (n - m + slices - 1) / slices : 0;
}

/* Visits each rectangle of the slice in order of time; if the slice's arrays are NULL, only counts. */
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
            if (s->rectangles != NULL)
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

seqlstm_status odn_slices_cut(struct odn_recurrent_binding *b, struct seqlstm_error *err)
{
    const struct seqlstm_host *host = b->r->op->instance->host;
    for (int32_t m = 0; m < b->slices_count; m++) {
        struct odn_slice *s = &b->slices[m];
        cut(b, m, s);
        const uint64_t count = (uint64_t)s->rectangle_count;
        s->rectangles = host_allocate(host, count * sizeof *s->rectangles);
        if (s->rectangles == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the rectangles of a batch");
        cut(b, m, s);
        place_states(s);
        number_shapes(s);
        s->shapes = host_allocate(host, (uint64_t)s->shape_count * sizeof *s->shapes);
        if (s->shapes == NULL) {
            s->shape_count = 0; /* no entries to release */
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the shapes of a batch");
        }
        for (int32_t i = 0; i < s->rectangle_count; i++) {
            struct odn_shape *shape = &s->shapes[s->rectangles[i].shape];
            shape->n = s->rectangles[i].n;
            shape->steps = s->rectangles[i].steps;
        }
    }
    return SEQLSTM_OK;
}

seqlstm_status odn_slices_make_calls(struct odn_recurrent_binding *b, struct seqlstm_error *err)
{
    const int32_t calls = odn_calls_count(b->r);
    for (int32_t m = 0; m < b->slices_count; m++) {
        struct odn_slice *s = &b->slices[m];
        s->calls = host_allocate(b->r->op->instance->host, (uint64_t)(s->shape_count * calls) * sizeof *s->calls);
        if (s->calls == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the calls of a batch");
        for (int32_t i = 0; i < s->shape_count; i++)
            s->shapes[i].calls = s->calls + i * calls;
    }
    return SEQLSTM_OK;
}

void odn_slices_release(struct odn_recurrent_binding *b)
{
    const struct seqlstm_host *host = b->r->op->instance->host;
    for (int32_t m = 0; b->slices != NULL && m < b->slices_count; m++) {
        host_release(host, b->slices[m].rectangles);
        host_release(host, b->slices[m].shapes);
        host_release(host, b->slices[m].calls);
    }
}

seqlstm_status odn_binding_suppose(struct odn_recurrent_binding *b, struct odn_recurrent *r,
                                   const struct seqlstm_axis *axis, struct seqlstm_error *err)
{
    *b = (struct odn_recurrent_binding){
        .r = r, .axis = axis, .t1 = axis->steps, .rows = axis->rows, .slices_count = r->slices_max};
    if (axis->sequences < b->slices_count)
        b->slices_count = (int32_t)axis->sequences;
    b->slices = host_allocate(r->op->instance->host, (uint64_t)b->slices_count * sizeof *b->slices);
    if (b->slices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the slices of a batch");
    return SEQLSTM_OK;
}

void odn_binding_forget(struct odn_recurrent_binding *b)
{
    odn_slices_release(b);
    host_release(b->r->op->instance->host, b->slices);
}
