/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers of cpu-blas in int8 against the contract (ops.h) to the last rounding: in float64, on the same
 * bytes. What a step reads of the one before is taken from the layer itself, so that no rounding can go the other way.
 */
#include "blas_fixture.h"

#include "base/operation/op_signature.h"

enum { SLOTS = SL_SLOTS_MAX, MOST_SEQUENCES = 33 };

static const float data_scale = 90.5f, data_shift = 111.25f; /* -1.23 .. 1.59; zero is no byte */

struct shape {
    uint32_t cell, direction;
    int64_t input, hidden;
    int sequences;
    int32_t longest, shortest;
};

struct world {
    const struct shape *shape;
    const struct seqlstm_axis *axis;
    struct seqlstm_recurrent_desc desc;
    struct sl_slot slots[SLOTS];
    float *values[SLOTS];
    int32_t count;
};

static int64_t gates_of(const struct shape *s)
{
    return s->cell == SEQLSTM_CELL_LSTM ? 4 : s->cell == SEQLSTM_CELL_GRU ? 3 : 1;
}

static void world_init(struct world *w, const struct shape *s, const struct seqlstm_axis *axis)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *w = (struct world){.shape = s, .axis = axis};
    struct seqlstm_recurrent_desc *d = &w->desc;
    d->head = fixture_head(SEQLSTM_OP_RECURRENT, sizeof *d, axis->rows);
    d->head.mode = SEQLSTM_MODE_INFERENCE;
    d->head.max_sequences = axis->sequences;
    d->head.max_steps = axis->steps;
    d->head.dtype_compute = SEQLSTM_DTYPE_INT8;
    d->data_scale = data_scale;
    d->data_shift = data_shift;
    d->cell = s->cell;
    d->direction = s->direction;
    d->options = SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_INITIAL_STATE;
    if (s->cell == SEQLSTM_CELL_GRU)
        d->options |= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
    d->layers = 1;
    d->input = s->input;
    d->hidden = s->hidden;
    for (int i = 0; i < 2; i++) {
        d->activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d->activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d->activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    assert_int_equal(sl_op_signature(&d->head, w->slots, SLOTS, &w->count, &err), SEQLSTM_OK);
    for (int32_t i = 0; i < w->count; i++) {
        const struct sl_slot *slot = &w->slots[i];
        if (slot->role == SL_SLOT_ABSENT)
            continue;
        const int64_t rows = slot->axis == SL_SLOT_ON_ROWS     ? axis->rows
                             : slot->axis == SL_SLOT_ON_STATES ? axis->sequences
                                                               : slot->rows;
        const float scale = slot->role == SL_SLOT_PARAM ? 2.0f / sqrtf((float)s->hidden) : 1.7f;
        w->values[i] = fixture_floats(rows * slot->features, 17 + (uint64_t)i);
        for (int64_t k = 0; k < rows * slot->features; k++)
            w->values[i][k] *= scale;
    }
    for (int64_t k = 0; k < s->input; k++) /* a row of W_x without a number that counts */
        w->values[SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_X)][k] = 0.0f;
    for (int64_t k = 0; k < s->hidden; k++)
        w->values[SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_H)][k] = 0.0f;
}

static void world_deinit(struct world *w)
{
    for (int32_t i = 0; i < w->count; i++)
        free(w->values[i]);
}

