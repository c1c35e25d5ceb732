/* SPDX-License-Identifier: Apache-2.0 */
#include "ref_harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/float64.h>

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

#define OK(expression)                                                                                                 \
    do {                                                                                                               \
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;                                                                 \
        struct seqlstm_error *e = &err;                                                                                \
        if ((expression) != SEQLSTM_OK)                                                                                \
            fail_msg("%s: %s", err.where, err.message);                                                                \
    } while (0)

static void host_log(void *context, int32_t level, const char *message)
{
    (void)context;
    (void)level;
    (void)message;
}

static void *host_allocate(void *context, uint64_t bytes)
{
    (void)context;
    return aligned_alloc(SEQLSTM_ALIGNMENT, (bytes + SEQLSTM_ALIGNMENT - 1) / SEQLSTM_ALIGNMENT * SEQLSTM_ALIGNMENT);
}

static void host_release(void *context, void *pointer)
{
    (void)context;
    free(pointer);
}

static const struct seqlstm_host minimal_host = {.struct_size = sizeof(struct seqlstm_host),
                                                 .abi_minor = SEQLSTM_ABI_MINOR,
                                                 .log = host_log,
                                                 .allocate = host_allocate,
                                                 .release = host_release};

const struct seqlstm_backend *rh_reference(struct seqlstm_instance **out_instance)
{
    const struct seqlstm_backend *backend = seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR);
    OK(backend->open(&minimal_host, NULL, 0, out_instance, e));
    return backend;
}

/* NaN everywhere, so that what is read before it is written shows. */
static void *poisoned(uint64_t bytes)
{
    if (bytes == 0)
        return NULL;
    unsigned char *block = host_allocate(NULL, bytes);
    memset(block, 0xFF, bytes);
    return block;
}

struct seqlstm_desc rh_head(uint32_t op, uint32_t mode)
{
    return (struct seqlstm_desc){.struct_size = sl_op_desc_bytes(op),
                                 .op = op,
                                 .mode = mode,
                                 .max_rows = 4096,
                                 .max_sequences = 64,
                                 .max_steps = 64};
}

double rh_uniform(struct rh *rh, double low, double high)
{
    rh->random = rh->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * (double)(rh->random >> 11) / 9007199254740992.0;
}

static int64_t slot_rows(const struct rh *rh, const struct sl_slot *slot)
{
    switch (slot->axis) {
    case SL_SLOT_ON_ROWS:
        return rh->bind.rows;
    case SL_SLOT_ON_ROWS_IN:
        return rh->bind.rows_in;
    case SL_SLOT_ON_STATES:
        return rh->axis.batch_sizes[rh->bind.t0];
    case SL_SLOT_ON_SEQUENCES:
        return rh->axis.sequences;
    default:
        return slot->rows;
    }
}

static bool is_float(const struct sl_slot *slot)
{
    return slot->dtype == SEQLSTM_DTYPE_FLOAT32 || slot->dtype == SEQLSTM_DTYPE_FLOAT64;
}

