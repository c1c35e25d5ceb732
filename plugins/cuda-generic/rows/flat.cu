/* SPDX-License-Identifier: Apache-2.0 */
/* Flat vectors. See flat.h. */
#include <float.h>

#include "cuda-generic/rows/flat.h"
#include "cuda-generic/device/device.h"
#include "cuda-generic/rows/rows.h"

static __device__ bool is_finite(double x)
{
    return fabs(x) <= DBL_MAX;
}

static __global__ void finite_check(int64_t elems, const float *x, int32_t *flag)
{
    CG_FOR_EACH(e, elems)
    if (!is_finite((double)x[e]))
        *flag |= 1; /* all threads that write write the same value */
}

/* The last block adds the sums of all blocks, in order. */
static __global__ void squares(int64_t elems, const float *x, double *partials, unsigned *counter, double *sum)
{
    GPU_SHARED(double, room);
    double mine = 0;
    CG_FOR_EACH(e, elems)
    mine += (double)x[e] * (double)x[e];
    mine = cg_block_sum(mine, room);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = mine;
    if (!cg_is_last_block(counter, room))
        return;
    mine = 0;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += blockDim.x)
        mine += partials[k];
    mine = cg_block_sum(mine, room);
    if (threadIdx.x == 0)
        *sum += mine;
}

static const unsigned WARPS = CG_THREADS / CG_WARP;

extern "C" int cg_finite_check(void *stream, int64_t elems, const float *x, int32_t *flag)
{
    return GPU_LAUNCH(stream, cg_blocks(elems), CG_THREADS, 0, finite_check, elems, x, flag);
}

extern "C" int cg_squared_norm(void *stream, int64_t elems, const float *x, double *partials, unsigned *counter,
                               double *sum)
{
    const unsigned most = cg_blocks(elems), limit = CG_PARTIALS, blocks = most < limit ? most : limit;
    return GPU_LAUNCH(stream, blocks, CG_THREADS, WARPS * sizeof(double), squares, elems, x, partials, counter, sum);
}

static __global__ void vector(uint32_t kind, int64_t elems, float a, const float *x, float *y)
{
    CG_FOR_EACH(e, elems)
    switch (kind) {
    case SEQLSTM_KIND_VECTOR_FILL:
        y[e] = a;
        break;
    case SEQLSTM_KIND_VECTOR_AXPY:
        y[e] += a * x[e];
        break;
    case SEQLSTM_KIND_VECTOR_SCALE:
        y[e] *= a;
        break;
    case SEQLSTM_KIND_VECTOR_LERP:
        y[e] += a * (x[e] - y[e]);
        break;
    case SEQLSTM_KIND_VECTOR_SIGN_AXPY:
        y[e] += a * (x[e] > 0 ? 1.0f : x[e] < 0 ? -1.0f : x[e]); /* passes 0 and NaN on */
        break;
    case SEQLSTM_KIND_VECTOR_CLAMP:
        y[e] = !is_finite((double)y[e]) ? nanf("") : y[e] > a ? a : y[e] < -a ? -a : y[e];
        break;
    default: /* SEQLSTM_KIND_VECTOR_COPY */
        y[e] = x[e];
        break;
    }
}

extern "C" int cg_vector(void *stream, uint32_t kind, int64_t elems, float alpha, const float *x, float *y)
{
    return GPU_LAUNCH(stream, cg_blocks(elems), CG_THREADS, 0, vector, kind, elems, alpha, x, y);
}

/* ---- optimizers ------------------------------------------------------------------------------------------- */

/* One thread of each block decides for all elements; all come to the same decision. */
static __device__ void settle(const struct cg_optimizer &d, const struct cg_live &live, const double *sums,
                              const double *squares, struct cg_update *update)
{
    const double scale = (double)CG_LIVE(&live, grad_scale), norm = scale * sqrt(*squares);
    const double limit = (double)d.clip_norm, t = (double)CG_LIVE(&live, update);
    const bool skip = CG_LIVE(&live, flags) & SEQLSTM_BIT_STEP_SKIP;
    update->learning_rate = CG_LIVE(&live, learning_rate);
    update->grad_scale = (float)(limit > 0 && norm > limit ? scale * limit / norm : scale);
    update->correction_1 = (float)(1 - pow((double)d.beta_1, t));
    update->correction_2 = (float)(1 - pow((double)d.beta_2, t));
    update->skip = skip || !is_finite(sums[0]) || !is_finite(*squares);
}

