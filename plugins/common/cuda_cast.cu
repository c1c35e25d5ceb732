/* SPDX-License-Identifier: Apache-2.0 */
/* See cuda_cast.h. Casts between float32 and 16 bits use float32 arithmetic (half.h), so that they need no float64
 * units. */
#include "common/cuda_cast.h"

#include <string.h>

#include <seqlstm/ops.h>

#include "common/cuda_kernel.h"
#include "common/half.h"

static __device__ __forceinline__ float read_float(const void *x, uint32_t dtype, int64_t e)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_BFLOAT16:
        return gpu_from_bf16(static_cast<const uint16_t *>(x)[e]);
    case SEQLSTM_DTYPE_FLOAT16:
        return gpu_from_f16(static_cast<const uint16_t *>(x)[e]);
    default:
        return static_cast<const float *>(x)[e];
    }
}

static __device__ __forceinline__ void write_float(void *y, uint32_t dtype, int64_t e, float value)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_BFLOAT16:
        static_cast<uint16_t *>(y)[e] = gpu_to_bf16(value);
        break;
    case SEQLSTM_DTYPE_FLOAT16:
        static_cast<uint16_t *>(y)[e] = gpu_to_f16(value);
        break;
    default:
        static_cast<float *>(y)[e] = value;
        break;
    }
}

/* Four neighbours, read and written at once. */
struct alignas(16) four_floats {
    float x[4];
};
struct alignas(8) four_halves {
    uint16_t x[4];
};

static __device__ __forceinline__ four_floats read_four(const void *x, uint32_t dtype, int64_t e)
{
    if (dtype == SEQLSTM_DTYPE_FLOAT32)
        return *reinterpret_cast<const four_floats *>(static_cast<const float *>(x) + e);
    const four_halves half = *reinterpret_cast<const four_halves *>(static_cast<const uint16_t *>(x) + e);
    four_floats four;
    for (int k = 0; k < 4; k++)
        four.x[k] = dtype == SEQLSTM_DTYPE_BFLOAT16 ? gpu_from_bf16(half.x[k]) : gpu_from_f16(half.x[k]);
    return four;
}

static __device__ __forceinline__ void write_four(void *y, uint32_t dtype, int64_t e, const four_floats &four)
{
    four_halves half;
    if (dtype == SEQLSTM_DTYPE_FLOAT32) {
        *reinterpret_cast<four_floats *>(static_cast<float *>(y) + e) = four;
        return;
    }
    for (int k = 0; k < 4; k++)
        half.x[k] = dtype == SEQLSTM_DTYPE_BFLOAT16 ? gpu_to_bf16(four.x[k]) : gpu_to_f16(four.x[k]);
    *reinterpret_cast<four_halves *>(static_cast<uint16_t *>(y) + e) = half;
}

