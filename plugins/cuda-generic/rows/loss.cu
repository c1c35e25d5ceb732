/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and choices, one block per row. See flat.h. */
#include "cuda-generic/device/device.h"
#include "cuda-generic/rows/flat.h"

static __device__ float point_loss(const struct cg_loss &l, float x, float target)
{
    const float e = x - target, size = fabsf(e);
    switch (l.kind) {
    case SEQLSTM_KIND_LOSS_MSE:
        return e * e;
    case SEQLSTM_KIND_LOSS_MAE:
        return size;
    case SEQLSTM_KIND_LOSS_HUBER:
        return size <= l.delta ? e * e / 2.0f : l.delta * (size - l.delta / 2.0f);
    default: /* SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY */
        return cg_softplus(x) - target * x;
    }
}

static __device__ float point_slope(const struct cg_loss &l, float x, float target)
{
    const float e = x - target;
    switch (l.kind) {
    case SEQLSTM_KIND_LOSS_MSE:
        return 2.0f * e;
    case SEQLSTM_KIND_LOSS_MAE:
        return e > 0 ? 1.0f : e < 0 ? -1.0f : e;
    case SEQLSTM_KIND_LOSS_HUBER:
        return fabsf(e) <= l.delta ? e : e > 0 ? l.delta : e < 0 ? -l.delta : e;
    default:
        return cg_sigmoid(x) - target;
    }
}

/* log of the sum of exp over a row. All threads call. */
static __device__ float log_total(const float *x, int64_t n, float *room)
{
    float most = x[0], sum = 0;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        most = fmaxf(most, x[k]);
    most = cg_block_max(most, room);
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        sum += expf(x[k] - most);
    return most + logf(cg_block_sum(sum, room));
}

static __device__ float row_weight(const struct cg_loss &l, int64_t r)
{
    float w = l.weight ? l.weight[r] : 1.0f;
    if (l.kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY)
        w *= l.target_class[r] < 0 ? 0.0f : l.class_weight ? l.class_weight[l.target_class[r]] : 1.0f;
    return w;
}

/* Does row r count? One that does not weighs 0 whatever its weight is, which may be NaN. */
static __device__ bool row_counts(const struct cg_loss &l, int64_t r)
{
    return l.kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY || l.target_class[r] >= 0;
}

static __global__ void loss_forward(struct cg_loss l, int64_t rows, const float *x, float *row_loss, double *sums)
{
    GPU_SHARED(float, room);
    const int64_t n = l.classes;
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *row = x + r * n;
        const bool counts = row_counts(l, r);
        float loss = 0;
        if (!counts) {
            loss = 0;
        } else if (l.kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
            const float total = log_total(row, n, room);
            if (l.label_smoothing > 0) {
                for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
                    loss += total - row[k];
                loss = cg_block_sum(loss, room) * (l.label_smoothing / (float)n);
            }
            loss += (1.0f - l.label_smoothing) * (total - row[l.target_class[r]]);
        } else {
            for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
                loss += point_loss(l, row[k], l.target[r * n + k]);
            loss = cg_block_sum(loss, room) / (float)n;
        }
        if (threadIdx.x == 0) {
            const double w = counts ? (double)row_weight(l, r) : 0.0;
            sums[2 * r] = counts ? w * (double)loss : 0.0;
            sums[2 * r + 1] = w;
            if (row_loss)
                row_loss[r] = loss;
        }
        __syncthreads();
    }
}

static __global__ void loss_sum(int64_t rows, const double *of_rows, double *sums)
{
    GPU_SHARED(double, room);
    double loss = 0, weight = 0;
    for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
        loss += of_rows[2 * r];
        weight += of_rows[2 * r + 1];
    }
    loss = cg_block_sum(loss, room);
    weight = cg_block_sum(weight, room);
    if (threadIdx.x == 0) {
        sums[0] += loss;
        sums[1] += weight;
    }
}

static __global__ void loss_backward(struct cg_loss l, int64_t rows, struct cg_live live, const float *x, float *dx)
{
    GPU_SHARED(float, room);
    const float scale = cg_live_scale(&live);
    const int64_t n = l.classes;
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *row = x + r * n;
        const bool counts = row_counts(l, r);
        const float factor = counts ? scale * row_weight(l, r) : 0.0f;
        if (counts && l.kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
            const float total = log_total(row, n, room), each = l.label_smoothing / (float)n;
            __syncthreads(); /* dx may be x, whose first element all threads have now read */
            for (int64_t k = threadIdx.x; k < n; k += blockDim.x) {
                const float expected = each + (k == l.target_class[r] ? 1.0f - l.label_smoothing : 0.0f);
                dx[r * n + k] = factor * (expf(row[k] - total) - expected);
            }
        } else {
            for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
                dx[r * n + k] = counts ? factor * point_slope(l, row[k], l.target[r * n + k]) / (float)n : 0.0f;
        }
        __syncthreads();
    }
}

