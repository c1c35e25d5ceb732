/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant resident, where blocks send parts of the gradient of h, of cells whose units need nothing of
 * each other within a step. See resident_parts.h. */
#include "cuda-generic/recurrent/resident/resident_parts.h"

template <int PARTS, int STEPS>
static __global__ void __launch_bounds__(CG_RESIDENT_THREADS, 1)
    resident_scatter(const struct cg_layer *layers, const __grid_constant__ struct cg_resident_call call)
{
    GPU_SHARED(unsigned char, shared);
    struct cg_resident_place p = cg_resident_begin(layers, call, shared);
    cg_resident_parts_pass<PARTS, STEPS>::load(p, call.r);
    __threadfence(); /* weights in the exchange are read through L2 */
    __syncthreads();
    cg_resident_run_turns<cg_resident_parts_pass<PARTS, STEPS>>(p, call);
}

struct cg_resident_scatter_kernels {
    template <int PARTS, int STEPS> static int run(const struct cg_resident_request &request)
    {
        return cg_resident_start(request, resident_scatter<PARTS, STEPS>);
    }
};

extern "C" int cg_resident_scatter(const struct cg_resident_request *request)
{
    return cg_resident_choose_steps<cg_resident_scatter_kernels>(*request);
}
