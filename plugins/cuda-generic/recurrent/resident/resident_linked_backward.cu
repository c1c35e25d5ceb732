/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant resident, where blocks publish the gradients of their gates, of cells whose units need
 * something of each other within a step. See resident_linked_gradient.h. */
#include "cuda-generic/recurrent/resident/resident_gates.h"
#include "cuda-generic/recurrent/resident/resident_linked_gradient.h"

template <int PARTS, int TILES>
static __global__ void __launch_bounds__(CG_RESIDENT_THREADS, 1)
    resident_linked_backward(const struct cg_layer *layers, const __grid_constant__ struct cg_resident_call call)
{
    GPU_SHARED(unsigned char, shared);
    struct cg_resident_place p = cg_resident_begin(layers, call, shared);
    cg_resident_gates_pass<PARTS, TILES>::load(p, call.r);
    __threadfence(); /* weights in the exchange are read through L2 */
    __syncthreads();
    cg_resident_run_linked_turns<cg_resident_gates_pass<PARTS, TILES>>(p, call);
}

struct cg_resident_linked_backward_kernels {
    template <int PARTS, int TILES> static int run(const struct cg_resident_request &request)
    {
        return cg_resident_start(request, resident_linked_backward<PARTS, TILES>);
    }
};

extern "C" int cg_resident_backward_linked(const struct cg_resident_request *request)
{
    return cg_resident_choose<cg_resident_linked_backward_kernels, 1>(*request);
}
