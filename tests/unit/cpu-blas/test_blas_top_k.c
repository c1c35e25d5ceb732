/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: TOP_K, the best elements and those that are drawn. */
#include "blas_fixture.h"

static struct sl_queue *queue_of(struct blas_fixture *f, int i)
{
    return i & 1 ? &f->queue : &f->alone;
}

static void test_top_k_best(void **state)
{
    struct blas_fixture *f = *state;
    enum { ROWS = 600, N = 300 };
    static const int64_t ks[] = {1, 5, 16, 17, N};
    float *x = fixture_floats(ROWS * N, 1);
    static float value[N * ROWS];
    static int32_t index[N * ROWS];
    for (int i = 0; i < ROWS * N; i++)
        x[i] = (float)(int)(x[i] * 50); /* ties */
    x[3] = INFINITY, x[N + 4] = -INFINITY;
    for (int k = 0; k < 10; k++) {
        struct seqlstm_top_k_desc d = {
            .head = fixture_head(SEQLSTM_OP_TOP_K, sizeof d, ROWS), .features = N, .k = ks[k / 2]};
        struct fixture_run run = {.desc = &d.head, .rows = ROWS, .slots = {x, index, value}, .slot_count = 3};
        fixture_run(f, queue_of(f, k), &run);
        for (int64_t r = 0; r < ROWS; r++) {
            bool used[N] = {false};
            for (int64_t rank = 0; rank < d.k; rank++) {
                int32_t best = -1;
                for (int32_t i = 0; i < N; i++)
                    if (!used[i] && (best < 0 || x[r * N + i] > x[r * N + best]))
                        best = i;
                used[best] = true;
                assert_int_equal(index[r * d.k + rank], best);
                assert_true(value[r * d.k + rank] == x[r * N + best]);
            }
        }
    }
    free(x);
}

/* How often each element is drawn against its probability, under restrictions, and the value's meaning. */
static void test_top_k_sample(void **state)
{
    struct blas_fixture *f = *state;
    enum { ROWS = 64, N = 6, DRAWS = 400 };
    static const float logits[N] = {1.0f, 2.0f, 0.5f, -1.0f, 2.0f, 0.0f};
    static const struct {
        uint32_t top_k;
        float top_p, temperature;
        int kept; /* best elements: 1 4 0 2 5 3 */
    } cases[] = {{0, 1.0f, 1.0f, 6}, {3, 1.0f, 1.0f, 3}, {0, 0.6f, 1.0f, 2}, {1, 1.0f, 1.0f, 1}, {4, 0.9f, 0.5f, 2}};
    static const int order[N] = {1, 4, 0, 2, 5, 3};
    struct fixture_axis a;
    int32_t lengths[ROWS];
    for (int i = 0; i < ROWS; i++)
        lengths[i] = 1;
    fixture_axis(&a, ROWS, lengths);
    float x[ROWS * N];
    for (int i = 0; i < ROWS * N; i++)
        x[i] = logits[i % N];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double p[N] = {0}, sum = 0.0;
        for (int rank = 0; rank < cases[k].kept; rank++)
            sum += p[order[rank]] = exp((double)logits[order[rank]] / (double)cases[k].temperature);
        struct seqlstm_top_k_desc d = {.head = fixture_head(SEQLSTM_OP_TOP_K, sizeof d, ROWS),
                                       .features = N,
                                       .k = 1,
                                       .kind = SEQLSTM_KIND_TOP_K_SAMPLE,
                                       .top_k = cases[k].top_k,
                                       .stream = 5,
                                       .top_p = cases[k].top_p,
                                       .temperature = cases[k].temperature};
        int count[N] = {0};
        for (uint64_t draw = 0; draw < DRAWS; draw++) {
            int32_t index[ROWS];
            float value[ROWS];
            struct fixture_run run = {.desc = &d.head,
                                      .rows = ROWS,
                                      .axis = &a.axis,
                                      .t1 = 1,
                                      .bind_flags = draw & 1 ? SEQLSTM_BIT_BIND_ON_SEQUENCES : 0,
                                      .slots = {x, index, value},
                                      .slot_count = 3,
                                      .step = {.seed = 1, .epoch = draw}};
            fixture_run(f, &f->alone, &run);
            for (int r = 0; r < ROWS; r++) {
                assert_in_range(index[r], 0, N - 1);
                count[index[r]]++;
                fixture_close_to((double)value[r], log(p[index[r]] / sum), 1e-5, "log-probability", r);
            }
        }
        for (int i = 0; i < N; i++) {
            const double expected = p[i] / sum * ROWS * DRAWS;
            assert_true(fabs(count[i] - expected) <= 5.0 * sqrt(expected)); /* five standard deviations */
        }
    }
}

