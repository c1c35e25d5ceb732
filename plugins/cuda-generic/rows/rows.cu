/* SPDX-License-Identifier: Apache-2.0 */
/* Row-wise operations without sums over a row. See rows.h. */
#include "cuda-generic/device/device.h"
#include "cuda-generic/rows/drop.h"
#include "cuda-generic/rows/rows.h"

/* ---- activations ------------------------------------------------------------------------------------------ */

static __global__ void activate(struct seqlstm_activation act, int64_t elems, const float *x, float *y)
{
    CG_FOR_EACH(e, elems)
    y[e] = cg_activate(act, x[e]);
}

static __global__ void activate_back(struct seqlstm_activation act, int64_t elems, const float *x, const float *dy,
                                     float *dx)
{
    CG_FOR_EACH(e, elems)
    dx[e] = dy[e] * cg_slope(act, x[e]);
}

/* log of the sum of exp over a row. All threads of the block call. */
static __device__ float log_sum(const float *x, int64_t n, float *room)
{
    float most = x[0];
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        most = fmaxf(most, x[k]);
    most = cg_block_max(most, room);
    float sum = 0;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        sum += expf(x[k] - most);
    return most + logf(cg_block_sum(sum, room));
}

static __global__ void softmax(int is_log, int64_t rows, int64_t n, const float *x, float *y)
{
    GPU_SHARED(float, room);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float total = log_sum(x + r * n, n, room);
        __syncthreads(); /* y may be x, whose first element all threads have now read */
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
            y[r * n + k] = is_log ? x[r * n + k] - total : expf(x[r * n + k] - total);
        __syncthreads();
    }
}

static __global__ void softmax_back(int is_log, int64_t rows, int64_t n, const float *x, const float *dy, float *dx)
{
    GPU_SHARED(float, room);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *row = x + r * n, *d = dy + r * n;
        const float total = log_sum(row, n, room);
        float sum = 0;
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
            sum += is_log ? d[k] : d[k] * expf(row[k] - total);
        sum = cg_block_sum(sum, room);
        for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
            const float p = expf(row[k] - total);
            dx[r * n + k] = is_log ? d[k] - p * sum : p * (d[k] - sum);
        }
        __syncthreads();
    }
}

static bool is_softmax(const struct seqlstm_activation *act)
{
    return act->kind == SEQLSTM_ACT_SOFTMAX || act->kind == SEQLSTM_ACT_LOG_SOFTMAX;
}

static const size_t ROW_ROOM = CG_ROW_THREADS / CG_WARP * sizeof(float);

extern "C" int cg_activation_forward(void *stream, const struct seqlstm_activation *act, int64_t rows, int64_t n,
                                     const float *x, float *y)
{
    if (is_softmax(act))
        return GPU_LAUNCH(stream, cg_row_blocks(rows), CG_ROW_THREADS, ROW_ROOM, softmax,
                          act->kind == SEQLSTM_ACT_LOG_SOFTMAX, rows, n, x, y);
    const struct seqlstm_activation rule = *act;
    return GPU_LAUNCH(stream, cg_blocks(rows * n), CG_THREADS, 0, activate, rule, rows * n, x, y);
}

extern "C" int cg_activation_backward(void *stream, const struct seqlstm_activation *act, int64_t rows, int64_t n,
                                      const float *x, const float *dy, float *dx)
{
    if (is_softmax(act))
        return GPU_LAUNCH(stream, cg_row_blocks(rows), CG_ROW_THREADS, ROW_ROOM, softmax_back,
                          act->kind == SEQLSTM_ACT_LOG_SOFTMAX, rows, n, x, dy, dx);
    const struct seqlstm_activation rule = *act;
    return GPU_LAUNCH(stream, cg_blocks(rows * n), CG_THREADS, 0, activate_back, rule, rows * n, x, dy, dx);
}

/* ---- masks ------------------------------------------------------------------------------------------------ */

static __global__ void dropout(const __grid_constant__ struct cg_drop d, struct cg_axis axis)
{
    cg_drop(d, axis);
}

static __global__ void dropout_both(const __grid_constant__ struct cg_drop d, struct cg_axis axis)
{
    const struct cg_mask &m = d.mask;
    const uint64_t key = cg_live_key(&m.live, m.stream), other_key = cg_live_key(&m.live, d.other_stream);
    CG_FOR_EACH(e, d.rows * d.n)
    {
        const int64_t r = e / d.n, k = e % d.n;
        d.y[e] = d.x[e] * cg_draw_mask(m, key, axis, r, k) + d.other[e] * cg_draw_mask(m, other_key, axis, r, k);
    }
}