static const size_t ROW_ROOM = CG_ROW_THREADS / CG_WARP * sizeof(float);
static const size_t SUM_ROOM = CG_THREADS / CG_WARP * sizeof(double);

extern "C" int cg_loss_forward(void *stream, const struct cg_loss *loss, int64_t rows, const float *x, float *row_loss,
                               double *sums_of_rows)
{
    const struct cg_loss l = *loss;
    return GPU_LAUNCH(stream, cg_row_blocks(rows), CG_ROW_THREADS, ROW_ROOM, loss_forward, l, rows, x, row_loss,
                      sums_of_rows);
}

extern "C" int cg_loss_sum(void *stream, int64_t rows, const double *sums_of_rows, double *sums)
{
    return GPU_LAUNCH(stream, 1, CG_THREADS, SUM_ROOM, loss_sum, rows, sums_of_rows, sums);
}

extern "C" int cg_loss_backward(void *stream, const struct cg_loss *loss, int64_t rows, const struct cg_live *live,
                                const float *x, float *dx)
{
    const struct cg_loss l = *loss;
    const struct cg_live v = *live;
    return GPU_LAUNCH(stream, cg_row_blocks(rows), CG_ROW_THREADS, ROW_ROOM, loss_backward, l, rows, v, x, dx);
}

/* ---- choices ------------------------------------------------------------------------------------------------ */

/* Does element a come before b? Larger first, ties by lower index. */
static __device__ bool before(const float *x, int64_t a, int64_t b)
{
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

/* The element that follows `last` in this order; with last < 0 the first. All threads call it and get the result. */
static __device__ int64_t next_best(const float *x, int64_t n, int64_t last, int64_t *room)
{
    int64_t best = -1;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        if ((last < 0 || before(x, last, k)) && (best < 0 || before(x, k, best)))
            best = k;
    __syncthreads();
    room[threadIdx.x] = best;
    __syncthreads();
    best = -1;
    for (unsigned t = 0; t < blockDim.x; t++)
        if (room[t] >= 0 && (best < 0 || before(x, room[t], best)))
            best = room[t];
    return best;
}

/* Draws as the reference does: walks through the elements, best first. */
static __device__ void draw(const struct cg_top_k &d, const float *x, float u, int64_t *room, int32_t *index,
                            float *value)
{
    const int64_t first = next_best(x, d.features, -1, room);
    if (!(first >= 0 && x[first] - x[first] == 0.0f)) { /* the best one is not a finite number */
        if (threadIdx.x == 0) {
            *index = -1;
            *value = x[0];
        }
        return;
    }
    const double most = (double)x[first], temperature = (double)d.temperature;
    double total = 0, kept = 0, passed = 0;
    int64_t k = -1, count = 0;
    for (int64_t rank = 0; rank < d.limit; rank++) {
        k = next_best(x, d.features, k, room);
        total += exp(((double)x[k] - most) / temperature);
    }
    for (k = -1; count < d.limit && (count == 0 || kept < (double)d.top_p * total); count++) {
        k = next_best(x, d.features, k, room);
        kept += exp(((double)x[k] - most) / temperature);
    }
    k = -1;
    for (int64_t rank = 0; rank < count; rank++) {
        k = next_best(x, d.features, k, room);
        passed += exp(((double)x[k] - most) / temperature);
        if ((double)u * kept < passed)
            break;
    }
    if (threadIdx.x == 0) {
        *index = (int32_t)k;
        *value = (float)(((double)x[k] - most) / temperature - log(kept));
    }
}

static __global__ void top_k(struct cg_top_k d, struct cg_axis axis, int64_t rows, const float *x, int32_t *index,
                             float *value)
{
    GPU_SHARED(int64_t, room);
    const uint64_t key = cg_live_key(&d.live, d.stream);
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const float *row = x + r * d.features;
        if (d.kind == SEQLSTM_KIND_TOP_K_SAMPLE) {
            const int64_t b = d.on_sequences ? r : axis.row_sequence[r];
            const uint32_t step = d.on_sequences ? 0 : axis.position0[b] + axis.t0 + (uint32_t)axis.row_step[r];
            draw(d, row, seqlstm_uniform(key, 0, step, axis.sequence_id[b]), room, &index[r], &value[r]);
            continue;
        }
        int64_t best = -1;
        for (int64_t rank = 0; rank < d.k; rank++) {
            best = next_best(row, d.features, best, room);
            if (threadIdx.x == 0) {
                index[r * d.k + rank] = (int32_t)best; /* -1: only NaN is left in the row */
                value[r * d.k + rank] = best < 0 ? row[0] : row[best];
            }
        }
    }
}

extern "C" int cg_top_k_forward(void *stream, const struct cg_top_k *rule, const struct cg_axis *axis, int64_t rows,
                                const float *x, int32_t *index, float *value)
{
    const struct cg_top_k d = *rule;
    const struct cg_axis a = *axis;
    return GPU_LAUNCH(stream, cg_row_blocks(rows), CG_WARP, CG_WARP * sizeof(int64_t), top_k, d, a, rows, x, index,
                      value);
}