/* In the first or the last row, which are in different parts, by each way of choosing. */
static void top_k_refuses_what_is_no_number(void **state)
{
    struct blas_fixture *f = *state;
    enum { ROWS = 300, N = 600 };
    static const struct {
        int64_t k;
        uint32_t kind;
    } ways[] = {{5, SEQLSTM_KIND_TOP_K_BEST}, {17, SEQLSTM_KIND_TOP_K_BEST}, {1, SEQLSTM_KIND_TOP_K_SAMPLE}};
    float *x = fixture_floats(ROWS * N, 1), *value = fixture_floats(ROWS * 17, 2);
    int32_t *index = calloc(ROWS * 17, sizeof *index), ones[64];
    struct fixture_axis a;
    for (int b = 0; b < 64; b++)
        ones[b] = 1;
    fixture_axis(&a, 64, ones);
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        const bool drawn = ways[k].kind == SEQLSTM_KIND_TOP_K_SAMPLE;
        const int64_t rows = drawn ? 64 : ROWS;
        const int64_t places[] = {3, rows * N - 2};
        struct seqlstm_top_k_desc d = {.head = fixture_head(SEQLSTM_OP_TOP_K, sizeof d, rows),
                                       .features = N,
                                       .k = ways[k].k,
                                       .kind = ways[k].kind,
                                       .top_p = drawn ? 1.0f : 0.0f,
                                       .temperature = drawn ? 1.0f : 0.0f};
        for (int place = 0; place < 2; place++) {
            const float was = x[places[place]];
            struct fixture_run run = {.desc = &d.head,
                                      .rows = rows,
                                      .axis = drawn ? &a.axis : NULL,
                                      .t1 = drawn ? 1 : 0,
                                      .slots = {x, index, value},
                                      .slot_count = 3,
                                      .refusal = "a row of top_k holds NaN"};
            x[places[place]] = NAN;
            fixture_run(f, &f->queue, &run);
            x[places[place]] = was;
        }
    }
    free(x), free(value), free(index);
}

/* ---- draws, one by one ------------------------------------------------------------------------------- */

enum { CLASSES = 9 };

/* Descending; of equal ones, the first comes first. */
static void sort_classes(const float *x, int32_t order[CLASSES])
{
    for (int32_t k = 0; k < CLASSES; k++) {
        int32_t at = k;
        for (; at > 0 && x[k] > x[order[at - 1]]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
}

static void expect_draw(const struct seqlstm_top_k_desc *d, const float *x, double u, int32_t index, float value)
{
    const int limit = d->top_k > 0 && d->top_k < CLASSES ? (int)d->top_k : CLASSES;
    int32_t order[CLASSES];
    double p[CLASSES], total = 0.0, kept = 0.0, passed = 0.0;
    int count = 0, rank = 0;
    sort_classes(x, order);
    for (int k = 0; k < limit; k++)
        total += p[k] = exp(((double)x[order[k]] - (double)x[order[0]]) / (double)d->temperature);
    do
        kept += p[count++];
    while (count < limit && kept < (double)d->top_p * total);
    for (passed = p[0]; rank + 1 < count && passed <= u * kept; rank++)
        passed += p[rank + 1];
    assert_int_equal(index, order[rank]);
    fixture_close_to((double)value, log(p[rank] / kept), 1e-6, "log-probability", rank);
}

/* Each row by itself: at a place of its own in a segment of steps, of which the first is not the axis's first. */
static void draws_are_those_of_float64(void **state)
{
    struct blas_fixture *f = *state;
    enum { T0 = 1, T1 = 4 };
    static const int32_t lengths[] = {5, 4, 4, 2};
    static const uint32_t limits[] = {0, 1, 2, CLASSES - 1, CLASSES, CLASSES + 3};
    static const float parts[] = {1.0f, 0.9f, 0.5f, 1e-6f}, temperatures[] = {1.0f, 0.4f, 2.5f};
    struct fixture_axis a;
    fixture_axis(&a, 4, lengths);
    const int64_t rows = a.row_offsets[T1] - a.row_offsets[T0];
    float *x = fixture_floats(rows * CLASSES, 1), value[16];
    int32_t index[16];
    for (int64_t i = 0; i < rows * CLASSES; i++)
        x[i] = (float)(int)(x[i] * 8) / 4; /* some are equal */
    for (int k = 0; k < 6 * 4 * 3 * 2; k++) {
        const bool on_sequences = k % 2;
        const struct seqlstm_top_k_desc d = {.head = fixture_head(SEQLSTM_OP_TOP_K, sizeof d, rows),
                                             .features = CLASSES,
                                             .k = 1,
                                             .kind = SEQLSTM_KIND_TOP_K_SAMPLE,
                                             .top_k = limits[k / 2 % 6],
                                             .stream = 11,
                                             .top_p = parts[k / 12 % 4],
                                             .temperature = temperatures[k / 48]};
        struct fixture_run run = {.desc = &d.head,
                                  .rows = on_sequences ? 4 : rows,
                                  .axis = &a.axis,
                                  .t0 = on_sequences ? 0 : T0,
                                  .t1 = on_sequences ? a.axis.steps : T1,
                                  .bind_flags = on_sequences ? SEQLSTM_BIT_BIND_ON_SEQUENCES : 0,
                                  .slots = {x, index, value},
                                  .slot_count = 3,
                                  .step = {.seed = 3, .epoch = 5}};
        fixture_run(f, &f->alone, &run);
        const uint64_t key = seqlstm_mix64(3, 11, 5);
        for (int64_t t = T0, r = 0; t < (on_sequences ? T0 + 1 : T1); t++)
            for (int64_t b = 0; b < a.batch_sizes[t]; b++, r++) {
                const uint32_t step = on_sequences ? 0 : a.positions[b] + (uint32_t)t;
                expect_draw(&d, x + r * CLASSES, (double)seqlstm_uniform(key, 0, step, a.ids[b]), index[r], value[r]);
            }
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top_k_best),
        cmocka_unit_test(test_top_k_sample),
        cmocka_unit_test(top_k_refuses_what_is_no_number),
        cmocka_unit_test(draws_are_those_of_float64),
    };
    return FIXTURE_RUN(tests);
}
