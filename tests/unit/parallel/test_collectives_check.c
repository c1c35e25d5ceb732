/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins for collectives refuse before they exchange anything, and before they make a group; and the reductions
 * of shared memory, in place and not, by every dtype. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "comm-shm/reduce.h"
#include "common/collectives_check.h"
#include "common/half.h"
#include "oom.h"

enum { MEMBERS = 4, OWN = 2 };

static void elements_have_their_size(void **state)
{
    (void)state;
    static const struct {
        uint32_t dtype;
        int64_t bytes;
    } cases[] = {{SEQLSTM_DTYPE_FLOAT32, 4},
                 {SEQLSTM_DTYPE_BFLOAT16, 2},
                 {SEQLSTM_DTYPE_FLOAT16, 2},
                 {SEQLSTM_DTYPE_FLOAT64, 8},
                 {SEQLSTM_DTYPE_INT32, 4},
                 {SEQLSTM_DTYPE_INT8, 1},
                 {SEQLSTM_DTYPE_UINT8, 1},
                 {SEQLSTM_DTYPE_UINT8 + 1, 0},
                 {31, 0},
                 {UINT32_MAX, 0}};
    struct seqlstm_transport transport = {0};
    collectives_describe(&transport);
    uint32_t dtypes = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(collectives_elem_bytes(cases[k].dtype), cases[k].bytes);
        dtypes |= cases[k].bytes > 0 ? 1u << cases[k].dtype : 0;
    }
    assert_int_equal(transport.dtypes, dtypes);
    assert_int_equal(transport.collectives, 0x7F);
    assert_int_equal(transport.reductions, 7);
}

