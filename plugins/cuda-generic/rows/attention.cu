/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION; see attention.h. A block computes one query; each of its warps takes one row of the memory at a time.
 * Backward has a second kernel, in which a block computes one row of the memory: it looks for the queries that use this
 * row, 32 at a time, in their order. One thread or warp owns each sum. */
#include "cuda-generic/rows/attention.h"
#include "cuda-generic/device/device.h"

static const size_t ROOM = CG_ROW_THREADS / CG_WARP * sizeof(float);

struct memory {
    int64_t first, length;
};

static __device__ struct memory find_memory(const struct cg_attention &w, int64_t q)
{
    const int32_t m = w.memory_of[q];
    struct memory found = {0, 0};
    if (m >= 0) {
        found.first = w.offsets[m];
        found.length = w.offsets[m + 1] - w.offsets[m];
    }
    return found;
}

/* The sum over a warp of x . y, or of s . tanh(x + y). */
static __device__ float warp_score(int64_t n, const float *x, const float *y, const float *s)
{
    float sum = 0;
    for (int64_t i = threadIdx.x % CG_WARP; i < n; i += CG_WARP)
        sum += s ? s[i] * tanhf(x[i] + y[i]) : x[i] * y[i];
    return cg_warp_sum(sum);
}

static __global__ void attend(struct cg_attention w, float *a, float *report, float *context)
{
    GPU_SHARED(float, room);
    const int64_t warp = threadIdx.x / CG_WARP, warps = blockDim.x / CG_WARP;
    for (int64_t q = blockIdx.x; q < w.queries; q += gridDim.x) {
        const struct memory m = find_memory(w, q);
        const float *query = w.query + q * w.key, *keys = w.keys + m.first * w.key;
        const float *values = w.values + m.first * w.value;
        float *row = a + q * w.longest;
        for (int64_t j = warp; j < m.length; j += warps) {
            const float e = warp_score(w.key, query, keys + j * w.key, w.score);
            if (threadIdx.x % CG_WARP == 0)
                row[j] = w.score ? e : w.scale * e;
        }
        __syncthreads();
        float most = -INFINITY, sum = 0;
        for (int64_t j = threadIdx.x; j < m.length; j += blockDim.x)
            most = fmaxf(most, row[j]);
        most = cg_block_max(most, room);
        for (int64_t j = threadIdx.x; j < m.length; j += blockDim.x) {
            row[j] = expf(row[j] - most);
            sum += row[j];
        }
        sum = cg_block_sum(sum, room);
        for (int64_t j = threadIdx.x; j < m.length; j += blockDim.x)
            row[j] /= sum;
        __syncthreads();
        for (int64_t i = threadIdx.x; i < w.value; i += blockDim.x) {
            float c = 0;
            for (int64_t j = 0; j < m.length; j++)
                c += row[j] * values[j * w.value + i];
            context[q * w.value + i] = c;
        }
        for (int64_t j = threadIdx.x; report && j < w.longest; j += blockDim.x)
            report[q * w.longest + j] = j < m.length ? row[j] : 0.0f;
        __syncthreads();
    }
}

