/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: small integers, whose sums are exact in every dtype and order; numbers that are rounded; and sums in the
 * order of the tree, which the host makes itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/operation/op_signature.h"
#include "conformance/collectives/cases.h"
#include "parallel/tree_sum.h"

static const int64_t sizes[] = {0, 1, 2, 3, 17, 1000, 4097, 70001};
enum { SIZES = sizeof sizes / sizeof *sizes, LARGE_ELEMS = 100000000 };

/* The bits of an integer -256 … 256 in a float of 16 bits with so many bits of exponent. */
static uint16_t narrow(int value, int exponent_bits)
{
    const int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = 0;
    if (value <= 0)
        return value == 0 ? 0 : (uint16_t)(0x8000 | narrow(-value, exponent_bits));
    while (value >> exponent > 1)
        exponent++;
    return (uint16_t)((exponent + bias) << fraction_bits |
                      ((value << fraction_bits >> exponent) - (1 << fraction_bits)));
}

static void store(void *values, uint32_t dtype, int64_t i, int value)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_FLOAT64:
        ((double *)values)[i] = value;
        break;
    case SEQLSTM_DTYPE_FLOAT16:
        ((uint16_t *)values)[i] = narrow(value, 5);
        break;
    case SEQLSTM_DTYPE_BFLOAT16:
        ((uint16_t *)values)[i] = narrow(value, 8);
        break;
    case SEQLSTM_DTYPE_INT8:
    case SEQLSTM_DTYPE_UINT8:
        ((uint8_t *)values)[i] = (uint8_t)value;
        break;
    case SEQLSTM_DTYPE_INT32:
        ((int32_t *)values)[i] = value;
        break;
    default:
        ((float *)values)[i] = (float)value;
        break;
    }
}

/* Small enough that the sum over all ranks is exact in eight bits, and of both signs where the dtype has them. */
static int get_value(const struct sl_trial *trial, uint32_t dtype, int32_t rank, int64_t i)
{
    const uint64_t most = trial->ranks <= 31 ? 4 : 127 / (uint64_t)trial->ranks + 1;
    const int value = (int)(sl_trial_random(trial, 0, rank, i) % most);
    return dtype == SEQLSTM_DTYPE_UINT8 ? value : value - (int)(most / 2);
}

/* Over the ranks first, first + stride, … */
static int get_expected(const struct sl_trial *trial, uint32_t dtype, uint32_t reduction, int32_t first, int32_t stride,
                        int64_t i)
{
    int result = get_value(trial, dtype, first, i);
    for (int32_t r = first + stride; r < trial->ranks; r += stride) {
        const int value = get_value(trial, dtype, r, i);
        if (reduction == SEQLSTM_REDUCE_SUM)
            result += value;
        else if (reduction == SEQLSTM_REDUCE_MAX ? value > result : value < result)
            result = value;
    }
    return result;
}

/* `scatter`: each rank gets its part, of `elems`. */
static void reduce(struct sl_trial *trial, uint32_t dtype, uint32_t reduction, int64_t elems, bool scatter,
                   bool in_place)
{
    const int64_t bytes = sl_dtype_bytes(dtype), given = scatter ? elems * trial->ranks : elems;
    void *from = sl_trial_allocate(trial, given * bytes), *to = sl_trial_allocate(trial, elems * bytes);
    void *expected = sl_trial_allocate(trial, elems * bytes);
    if (from && to && expected) {
        for (int64_t i = 0; i < given; i++)
            store(from, dtype, i, get_value(trial, dtype, trial->rank, i));
        for (int64_t i = 0; i < elems; i++)
            store(expected, dtype, i,
                  get_expected(trial, dtype, reduction, 0, 1, scatter ? trial->rank * elems + i : i));
        sl_trial_exchange(trial, scatter ? SEQLSTM_COLLECTIVE_REDUCE_SCATTER : SEQLSTM_COLLECTIVE_ALL_REDUCE, dtype,
                          reduction, 0, from, in_place ? from : to, elems);
        sl_trial_check(trial, memcmp(in_place ? from : to, expected, (size_t)(elems * bytes)) == 0,
                       "reduction %u of %lld elements of dtype %u%s is wrong", reduction, (long long)elems, dtype,
                       in_place ? " in place" : "");
    }
    free(from);
    free(to);
    free(expected);
}

static void reduce_all(struct sl_trial *trial, bool scatter)
{
    for (uint32_t dtype = 0; dtype < 32; dtype++)
        for (uint32_t reduction = 0; reduction < SEQLSTM_REDUCE_COUNT; reduction++)
            for (int s = 0; s < SIZES; s++) {
                if (!(trial->transport->dtypes >> dtype & 1) || !(trial->transport->reductions >> reduction & 1))
                    continue;
                reduce(trial, dtype, reduction, sizes[s], scatter, false);
                if (!scatter)
                    reduce(trial, dtype, reduction, sizes[s], false, true);
            }
}

void sl_trial_all_reduce(struct sl_trial *trial)
{
    reduce_all(trial, false);
}

void sl_trial_reduce_scatter(struct sl_trial *trial)
{
    reduce_all(trial, true);
}