static __global__ void weight_mask(struct cg_mask m, int64_t elems, const float *x, float *y, int add)
{
    const uint64_t key = cg_live_key(&m.live, m.stream);
    const uint32_t step = CG_LIVE(&m.live, weight_mask_step);
    CG_FOR_EACH(e, elems)
    {
        const float value = x[e] * seqlstm_mask(key, (uint64_t)e, step, SEQLSTM_WEIGHT_SEQUENCE, m.rate);
        y[e] = add ? y[e] + value : value;
    }
}

extern "C" int cg_dropout(void *stream, const struct cg_drop *drop, const struct cg_axis *axis)
{
    const struct cg_drop d = *drop;
    const struct cg_axis a = *axis;
    return d.other ? GPU_LAUNCH(stream, cg_blocks(d.rows * d.n), CG_THREADS, 0, dropout_both, d, a)
                   : GPU_LAUNCH(stream, cg_blocks(d.rows * d.n), CG_THREADS, 0, dropout, d, a);
}

extern "C" int cg_weight_mask(void *stream, const struct cg_mask *mask, int64_t elems, const float *x, float *y,
                              int32_t add)
{
    const struct cg_mask m = *mask;
    return GPU_LAUNCH(stream, cg_blocks(elems), CG_THREADS, 0, weight_mask, m, elems, x, y, add);
}

/* ---- pools ------------------------------------------------------------------------------------------------ */

/* The step that MAX takes: the first with the largest value. */
static __device__ int32_t find_most(const struct cg_axis &axis, int64_t n, int64_t b, int64_t k, const float *x)
{
    int32_t best = 0;
    float most = x[b * n + k];
    for (int32_t t = 1; t < axis.lengths[b]; t++) {
        const float value = x[(axis.row_offsets[t] + b) * n + k];
        if (value > most || (value != value && most == most)) {
            most = value;
            best = t;
        }
    }
    return best;
}

static __global__ void pool(uint32_t kind, struct cg_axis axis, int64_t n, const float *x, float *y)
{
    CG_FOR_EACH(e, axis.sequences * n)
    {
        const int64_t b = e / n, k = e % n;
        const int32_t length = axis.lengths[b];
        float value = 0;
        if (kind == SEQLSTM_KIND_POOL_LAST || kind == SEQLSTM_KIND_POOL_FIRST) {
            value = x[(axis.row_offsets[kind == SEQLSTM_KIND_POOL_LAST ? length - 1 : 0] + b) * n + k];
        } else if (kind == SEQLSTM_KIND_POOL_MAX) {
            value = x[(axis.row_offsets[find_most(axis, n, b, k, x)] + b) * n + k];
        } else {
            for (int32_t t = 0; t < length; t++)
                value += x[(axis.row_offsets[t] + b) * n + k];
            value = kind == SEQLSTM_KIND_POOL_MEAN ? value / (float)length : value;
        }
        y[e] = value;
    }
}

static __global__ void pool_back(uint32_t kind, struct cg_axis axis, int64_t n, const float *x, const float *dy,
                                 float *dx)
{
    CG_FOR_EACH(e, axis.sequences * n)
    {
        const int64_t b = e / n, k = e % n;
        const int32_t length = axis.lengths[b];
        const int32_t chosen = kind == SEQLSTM_KIND_POOL_LAST    ? length - 1
                               : kind == SEQLSTM_KIND_POOL_FIRST ? 0
                               : kind == SEQLSTM_KIND_POOL_MAX   ? find_most(axis, n, b, k, x)
                                                                 : -1;
        for (int32_t t = 0; t < length; t++)
            dx[(axis.row_offsets[t] + b) * n + k] = chosen >= 0                      ? (t == chosen ? dy[e] : 0.0f)
                                                    : kind == SEQLSTM_KIND_POOL_MEAN ? dy[e] / (float)length
                                                                                     : dy[e];
    }
}

extern "C" int cg_pool_forward(void *stream, uint32_t kind, const struct cg_axis *axis, int64_t n, const float *x,
                               float *y)
{
    const struct cg_axis a = *axis;
    return GPU_LAUNCH(stream, cg_blocks(a.sequences * n), CG_THREADS, 0, pool, kind, a, n, x, y);
}

