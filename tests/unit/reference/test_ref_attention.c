/* SPDX-License-Identifier: Apache-2.0 */
/* The reference's ATTENTION: numbers by hand, gradients, empty memories, memory_of in any order, wrong indices; outputs
 * and gradients of every score against PyTorch (fixtures/attention.txt: float64 from exact inputs, 13 digits). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

enum { K = 3, V = 2, QUERIES = 6, ROWS = 6 };

static union seqlstm_any_desc describe(uint32_t kind, uint32_t options)
{
    union seqlstm_any_desc d = {.attention = {.head = rh_head(SEQLSTM_OP_ATTENTION, SEQLSTM_MODE_TRAINING),
                                              .key = K,
                                              .value = options & SEQLSTM_BIT_ATTENTION_SHARED ? K : V,
                                              .kind = kind,
                                              .options = options,
                                              .scale = kind == SEQLSTM_KIND_ATTENTION_DOT ? 0.5f : 0}};
    d.head.max_sequences = 4;
    d.head.max_steps = 4;
    return d;
}

/* Memories of 3, 0, 1 and 2 rows; query 2 looks at the empty one, query 4 at none. */
static void open_queries(struct rh *rh, const union seqlstm_any_desc *d)
{
    rh_open_rows(rh, d, QUERIES, ROWS, 7);
    memcpy(rh->values[SEQLSTM_SLOT_ATTENTION_OFFSETS], (const int32_t[5]){0, 3, 3, 4, 6}, 5 * sizeof(int32_t));
    memcpy(rh->values[SEQLSTM_SLOT_ATTENTION_MEMORY_OF], (const int32_t[QUERIES]){3, 0, 1, 0, -1, 2},
           QUERIES * sizeof(int32_t));
}

static void numbers_by_hand(void **state)
{
    (void)state;
    union seqlstm_any_desc d = describe(SEQLSTM_KIND_ATTENTION_DOT, SEQLSTM_BIT_ATTENTION_WEIGHTS);
    struct rh rh;
    open_queries(&rh, &d);
    double *query = rh_value(&rh, SEQLSTM_SLOT_ATTENTION_QUERIES), *keys = rh_value(&rh, SEQLSTM_SLOT_ATTENTION_KEYS);
    memcpy(query, (const double[K]){2, 0, 0}, K * sizeof(double)); /* looks at rows 4 and 5 */
    memcpy(keys + 4 * K, (const double[2 * K]){log(3.0), 5, 5, 0, 7, 7}, 2 * K * sizeof(double));
    rh_forward(&rh);
    const double *a = rh_value(&rh, SEQLSTM_SLOT_ATTENTION_WEIGHTS), *c = rh_value(&rh, SEQLSTM_SLOT_ATTENTION_CONTEXT);
    const double *v = rh_value(&rh, SEQLSTM_SLOT_ATTENTION_VALUES);
    assert_true(fabs(a[0] - 0.75) < 1e-15 && fabs(a[1] - 0.25) < 1e-15 && a[2] == 0 && a[3] == 0);
    for (int i = 0; i < V; i++)
        assert_true(fabs(c[i] - (0.75 * v[4 * V + i] + 0.25 * v[5 * V + i])) < 1e-15);
    for (int q = 2; q <= 4; q += 2) { /* nothing to look at */
        for (int i = 0; i < V; i++)
            assert_true(c[q * V + i] == 0);
        for (int j = 0; j < 4; j++)
            assert_true(a[q * 4 + j] == 0);
    }
    assert_true(a[5 * 4] == 1); /* one row */
    rh_close(&rh);

    d = describe(SEQLSTM_KIND_ATTENTION_ADDITIVE, SEQLSTM_BIT_ATTENTION_WEIGHTS);
    open_queries(&rh, &d);
    memcpy(rh_value(&rh, SEQLSTM_SLOT_ATTENTION_QUERIES), (const double[K]){0.5, 0, 1}, K * sizeof(double));
    memcpy(rh_value(&rh, SEQLSTM_SLOT_ATTENTION_KEYS) + 4 * K, (const double[2 * K]){-0.5, 0, 1, 1, 0, -1},
           2 * K * sizeof(double));
    memcpy(rh_value(&rh, SEQLSTM_SLOT_ATTENTION_SCORE), (const double[K]){2, 9, 1}, K * sizeof(double));
    rh_forward(&rh);
    const double difference = tanh(2.0) - 2 * tanh(1.5);
    a = rh_value(&rh, SEQLSTM_SLOT_ATTENTION_WEIGHTS);
    assert_true(fabs(a[0] - 1 / (1 + exp(-difference))) < 1e-15);
    rh_close(&rh);
}

static void gradients(void **state)
{
    (void)state;
    static const uint32_t options[2] = {0, SEQLSTM_BIT_ATTENTION_SHARED};
    for (uint32_t kind = SEQLSTM_KIND_ATTENTION_DOT; kind <= SEQLSTM_KIND_ATTENTION_ADDITIVE; kind++)
        for (int o = 0; o < 2; o++) {
            const union seqlstm_any_desc d = describe(kind, options[o]);
            struct rh rh;
            open_queries(&rh, &d);
            rh_check_gradients(&rh, kind == SEQLSTM_KIND_ATTENTION_DOT ? "dot" : "additive", 1e-6);
            rh_check_float32(&rh, kind == SEQLSTM_KIND_ATTENTION_DOT ? "dot" : "additive");
            for (int i = 0; i < K; i++) /* of a query without memory */
                assert_true(rh.grads[SEQLSTM_SLOT_ATTENTION_QUERIES][4 * K + i] == 0);
            rh_close(&rh);
        }
}

