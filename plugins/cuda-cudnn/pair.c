/* SPDX-License-Identifier: Apache-2.0 */
/* Can one algorithm run backward after another has run forward? According to cuDNN, the reserve of a forward belongs to
 * the backward of the same network; it says nothing about other algorithms. So a mixed variant exists only under two
 * conditions:
 * 1. cuDNN needs equally many bytes for both at every shape that runs mixed.
 * 2. Before the operation's creation succeeds on this device, the gradients for random values are the same, within
 *    rounding, as those of one algorithm for both passes.
 *
 * Batches with another number of sequences than the one checked run entirely with the standard algorithm.
 *
 * Each pass has packed weights of its own, so their layouts may differ. The reserve is filled with NaN before each
 * forward, which reveals what backward reads and the other algorithm has not written. */
#include <math.h>

#include <seqlstm/philox.h>

#include "common/host_memory.h"
#include "trial.h"

static const char *name_forward(const struct seqlstm_op *op)
{
    return cdn_algorithm_get_name(op->plans[0].algorithm);
}

static const char *name_backward(const struct seqlstm_op *op)
{
    return cdn_algorithm_get_name(op->plans[1].algorithm);
}

seqlstm_status cdn_pair_check_sizes(const struct seqlstm_binding *b, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = b->op;
    if (b->shape.sequences != op->desc.head.max_sequences)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED,
                     "%s and %s were checked together for another size of a batch: %lld, not %d", name_forward(op),
                     name_backward(op), (long long)op->desc.head.max_sequences, (int)b->shape.sequences);
    for (int32_t k = 0; k < op->plans[0].count; k++) {
        const size_t first = b->runs[0].sessions[k].reserve_bytes, second = b->runs[1].sessions[k].reserve_bytes;
        if (first != second)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED,
                         "cuDNN %s keeps %zu bytes for %s and %zu for %s (steps: %d, sequences: %d): one cannot "
                         "run backward after the other has run forward",
                         cdn_library_version(), first, name_forward(op), second, name_backward(op), (int)b->shape.steps,
                         (int)b->shape.sequences);
    }
    return SEQLSTM_OK;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static bool is_parameter(const struct cdn_trial *t, size_t slot)
{
    return slot >=
           (size_t)SEQLSTM_SLOT_RECURRENT_PARAM(t->call.op->desc.layers * cdn_directions(&t->call.op->desc), 0, 0);
}

/* In [-1, 1), with 24 bits. Matrices have millions of elements, so each takes only one multiplication. */
static float draw_one(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(*state >> 40) * 0x1p-23f - 1;
}

/* Uniform values: parameters small enough to keep gates away from saturation, everything else in [-1, 1). */
static void draw(const struct cdn_trial *t, unsigned char *host)
{
    const struct seqlstm_recurrent_desc *d = &t->call.op->desc;
    const int64_t width = d->input > cdn_width(d) ? d->input : cdn_width(d);
    const float small = 1 / sqrtf((float)width);
    for (size_t s = 0; s < t->slot_count; s++)
        for (int pass = 0; pass < 2; pass++) {
            const unsigned char *place = pass == 0 ? t->slots[s] : t->grads[s];
            if (place == NULL || place >= t->base + t->read_bytes)
                continue;
            float *values = (float *)(void *)(host + (place - t->base));
            uint64_t state = seqlstm_mix64(1, s, 0);
            for (int64_t k = 0; k < t->elems[s]; k++)
                values[k] = draw_one(&state) * (is_parameter(t, s) ? small : 1);
        }
}

