/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation and sums over columns. See rows.h. */
#include "cuda-generic/device/device.h"
#include "cuda-generic/rows/rows.h"

static __global__ void norm_forward(struct cg_norm norm, int64_t rows, int64_t n, const float *x, float *y,
                                    float *stats)
{
    GPU_SHARED(float, room);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *row = x + r * n;
        float sum = 0;
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
            sum += row[k];
        const float mean = cg_block_sum(sum, room) / (float)n;
        float squares = 0;
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
            squares += (row[k] - mean) * (row[k] - mean);
        const float scale = 1.0f / sqrtf(cg_block_sum(squares, room) / (float)n + norm.epsilon);
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
            y[r * n + k] =
                (row[k] - mean) * scale * (norm.gain ? norm.gain[k] : 1.0f) + (norm.bias ? norm.bias[k] : 0.0f);
        if (stats && threadIdx.x == 0) {
            stats[2 * r] = mean;
            stats[2 * r + 1] = scale;
        }
        __syncthreads();
    }
}

static __global__ void norm_backward(struct cg_norm norm, int64_t rows, int64_t n, const float *x, const float *stats,
                                     const float *dy, float *dx)
{
    GPU_SHARED(float, room);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *row = x + r * n, *d = dy + r * n;
        const float mean = stats[2 * r], scale = stats[2 * r + 1];
        float sum = 0, product = 0;
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
            const float g = d[k] * (norm.gain ? norm.gain[k] : 1.0f);
            sum += g;
            product += g * (row[k] - mean) * scale;
        }
        sum = cg_block_sum(sum, room) / (float)n;
        product = cg_block_sum(product, room) / (float)n;
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
            dx[r * n + k] =
                scale * (d[k] * (norm.gain ? norm.gain[k] : 1.0f) - sum - (row[k] - mean) * scale * product);
        __syncthreads();
    }
}

/* Blocks of norm_weights have 32 columns by SLICES slices. Slice s adds rows s, s + SLICES, …; then the slices are
 * added in order. */
enum { SLICES = 8, SUM_THREADS = 32 * SLICES };

static __device__ void add_slices(float *room, float mine, float *out, int64_t column, int64_t n, int add)
{
    const int slice = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    __syncthreads();
    room[slice * 32 + lane] = mine;
    __syncthreads();
    if (slice == 0 && column < n && out) {
        float sum = 0;
        for (int s = 0; s < SLICES; s++)
            sum += room[s * 32 + lane];
        out[column] = add ? out[column] + sum : sum;
    }
}

/* Blocks of column_sums have 8 columns, which are one sector of memory, by up to 128 slices. Slice s adds rows s, s +
 * slices, …, eight loads at a time. Eight threads of a column then add an eighth of the slices each, and one adds
 * those. */
enum { SUM_COLUMNS = 8, SUM_LOADS = 8, SUM_PARTS = 8, SLICES_MOST = 128 };

static __global__ void __launch_bounds__(SUM_COLUMNS *SLICES_MOST)
    column_sums(int64_t rows, int64_t n, const float *x, int64_t stride, float *out, int add)
{
    GPU_SHARED(float, room);
    const int slices = (int)blockDim.x / SUM_COLUMNS, slice = (int)threadIdx.x / SUM_COLUMNS;
    const int lane = (int)threadIdx.x % SUM_COLUMNS;
    const int64_t column = (int64_t)blockIdx.x * SUM_COLUMNS + lane;
    float sum = 0;
    for (int64_t r0 = slice; column < n && r0 < rows; r0 += (int64_t)SUM_LOADS * slices) {
        float value[SUM_LOADS];
        CG_UNROLL
        for (int k = 0; k < SUM_LOADS; k++) {
            const int64_t r = r0 + (int64_t)k * slices;
            value[k] = r < rows ? x[r * stride + column] : 0.0f;
        }
        CG_UNROLL
        for (int k = 0; k < SUM_LOADS; k++)
            sum += value[k];
    }
    room[threadIdx.x] = sum;
    __syncthreads();
    if (slice < SUM_PARTS) { /* the first SUM_COLUMNS x SUM_PARTS threads: slices slice, slice + SUM_PARTS, … */
        sum = 0;
        for (int s = slice; s < slices; s += SUM_PARTS)
            sum += room[s * SUM_COLUMNS + lane];
    }
    __syncthreads();
    room[threadIdx.x] = sum;
    __syncthreads();
    if (slice > 0 || column >= n)
        return;
    sum = 0;
    for (int s = 0; s < SUM_PARTS; s++)
        sum += room[s * SUM_COLUMNS + lane];
    out[column] = add ? out[column] + sum : sum;
}

/* As many slices as rows keep busy; they depend on the shape alone, so that its sums always have the same order. */
static int count_slices(int64_t rows)
{
    return rows <= 64 ? SUM_PARTS : rows <= 512 ? 32 : SLICES_MOST;
}

static __global__ void norm_weights(int64_t rows, int64_t n, const float *x, const float *stats, const float *dy,
                                    float *dgain, float *dbias, int add)
{
    GPU_SHARED(float, room);
    const int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x % 32;
    float gain = 0, bias = 0;
    for (int64_t r = threadIdx.x / 32; column < n && r < rows; r += SLICES) {
        const float d = dy[r * n + column];
        gain += d * (x[r * n + column] - stats[2 * r]) * stats[2 * r + 1];
        bias += d;
    }
    add_slices(room, gain, dgain, column, n, add);
    add_slices(room, bias, dbias, column, n, add);
}

static const size_t ROW_ROOM = CG_ROW_THREADS / CG_WARP * sizeof(float);

extern "C" int cg_norm_forward(void *stream, const struct cg_norm *norm, int64_t rows, int64_t n, const float *x,
                               float *y, float *stats)
{
    const struct cg_norm rule = *norm;
    return GPU_LAUNCH(stream, cg_row_blocks(rows), CG_ROW_THREADS, ROW_ROOM, norm_forward, rule, rows, n, x, y, stats);
}

extern "C" int cg_norm_backward(void *stream, const struct cg_norm *norm, int64_t rows, int64_t n, const float *x,
                                const float *stats, const float *dy, float *dx)
{
    const struct cg_norm rule = *norm;
    return GPU_LAUNCH(stream, cg_row_blocks(rows), CG_ROW_THREADS, ROW_ROOM, norm_backward, rule, rows, n, x, stats, dy,
                      dx);
}

extern "C" int cg_norm_backward_weights(void *stream, int64_t rows, int64_t n, const float *x, const float *stats,
                                        const float *dy, float *dgain, float *dbias, int32_t add)
{
    return GPU_LAUNCH(stream, (unsigned)((n + 31) / 32), SUM_THREADS, SUM_THREADS * sizeof(float), norm_weights, rows,
                      n, x, stats, dy, dgain, dbias, add);
}

extern "C" int cg_column_sums(void *stream, int64_t rows, int64_t n, const float *x, int64_t stride, float *out,
                              int32_t add)
{
    const unsigned threads = (unsigned)(SUM_COLUMNS * count_slices(rows));
    return GPU_LAUNCH(stream, (unsigned)((n + SUM_COLUMNS - 1) / SUM_COLUMNS), threads, threads * sizeof(float),
                      column_sums, rows, n, x, stride, out, add);
}