static void open_common(struct rh *rh, uint64_t seed)
{
    rh->random = seed * 2654435761u + 1;
    rh->step = (struct seqlstm_step){.struct_size = sizeof rh->step,
                                     .seed = 42,
                                     .epoch = 3,
                                     .update = 5,
                                     .weight_mask_step = 7,
                                     .normaliser = 0.25f,
                                     .loss_scale = 2.0f,
                                     .learning_rate = 0.125f,
                                     .grad_scale = 0.5f,
                                     .alpha = 0.75f};
    rh->queue = (struct seqlstm_queue){.struct_size = sizeof rh->queue, .members = 1};
    rh->backend = rh_reference(&rh->instance);
    OK(rh->backend->op_create(rh->instance, 0, &rh->desc.head, NULL, &rh->op, e));
    OK(rh->backend->op_bind(rh->op, &rh->queue, &rh->bind, &rh->binding, e));
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    OK(rh->backend->op_sizes(rh->op, &sizes, e));
    rh->workspace = poisoned(sizes.workspace_bytes);
    rh->reserve = poisoned(sizes.reserve_bytes);
    rh->slots = calloc(SL_SLOTS_MAX, sizeof *rh->slots);
    OK(sl_op_signature(&rh->desc.head, rh->slots, SL_SLOTS_MAX, &rh->count, e));
    rh->elems = calloc((size_t)rh->count, sizeof *rh->elems);
    rh->values = calloc((size_t)rh->count, sizeof *rh->values);
    rh->grads = calloc((size_t)rh->count, sizeof *rh->grads);
    for (int32_t k = 0; k < rh->count; k++) {
        const struct sl_slot *slot = &rh->slots[k];
        if (slot->role == SL_SLOT_ABSENT)
            continue;
        rh->elems[k] = slot_rows(rh, slot) * slot->features;
        const size_t bytes = (size_t)rh->elems[k] * sizeof(double);
        rh->values[k] = poisoned(bytes);
        if (slot->role != SL_SLOT_OUTPUT)
            memset(rh->values[k], 0, bytes);
        if (!is_float(slot))
            continue;
        for (int64_t j = 0; slot->dtype == SEQLSTM_DTYPE_FLOAT32 && slot->role != SL_SLOT_OUTPUT && j < rh->elems[k];
             j++)
            ((double *)rh->values[k])[j] = rh_uniform(rh, -1, 1);
        if (slot->role == SL_SLOT_CONST || slot->role == SL_SLOT_INOUT)
            continue;
        rh->grads[k] = poisoned(bytes);
        for (int64_t j = 0; j < rh->elems[k]; j++)
            rh->grads[k][j] = slot->role == SL_SLOT_OUTPUT ? rh_uniform(rh, -1, 1) : 0;
    }
    /* the losses of rows have no gradient */
    const uint32_t op = rh->desc.head.op;
    if ((op == SEQLSTM_OP_LOSS || op == SEQLSTM_OP_DENSE_LOSS) && rh->grads[SEQLSTM_SLOT_LOSS_ROW_LOSS])
        memset(rh->grads[SEQLSTM_SLOT_LOSS_ROW_LOSS], 0,
               (size_t)rh->elems[SEQLSTM_SLOT_LOSS_ROW_LOSS] * sizeof(double));
}

static void make_axis(struct rh *rh, const int32_t *lengths, int64_t sequences)
{
    const int64_t steps = lengths[0];
    int32_t *copy = calloc((size_t)sequences, sizeof *copy), *sizes = calloc((size_t)steps, sizeof *sizes);
    int64_t *offsets = calloc((size_t)steps + 1, sizeof *offsets);
    uint64_t *ids = calloc((size_t)sequences, sizeof *ids);
    uint32_t *positions = calloc((size_t)sequences, sizeof *positions);
    for (int64_t b = 0; b < sequences; b++) {
        copy[b] = lengths[b];
        ids[b] = (uint64_t)(1000 + 17 * b) << (b % 3 * 16);
        positions[b] = (uint32_t)(100 * b);
        for (int64_t t = 0; t < lengths[b]; t++)
            sizes[t]++;
    }
    for (int64_t t = 0; t < steps; t++)
        offsets[t + 1] = offsets[t] + sizes[t];
    rh->axis = (struct seqlstm_axis){.struct_size = sizeof rh->axis,
                                     .sequences = sequences,
                                     .steps = steps,
                                     .rows = offsets[steps],
                                     .lengths = copy,
                                     .batch_sizes = sizes,
                                     .row_offsets = offsets,
                                     .sequence_id = ids,
                                     .position0 = positions};
}

void rh_open(struct rh *rh, const union seqlstm_any_desc *desc, const int32_t *lengths, int64_t sequences, int64_t t0,
             int64_t t1, uint64_t seed)
{
    memset(rh, 0, sizeof *rh);
    rh->desc = *desc;
    make_axis(rh, lengths, sequences);
    const int64_t rows = rh->axis.row_offsets[t1] - rh->axis.row_offsets[t0];
    rh->bind = (struct seqlstm_bind){
        .struct_size = sizeof rh->bind, .rows = rows, .rows_in = rows, .axis = &rh->axis, .t0 = t0, .t1 = t1};
    open_common(rh, seed);
}