static __device__ bool has_fours(const void *x, const void *y)
{
    return (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % 16 == 0;
}

/* The elements of one range, by all threads of blocks of this x. */
static __device__ void cast_part(uint32_t from, uint32_t to, int64_t elems, const void *x, void *y, int add)
{
    const int64_t fours = has_fours(x, y) ? elems / 4 : 0;
    GPU_FOR_EACH(f, fours)
    {
        four_floats four = read_four(x, from, 4 * f);
        for (int k = 0; add && k < 4; k++)
            four.x[k] += static_cast<const float *>(y)[4 * f + k];
        write_four(y, to, 4 * f, four);
    }
    GPU_FOR_EACH(rest, elems - 4 * fours)
    {
        const int64_t e = 4 * fours + rest;
        const float value = read_float(x, from, e);
        write_float(y, to, e, add ? value + static_cast<const float *>(y)[e] : value);
    }
}

static __global__ void cast_float(uint32_t from, uint32_t to, int64_t elems, const void *x, void *y)
{
    cast_part(from, to, elems, x, y, 0);
}

struct part_list {
    struct gpu_cast_part of[GPU_CAST_PARTS];
};

/* A row of blocks for each range. */
static __global__ void cast_parts(uint32_t from, uint32_t to, const __grid_constant__ struct part_list list, int add)
{
    const struct gpu_cast_part &part = list.of[blockIdx.y];
    cast_part(from, to, part.elems, part.x, part.y, add);
}

/* ---- float64 on one side ------------------------------------------------------------------------------------ */

/* The bits of x in a format with `fraction` fraction bits and `exponent` exponent bits, rounded once to nearest
 * even. A detour through float32 would round twice. */
static __device__ uint16_t encode(double x, int fraction, int exponent)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int bias = (1 << (exponent - 1)) - 1, e = (int)(bits >> 52 & 0x7FF) - 1023;
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000), infinity = (uint16_t)(((1 << exponent) - 1) << fraction);
    if (x != x)
        return (uint16_t)(sign | infinity | 1u << (fraction - 1));
    if (e > bias) /* or infinite */
        return (uint16_t)(sign | infinity);
    const uint64_t significand = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    const int dropped = 52 - fraction + (e < 1 - bias ? 1 - bias - e : 0);
    if (e == -1023 || dropped > 54)
        return sign;
    uint64_t kept = significand >> dropped;
    const uint64_t rest = significand & (((uint64_t)1 << dropped) - 1), half = (uint64_t)1 << (dropped - 1);
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    /* The hidden bit adds one to the exponent, and so does a carry out of the fraction. */
    const uint64_t below = e < 1 - bias ? 0 : (uint64_t)(e + bias - 1) << fraction;
    const uint64_t word = kept + below;
    return (uint16_t)(sign | (word < infinity ? word : infinity));
}

static __global__ void cast_double(uint32_t from, uint32_t to, int64_t elems, const void *x, void *y)
{
    GPU_FOR_EACH(e, elems)
    {
        const double value = from == SEQLSTM_DTYPE_FLOAT64 ? static_cast<const double *>(x)[e]
                                                           : static_cast<double>(read_float(x, from, e));
        switch (to) {
        case SEQLSTM_DTYPE_BFLOAT16:
            static_cast<uint16_t *>(y)[e] = encode(value, 7, 8);
            break;
        case SEQLSTM_DTYPE_FLOAT16:
            static_cast<uint16_t *>(y)[e] = encode(value, 10, 5);
            break;
        case SEQLSTM_DTYPE_FLOAT64:
            static_cast<double *>(y)[e] = value;
            break;
        default:
            static_cast<float *>(y)[e] = static_cast<float>(value);
            break;
        }
    }
}

/* ---- launches ----------------------------------------------------------------------------------------------- */

extern "C" int gpu_cast(void *stream, uint32_t from, uint32_t to, int64_t elems, const void *x, void *y)
{
    if (from == SEQLSTM_DTYPE_FLOAT64 || to == SEQLSTM_DTYPE_FLOAT64)
        return GPU_LAUNCH(stream, gpu_blocks(elems), GPU_THREADS, 0, cast_double, from, to, elems, x, y);
    return GPU_LAUNCH(stream, gpu_blocks((elems + 3) / 4), GPU_THREADS, 0, cast_float, from, to, elems, x, y);
}

extern "C" int gpu_cast_parts(void *stream, uint32_t from, uint32_t to, const struct gpu_cast_part *parts,
                              int64_t count, int32_t add)
{
    struct part_list list = {};
    int64_t most = 0;
    for (int64_t k = 0; k < count; k++) {
        list.of[k] = parts[k];
        most = parts[k].elems > most ? parts[k].elems : most;
    }
    if (most == 0)
        return 0;
    const dim3 grid(gpu_blocks((most + 3) / 4), (unsigned)count);
    return GPU_LAUNCH(stream, grid, GPU_THREADS, 0, cast_parts, from, to, list, add);
}
