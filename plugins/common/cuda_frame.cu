/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the frame of a training step. See cuda_frame.h. */
#include <float.h>

#include "common/cuda_frame.h"
#include "common/cuda_kernel.h"

static __device__ bool is_finite(double x)
{
    return fabs(x) <= DBL_MAX;
}

static __device__ const unsigned char *find_slot(const struct seqlstm_frame &f)
{
    return static_cast<const unsigned char *>(f.ring) + f.progress->steps % f.slots * f.slot_bytes;
}

/* All blocks copy a share of all bytes, which are a multiple of 4. */
static __device__ void copy_all(const struct seqlstm_frame &f, const unsigned char *slot)
{
    for (uint32_t k = 0; k < f.copy_count; k++) {
        const struct seqlstm_frame_copy &c = f.copies[k];
        const uint32_t *from =
            reinterpret_cast<const uint32_t *>(c.from ? c.from : static_cast<const void *>(slot + c.offset));
        uint32_t *to = static_cast<uint32_t *>(c.to);
        GPU_FOR_EACH(e, (int64_t)(c.bytes / 4))
        to[e] = from[e];
    }
}

/* The step block that the calls read. */
static __device__ void renew_step(const struct seqlstm_frame &f, const unsigned char *slot)
{
    const struct seqlstm_order *order = reinterpret_cast<const struct seqlstm_order *>(slot);
    const struct seqlstm_progress *before = f.progress;
    struct seqlstm_step step = *reinterpret_cast<const struct seqlstm_step *>(slot + SEQLSTM_FRAME_STEP_OFFSET);
    const bool settled = order->flags & SEQLSTM_BIT_ORDER_SETTLED;
    if (!settled) {
        const bool spoilt = !(order->flags & SEQLSTM_BIT_ORDER_FIRST) && !is_finite(before->loss);
        step.update = before->updates + 1;
        step.loss_scale = before->loss_scale;
        step.grad_scale = 1.0f / before->loss_scale;
        step.flags |= spoilt || before->stopped ? SEQLSTM_BIT_STEP_SKIP : 0;
    }
    *f.step = step;
    f.sums[0] = f.sums[1] = 0;
    *f.squares = 0;
}

static __global__ void frame_begin(struct seqlstm_frame f)
{
    const unsigned char *slot = find_slot(f);
    const uint32_t flags = reinterpret_cast<const struct seqlstm_order *>(slot)->flags;
    const bool reset = (flags & SEQLSTM_BIT_ORDER_RESET) || (!(flags & SEQLSTM_BIT_ORDER_SETTLED) && f.progress->reset);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        renew_step(f, slot);
    copy_all(f, slot);
    GPU_FOR_EACH(e, reset ? (int64_t)(f.state_bytes / 4) : 0)
    static_cast<uint32_t *>(f.states)[e] = 0;
}

/* What an update has done, as the host judges it. */
static __device__ void judge(const struct seqlstm_order *order, double squares, struct seqlstm_progress *now)
{
    const double scale = (double)now->loss_scale, unscale = 1 / scale;
    squares = squares * unscale * unscale;
    bool sound = is_finite(now->loss / now->weight);
    if (sound && (order->flags & SEQLSTM_BIT_ORDER_SCALES)) {
        if (!is_finite(squares) && scale > 1) { /* an overflow */
            now->loss_scale = (float)(scale / 2);
            now->good = 0;
            return;
        }
        if (++now->good == order->good_enough) {
            now->loss_scale = (float)fmin(2 * scale, (double)order->scale_most);
            now->good = 0;
        }
    }
    sound = sound && is_finite(sqrt(squares));
    now->updates += sound;
    now->reset = !sound && (order->flags & SEQLSTM_BIT_ORDER_GOES_ON);
    now->stopped = !sound && !(order->flags & SEQLSTM_BIT_ORDER_GOES_ON);
}

static __device__ void settle(const struct seqlstm_frame &f)
{
    const struct seqlstm_order *order = reinterpret_cast<const struct seqlstm_order *>(find_slot(f));
    const bool settled = order->flags & SEQLSTM_BIT_ORDER_SETTLED, first = order->flags & SEQLSTM_BIT_ORDER_FIRST;
    struct seqlstm_progress now = *f.progress;
    struct seqlstm_outcome *out = f.outcomes + now.steps % f.slots;
    if (settled) {
        now.updates = order->updates;
        now.good = order->good;
        now.stopped = 0;
    }
    now.loss = (settled ? order->loss : first ? 0.0 : now.loss) + f.sums[0];
    now.weight = (settled ? order->weight : first ? 0.0 : now.weight) + f.sums[1];
    now.loss_scale = f.step->loss_scale;
    now.reset = 0;
    out->step = now.steps + 1;
    out->loss = f.sums[0];
    out->weight = f.sums[1];
    out->squares = *f.squares;
    out->loss_scale = now.loss_scale;
    if ((order->flags & SEQLSTM_BIT_ORDER_UPDATE) && now.weight > 0 && !now.stopped)
        judge(order, *f.squares, &now);
    now.steps++;
    *f.progress = now;
}

/* Blocks other than the first read neither progress nor slot, which the first one changes. */
static __global__ void frame_end(struct seqlstm_frame f)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        settle(f);
    copy_all(f, nullptr);
}

static unsigned count_blocks(const struct seqlstm_frame *frame, uint64_t more)
{
    uint64_t most = more;
    for (uint32_t k = 0; k < frame->copy_count; k++)
        most = frame->copies[k].bytes > most ? frame->copies[k].bytes : most;
    return gpu_blocks((int64_t)(most / 4));
}

extern "C" int gpu_frame_begin(void *stream, const struct seqlstm_frame *frame)
{
    const struct seqlstm_frame f = *frame;
    return GPU_LAUNCH(stream, count_blocks(frame, frame->state_bytes), GPU_THREADS, 0, frame_begin, f);
}

extern "C" int gpu_frame_end(void *stream, const struct seqlstm_frame *frame)
{
    const struct seqlstm_frame f = *frame;
    return GPU_LAUNCH(stream, count_blocks(frame, 0), GPU_THREADS, 0, frame_end, f);
}
