/* SPDX-License-Identifier: Apache-2.0 */
/* Hands fixed parts of work to the queue. Each part runs with denormals treated as zero: optimizer state that is no
 * longer updated decays into denormals, for which many processors need a hundred cycles. Only CAST keeps denormals,
 * since it must not change values. */
#include "cpu-blas/share.h"

struct shared {
    const struct blas_call *call;
    const struct blas_division *division;
    blas_part_fn *fn;
    void *context;
};

static void run_parts(void *argument, int64_t begin, int64_t end)
{
    const struct shared *s = argument;
    const bool flush = s->call->op->desc.head.op != SEQLSTM_OP_CAST;
    const uint32_t saved = flush ? blas_flush_denormals_enter() : 0;
    for (int64_t part = begin; part < end; part++)
        s->fn(s->call, s->context, (int32_t)part, blas_part_begin(s->division, (int32_t)part),
              blas_part_begin(s->division, (int32_t)part + 1));
    if (flush)
        blas_flush_denormals_leave(saved);
}

void blas_share(const struct blas_call *call, const struct blas_division *division, blas_part_fn *fn, void *context)
{
    if (division->count <= 0)
        return;
    struct shared shared = {call, division, fn, context};
    if (division->parts == 1)
        run_parts(&shared, 0, 1);
    else
        call->queue->services->parallel_for(call->queue, division->parts, 1, run_parts, &shared);
}