static void run(struct blas_fixture *f, struct sl_queue *queue, struct world *w)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    struct seqlstm_binding *binding = NULL;
    assert_int_equal(f->table->op_create(f->instance, 0, &w->desc.head, "packed", &op, &err), SEQLSTM_OK);
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    assert_int_equal(f->table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    const struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                      .rows = w->axis->rows,
                                      .rows_in = w->axis->rows,
                                      .axis = w->axis,
                                      .t0 = 0,
                                      .t1 = w->axis->steps};
    assert_int_equal(f->table->op_bind(op, &queue->queue, &bind, &binding, &err), SEQLSTM_OK);
    struct fixture_buffer workspace = fixture_buffer(sizes.workspace_bytes);
    struct fixture_buffer packed = fixture_buffer(sizes.packed_bytes);
    const struct seqlstm_step step = {.struct_size = sizeof step};
    void *slots[SLOTS];
    for (int32_t i = 0; i < w->count; i++)
        slots[i] = w->values[i];
    assert_int_equal(f->table->weights_pack(op, &queue->queue, slots, packed.base, &step, &err), SEQLSTM_OK);
    const struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                            .slot_count = (uint32_t)w->count,
                                            .slots = slots,
                                            .workspace = workspace.base,
                                            .packed = packed.base,
                                            .step = &step};
    assert_int_equal(f->table->forward(binding, &queue->queue, &forward, &err), SEQLSTM_OK);
    fixture_buffer_check(&workspace);
    fixture_buffer_check(&packed);
    f->table->binding_destroy(binding);
    f->table->op_destroy(op);
}

/* (q(v) - shift) / scale. */
static double read_data(float v)
{
    const float q = fminf(fmaxf(nearbyintf(fmaf(data_scale, v, data_shift)), 0.0f), 255.0f);
    return ((double)q - (double)data_shift) / (double)data_scale;
}

/* W v, row by row, as bytes. */
static void product(const float *w, const float *factors, int64_t rows, int64_t columns, const float *v, double *out)
{
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t k = 0; k < columns; k++)
            sum += (double)nearbyintf(w[r * columns + k] * factors[r]) * read_data(v[k]);
        out[r] = factors[r] > 0.0f ? sum / (double)factors[r] : 0.0;
    }
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* h of a unit, and c in place; u and v are the products with x and h. */
static double cell(const struct world *w, int64_t unit, const double *u, const double *v, float h, double *c)
{
    const int64_t n = w->shape->hidden, last = (gates_of(w->shape) - 1) * n + unit;
    const float *b = w->values[SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_BIAS)];
    double z[4] = {0};
    for (int64_t g = 0, i = unit; g < gates_of(w->shape); g++, i += n)
        z[g] = u[i] + v[i] + (double)b[i];
    if (w->shape->cell == SEQLSTM_CELL_RNN)
        return tanh(z[0]);
    if (w->shape->cell == SEQLSTM_CELL_GRU) {
        const double candidate = tanh(u[last] + (double)b[last] + sigmoid(z[0]) * (v[last] + (double)b[last + n]));
        return (1.0 - sigmoid(z[1])) * candidate + sigmoid(z[1]) * (double)h;
    }
    *c = sigmoid(z[1]) * *c + sigmoid(z[0]) * tanh(z[2]);
    return sigmoid(z[3]) * tanh(*c);
}

/* Every row of Y from X and the row of Y that was before it. */
static void check(const struct world *w)
{
    const struct shape *s = w->shape;
    const struct seqlstm_axis *axis = w->axis;
    const int64_t rows = gates_of(s) * s->hidden, n = s->hidden;
    const float *w_x = w->values[SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_X)];
    const float *w_h = w->values[SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_H)];
    const float *y = w->values[SEQLSTM_SLOT_RECURRENT_Y];
    float *factors = calloc((size_t)rows, sizeof *factors);
    double *u = calloc((size_t)rows, sizeof *u), *v = calloc((size_t)rows, sizeof *v);
    double *c = calloc((size_t)n, sizeof *c);
    assert_true(factors && u && v && c);
    for (int64_t r = 0; r < rows; r++) {
        float most = 0;
        for (int64_t k = 0; k < s->input; k++)
            most = fmaxf(most, fabsf(w_x[r * s->input + k]));
        for (int64_t k = 0; k < n; k++)
            most = fmaxf(most, fabsf(w_h[r * n + k]));
        factors[r] = most > 0.0f ? 127.0f / most : 0.0f;
    }
    for (int64_t b = 0; b < axis->sequences; b++) {
        const float *h = w->values[SEQLSTM_SLOT_RECURRENT_STATE(0, SEQLSTM_STATE_H0)] + b * n;
        for (int64_t i = 0; s->cell == SEQLSTM_CELL_LSTM && i < n; i++)
            c[i] = (double)w->values[SEQLSTM_SLOT_RECURRENT_STATE(0, SEQLSTM_STATE_C0)][b * n + i];
        for (int64_t i = 0; i < axis->lengths[b]; i++) {
            const int64_t t = s->direction == SEQLSTM_DIRECTION_BACKWARD ? axis->lengths[b] - 1 - i : i;
            const int64_t row = axis->row_offsets[t] + b;
            product(w_x, factors, rows, s->input, w->values[SEQLSTM_SLOT_RECURRENT_X] + row * s->input, u);
            product(w_h, factors, rows, n, h, v);
            for (int64_t k = 0; k < n; k++)
                fixture_close_to((double)y[row * n + k], cell(w, k, u, v, h[k], &c[k]), 1e-5, "y", row * n + k);
            h = y + row * n;
        }
    }
    free(factors);
    free(u);
    free(v);
    free(c);
}