static const int64_t OPTIMIZER_BLOCKS = 1056; /* eight for each of 132 multiprocessors */

/* The amount to subtract from the parameter. s1 to s3: the states of one element, NULL where the rule has none. */
static __device__ float take_off(const struct cg_optimizer &d, const struct cg_update &u, float g, float *s1, float *s2,
                                 float *s3)
{
    const float lr = u.learning_rate;
    float w;
    switch (d.kind) {
    case SEQLSTM_KIND_OPTIMIZER_MOMENTUM:
        *s1 = d.momentum * *s1 + g;
        return lr * *s1;
    case SEQLSTM_KIND_OPTIMIZER_NESTEROV:
        *s1 = d.momentum * *s1 + g;
        return lr * (g + d.momentum * *s1);
    case SEQLSTM_KIND_OPTIMIZER_ADAM:
        *s1 = d.beta_1 * *s1 + (1.0f - d.beta_1) * g;
        *s2 = d.beta_2 * *s2 + (1.0f - d.beta_2) * g * g;
        w = *s2;
        if (d.options & SEQLSTM_BIT_OPTIMIZER_AMSGRAD)
            w = *s3 = fmaxf(*s3, w);
        return lr * (*s1 / u.correction_1) / (sqrtf(w / u.correction_2) + d.epsilon);
    case SEQLSTM_KIND_OPTIMIZER_RMSPROP: {
        *s1 = d.rho * *s1 + (1.0f - d.rho) * g * g;
        w = *s1;
        if (d.options & SEQLSTM_BIT_OPTIMIZER_CENTERED) {
            *s3 = d.rho * *s3 + (1.0f - d.rho) * g;
            w = fmaxf(w - *s3 * *s3, 0.0f);
        }
        const float q = g / (sqrtf(w) + d.epsilon);
        return s2 ? *s2 = d.momentum * *s2 + lr * q : lr * q;
    }
    case SEQLSTM_KIND_OPTIMIZER_ADAGRAD:
        *s1 += g * g;
        return lr * g / (sqrtf(*s1) + d.epsilon);
    case SEQLSTM_KIND_OPTIMIZER_ADADELTA:
        *s1 = d.rho * *s1 + (1.0f - d.rho) * g * g;
        w = sqrtf(*s2 + d.epsilon) / sqrtf(*s1 + d.epsilon) * g;
        *s2 = d.rho * *s2 + (1.0f - d.rho) * w * w;
        return lr * w;
    default: /* SEQLSTM_KIND_OPTIMIZER_SGD */
        return lr * g;
    }
}

static __global__ void optimize(struct cg_optimizer d, struct cg_live live, const double *sums, const double *squares,
                                int64_t elems, float *param, const float *grad, float *s1, float *s2, float *s3)
{
    GPU_SHARED(struct cg_update, update);
    if (threadIdx.x == 0)
        settle(d, live, sums, squares, update);
    __syncthreads();
    const struct cg_update u = *update;
    if (u.skip)
        return;
    CG_FOR_EACH(e, elems)
    {
        float p = param[e];
        p -= u.learning_rate * d.weight_decay * p;
        param[e] = p - take_off(d, u, u.grad_scale * grad[e], s1 ? s1 + e : nullptr, s2 ? s2 + e : nullptr,
                                s3 ? s3 + e : nullptr);
    }
}

/* Blocks of several elements a thread, since each block decides anew. */
static unsigned count_optimizer_blocks(int64_t elems)
{
    const int64_t blocks = (elems + 4 * (int64_t)CG_THREADS - 1) / (4 * (int64_t)CG_THREADS);
    return (unsigned)(blocks < 1 ? 1 : blocks < OPTIMIZER_BLOCKS ? blocks : OPTIMIZER_BLOCKS);
}

extern "C" int cg_optimize(void *stream, const struct cg_optimizer *rule, const struct cg_live *live, int64_t elems,
                           float *param, const float *grad, float *const states[3], const double *sums,
                           const double *squares)
{
    const struct cg_optimizer d = *rule;
    const struct cg_live now = *live;
    float *const s1 = states[0], *const s2 = states[1], *const s3 = states[2];
    return GPU_LAUNCH(stream, count_optimizer_blocks(elems), CG_THREADS, sizeof(struct cg_update), optimize, d, now,
                      sums, squares, elems, param, grad, s1, s2, s3);
}