extern "C" int cg_pool_backward(void *stream, uint32_t kind, const struct cg_axis *axis, int64_t n, const float *x,
                                const float *dy, float *dx)
{
    const struct cg_axis a = *axis;
    return GPU_LAUNCH(stream, cg_blocks(a.sequences * n), CG_THREADS, 0, pool_back, kind, a, n, x, dy, dx);
}

/* ---- merges ----------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ float merge_one(const struct cg_merge &m, int64_t r, int64_t k)
{
    const int64_t e = r * m.width + k;
    if (m.kind == SEQLSTM_KIND_MERGE_CONCAT) {
        uint32_t input = 0;
        while (k >= m.widths[input])
            k -= m.widths[input++];
        return m.x[input][r * m.widths[input] + k];
    }
    float value = m.x[0][e];
    for (uint32_t i = 1; i < m.inputs; i++)
        value = m.kind == SEQLSTM_KIND_MERGE_MUL ? value * m.x[i][e] : value + m.x[i][e];
    return m.kind == SEQLSTM_KIND_MERGE_AVE ? value / (float)m.inputs : value;
}

static __global__ void merge(const __grid_constant__ struct cg_merge m, int64_t rows, float *y)
{
    CG_FOR_EACH(e, rows * m.width)
    y[e] = merge_one(m, e / m.width, e % m.width);
}

static __global__ void merge_masked(const __grid_constant__ struct cg_merge m,
                                    const __grid_constant__ struct cg_drop first,
                                    const __grid_constant__ struct cg_drop second, struct cg_axis axis, int64_t rows,
                                    float *y)
{
    const uint64_t key = cg_live_key(&first.mask.live, first.mask.stream);
    const uint64_t second_key = cg_live_key(&second.mask.live, second.mask.stream);
    CG_FOR_EACH(e, rows * m.width)
    {
        const int64_t r = e / m.width, k = e % m.width;
        const float value = merge_one(m, r, k);
        y[e] = value;
        first.y[e] = value * cg_draw_mask(first.mask, key, axis, r, k);
        second.y[e] = value * cg_draw_mask(second.mask, second_key, axis, r, k);
    }
}

static __global__ void merge_back(struct cg_merge m, int64_t rows, const float *dy)
{
    CG_FOR_EACH(e, rows * m.width)
    {
        const int64_t r = e / m.width;
        int64_t k = e % m.width;
        if (m.kind == SEQLSTM_KIND_MERGE_CONCAT) {
            uint32_t input = 0;
            while (k >= m.widths[input])
                k -= m.widths[input++];
            if (m.dx[input])
                m.dx[input][r * m.widths[input] + k] = dy[e];
            continue;
        }
        for (uint32_t i = 0; i < m.inputs; i++) {
            float value = dy[e];
            for (uint32_t j = 0; m.kind == SEQLSTM_KIND_MERGE_MUL && j < m.inputs; j++)
                value *= j == i ? 1.0f : m.x[j][e];
            if (m.dx[i])
                m.dx[i][e] = m.kind == SEQLSTM_KIND_MERGE_AVE ? value / (float)m.inputs : value;
        }
    }
}

extern "C" int cg_merge_forward(void *stream, const struct cg_merge *m, int64_t rows, float *y)
{
    const struct cg_merge rule = *m;
    return GPU_LAUNCH(stream, cg_blocks(rows * rule.width), CG_THREADS, 0, merge, rule, rows, y);
}

extern "C" int cg_merge_masked(void *stream, const struct cg_merge *m, int64_t rows, float *y,
                               const struct cg_drop drops[2], const struct cg_axis *axis)
{
    const struct cg_merge rule = *m;
    const struct cg_drop first = drops[0], second = drops[1];
    const struct cg_axis a = *axis;
    return GPU_LAUNCH(stream, cg_blocks(rows * rule.width), CG_THREADS, 0, merge_masked, rule, first, second, a, rows,
                      y);
}

extern "C" int cg_merge_backward(void *stream, const struct cg_merge *m, int64_t rows, const float *dy)
{
    const struct cg_merge rule = *m;
    return GPU_LAUNCH(stream, cg_blocks(rows * rule.width), CG_THREADS, 0, merge_back, rule, rows, dy);
}

/* ---- gathers ---------------------------------------------------------------------------------------------- */

static __global__ void gather(int64_t rows, int64_t n, const int32_t *index, const float *x, float *y)
{
    CG_FOR_EACH(e, rows * n)
    {
        const int32_t from = index[e / n];
        y[e] = from < 0 ? 0.0f : x[(int64_t)from * n + e % n];
    }
}