/* All gradients after a forward under plan `plan` and a backward under the second plan. */
static seqlstm_status run(struct cdn_trial *t, int32_t plan, unsigned char *out_made, struct seqlstm_error *err)
{
    const int32_t ordinal = t->call.op->ordinal;
    SEQLSTM_TRY(gpu_fill(ordinal, t->call.stream, t->call.reserve, 0xFF, t->reserve_bytes, err));
    cdn_call_set_plan(&t->call, plan);
    SEQLSTM_TRY(cdn_forward(&t->call, err));
    cdn_call_set_plan(&t->call, 1);
    SEQLSTM_TRY(cdn_backward(&t->call, err));
    return gpu_copy(ordinal, t->call.stream, SEQLSTM_COPY_TO_HOST, out_made, t->base + t->read_bytes, t->made_bytes,
                    err);
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

/* The error model of docs/numerics.md for gradients of recurrent layers, with elements of the number type and sums in
 * float32, as a fraction of the root mean square; rounding never explains more than half of it. A relu whose sum is 0
 * within that error may be on or off: that fraction of the elements, plus one. */
static double get_allowed(const struct cdn_trial *t)
{
    const struct seqlstm_recurrent_desc *d = &t->call.op->desc;
    const double terms = (double)(t->axis->rows + 4 * (d->input + d->hidden));
    const double sums = ldexp(sqrt(terms), -24);
    double elements = ldexp(1, -24);
    if (d->head.dtype_compute == SEQLSTM_DTYPE_BFLOAT16)
        elements = ldexp(1, -8);
    else if (d->head.dtype_compute != SEQLSTM_DTYPE_FLOAT32)
        elements = ldexp(1, -11);
    double allowed = 16 * (elements + sums) * sqrt((double)t->axis->steps) * (double)d->layers;
    if (d->cell == SEQLSTM_CELL_RNN && d->activations[SEQLSTM_PLACE_CANDIDATE][0].kind == SEQLSTM_ACT_RELU)
        allowed = fmax(allowed, sqrt(16 * (elements + sums) + 1 / (double)(t->axis->rows * d->hidden)));
    return fmin(0.5, allowed);
}

static const char *name_slot(const struct cdn_trial *t, size_t slot)
{
    static const char *const parameters[] = {"W_x", "W_h", "biases"};
    if (slot == SEQLSTM_SLOT_RECURRENT_X)
        return "the input";
    if (!is_parameter(t, slot))
        return "initial states";
    const int64_t first =
        SEQLSTM_SLOT_RECURRENT_PARAM(t->call.op->desc.layers * cdn_directions(&t->call.op->desc), 0, 0);
    return parameters[((int64_t)slot - first) % SEQLSTM_PARAM_COUNT];
}

static seqlstm_status compare(const struct cdn_trial *t, const unsigned char *mixed, const unsigned char *alone,
                              struct seqlstm_error *err)
{
    const struct seqlstm_op *op = t->call.op;
    const double allowed = get_allowed(t);
    for (size_t s = 0; s < t->slot_count; s++) {
        const unsigned char *place = t->grads[s], *begin = t->base + t->read_bytes;
        if (place == NULL || place < begin || place >= begin + t->made_bytes)
            continue;
        const float *a = (const float *)(const void *)(mixed + (place - begin));
        const float *b = (const float *)(const void *)(alone + (place - begin));
        double difference = 0, size = 0;
        for (int64_t k = 0; k < t->elems[s]; k++) {
            difference += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
            size += (double)b[k] * (double)b[k];
        }
        if (!(sqrt(difference) <= allowed * sqrt(size)))
            SEQLSTM_FAIL(
                err, SEQLSTM_UNSUPPORTED,
                "cuDNN %s: gradients of %s by %s forward and %s backward differ from those of %s alone by %.2g of "
                "their size, where rounding explains %.2g",
                cdn_library_version(), name_slot(t, s), name_forward(op), name_backward(op), name_backward(op),
                sqrt(difference / size), allowed);
    }
    return SEQLSTM_OK;
}

seqlstm_status cdn_pair_check_gradients(struct cdn_trial *t, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = t->call.op;
    const struct seqlstm_host *host = &op->instance->domain.host;
    unsigned char *values = host_allocate(host, t->read_bytes + 2 * t->made_bytes);
    if (values == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trial of an operation");
    unsigned char *mixed = values + t->read_bytes, *alone = mixed + t->made_bytes;
    draw(t, values);
    seqlstm_status status =
        gpu_copy(op->ordinal, t->call.stream, SEQLSTM_COPY_TO_DEVICE, t->base, values, t->read_bytes, err);
    if (status == SEQLSTM_OK)
        status = cdn_weights_pack(op, t->call.stream, t->slots, t->packed, err);
    if (status == SEQLSTM_OK)
        status = run(t, 0, mixed, err);
    if (status == SEQLSTM_OK)
        status = run(t, 1, alone, err);
    if (status == SEQLSTM_OK)
        status = compare(t, mixed, alone, err);
    host_release(host, values);
    return status;
}
