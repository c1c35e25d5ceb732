/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant resident, where blocks publish the gradients of their gates, of cells whose units need
 * nothing of each other within a step. See resident.h. */
#include "cuda-generic/recurrent/resident/resident_gates.h"

template <int PARTS, int TILES>
static __global__ void __launch_bounds__(CG_RESIDENT_THREADS, 1)
    resident_backward(const struct cg_layer *layers, const __grid_constant__ struct cg_resident_call call)
{
    GPU_SHARED(unsigned char, shared);
    struct cg_resident_place p = cg_resident_begin(layers, call, shared);
    cg_resident_gates_pass<PARTS, TILES>::load(p, call.r);
    __threadfence(); /* weights in the exchange are read through L2 */
    __syncthreads();
    cg_resident_run_turns<cg_resident_gates_pass<PARTS, TILES>>(p, call);
}

struct cg_resident_backward_kernels {
    template <int PARTS, int TILES> static int run(const struct cg_resident_request &request)
    {
        return cg_resident_start(request, resident_backward<PARTS, TILES>);
    }
};

static int start(const struct cg_resident_request &request)
{
    const struct cg_resident *r = request.resident;
    if (r->linked)
        return r->scatter ? cg_resident_scatter_linked(&request) : cg_resident_backward_linked(&request);
    return r->scatter ? cg_resident_scatter(&request) : cg_resident_choose<cg_resident_backward_kernels, 1>(request);
}

extern "C" int cg_resident_backward(void *stream, const struct cg_layer *layer, const struct cg_resident *resident,
                                    uint32_t *exchange, int64_t sequences)
{
    const struct cg_resident_request request = {stream, layer, resident, exchange, sequences, nullptr, 0};
    return start(request);
}

extern "C" int cg_resident_count_backward(const struct cg_resident *resident, int32_t multiprocessors, int *out_blocks)
{
    const struct cg_resident_request request = {nullptr, nullptr, resident, nullptr, 0, out_blocks, multiprocessors};
    return start(request);
}