void rh_open_rows(struct rh *rh, const union seqlstm_any_desc *desc, int64_t rows, int64_t rows_in, uint64_t seed)
{
    memset(rh, 0, sizeof *rh);
    rh->desc = *desc;
    rh->bind = (struct seqlstm_bind){.struct_size = sizeof rh->bind, .rows = rows, .rows_in = rows_in};
    open_common(rh, seed);
}

void rh_close(struct rh *rh)
{
    rh->backend->binding_destroy(rh->binding);
    rh->backend->op_destroy(rh->op);
    rh->backend->close(rh->instance);
    for (int32_t k = 0; k < rh->count; k++) {
        free(rh->values[k]);
        free(rh->grads[k]);
    }
    void *blocks[] = {rh->slots,
                      rh->elems,
                      rh->values,
                      rh->grads,
                      rh->workspace,
                      rh->reserve,
                      (void *)(uintptr_t)rh->axis.lengths,
                      (void *)(uintptr_t)rh->axis.batch_sizes,
                      (void *)(uintptr_t)rh->axis.row_offsets,
                      (void *)(uintptr_t)rh->axis.sequence_id,
                      (void *)(uintptr_t)rh->axis.position0};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        free(blocks[k]);
}

double *rh_value(struct rh *rh, int32_t slot)
{
    assert_true(slot < rh->count && rh->values[slot] != NULL);
    return rh->values[slot];
}

void rh_scale(struct rh *rh, int32_t slot, double factor)
{
    double *value = rh_value(rh, slot);
    for (int64_t k = 0; k < rh->elems[slot]; k++)
        value[k] *= factor;
}

static const struct seqlstm_float64 *float64(const struct rh *rh)
{
    const struct seqlstm_float64 *table = rh->backend->get_extension(rh->instance, SEQLSTM_FLOAT64_EXTENSION);
    assert_non_null(table);
    return table;
}

void rh_forward(struct rh *rh)
{
    const struct seqlstm_forward args = {.struct_size = sizeof args,
                                         .slot_count = (uint32_t)rh->count,
                                         .slots = rh->values,
                                         .workspace = rh->workspace,
                                         .reserve = rh->reserve,
                                         .step = &rh->step};
    OK(float64(rh)->forward(rh->binding, &rh->queue, &args, e));
}

void rh_backward(struct rh *rh, uint32_t parts)
{
    const struct seqlstm_backward args = {.struct_size = sizeof args,
                                          .slot_count = (uint32_t)rh->count,
                                          .slots = rh->values,
                                          .grads = (void *const *)(void *)rh->grads,
                                          .parts = parts,
                                          .workspace = rh->workspace,
                                          .reserve = rh->reserve,
                                          .step = &rh->step};
    OK(float64(rh)->backward(rh->binding, &rh->queue, &args, e));
}

static bool has_sums(const struct rh *rh)
{
    return rh->desc.head.op == SEQLSTM_OP_LOSS || rh->desc.head.op == SEQLSTM_OP_DENSE_LOSS;
}

double rh_objective(const struct rh *rh)
{
    double sum = 0;
    for (int32_t k = 0; k < rh->count; k++)
        for (int64_t j = 0; rh->slots[k].role == SL_SLOT_OUTPUT && rh->grads[k] && j < rh->elems[k]; j++)
            sum += rh->grads[k][j] * ((const double *)rh->values[k])[j];
    if (has_sums(rh))
        sum += (double)rh->step.normaliser * (double)rh->step.loss_scale *
               ((const double *)rh->values[SEQLSTM_SLOT_LOSS_SUMS])[0];
    return sum;
}

static double evaluate(struct rh *rh)
{
    if (has_sums(rh))
        memset(rh->values[SEQLSTM_SLOT_LOSS_SUMS], 0, 2 * sizeof(double));
    rh_forward(rh);
    return rh_objective(rh);
}

