/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: inference of DENSE on packed weights, against straight loops in double. */
#include "blas_fixture.h"

enum { GROUP = 16 };

struct shape {
    int64_t rows, in, out;
};

static uint64_t get_packed_bytes(const struct blas_fixture *f, const struct seqlstm_dense_desc *d)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    assert_int_equal(f->table->op_create(f->instance, 0, &d->head, NULL, &op, &err), SEQLSTM_OK);
    assert_int_equal(f->table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    f->table->op_destroy(op);
    return sizes.packed_bytes;
}

static struct seqlstm_dense_desc describe(struct shape s, uint32_t mode)
{
    struct seqlstm_dense_desc d = {
        .head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, s.rows), .input = s.in, .output = s.out};
    d.head.mode = mode;
    return d;
}

static bool has_vectors(void)
{
    const char *instructions = getenv("BLAS_TEST_INSTRUCTIONS");
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && (instructions == NULL || strcmp(instructions, "portable") != 0);
#else
    (void)instructions;
    return false;
#endif
}

/* The groups that are packed are not read again: NaN in their place is not seen. */
static void spoil_packed(struct fixture_run *run, uint64_t bytes)
{
    const struct seqlstm_dense_desc *d = (const struct seqlstm_dense_desc *)(const void *)run->desc;
    float *w = run->slots[SEQLSTM_SLOT_DENSE_W];
    if (bytes > 0)
        memset(w, 0xFF, (size_t)(d->output / GROUP * GROUP * d->input) * sizeof *w);
}

static void compute(const struct seqlstm_dense_desc *d, int64_t rows, const float *x, const float *w, const float *bias,
                    double *y)
{
    for (int64_t r = 0; r < rows; r++) {
        double *row = y + r * d->output, largest = -INFINITY, sum = 0;
        for (int64_t o = 0; o < d->output; o++) {
            row[o] = bias ? (double)bias[o] : 0.0;
            for (int64_t i = 0; i < d->input; i++)
                row[o] += (double)x[r * d->input + i] * (double)w[o * d->input + i];
            largest = fmax(largest, row[o]);
        }
        for (int64_t o = 0; o < d->output; o++)
            sum += exp(row[o] - largest);
        for (int64_t o = 0; o < d->output; o++)
            if (d->activation.kind == SEQLSTM_ACT_SOFTMAX)
                row[o] = exp(row[o] - largest) / sum;
            else if (d->activation.kind == SEQLSTM_ACT_TANH)
                row[o] = tanh(row[o]);
    }
}

static void check(struct blas_fixture *f, struct sl_queue *queue, struct shape s, uint32_t kind, bool bias)
{
    struct seqlstm_dense_desc d = describe(s, SEQLSTM_MODE_INFERENCE);
    d.options = bias ? SEQLSTM_BIT_DENSE_USE_BIAS : 0;
    d.activation.kind = kind;
    float *x = fixture_floats(s.rows * s.in, 1), *w = fixture_floats(s.out * s.in, 2), *b = fixture_floats(s.out, 3);
    float *y = fixture_floats(s.rows * s.out, 4);
    double *want = calloc((size_t)(s.rows * s.out), sizeof *want);
    compute(&d, s.rows, x, w, bias ? b : NULL, want);
    memset(y, 0xFF, (size_t)(s.rows * s.out) * sizeof *y);
    struct fixture_run run = {.desc = &d.head,
                              .rows = s.rows,
                              .slots = {x, y, w, bias ? b : NULL},
                              .slot_count = SEQLSTM_SLOT_DENSE_COUNT,
                              .on_packed = spoil_packed};
    fixture_run(f, queue, &run);
    fixture_compare(y, want, s.rows * s.out, 2e-6 * sqrt((double)s.in) + 2e-6, "y");
    free(x), free(w), free(b), free(y), free(want);
}

/* Outputs that fill panels, groups, or neither; rows and inputs that fill tiles, blocks and slices, or do not. */
static void test_products_on_packed_weights(void **state)
{
    struct blas_fixture *f = *state;
    static const struct shape shapes[] = {{1, 256, 64},    {2, 128, 130},  {6, 260, 330},  {7, 68, 250},
                                          {13, 1032, 79},  {66, 200, 96},  {67, 500, 129}, {133, 132, 191},
                                          {40, 256, 1000}, {300, 64, 257}, {70, 1500, 81}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = 0; k < 4; k++) {
            static const uint32_t kinds[] = {SEQLSTM_ACT_NONE, SEQLSTM_ACT_SOFTMAX, SEQLSTM_ACT_TANH,
                                             SEQLSTM_ACT_SOFTMAX};
            check(f, k % 2 ? &f->queue : &f->alone, shapes[i], kinds[k], k != 2);
        }
}

/* As many floats as the outputs in whole groups need, and inputs in whole groups. */
static void test_bytes_of_packed_weights(void **state)
{
    const struct blas_fixture *f = *state;
    static const struct {
        struct shape shape;
        uint32_t mode;
        uint64_t floats;
    } rows[] = {
        {{1, 256, 64}, SEQLSTM_MODE_INFERENCE, 256 * 64},
        {{500, 256, 64}, SEQLSTM_MODE_INFERENCE, 256 * 64}, /* whatever the rows */
        {{1, 260, 95}, SEQLSTM_MODE_INFERENCE, 272 * 80},
        {{1, 256, 64}, SEQLSTM_MODE_TRAINING, 0},
        {{1, 252, 64}, SEQLSTM_MODE_INFERENCE, 0},  /* a small matrix */
        {{1, 4096, 63}, SEQLSTM_MODE_INFERENCE, 0}, /* less than a panel */
        {{1, 258, 640}, SEQLSTM_MODE_INFERENCE, 0}, /* no multiple of 4 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct seqlstm_dense_desc d = describe(rows[i].shape, rows[i].mode);
        assert_int_equal(get_packed_bytes(f, &d), has_vectors() ? rows[i].floats * sizeof(float) : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_on_packed_weights),
        cmocka_unit_test(test_bytes_of_packed_weights),
    };
    return FIXTURE_RUN(tests);
}
