/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the slots of a case with useful numbers: activations that do not saturate, weights of the usual size, some
 * ids and targets missing, some weights zero. */
#include "judge/data.h"

#include <math.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/value/hash.h"

struct random {
    uint64_t key, counter;
};

/* Uniform in [0, 1), 24 bits. */
static double uniform(struct random *r)
{
    return (double)seqlstm_uniform(r->key, r->counter++, 0, 0);
}

static int64_t below(struct random *r, int64_t count)
{
    return (int64_t)(uniform(r) * (double)count);
}

/* ---- the axis ----------------------------------------------------------------------------------- */

static int32_t length_of(const struct sl_case *c, struct random *r, int64_t sequence)
{
    switch (c->lengths) {
    case SL_LENGTHS_ONES:
        return 1;
    case SL_LENGTHS_LONG:
        return sequence == 0 ? (int32_t)c->steps : 1;
    case SL_LENGTHS_RAGGED:
        return sequence == 0 ? (int32_t)c->steps : (int32_t)(1 + below(r, c->steps));
    default:
        return (int32_t)c->steps;
    }
}

static bool make_axis(struct sl_arena *arena, struct sl_data *d, struct random *r)
{
    const struct sl_case *c = &d->c;
    int64_t steps = c->lengths == SL_LENGTHS_ONES ? 1 : c->steps, b = c->sequences;
    int32_t *lengths = SL_ARENA_ARRAY(arena, int32_t, (size_t)b);
    int32_t *batch_sizes = SL_ARENA_ARRAY(arena, int32_t, (size_t)steps);
    int64_t *offsets = SL_ARENA_ARRAY(arena, int64_t, (size_t)steps + 1);
    uint64_t *ids = SL_ARENA_ARRAY(arena, uint64_t, (size_t)b);
    uint32_t *positions = SL_ARENA_ARRAY(arena, uint32_t, (size_t)b);
    if (!lengths || !batch_sizes || !offsets || !ids || !positions)
        return false;
    for (int64_t k = 0; k < b; k++) {
        int32_t length = length_of(c, r, k);
        int64_t at = k;
        for (; at > 0 && lengths[at - 1] < length; at--)
            lengths[at] = lengths[at - 1];
        lengths[at] = length;
        ids[k] = (UINT64_C(0x100000000) * (uint64_t)(k % 3)) + 1000 - (uint64_t)k;
        positions[k] = c->stream ? 40u + 3u * (uint32_t)k : 0;
    }
    for (int64_t t = 0; t < steps; t++) {
        int32_t alive = 0;
        while (alive < b && lengths[alive] > t)
            alive++;
        batch_sizes[t] = alive;
        offsets[t + 1] = offsets[t] + alive;
    }
    d->axis = (struct seqlstm_axis){
        .struct_size = (uint32_t)sizeof d->axis,
        .flags =
            (c->stream ? SEQLSTM_BIT_AXIS_STREAM : 0u) | (lengths[b - 1] == lengths[0] ? SEQLSTM_BIT_AXIS_UNIFORM : 0u),
        .sequences = b,
        .steps = steps,
        .rows = offsets[steps],
        .lengths = lengths,
        .batch_sizes = batch_sizes,
        .row_offsets = offsets,
        .sequence_id = ids,
        .position0 = positions,
    };
    return true;
}

/* Places the memories of an attention. The first one has the largest length; if they are ragged, every third is
 * empty. */
static bool make_memories(struct sl_arena *arena, struct sl_data *d, struct random *r)
{
    const struct seqlstm_desc *head = &d->c.desc.head;
    const int64_t count = head->max_sequences, longest = head->max_steps;
    d->offsets = SL_ARENA_ARRAY(arena, int32_t, (size_t)count + 1);
    if (!d->offsets)
        return false;
    for (int64_t m = 0; m < count; m++) {
        int64_t length = d->c.memories == SL_LENGTHS_ONES || (d->c.memories == SL_LENGTHS_LONG && m > 0) ? 1 : longest;
        if (d->c.memories == SL_LENGTHS_RAGGED && m > 0)
            length = m % 3 == 2 ? 0 : 1 + below(r, longest);
        d->offsets[m + 1] = d->offsets[m] + (int32_t)length;
    }
    d->rows_in = d->offsets[count];
    return true;
}

static int64_t slot_rows(const struct sl_data *d, const struct sl_slot *slot)
{
    switch (slot->axis) {
    case SL_SLOT_ON_ROWS:
        return d->rows;
    case SL_SLOT_ON_ROWS_IN:
        return d->rows_in;
    case SL_SLOT_ON_STATES:
    case SL_SLOT_ON_SEQUENCES:
        return d->axis.sequences;
    default:
        return slot->rows;
    }
}

/* ---- values -------------------------------------------------------------------------------------- */

static int64_t class_count(const struct sl_data *d)
{
    const union seqlstm_any_desc *u = &d->c.desc;
    return u->head.op == SEQLSTM_OP_LOSS         ? u->loss.features
           : u->head.op == SEQLSTM_OP_DENSE_LOSS ? u->dense_loss.output
           : u->head.op == SEQLSTM_OP_EMBEDDING  ? u->embedding.vocabulary
                                                 : d->rows_in;
}