/* A block computes GATHER_COLUMNS columns of a range of targets. It goes through the rows in chunks of GATHER_SEGMENT
 * rows a warp: first each warp lists the rows of its segment that name a target of the range, in their order; then a
 * warp adds the rows of a target one after another, eight loads at a time. Where a chunk has more than GATHER_LIGHT
 * rows of a target, each warp adds those of its own segment, and one adds the results in their order. Sums of earlier
 * chunks lie in `to`, where one warp alone reads and writes those of a target. */
enum { GATHER_SUMS = 4, GATHER_COLUMNS = GATHER_SUMS * 32, GATHER_SEGMENT = 256, GATHER_LOADS = 8 };
enum { GATHER_TARGETS_MOST = 256, GATHER_WARPS_MOST = 16 };
#ifndef CG_GATHER_LIGHT
#define CG_GATHER_LIGHT 32 /* tests set it */
#endif

struct gather_room {
    int32_t counts[GATHER_TARGETS_MOST]; /* rows of the chunk that name a target */
    int32_t lengths[GATHER_WARPS_MOST];
    /* row << 16 | target, counted from the first row of the chunk and the first target of the range */
    uint32_t entries[GATHER_WARPS_MOST][GATHER_SEGMENT];
    float sums[GATHER_WARPS_MOST][GATHER_COLUMNS];
};

/* The warp lists the rows from r0 on that name one of the targets v0 to v0 + count - 1. */
static __device__ void list_rows(struct gather_room *room, const int32_t *index, int64_t r0, int64_t rows,
                                 int64_t first_row, int64_t v0, int64_t count)
{
    const int warp = (int)(threadIdx.x / CG_WARP), lane = (int)(threadIdx.x % CG_WARP);
    int length = 0;
    int64_t target[GATHER_SEGMENT / 32]; /* loaded together, since each load takes long */
    CG_UNROLL
    for (int k = 0; k < GATHER_SEGMENT / 32; k++) {
        const int64_t r = r0 + k * 32 + lane;
        target[k] = r < rows ? (int64_t)index[r] - v0 : -1;
    }
    CG_UNROLL
    for (int k = 0; k < GATHER_SEGMENT / 32; k++) {
        const bool named = target[k] >= 0 && target[k] < count;
        const unsigned all = __ballot_sync(0xFFFFFFFFu, named);
        if (named) {
            const int at = length + __popc(all & ((1u << lane) - 1u));
            room->entries[warp][at] = (uint32_t)(r0 - first_row + k * 32 + lane) << 16 | (uint32_t)target[k];
            atomicAdd(&room->counts[target[k]], 1);
        }
        length += __popc(all);
    }
    if (lane == 0)
        room->lengths[warp] = length;
}

/* Adds the rows of a target in the list of one warp. All lanes of the calling warp call it. */
static __device__ __forceinline__ void add_rows(const struct gather_room *room, int list, int target, const float *x,
                                                int64_t n, int64_t column, float sum[GATHER_SUMS])
{
    const int lane = (int)(threadIdx.x % CG_WARP), length = room->lengths[list];
    for (int e0 = 0; e0 < length; e0 += (int)CG_WARP) {
        const bool mine = e0 + lane < length && (int)(room->entries[list][e0 + lane] & 0xFFFFu) == target;
        unsigned named = __ballot_sync(0xFFFFFFFFu, mine);
        while (named) {
            float value[GATHER_LOADS][GATHER_SUMS];
            CG_UNROLL
            for (int k = 0; k < GATHER_LOADS; k++) {
                const int entry = __ffs((int)named) - 1; /* -1: none is left */
                const float *from = entry < 0 ? x : x + (int64_t)(room->entries[list][e0 + entry] >> 16) * n;
                named &= named - 1;
                CG_UNROLL
                for (int j = 0; j < GATHER_SUMS; j++)
                    value[k][j] = entry >= 0 && column + 32 * j < n ? from[column + 32 * j] : 0.0f;
            }
            CG_UNROLL
            for (int k = 0; k < GATHER_LOADS; k++)
                CG_UNROLL
            for (int j = 0; j < GATHER_SUMS; j++)
                sum[j] += value[k][j];
        }
    }
}

