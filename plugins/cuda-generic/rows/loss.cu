/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and choices, one block per row. See flat.h. */
#include "cuda-generic/device/device.h"
#include "cuda-generic/rows/flat.h"

enum { LOSS_LOADS = 8 }; /* in flight, of a thread */
/* The longest row that a warp takes; tests set it. */
#ifndef CG_LOSS_WARP_MOST
#define CG_LOSS_WARP_MOST 2048
#endif

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

/* The threads of a row: a warp, or for long rows a block. `room` is for the sums of a block. */
struct team {
    int rank, size;
    float *room;
};

static __device__ float team_sum(const team &t, float x)
{
    return t.size == (int)CG_WARP ? cg_warp_sum(x) : cg_block_sum(x, t.room);
}

static __device__ float team_max(const team &t, float x)
{
    if (t.size != (int)CG_WARP)
        return cg_block_max(x, t.room);
    for (int step = (int)CG_WARP / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    return x;
}

static __device__ void team_wait(const team &t)
{
    if (t.size == (int)CG_WARP)
        __syncwarp();
    else
        __syncthreads();
}

/* exp(x - most), where x = most = -inf contributes nothing. */
static __device__ __forceinline__ float part_of(float x, float most)
{
    return x == -INFINITY ? 0.0f : expf(x - most);
}

/* log of the sum of exp over a row, which is read once: each thread keeps the largest value so far, and the sum
 * relative to it. All threads of the team call. */
static __device__ float log_total(const team &t, const float *x, unsigned n)
{
    float most = -INFINITY, sum = 0;
    for (unsigned k0 = (unsigned)t.rank; k0 < n; k0 += (unsigned)(LOSS_LOADS * t.size)) {
        float value[LOSS_LOADS], more = most;
        CG_UNROLL
        for (int j = 0; j < LOSS_LOADS; j++) {
            const unsigned k = k0 + (unsigned)(j * t.size);
            value[j] = k < n ? x[k] : -INFINITY;
            more = fmaxf(more, value[j]);
        }
        sum *= part_of(most, more);
        most = more;
        CG_UNROLL
        for (int j = 0; j < LOSS_LOADS; j++)
            sum += part_of(value[j], most);
    }
    const float all = team_max(t, most);
    return all + logf(team_sum(t, sum * part_of(most, all)));
}

/* The loss of a row, with the log_total that its gradient needs. All threads of the team call and get both. */
static __device__ float row_loss(const struct cg_loss &l, const team &t, int64_t r, const float *x, float *out_total)
{
    const int64_t n = l.classes;
    float loss = 0;
    *out_total = 0;
    if (l.kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
        for (int64_t k = t.rank; k < n; k += t.size)
            loss += point_loss(l, x[k], l.target[r * n + k]);
        return team_sum(t, loss) / (float)n;
    }
    const float total = log_total(t, x, (unsigned)n);
    *out_total = total;
    if (l.label_smoothing > 0) {
        for (int64_t k = t.rank; k < n; k += t.size)
            loss += total - x[k];
        loss = team_sum(t, loss) * (l.label_smoothing / (float)n);
    }
    return loss + (1.0f - l.label_smoothing) * (total - x[l.target_class[r]]);
}

static __device__ team find_team(int size, float *room)
{
    const team t = {(int)threadIdx.x % size, size, room};
    return t;
}

/* Adds what all blocks have found, in order. All threads of the last block call. */
static __device__ void add_losses(const double *partials, double *room, double *sums)
{
    double loss = 0, weight = 0;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += blockDim.x) {
        loss += partials[2 * k];
        weight += partials[2 * k + 1];
    }
    loss = cg_block_sum(loss, room);
    weight = cg_block_sum(weight, room);
    if (threadIdx.x == 0) {
        sums[0] += loss;
        sums[1] += weight;
    }
}

/* dx = scale * weight * d loss / dx of row r, which begins at x. dx may be x: a thread reads only what it writes. */
static __device__ void row_gradient(const struct cg_loss &l, int rank, int size, int64_t r, float scale, float total,
                                    const float *x, float *dx)
{
    const unsigned n = (unsigned)l.classes;
    const bool counts = row_counts(l, r), crossed = l.kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
    const float factor = counts ? scale * row_weight(l, r) : 0.0f, each = l.label_smoothing / (float)n;
    const float *goal = crossed ? nullptr : l.target + r * l.classes;
    const int target = counts && crossed ? l.target_class[r] : -1;
    for (unsigned k0 = (unsigned)rank; k0 < n; k0 += (unsigned)(LOSS_LOADS * size)) {
        float value[LOSS_LOADS];
        CG_UNROLL
        for (int j = 0; j < LOSS_LOADS; j++) {
            const unsigned k = k0 + (unsigned)(j * size);
            value[j] = k < n ? x[k] : 0.0f;
        }
        CG_UNROLL
        for (int j = 0; j < LOSS_LOADS; j++) {
            const unsigned k = k0 + (unsigned)(j * size);
            if (k >= n)
                continue;
            const float slope =
                !counts   ? 0.0f
                : crossed ? expf(value[j] - total) - each - ((int)k == target ? 1.0f - l.label_smoothing : 0.0f)
                          : point_slope(l, value[j], goal[k]) / (float)n;
            dx[k] = counts ? factor * slope : 0.0f;
        }
    }
}