static void layers_follow_the_contract(void **state)
{
    struct blas_fixture *f = *state;
    const struct shape shapes[] = {
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_FORWARD, 37, 70, 19, 9, 1},
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_BACKWARD, 3, 5, 3, 4, 2},
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_FORWARD, 100, 130, 1, 6, 6},
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_FORWARD, 65, 260, 5, 4, 2},
        {SEQLSTM_CELL_LSTM, SEQLSTM_DIRECTION_FORWARD, 64, 48, 33, 3, 3},
        {SEQLSTM_CELL_GRU, SEQLSTM_DIRECTION_FORWARD, 37, 70, 19, 9, 1},
        {SEQLSTM_CELL_GRU, SEQLSTM_DIRECTION_BACKWARD, 130, 33, 2, 5, 1},
        {SEQLSTM_CELL_RNN, SEQLSTM_DIRECTION_FORWARD, 37, 70, 19, 9, 1},
        {SEQLSTM_CELL_RNN, SEQLSTM_DIRECTION_FORWARD, 80, 300, 4, 5, 5},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int32_t lengths[MOST_SEQUENCES];
        struct fixture_axis axis;
        struct world w;
        for (int b = 0; b < shapes[i].sequences; b++)
            lengths[b] = shapes[i].longest - (shapes[i].longest - shapes[i].shortest) * b / shapes[i].sequences;
        fixture_axis(&axis, shapes[i].sequences, lengths);
        world_init(&w, &shapes[i], &axis.axis);
        if (fixture_lacks_precision(f, &w.desc.head)) {
            world_deinit(&w);
            return;
        }
        run(f, &f->alone, &w);
        check(&w);
        run(f, &f->queue, &w);
        check(&w);
        world_deinit(&w);
    }
}

/* A weight that is no number makes NaN of what it is part of, and of nothing else. */
static void no_number_is_lost(void **state)
{
    struct blas_fixture *f = *state;
    const struct shape shape = {SEQLSTM_CELL_RNN, SEQLSTM_DIRECTION_FORWARD, 40, 70, 5, 1, 1};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    struct fixture_axis axis;
    fixture_axis(&axis, 5, (const int32_t[]){1, 1, 1, 1, 1});
    for (int i = 0; i < 3; i++) {
        struct world w;
        world_init(&w, &shape, &axis.axis);
        if (!fixture_lacks_precision(f, &w.desc.head)) {
            w.values[SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_H)][17 * shape.hidden + 3] = bad[i];
            run(f, &f->alone, &w);
            for (int64_t k = 0; k < 5 * shape.hidden; k++)
                assert_int_equal(isnan(w.values[SEQLSTM_SLOT_RECURRENT_Y][k]) != 0, k % shape.hidden == 17);
        }
        world_deinit(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_follow_the_contract),
        cmocka_unit_test(no_number_is_lost),
    };
    return FIXTURE_RUN(tests);
}