/* The sums of a target in one chunk, whose first row is x. All threads of the block call it. */
static __device__ void add_chunk(struct gather_room *room, int target, const float *x, int64_t n, int64_t column,
                                 bool begins, float *to)
{
    const int warp = (int)(threadIdx.x / CG_WARP), lane = (int)(threadIdx.x % CG_WARP);
    const int warps = (int)(blockDim.x / CG_WARP);
    const bool heavy = room->counts[target] > CG_GATHER_LIGHT, owner = target % warps == warp;
    if (!heavy && !(owner && (room->counts[target] > 0 || begins)))
        return;
    float sum[GATHER_SUMS] = {0, 0, 0, 0};
    if (heavy) {
        add_rows(room, warp, target, x, n, column, sum);
        CG_UNROLL
        for (int j = 0; j < GATHER_SUMS; j++)
            room->sums[warp][lane + 32 * j] = sum[j];
        __syncthreads();
    }
    if (owner) {
        CG_UNROLL
        for (int j = 0; j < GATHER_SUMS; j++)
            sum[j] = !begins && column + 32 * j < n ? to[column + 32 * j] : 0.0f;
        for (int list = 0; list < warps; list++) {
            if (!heavy)
                add_rows(room, list, target, x, n, column, sum);
            CG_UNROLL
            for (int j = 0; heavy && j < GATHER_SUMS; j++)
                sum[j] += room->sums[list][lane + 32 * j];
        }
        CG_UNROLL
        for (int j = 0; j < GATHER_SUMS; j++)
            if (column + 32 * j < n)
                to[column + 32 * j] = sum[j];
    }
    if (heavy)
        __syncthreads(); /* room->sums may be written again */
}

static __global__ void __launch_bounds__(GATHER_WARPS_MOST * 32, 2)
    gather_back(int64_t targets, int64_t range, int64_t rows, int64_t n, const int32_t *index, const float *x,
                float *to, int add)
{
    GPU_SHARED(struct gather_room, room);
    const int warp = (int)(threadIdx.x / CG_WARP);
    const int64_t column = (int64_t)blockIdx.y * GATHER_COLUMNS + threadIdx.x % CG_WARP;
    const int64_t chunk = (int64_t)(blockDim.x / CG_WARP) * GATHER_SEGMENT, v0 = (int64_t)blockIdx.x * range;
    const int64_t count = targets - v0 < range ? targets - v0 : range;
    for (int64_t r0 = 0; r0 < rows || r0 == 0; r0 += chunk) {
        for (int64_t v = threadIdx.x; v < count; v += blockDim.x)
            room->counts[v] = 0;
        __syncthreads();
        list_rows(room, index, r0 + (int64_t)warp * GATHER_SEGMENT, rows, r0, v0, count);
        __syncthreads();
        for (int64_t v = 0; v < count; v++)
            add_chunk(room, (int)v, x + r0 * n, n, column, r0 == 0 && !add, to + (v0 + v) * n);
        __syncthreads();
    }
}

static __global__ void scatter(int64_t rows, int64_t n, const int32_t *index, const float *x, float *y)
{
    CG_FOR_EACH(e, rows * n)
    {
        const int32_t to = index[e / n];
        if (to >= 0)
            y[(int64_t)to * n + e % n] = x[e];
    }
}

extern "C" int cg_gather(void *stream, int64_t rows, int64_t n, const int32_t *index, const float *x, float *y)
{
    return GPU_LAUNCH(stream, cg_blocks(rows * n), CG_THREADS, 0, gather, rows, n, index, x, y);
}

extern "C" int cg_gather_back(void *stream, int64_t targets, int64_t rows, int64_t n, const int32_t *index,
                              const float *x, float *to, int32_t add)
{
    /* Two blocks for each of 132 multiprocessors, where there are so many targets. */
    const int64_t share = (targets + 263) / 264, most = GATHER_TARGETS_MOST;
    const int64_t range = share < 1 ? 1 : share < most ? share : most;
    const unsigned threads = rows <= 8 * GATHER_SEGMENT ? 8 * CG_WARP : GATHER_WARPS_MOST * CG_WARP;
    const dim3 grid((unsigned)((targets + range - 1) / range), (unsigned)((n + GATHER_COLUMNS - 1) / GATHER_COLUMNS));
    return GPU_LAUNCH(stream, grid, threads, sizeof(struct gather_room), gather_back, targets, range, rows, n, index, x,
                      to, add);
}

extern "C" int cg_scatter(void *stream, int64_t rows, int64_t n, const int32_t *index, const float *x, float *y)
{
    return GPU_LAUNCH(stream, cg_blocks(rows * n), CG_THREADS, 0, scatter, rows, n, index, x, y);
}
