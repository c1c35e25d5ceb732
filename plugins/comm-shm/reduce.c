/* SPDX-License-Identifier: Apache-2.0 */
/* See reduce.h. */
#include "reduce.h"

#include <string.h>

#include <seqlstm/collectives.h>

#include "common/collectives_check.h"
#include "common/half.h"
#include "common/host_ranks.h"

enum { BLOCK = 512 }; /* elements that are reduced over all vectors before the next */

#define AS_IS(x)      (x)
#define SUM(a, b)     ((a) + (b))
#define MAXIMUM(a, b) ((a) > (b) ? (a) : (b))
#define MINIMUM(a, b) ((a) < (b) ? (a) : (b))

#define COMBINE(T, A, LOAD, OP)                                                                                        \
    for (int32_t k = 1; k < count; k++) {                                                                              \
        const T *x = (const T *)from[k] + at;                                                                          \
        for (int64_t i = 0; i < now; i++)                                                                              \
            sum[i] = (A)OP(sum[i], LOAD(x[i]));                                                                        \
    }

/* Elements of type T, reduced as A. */
#define DEFINE(name, T, A, LOAD, STORE)                                                                                \
    static void name(uint32_t reduction, T *to, const void *const *from, int32_t count, int64_t elems)                 \
    {                                                                                                                  \
        for (int64_t at = 0; at < elems; at += BLOCK) {                                                                \
            const int64_t now = elems - at < BLOCK ? elems - at : BLOCK;                                               \
            const T *first = (const T *)from[0] + at;                                                                  \
            A sum[BLOCK];                                                                                              \
            for (int64_t i = 0; i < now; i++)                                                                          \
                sum[i] = (A)LOAD(first[i]);                                                                            \
            if (reduction == SEQLSTM_REDUCE_SUM)                                                                       \
                COMBINE(T, A, LOAD, SUM)                                                                               \
            else if (reduction == SEQLSTM_REDUCE_MAX)                                                                  \
                COMBINE(T, A, LOAD, MAXIMUM)                                                                           \
            else                                                                                                       \
                COMBINE(T, A, LOAD, MINIMUM)                                                                           \
            for (int64_t i = 0; i < now; i++)                                                                          \
                to[at + i] = (T)STORE(sum[i]);                                                                         \
        }                                                                                                              \
    }

DEFINE(reduce_float64, double, double, AS_IS, AS_IS)
DEFINE(reduce_float32, float, float, AS_IS, AS_IS)
DEFINE(reduce_float16, uint16_t, float, gpu_from_f16, gpu_to_f16)
DEFINE(reduce_bfloat16, uint16_t, float, gpu_from_bf16, gpu_to_bf16)
DEFINE(reduce_int32, uint32_t, uint32_t, AS_IS, AS_IS) /* sums wrap */
DEFINE(reduce_signed32, int32_t, int32_t, AS_IS, AS_IS)
DEFINE(reduce_int8, int8_t, int8_t, AS_IS, AS_IS)
DEFINE(reduce_uint8, uint8_t, uint8_t, AS_IS, AS_IS)

void shm_reduce(uint32_t dtype, uint32_t reduction, void *to, const void *const *from, int32_t count, int64_t elems)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_FLOAT64:
        reduce_float64(reduction, to, from, count, elems);
        break;
    case SEQLSTM_DTYPE_FLOAT16:
        reduce_float16(reduction, to, from, count, elems);
        break;
    case SEQLSTM_DTYPE_BFLOAT16:
        reduce_bfloat16(reduction, to, from, count, elems);
        break;
    case SEQLSTM_DTYPE_INT32:
        (reduction == SEQLSTM_REDUCE_SUM ? (void)reduce_int32(reduction, to, from, count, elems)
                                         : (void)reduce_signed32(reduction, to, from, count, elems));
        break;
    case SEQLSTM_DTYPE_INT8:
        reduce_int8(reduction, to, from, count, elems);
        break;
    case SEQLSTM_DTYPE_UINT8:
        reduce_uint8(reduction, to, from, count, elems);
        break;
    default:
        reduce_float32(reduction, to, from, count, elems);
        break;
    }
}

/* ---- in place --------------------------------------------------------------------------------------------------- */

#define ADD_PAIR(a, b, elems)                                                                                          \
    for (int64_t i = 0; i < (elems); i++) {                                                                            \
        const float sum = (a)[i] + (b)[i];                                                                             \
        (a)[i] = sum;                                                                                                  \
        (b)[i] = sum;                                                                                                  \
    }

static void add_pair(float *restrict a, float *restrict b, int64_t elems)
{
    ADD_PAIR(a, b, elems)
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_pair_avx2(float *restrict a, float *restrict b, int64_t elems)
{
    ADD_PAIR(a, b, elems)
}
#endif

/* Two vectors of floats, by far the most frequent case. */
static void add_floats(float *a, float *b, int64_t elems)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        add_pair_avx2(a, b, elems);
        return;
    }
#endif
    add_pair(a, b, elems);
}

void shm_reduce_in_place(uint32_t dtype, uint32_t reduction, void *const *vectors, int32_t count, int64_t elems)
{
    double sums[BLOCK]; /* of the widest dtype */
    const void *from[HOST_RANKS_MOST];
    const int64_t bytes = collectives_elem_bytes(dtype);
    if (dtype == SEQLSTM_DTYPE_FLOAT32 && reduction == SEQLSTM_REDUCE_SUM && count == 2) {
        add_floats(vectors[0], vectors[1], elems);
        return;
    }
    for (int64_t at = 0; at < elems; at += BLOCK) {
        const int64_t now = elems - at < BLOCK ? elems - at : BLOCK;
        for (int32_t k = 0; k < count; k++)
            from[k] = (const char *)vectors[k] + at * bytes;
        shm_reduce(dtype, reduction, sums, from, count, now);
        for (int32_t k = 0; k < count; k++)
            memcpy((char *)vectors[k] + at * bytes, sums, (size_t)(now * bytes));
    }
}