static void wrong_indices(void **state)
{
    (void)state;
    const union seqlstm_any_desc d = describe(SEQLSTM_KIND_ATTENTION_DOT, 0);
    struct rh rh;
    open_queries(&rh, &d);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_forward args = {.struct_size = sizeof args,
                                   .slot_count = SEQLSTM_SLOT_ATTENTION_COUNT,
                                   .workspace = rh.workspace,
                                   .reserve = rh.reserve,
                                   .step = &rh.step};
    void *slots[SEQLSTM_SLOT_ATTENTION_COUNT];
    memcpy(slots, rh.values, sizeof slots);
    args.slots = slots;
    slots[SEQLSTM_SLOT_ATTENTION_MEMORY_OF] = (int32_t[QUERIES]){0, 0, 4};
    assert_int_equal(rh.backend->forward(rh.binding, &rh.queue, &args, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "uses memory 4"));
    slots[SEQLSTM_SLOT_ATTENTION_MEMORY_OF] = rh.values[SEQLSTM_SLOT_ATTENTION_MEMORY_OF];
    slots[SEQLSTM_SLOT_ATTENTION_OFFSETS] = (int32_t[5]){0, 5, 5, 5, 6};
    assert_int_equal(rh.backend->forward(rh.binding, &rh.queue, &args, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "5 rows"));
    slots[SEQLSTM_SLOT_ATTENTION_OFFSETS] = (int32_t[5]){0, 3, 3, 4, 7};
    assert_int_equal(rh.backend->forward(rh.binding, &rh.queue, &args, &err), SEQLSTM_INVALID_ARGUMENT);
    rh_close(&rh);
}

static void set_integers(const struct fixture *f, const char *key, int32_t *out, int count)
{
    double list[16];
    assert_int_equal(fixture_list((struct fixture *)f, key, list, 16), count);
    for (int k = 0; k < count; k++)
        out[k] = (int32_t)list[k];
}

static void one_fixture(struct fixture *f)
{
    static const struct {
        const char *name;
        int32_t slot;
    } inputs[] = {{"queries", SEQLSTM_SLOT_ATTENTION_QUERIES},
                  {"keys", SEQLSTM_SLOT_ATTENTION_KEYS},
                  {"values", SEQLSTM_SLOT_ATTENTION_VALUES},
                  {"score", SEQLSTM_SLOT_ATTENTION_SCORE}};
    double list[16], scale;
    struct rh rh;
    assert_int_equal(fixture_list(f, "scale", &scale, 1), 1);
    int queries = fixture_list(f, "memory_of", list, 16), memories = (int)fixture_int(f, "memories", 0);
    union seqlstm_any_desc d = describe(scale > 0 ? SEQLSTM_KIND_ATTENTION_DOT : SEQLSTM_KIND_ATTENTION_ADDITIVE,
                                        fixture_int(f, "shared", 0) ? SEQLSTM_BIT_ATTENTION_SHARED : 0);
    d.attention.key = fixture_int(f, "key", 0);
    d.attention.value = fixture_int(f, "value", 0);
    d.attention.scale = (float)scale;
    d.head.max_sequences = memories;
    fixture_list(f, "offsets", list, 16);
    rh_open_rows(&rh, &d, queries, (int64_t)list[memories], 1);
    set_integers(f, "offsets", rh.values[SEQLSTM_SLOT_ATTENTION_OFFSETS], memories + 1);
    set_integers(f, "memory_of", rh.values[SEQLSTM_SLOT_ATTENTION_MEMORY_OF], queries);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (rh.values[inputs[i].slot])
            memcpy(rh.values[inputs[i].slot], fixture_get(f, inputs[i].name, rh.elems[inputs[i].slot]),
                   (size_t)rh.elems[inputs[i].slot] * sizeof(double));
    const int64_t elems = rh.elems[SEQLSTM_SLOT_ATTENTION_CONTEXT];
    memcpy(rh.grads[SEQLSTM_SLOT_ATTENTION_CONTEXT], fixture_get(f, "dcontext", elems), (size_t)elems * sizeof(double));
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    /* the scale is a float32 */
    const double tolerance = scale == (double)(float)scale ? 1e-10 : 1e-6;
    fixture_compare(f, "context", rh_value(&rh, SEQLSTM_SLOT_ATTENTION_CONTEXT), fixture_get(f, "context", elems),
                    elems, tolerance);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%s", inputs[i].name);
        if (rh.values[inputs[i].slot])
            fixture_compare(f, name, rh.grads[inputs[i].slot], fixture_get(f, name, rh.elems[inputs[i].slot]),
                            rh.elems[inputs[i].slot], tolerance);
    }
    rh_close(&rh);
}

static void reference_equals_pytorch(void **state)
{
    (void)state;
    struct fixture f;
    int cases = 0;
    fixture_open(&f, "attention");
    for (; fixture_next(&f); cases++)
        one_fixture(&f);
    fixture_close(&f);
    assert_int_equal(cases, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_by_hand),
        cmocka_unit_test(gradients),
        cmocka_unit_test(wrong_indices),
        cmocka_unit_test(reference_equals_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