/* SCATTER: distinct rows of y; one in eight is skipped. */
static void fill_distinct(struct random *r, double *v, int64_t n, int64_t rows)
{
    int64_t stride = 1, at = below(r, rows);
    for (int64_t s = 2; s < rows; s++)
        if (s * s > rows) {
            int64_t a = s, b = rows;
            while (b) {
                int64_t rest = a % b;
                a = b;
                b = rest;
            }
            if (a == 1) {
                stride = s;
                break;
            }
        }
    for (int64_t i = 0; i < n; i++) {
        v[i] = i >= rows || below(r, 8) == 0 ? -1 : (double)at;
        at = (at + stride) % rows;
    }
}

/* The memory that each query uses. */
static void fill_memory_of(const struct sl_data *d, struct random *r, double *v, int64_t n)
{
    const int64_t count = d->c.desc.head.max_sequences;
    int64_t alive = count, m = 0;
    for (int64_t i = 0; i < n; i++) {
        if (d->c.queries == SL_QUERIES_BEAMS) {
            v[i] = (double)(i * count / n);
        } else if (d->c.queries == SL_QUERIES_PACKED) {
            v[i] = (double)m;
            if (++m == alive) {
                m = 0;
                alive -= alive > 1 ? below(r, 2) : 0;
            }
        } else {
            v[i] = below(r, 8) == 0 ? -1 : (double)below(r, count);
        }
    }
}