static __global__ void back_queries(struct cg_attention w, const float *a, const float *dcontext, float *de,
                                    float *dquery, float *dscores)
{
    GPU_SHARED(float, room);
    const int64_t warp = threadIdx.x / CG_WARP, warps = blockDim.x / CG_WARP;
    for (int64_t q = blockIdx.x; q < w.queries; q += gridDim.x) {
        const struct memory m = find_memory(w, q);
        const float *query = w.query + q * w.key, *keys = w.keys + m.first * w.key;
        const float *values = w.values + m.first * w.value, *row = a + q * w.longest;
        float *back = de + q * w.longest;
        for (int64_t j = warp; j < m.length; j += warps) {
            const float of_weight = warp_score(w.value, dcontext + q * w.value, values + j * w.value, NULL);
            if (threadIdx.x % CG_WARP == 0)
                back[j] = of_weight;
        }
        __syncthreads();
        float mean = 0;
        for (int64_t j = threadIdx.x; j < m.length; j += blockDim.x)
            mean += row[j] * back[j];
        mean = cg_block_sum(mean, room);
        for (int64_t j = threadIdx.x; j < m.length; j += blockDim.x)
            back[j] = row[j] * (back[j] - mean) * (w.score ? 1.0f : w.scale);
        __syncthreads();
        for (int64_t i = threadIdx.x; i < w.key; i += blockDim.x) {
            float of_query = 0, of_score = 0;
            for (int64_t j = 0; j < m.length; j++) {
                const float k = keys[j * w.key + i], t = w.score ? tanhf(query[i] + k) : 0.0f;
                of_query += back[j] * (w.score ? w.score[i] * (1.0f - t * t) : k);
                of_score += back[j] * t;
            }
            if (dquery)
                dquery[q * w.key + i] = of_query;
            if (dscores)
                dscores[q * w.key + i] = of_score;
        }
        __syncthreads();
    }
}

/* The memory that row r belongs to: the last which begins at or before it. Empty memories before it may begin there
 * too. */
static __device__ int64_t find_owner(const struct cg_attention &w, int64_t r)
{
    int64_t low = 0, high = w.memories;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (w.offsets[middle] <= r)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static __global__ void back_rows(struct cg_attention w, const float *a, const float *de, const float *dcontext,
                                 float *dkeys, float *dvalues)
{
    const int lane = (int)(threadIdx.x % CG_WARP);
    for (int64_t r = blockIdx.x; r < w.rows; r += gridDim.x) {
        const int64_t m = find_owner(w, r), j = r - w.offsets[m];
        for (int64_t i = threadIdx.x; dkeys && i < w.key; i += blockDim.x)
            dkeys[r * w.key + i] = 0.0f;
        for (int64_t i = threadIdx.x; dvalues && i < w.value; i += blockDim.x)
            dvalues[r * w.value + i] = 0.0f;
        for (int64_t q0 = 0; q0 < w.queries; q0 += (int)CG_WARP) {
            unsigned looked = __ballot_sync(0xFFFFFFFFu, q0 + lane < w.queries && w.memory_of[q0 + lane] == m);
            for (; looked; looked &= looked - 1) {
                const int64_t q = q0 + __ffs((int)looked) - 1;
                const float back = de[q * w.longest + j], weight = a[q * w.longest + j];
                for (int64_t i = threadIdx.x; dkeys && i < w.key; i += blockDim.x) {
                    const float x = w.query[q * w.key + i], t = w.score ? tanhf(x + w.keys[r * w.key + i]) : 0.0f;
                    dkeys[r * w.key + i] += back * (w.score ? w.score[i] * (1.0f - t * t) : x);
                }
                for (int64_t i = threadIdx.x; dvalues && i < w.value; i += blockDim.x)
                    dvalues[r * w.value + i] += weight * dcontext[q * w.value + i];
            }
        }
    }
}

extern "C" int cg_attend(void *stream, const struct cg_attention *attention, float *a, float *report, float *context)
{
    const struct cg_attention w = *attention;
    return GPU_LAUNCH(stream, cg_row_blocks(w.queries), CG_ROW_THREADS, ROOM, attend, w, a, report, context);
}

extern "C" int cg_attend_back_queries(void *stream, const struct cg_attention *attention, const float *a,
                                      const float *dcontext, float *de, float *dquery, float *dscores)
{
    const struct cg_attention w = *attention;
    return GPU_LAUNCH(stream, cg_row_blocks(w.queries), CG_ROW_THREADS, ROOM, back_queries, w, a, dcontext, de, dquery,
                      dscores);
}

extern "C" int cg_attend_back_rows(void *stream, const struct cg_attention *attention, const float *a, const float *de,
                                   const float *dcontext, float *dkeys, float *dvalues)
{
    const struct cg_attention w = *attention;
    return GPU_LAUNCH(stream, cg_row_blocks(w.rows), CG_ROW_THREADS, 0, back_rows, w, a, de, dcontext, dkeys, dvalues);
}