/* Reductions in memory of the plugin, or from other memory into it. Elements beside the reduced ones stay as they
 * are. */
static void reduce_in(struct sl_trial *trial, unsigned char *memory, uint32_t dtype, uint32_t reduction, int64_t elems,
                      int64_t before, bool in_place)
{
    const int64_t bytes = sl_dtype_bytes(dtype);
    unsigned char *at = memory + before * bytes;
    unsigned char *expected = sl_trial_allocate(trial, elems * bytes), *other = sl_trial_allocate(trial, elems * bytes);
    unsigned char *from = in_place ? at : other;
    memset(memory, 0x5A, (size_t)((before + elems) * bytes + 8));
    for (int64_t i = 0; expected && other && i < elems; i++) {
        store(from, dtype, i, get_value(trial, dtype, trial->rank, i));
        store(expected, dtype, i, get_expected(trial, dtype, reduction, 0, 1, i));
    }
    if (expected && other &&
        sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_REDUCE, dtype, reduction, 0, from, at, elems)) {
        bool beside = true;
        for (int64_t i = 0; i < before * bytes; i++)
            beside &= memory[i] == 0x5A;
        for (int64_t i = 0; i < 8; i++)
            beside &= at[elems * bytes + i] == 0x5A;
        sl_trial_check(trial, memcmp(at, expected, (size_t)(elems * bytes)) == 0,
                       "reduction %u of %lld elements of dtype %u in memory of the plugin is wrong", reduction,
                       (long long)elems, dtype);
        sl_trial_check(trial, beside, "a reduction of %lld elements of dtype %u wrote beside them", (long long)elems,
                       dtype);
    }
    free(expected);
    free(other);
}

/* The same among the even and among the odd ranks, each of which has its own part of that memory. */
static void reduce_in_halves(struct sl_trial *trial, int32_t *values, int64_t elems)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int32_t half = trial->rank % 2;
    const uint32_t dtype = SEQLSTM_DTYPE_INT32, number = 1 + (uint32_t)half;
    int32_t members = 0, *ranks = sl_trial_allocate(trial, trial->ranks * 4);
    for (int32_t r = half; ranks && r < trial->ranks; r += 2)
        ranks[members++] = r;
    if (ranks && members > 1)
        sl_trial_check(trial, sl_connection_add_group(trial->connection, number, ranks, members, &err) == SEQLSTM_OK,
                       "group %u: %s", number, err.message);
    free(ranks);
    if (trial->failed || members < 2)
        return;
    for (int64_t i = 0; i < elems; i++)
        values[i] = get_value(trial, dtype, trial->rank, i);
    const struct seqlstm_exchange sum = {
        .kind = SEQLSTM_COLLECTIVE_ALL_REDUCE, .dtype = dtype, .elems = elems, .from = values, .to = values};
    const seqlstm_status status = sl_connection_run(trial->connection, number, sum, &err);
    sl_trial_check(trial, status == SEQLSTM_OK, "a sum in group %u: %s", number, err.message);
    for (int64_t i = 0; i < elems && !trial->failed; i++)
        sl_trial_check(trial, values[i] == get_expected(trial, dtype, SEQLSTM_REDUCE_SUM, half, 2, i),
                       "element %lld of the sum of group %u in memory of the plugin is wrong", (long long)i, number);
}

/* Memory of the plugin, where it has any: zero at first, and twice, so that the second is not the first. */
void sl_trial_shared(struct sl_trial *trial)
{
    enum { MOST = 40000, BEFORE = 5 };
    static const int64_t counts[] = {1, 4097, 33333, MOST};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int round = 0; round < 2 && !trial->failed; round++) {
        void *memory = NULL;
        const int64_t bytes = (MOST + BEFORE + 1) * 8;
        const seqlstm_status status = sl_connection_allocate(trial->connection, bytes, &memory, &err);
        sl_trial_check(trial, status == SEQLSTM_OK, "allocate: %s", err.message);
        bool zero = true;
        for (int64_t i = 0; memory && i < bytes; i++)
            zero &= ((const unsigned char *)memory)[i] == 0;
        sl_trial_check(trial, zero, "memory of the plugin is not zero at first");
        /* No rank writes before all have looked at theirs. */
        sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_BARRIER, SEQLSTM_DTYPE_UINT8, 0, 0, NULL, NULL, 0);
        for (uint32_t dtype = 0; memory && dtype < 32; dtype++)
            for (uint32_t reduction = 0; reduction < SEQLSTM_REDUCE_COUNT; reduction++)
                for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
                    for (int in_place = 0; in_place < 2; in_place++)
                        if (trial->transport->dtypes >> dtype & 1 && trial->transport->reductions >> reduction & 1)
                            reduce_in(trial, memory, dtype, reduction, counts[k], k % 2 ? BEFORE : 0, in_place);
        if (memory && round == 1 && trial->transport->groups > 2)
            reduce_in_halves(trial, memory, MOST);
    }
}