static void exchanges_that_nobody_can_make_are_refused(void **state)
{
    (void)state;
    enum { SUM = SEQLSTM_COLLECTIVE_ALL_REDUCE, SEND = SEQLSTM_COLLECTIVE_SEND, TAKE = SEQLSTM_COLLECTIVE_RECEIVE };
    static const struct {
        struct seqlstm_exchange exchange;
        seqlstm_status status;
        const char *message;
    } cases[] = {
        {{.kind = SUM, .peer = 99}, SEQLSTM_OK, ""},
        {{.kind = SEQLSTM_COLLECTIVE_BARRIER, .peer = -1}, SEQLSTM_OK, ""},
        {{.kind = SUM, .reduction = SEQLSTM_REDUCE_MIN, .elems = 5}, SEQLSTM_OK, ""},
        {{.kind = SEQLSTM_COLLECTIVE_COUNT}, SEQLSTM_UNSUPPORTED, "no exchange of kind 7"},
        {{.kind = SUM, .reduction = SEQLSTM_REDUCE_COUNT}, SEQLSTM_UNSUPPORTED, "reduction 3"},
        {{.kind = SUM, .dtype = 30}, SEQLSTM_UNSUPPORTED, "no exchange of kind 0"},
        {{.kind = SUM, .elems = -1}, SEQLSTM_UNSUPPORTED, "no exchange"},
        {{.kind = SEQLSTM_COLLECTIVE_BROADCAST, .peer = OWN}, SEQLSTM_OK, ""},
        {{.kind = SEQLSTM_COLLECTIVE_BROADCAST, .peer = MEMBERS - 1}, SEQLSTM_OK, ""},
        {{.kind = SEQLSTM_COLLECTIVE_BROADCAST, .peer = MEMBERS}, SEQLSTM_INVALID_ARGUMENT, "no member 4"},
        {{.kind = SEQLSTM_COLLECTIVE_BROADCAST, .peer = -1}, SEQLSTM_INVALID_ARGUMENT, "no member -1"},
        {{.kind = SEND, .peer = 0}, SEQLSTM_OK, ""},
        {{.kind = SEND, .peer = OWN}, SEQLSTM_INVALID_ARGUMENT, "to itself"},
        {{.kind = SEND, .peer = MEMBERS}, SEQLSTM_INVALID_ARGUMENT, "a group of 4 has no member 4"},
        {{.kind = TAKE, .peer = MEMBERS - 1}, SEQLSTM_OK, ""},
        {{.kind = TAKE, .peer = OWN}, SEQLSTM_INVALID_ARGUMENT, "to itself"},
        {{.kind = TAKE, .peer = -1}, SEQLSTM_INVALID_ARGUMENT, "no member -1"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(collectives_check(&cases[k].exchange, OWN, MEMBERS, &err), cases[k].status);
        if (!strstr(err.message, cases[k].message))
            fail_msg("case %zu says '%s', expected '%s'", k, err.message, cases[k].message);
    }
}

static void a_group_has_ascending_ranks_and_a_new_number(void **state)
{
    (void)state;
    static const struct {
        int32_t ranks[4], count, place;
    } lists[] = {{{0, 1, 2, 3}, 4, OWN}, {{0, 2}, 2, 1},  {{2}, 1, 0},        {{1, 2, 4}, 3, 1},
                 {{0, 1, 3}, 3, -1},     {{2, 1}, 2, -1}, {{2, 2}, 2, -1},    {{0, 2, 2}, 3, -1},
                 {{-1, 2}, 2, -1},       {{2, 5}, 2, -1}, {{2, 3, 1}, 3, -1}, {{0}, 0, -1}};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        assert_int_equal(collectives_find_place(OWN, 5, lists[k].ranks, lists[k].count), lists[k].place);
    static const struct {
        int32_t place;
        uint32_t number, used;
        const char *message; /* NULL: it can be made */
    } groups[] = {{0, 0, 0, NULL},
                  {3, 7, 0x7F, NULL},
                  {0, 1, 5, NULL},
                  {0, 0, 1, "no group 0: the number is used, or too large"},
                  {0, 2, 5, "no group 2: the number is used"},
                  {0, 8, 0, "no group 8: the number is used, or too large"},
                  {-1, 1, 0, "no group 1: its ranks are not ascending, or this one is not among them"}};
    for (size_t k = 0; k < sizeof groups / sizeof *groups; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status =
            collectives_check_group(groups[k].place, groups[k].number, 8, groups[k].used, &err);
        assert_int_equal(status, groups[k].message ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_OK);
        if (groups[k].message && !strstr(err.message, groups[k].message))
            fail_msg("case %zu says '%s'", k, err.message);
    }
}

/* ---- reductions ------------------------------------------------------------------------------------------------- */

enum { ELEMS = 1237, VECTORS = 5 };

static double get_value(int32_t vector, int64_t i, bool is_signed)
{
    const double value = (double)((vector * 31 + i * 7 + i / 5) % 23);
    return is_signed ? value - 11 : value;
}

static void store(uint32_t dtype, void *to, int64_t i, double value)
{
    if (dtype == SEQLSTM_DTYPE_FLOAT64)
        ((double *)to)[i] = value;
    else if (dtype == SEQLSTM_DTYPE_FLOAT32)
        ((float *)to)[i] = (float)value;
    else if (dtype == SEQLSTM_DTYPE_FLOAT16)
        ((uint16_t *)to)[i] = gpu_to_f16((float)value);
    else if (dtype == SEQLSTM_DTYPE_BFLOAT16)
        ((uint16_t *)to)[i] = gpu_to_bf16((float)value);
    else if (dtype == SEQLSTM_DTYPE_INT32)
        ((int32_t *)to)[i] = (int32_t)value;
    else if (dtype == SEQLSTM_DTYPE_INT8)
        ((int8_t *)to)[i] = (int8_t)value;
    else
        ((uint8_t *)to)[i] = (uint8_t)value;
}

static double combine(uint32_t reduction, double a, double b)
{
    return reduction == SEQLSTM_REDUCE_SUM ? a + b : reduction == SEQLSTM_REDUCE_MAX ? fmax(a, b) : fmin(a, b);
}

/* Of `count` vectors, into a further one and into all of them; elements behind the last one stay as they are. */
static void check_reduction(uint32_t dtype, uint32_t reduction, int32_t count, int64_t elems)
{
    static _Alignas(64) char vectors[VECTORS][(ELEMS + 8) * 8], result[(ELEMS + 8) * 8], expected[(ELEMS + 8) * 8];
    const size_t bytes = (size_t)(elems * collectives_elem_bytes(dtype)), all = sizeof expected;
    const void *from[VECTORS];
    void *both[VECTORS];
    memset(expected, 0x5A, all);
    memset(result, 0x5A, all);
    for (int32_t v = 0; v < count; v++) {
        memset(vectors[v], 0x5A, all);
        from[v] = both[v] = vectors[v];
        for (int64_t i = 0; i < elems; i++)
            store(dtype, vectors[v], i, get_value(v, i, dtype != SEQLSTM_DTYPE_UINT8));
    }
    for (int64_t i = 0; i < elems; i++) {
        double value = get_value(0, i, dtype != SEQLSTM_DTYPE_UINT8);
        for (int32_t v = 1; v < count; v++)
            value = combine(reduction, value, get_value(v, i, dtype != SEQLSTM_DTYPE_UINT8));
        store(dtype, expected, i, value);
    }
    shm_reduce(dtype, reduction, result, from, count, elems);
    assert_memory_equal(result, expected, all);
    shm_reduce_in_place(dtype, reduction, both, count, elems);
    for (int32_t v = 0; v < count; v++)
        if (memcmp(vectors[v], expected, all) != 0)
            fail_msg("dtype %u, reduction %u: vector %d of %d of %zu bytes is wrong", dtype, reduction, v, count,
                     bytes);
}

static void every_reduction_of_every_dtype(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 3, 511, 512, 513, ELEMS};
    for (uint32_t dtype = 0; dtype < 32; dtype++)
        for (uint32_t reduction = 0; collectives_elem_bytes(dtype) > 0 && reduction < SEQLSTM_REDUCE_COUNT; reduction++)
            for (int32_t count = 1; count <= VECTORS; count++)
                for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
                    check_reduction(dtype, reduction, count, sizes[k]);
}

static void sums_of_integers_wrap(void **state)
{
    (void)state;
    int32_t a = INT32_MAX, b = 2, sum;
    int8_t c = 127, d = 3, narrow;
    shm_reduce(SEQLSTM_DTYPE_INT32, SEQLSTM_REDUCE_SUM, &sum, (const void *[]){&a, &b}, 2, 1);
    assert_int_equal(sum, INT32_MIN + 1);
    shm_reduce(SEQLSTM_DTYPE_INT8, SEQLSTM_REDUCE_SUM, &narrow, (const void *[]){&c, &d}, 2, 1);
    assert_int_equal(narrow, -126);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_have_their_size),
        cmocka_unit_test(exchanges_that_nobody_can_make_are_refused),
        cmocka_unit_test(a_group_has_ascending_ranks_and_a_new_number),
        cmocka_unit_test(every_reduction_of_every_dtype),
        cmocka_unit_test(sums_of_integers_wrap),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