/* Blocks of CG_ROW_THREADS threads, with a row for each team. Row r belongs to block r / teams % blocks. With
 * GRADIENTS, x receives the gradient of each row after its loss. */
template <bool GRADIENTS>
static __device__ __forceinline__ void run_losses(const struct cg_loss &l, int64_t rows, int size, float scale,
                                                  float *x, float *losses, float *totals, double *partials,
                                                  unsigned *counter, double *sums, double *room)
{
    const int teams = (int)blockDim.x / size, mine = (int)threadIdx.x / size;
    const team t = find_team(size, reinterpret_cast<float *>(room));
    double loss_sum = 0, weight_sum = 0;
    for (int64_t r = (int64_t)blockIdx.x * teams + mine; r < rows; r += (int64_t)gridDim.x * teams) {
        float total = 0, loss = 0;
        const bool counts = row_counts(l, r);
        if (counts)
            loss = row_loss(l, t, r, x + r * l.classes, &total);
        if (GRADIENTS) {
            team_wait(t); /* all have read the value of the target */
            row_gradient(l, t.rank, t.size, r, scale, total, x + r * l.classes, x + r * l.classes);
        }
        if (t.rank != 0)
            continue;
        const double w = counts ? (double)row_weight(l, r) : 0.0;
        loss_sum += counts ? w * (double)loss : 0.0;
        weight_sum += w;
        if (losses)
            losses[r] = loss;
        if (totals)
            totals[r] = total;
    }
    loss_sum = cg_block_sum(loss_sum, room);
    weight_sum = cg_block_sum(weight_sum, room);
    if (threadIdx.x == 0) {
        partials[2 * blockIdx.x] = loss_sum;
        partials[2 * blockIdx.x + 1] = weight_sum;
    }
    if (cg_is_last_block(counter, room))
        add_losses(partials, room, sums);
}

static __global__ void __launch_bounds__(CG_ROW_THREADS, 6)
    loss_forward(struct cg_loss l, int64_t rows, int size, float *x, float *losses, float *totals, double *partials,
                 unsigned *counter, double *sums)
{
    GPU_SHARED(double, room);
    run_losses<false>(l, rows, size, 0.0f, x, losses, totals, partials, counter, sums, room);
}

static __global__ void __launch_bounds__(CG_ROW_THREADS, 6)
    loss_both(struct cg_loss l, int64_t rows, int size, struct cg_live live, float *x, float *losses, double *partials,
              unsigned *counter, double *sums)
{
    GPU_SHARED(double, room);
    float *no_totals = nullptr;
    run_losses<true>(l, rows, size, cg_live_scale(&live), x, losses, no_totals, partials, counter, sums, room);
}

static __global__ void loss_backward(struct cg_loss l, int64_t rows, int size, struct cg_live live, const float *totals,
                                     const float *x, float *dx)
{
    const float scale = cg_live_scale(&live);
    const int teams = (int)blockDim.x / size, mine = (int)threadIdx.x / size, rank = (int)threadIdx.x % size;
    for (int64_t r = (int64_t)blockIdx.x * teams + mine; r < rows; r += (int64_t)gridDim.x * teams)
        row_gradient(l, rank, size, r, scale, totals[r], x + r * l.classes, dx + r * l.classes);
}

/* A warp for each row of up to CG_LOSS_WARP_MOST values. */
static int get_size(const struct cg_loss &l)
{
    return l.classes <= CG_LOSS_WARP_MOST ? (int)CG_WARP : (int)CG_ROW_THREADS;
}

static unsigned count_blocks(int64_t rows, int size)
{
    const int64_t teams = (int)CG_ROW_THREADS / size, blocks = (rows + teams - 1) / teams, most = CG_LOSS_BLOCKS;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

static const size_t ROW_ROOM = CG_ROW_THREADS / CG_WARP * sizeof(double);

extern "C" int cg_loss_forward(void *stream, const struct cg_loss *loss, int64_t rows, const float *x, float *losses,
                               float *totals, double *partials, unsigned *counter, double *sums)
{
    const struct cg_loss l = *loss;
    const int size = get_size(l);
    float *logits = const_cast<float *>(x); /* only read */
    return GPU_LAUNCH(stream, count_blocks(rows, size), CG_ROW_THREADS, ROW_ROOM, loss_forward, l, rows, size, logits,
                      losses, totals, partials, counter, sums);
}

extern "C" int cg_loss_both(void *stream, const struct cg_loss *loss, int64_t rows, const struct cg_live *live,
                            float *x, float *losses, double *partials, unsigned *counter, double *sums)
{
    const struct cg_loss l = *loss;
    const struct cg_live v = *live;
    const int size = get_size(l);
    return GPU_LAUNCH(stream, count_blocks(rows, size), CG_ROW_THREADS, ROW_ROOM, loss_both, l, rows, size, v, x,
                      losses, partials, counter, sums);
}

extern "C" int cg_loss_backward(void *stream, const struct cg_loss *loss, int64_t rows, const struct cg_live *live,
                                const float *totals, const float *x, float *dx)
{
    const struct cg_loss l = *loss;
    const struct cg_live v = *live;
    const int size = get_size(l), teams = (int)CG_ROW_THREADS / size;
    return GPU_LAUNCH(stream, cg_row_blocks((rows + teams - 1) / teams), CG_ROW_THREADS, 0, loss_backward, l, rows,
                      size, v, totals, x, dx);
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