void sl_trial_large(struct sl_trial *trial)
{
    float *values = sl_trial_allocate(trial, (int64_t)LARGE_ELEMS * 4);
    for (int64_t i = 0; values && i < LARGE_ELEMS; i++)
        values[i] = (float)(i % 1000 + trial->rank);
    if (values && sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_REDUCE, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_REDUCE_SUM, 0,
                                    values, values, LARGE_ELEMS))
        for (int64_t i = 0; i < LARGE_ELEMS; i++)
            if (!sl_trial_check(trial,
                                values[i] == (float)(i % 1000 * trial->ranks + trial->ranks * (trial->ranks - 1) / 2),
                                "element %lld of %d is wrong", (long long)i, LARGE_ELEMS))
                break;
    free(values);
}

/* ---- rounding --------------------------------------------------------------------------------------------------- */

/* Of sizes from 2^-20 to 2^20, and both signs. */
static double get_real(const struct sl_trial *trial, uint64_t number, int32_t rank, int64_t i)
{
    const uint64_t bits = sl_trial_random(trial, number, rank, i);
    return ldexp((double)(int64_t)(bits & 0xFFFFFF) - 8388607.5, (int)(bits >> 24 & 31) - 40);
}

/* All ranks have the same bits. */
static void compare_bits(struct sl_trial *trial, const void *values, int64_t bytes)
{
    char *all = sl_trial_allocate(trial, bytes * trial->ranks);
    if (all && sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_GATHER, SEQLSTM_DTYPE_UINT8, 0, 0, values, all, bytes))
        for (int32_t r = 0; r < trial->ranks; r++)
            sl_trial_check(trial, memcmp(all + r * bytes, values, (size_t)bytes) == 0,
                           "ranks %d and %d have other bits of the same sum", trial->rank, r);
    free(all);
}

void sl_trial_rounding(struct sl_trial *trial)
{
    enum { ELEMS = 50021 };
    float *values = sl_trial_allocate(trial, ELEMS * 4);
    for (int64_t i = 0; values && i < ELEMS; i++)
        values[i] = (float)get_real(trial, 1, trial->rank, i);
    if (values && sl_trial_exchange(trial, SEQLSTM_COLLECTIVE_ALL_REDUCE, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_REDUCE_SUM, 0,
                                    values, values, ELEMS)) {
        compare_bits(trial, values, ELEMS * 4);
        for (int64_t i = 0; i < ELEMS && !trial->failed; i++) {
            double sum = 0, size = 0;
            for (int32_t r = 0; r < trial->ranks; r++) {
                const double x = (float)get_real(trial, 1, r, i);
                sum += x;
                size += fabs(x);
            }
            sl_trial_check(trial, fabs((double)values[i] - sum) <= trial->ranks * 0x1p-24 * size,
                           "element %lld is %.9g, expected %.9g", (long long)i, (double)values[i], sum);
        }
    }
    free(values);
}

static bool sum_shards(struct sl_trial *trial, struct sl_connection *connection, int32_t shards, bool wide,
                       int64_t elems, void *leaf, void *to)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_tree_sum *sum = NULL;
    const int32_t ranks = connection ? trial->ranks : 1, rank = connection ? trial->rank : 0;
    const struct sl_rank_group group = {.connection = connection, .ranks = ranks, .rank = rank};
    seqlstm_status status = sl_tree_sum_create(&group, shards, elems, wide, NULL, &sum, &err);
    for (int32_t s = (int32_t)((int64_t)shards * rank / ranks);
         status == SEQLSTM_OK && s < (int32_t)((int64_t)shards * (rank + 1) / ranks); s++) {
        for (int64_t i = 0; i < elems; i++) {
            const double x = get_real(trial, 2, s, i);
            if (wide)
                ((double *)leaf)[i] = x;
            else
                ((float *)leaf)[i] = (float)x;
        }
        status = sl_tree_sum_add(sum, leaf, &err);
    }
    if (status == SEQLSTM_OK)
        status = sl_tree_sum_finish(sum, to, &err);
    sl_tree_sum_destroy(sum);
    return sl_trial_check(trial, status == SEQLSTM_OK, "the sum of %d shards failed: %s", shards, err.message);
}

/* The same bits as one rank alone. */
void sl_trial_ordered_sum(struct sl_trial *trial)
{
    enum { ELEMS = 20011 };
    void *leaf = sl_trial_allocate(trial, ELEMS * 8), *sum = sl_trial_allocate(trial, ELEMS * 8);
    void *alone = sl_trial_allocate(trial, ELEMS * 8);
    for (int32_t shards = trial->ranks; leaf && sum && alone && shards <= trial->ranks + 8 && !trial->failed;
         shards++) {
        const bool wide = shards % 2 == 1;
        if (sum_shards(trial, NULL, shards, wide, ELEMS, leaf, alone) &&
            sum_shards(trial, trial->connection, shards, wide, ELEMS, leaf, sum))
            sl_trial_check(trial, memcmp(sum, alone, ELEMS * (wide ? 8 : 4)) == 0,
                           "%d shards on %d ranks have another sum than on one", shards, trial->ranks);
    }
    free(leaf);
    free(sum);
    free(alone);
}
