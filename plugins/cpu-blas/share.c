/* SPDX-License-Identifier: Apache-2.0 */
/* Hands fixed parts to the queue. */
#include "share.h"

struct shared {
    const struct blas_call *call;
    const struct blas_division *division;
    blas_part_fn *fn;
    void *context;
};

static void run_parts(void *argument, int64_t begin, int64_t end)
{
    const struct shared *s = argument;
    for (int64_t part = begin; part < end; part++)
        s->fn(s->call, s->context, (int32_t)part, blas_part_begin(s->division, (int32_t)part),
              blas_part_begin(s->division, (int32_t)part + 1));
}

void blas_share(const struct blas_call *call, const struct blas_division *division, blas_part_fn *fn,
                void *context)
{
    if (division->count <= 0)
        return;
    if (division->parts == 1) {
        fn(call, context, 0, 0, division->count);
        return;
    }
    struct shared shared = {call, division, fn, context};
    call->queue->services->parallel_for(call->queue, division->parts, 1, run_parts, &shared);
}