double rh_check_gradients(struct rh *rh, const char *name, double tolerance)
{
    const double step = 1.0 / 262144; /* 2^-18: exact; truncation 1e-11, rounding 1e-10 */
    double worst = 0;
    evaluate(rh);
    rh_backward(rh, RH_ALL);
    for (int32_t k = 0; k < rh->count; k++) {
        const struct sl_slot *slot = &rh->slots[k];
        if (rh->grads[k] == NULL || slot->role == SL_SLOT_OUTPUT || slot->dtype != SEQLSTM_DTYPE_FLOAT32)
            continue;
        double *value = rh->values[k];
        for (int64_t j = 0; j < rh->elems[k]; j++) {
            const double before = value[j];
            value[j] = before + step;
            const double above = evaluate(rh);
            value[j] = before - step;
            const double below = evaluate(rh);
            value[j] = before;
            const double expected = (above - below) / (2 * step), got = rh->grads[k][j];
            const double err = fabs(got - expected) / fmax(1, fabs(expected));
            if (!(err <= tolerance))
                fail_msg("%s: d %s[%lld] is %.12g, differences say %.12g", name, slot->name, (long long)j, got,
                         expected);
            worst = fmax(worst, err);
        }
    }
    return worst;
}

/* ---- float32 ----------------------------------------------------------------------------------------- */

static void **narrow(const struct rh *rh, void *const *wide)
{
    void **out = calloc((size_t)rh->count, sizeof *out);
    for (int32_t k = 0; k < rh->count; k++) {
        if (wide[k] == NULL)
            continue;
        out[k] = host_allocate(NULL, (uint64_t)rh->elems[k] * sizeof(double));
        if (rh->slots[k].dtype != SEQLSTM_DTYPE_FLOAT32)
            memcpy(out[k], wide[k], (size_t)rh->elems[k] * (size_t)sl_dtype_bytes(rh->slots[k].dtype));
        else
            for (int64_t j = 0; j < rh->elems[k]; j++) {
                ((float *)out[k])[j] = (float)((double *)wide[k])[j];
                ((double *)wide[k])[j] = (double)((float *)out[k])[j]; /* both start from the rounded value */
            }
    }
    return out;
}

static void compare(const struct rh *rh, const char *name, const char *what, void *const *narrowed, void *const *wide,
                    bool outputs)
{
    for (int32_t k = 0; k < rh->count; k++) {
        const bool output = rh->slots[k].role == SL_SLOT_OUTPUT || rh->slots[k].role == SL_SLOT_INOUT;
        if (wide[k] == NULL || rh->slots[k].dtype != SEQLSTM_DTYPE_FLOAT32 || output != outputs)
            continue;
        for (int64_t j = 0; j < rh->elems[k]; j++) {
            const double expected = ((double *)wide[k])[j], got = (double)((float *)narrowed[k])[j];
            if (!(fabs(got - expected) <= 1.2e-7 * fabs(expected) + 1e-37))
                fail_msg("%s: %s %s[%lld] is %.9g in float32, %.9g in float64", name, what, rh->slots[k].name,
                         (long long)j, got, expected);
        }
    }
}

void rh_check_float32(struct rh *rh, const char *name)
{
    void **slots = narrow(rh, rh->values), **grads = narrow(rh, (void *const *)(void *)rh->grads);
    const bool training = rh->desc.head.mode == SEQLSTM_MODE_TRAINING && rh->backend->backward;
    const bool differentiable = training && sl_op_has_backward(rh->desc.head.op);
    rh_forward(rh);
    if (differentiable)
        rh_backward(rh, RH_ALL);
    const struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                            .slot_count = (uint32_t)rh->count,
                                            .slots = slots,
                                            .workspace = rh->workspace,
                                            .reserve = rh->reserve,
                                            .step = &rh->step};
    OK(rh->backend->forward(rh->binding, &rh->queue, &forward, e));
    compare(rh, name, "slot", slots, rh->values, true);
    if (differentiable) {
        const struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                                  .slot_count = (uint32_t)rh->count,
                                                  .slots = slots,
                                                  .grads = grads,
                                                  .parts = RH_ALL,
                                                  .workspace = rh->workspace,
                                                  .reserve = rh->reserve,
                                                  .step = &rh->step};
        OK(rh->backend->backward(rh->binding, &rh->queue, &backward, e));
        compare(rh, name, "gradient of", grads, (void *const *)(void *)rh->grads, false);
    }
    for (int32_t k = 0; k < rh->count; k++) {
        free(slots[k]);
        free(grads[k]);
    }
    free(slots);
    free(grads);
}