static void fill_integers(const struct sl_data *d, struct random *r, const struct sl_slot *slot, double *v, int64_t n)
{
    if (slot->role == SL_SLOT_INOUT) { /* FINITE_CHECK's flag */
        memset(v, 0, (size_t)n * sizeof *v);
        return;
    }
    if (d->offsets) {
        if (slot->axis == SL_SLOT_ON_ROWS)
            fill_memory_of(d, r, v, n);
        for (int64_t i = 0; slot->axis == SL_SLOT_FREE && i < n; i++)
            v[i] = d->offsets[i];
        return;
    }
    if (d->c.desc.head.op == SEQLSTM_OP_SCATTER) {
        fill_distinct(r, v, n, d->rows);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        v[i] = below(r, 8) == 0 ? -1 : (double)below(r, class_count(d));
}

/* The range [low, high) of a slot's values, by its meaning. */
static void range_of(const struct sl_data *d, const struct sl_slot *slot, double *low, double *high)
{
    double size = d->c.saturated ? 6 : 1;
    uint32_t op = d->c.desc.head.op;
    if (slot->role == SL_SLOT_PARAM) {
        double fan = slot->features > 1 && slot->rows > 1 ? (double)slot->features : 4;
        size = 1.5 * size / sqrt(fan);
        /* Scales of int8 are those of the weights: the directions have different ones. */
        if (d->c.desc.head.dtype_compute == SEQLSTM_DTYPE_INT8 && strstr(slot->name, "backward") != NULL)
            size /= 4;
        if (strncmp(slot->name, "norm", 4) == 0 || strcmp(slot->name, "gain") == 0) {
            *low = 0.5;
            *high = 1.5;
            return;
        }
    }
    *low = -size;
    *high = size;
    bool loss = op == SEQLSTM_OP_LOSS || op == SEQLSTM_OP_DENSE_LOSS;
    uint32_t kind = op == SEQLSTM_OP_LOSS ? d->c.desc.loss.kind : d->c.desc.dense_loss.kind;
    if (loss && strstr(slot->name, "weight") != NULL)
        *low = 0.25, *high = 1.75;
    else if (loss && kind == SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY && strcmp(slot->name, "target") == 0)
        *low = 0, *high = 1;
    else if (loss && kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY && strcmp(slot->name, "x") == 0)
        *low = -3, *high = 3;
    else if (op == SEQLSTM_OP_OPTIMIZER && slot->role == SL_SLOT_INOUT && strcmp(slot->name, "param") != 0)
        *low = 0.01, *high = 0.5; /* second moments are not negative; also good for first moments */
    else if (op == SEQLSTM_OP_OPTIMIZER && strcmp(slot->name, "squares") == 0)
        *low = 1, *high = 4;
}

/* Steps before and behind it have numbers. Each sequence has its own feature. */
static void fill_nan(const struct sl_data *d, const struct sl_slot *slot, double *v)
{
    for (int64_t k = 0; k < d->axis.sequences && d->axis.lengths[k] > 2; k++)
        v[(d->axis.row_offsets[d->axis.lengths[k] / 2] + k) * slot->features + k % slot->features] = (double)NAN;
}

/* Some elements are NaN or infinite, at every place of a vector register in turn. */
static void fill_not_finite(double *v, int64_t n)
{
    static const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (int64_t k = 0; 7 * k + 3 < n; k++)
        v[7 * k + 3] = bad[k % 3];
}

static void fill_floats(const struct sl_data *d, struct random *r, const struct sl_slot *slot, double *v, int64_t n)
{
    double low, high;
    bool row_weight = strcmp(slot->name, "weight") == 0;
    range_of(d, slot, &low, &high);
    for (int64_t i = 0; i < n; i++) {
        v[i] = sl_dtype_round(slot->dtype, low + (high - low) * uniform(r));
        if (row_weight && i % 5 == 3)
            v[i] = 0;
    }
    if (d->c.nan && d->c.desc.head.op == SEQLSTM_OP_VECTOR) {
        const bool alone = d->c.desc.vector.kind == SEQLSTM_KIND_VECTOR_CLAMP;
        if (strcmp(slot->name, alone ? "y" : "x") == 0)
            fill_not_finite(v, n);
    } else if (d->c.nan && slot->role == SL_SLOT_INPUT && slot->axis == SL_SLOT_ON_ROWS) {
        fill_nan(d, slot, v);
    }
    if (d->c.diverged == 1 && strcmp(slot->name, "sums") == 0)
        v[0] = (double)NAN;
    if (d->c.diverged == 2 && strcmp(slot->name, "squares") == 0)
        v[0] = (double)INFINITY;
}

static seqlstm_status no_memory(const struct sl_case *c, struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the data of case %s", c->text);
}

static seqlstm_status fill_slots(struct sl_arena *arena, struct sl_data *d, uint64_t seed, struct seqlstm_error *err)
{
    const struct sl_case *c = &d->c;
    for (int32_t k = 0; k < d->count; k++) {
        const struct sl_slot *slot = &d->slots[k];
        if (slot->role == SL_SLOT_ABSENT)
            continue;
        int64_t n = d->elems[k] = slot_rows(d, slot) * slot->features;
        struct random r = {seqlstm_mix64(seed, sl_hash_text(c->text), (uint64_t)k), 0};
        bool is_state = slot->axis == SL_SLOT_ON_STATES;
        bool is_report = strcmp(slot->name, "row_loss") == 0 || strcmp(slot->name, "weights") == 0;
        double **target = slot->role == SL_SLOT_OUTPUT ? &d->upstream[k] : &d->values[k];
        if (slot->role == SL_SLOT_OUTPUT && /* a report has no gradient */
            (!sl_slot_is_float(slot) || is_report || (is_state ? c->no_state_grad : c->no_output_grad)))
            continue;
        *target = SL_ARENA_ARRAY(arena, double, (size_t)n);
        if (!*target)
            return no_memory(c, err);
        if (sl_slot_is_float(slot))
            fill_floats(d, &r, slot, *target, n);
        else
            fill_integers(d, &r, slot, *target, n);
        if (slot->role == SL_SLOT_PARAM) {
            d->base[k] = SL_ARENA_ARRAY(arena, double, (size_t)n);
            if (!d->base[k])
                return no_memory(c, err);
            fill_floats(d, &r, slot, d->base[k], n);
        }
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_data_create(struct sl_arena *arena, const struct sl_case *c, uint64_t seed, uint64_t value_seed,
                              struct sl_data **out_data, struct seqlstm_error *err)
{
    struct sl_data *d = SL_ARENA_NEW(arena, struct sl_data);
    struct sl_slot *slots = SL_ARENA_ARRAY(arena, struct sl_slot, SL_SLOTS_MAX);
    if (!d || !slots)
        return no_memory(c, err);
    d->c = *c;
    d->slots = slots;
    SEQLSTM_TRY(sl_op_signature(&c->desc.head, slots, SL_SLOTS_MAX, &d->count, err));
    size_t count = (size_t)d->count;
    d->elems = SL_ARENA_ARRAY(arena, int64_t, count);
    d->values = SL_ARENA_ARRAY(arena, double *, count);
    d->upstream = SL_ARENA_ARRAY(arena, double *, count);
    d->base = SL_ARENA_ARRAY(arena, double *, count);
    if (!d->elems || !d->values || !d->upstream || !d->base)
        return no_memory(c, err);
    struct random r = {seqlstm_mix64(seed, sl_hash_text(c->text), UINT64_C(0xA815)), 0};
    d->rows = c->rows;
    d->rows_in = c->rows_in;
    if (c->desc.head.op == SEQLSTM_OP_ATTENTION && !make_memories(arena, d, &r))
        return no_memory(c, err);
    if (c->lengths != SL_LENGTHS_FLAT) {
        if (!make_axis(arena, d, &r))
            return no_memory(c, err);
        d->rows = c->on_sequences ? d->axis.sequences : d->axis.rows;
        d->rows_in = d->rows;
    }
    d->step = (struct seqlstm_step){
        .struct_size = (uint32_t)sizeof d->step,
        .flags = c->skip ? SEQLSTM_BIT_STEP_SKIP : 0,
        .seed = UINT64_C(0x5EED5EED5EED) + seed,
        .epoch = 3,
        .update = 5,
        .weight_mask_step = 11,
        .normaliser = 0.25f,
        .loss_scale = c->desc.head.op == SEQLSTM_OP_LOSS ? 2.0f : 1.0f,
        .learning_rate = 0.05f,
        .grad_scale = 0.5f,
        .alpha = 0.3f,
    };
    SEQLSTM_TRY(fill_slots(arena, d, value_seed, err));
    *out_data = d;
    return SEQLSTM_OK;
}
