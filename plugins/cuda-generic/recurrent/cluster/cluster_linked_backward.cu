/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of a layer on clusters: kernels for every shape, for layers whose units need sums of each other within a
 * step. See cluster_backward.h. */
#include "cuda-generic/recurrent/cluster/cluster_backward.h"
#include "cuda-generic/recurrent/cluster/cluster_choose.h"

template <int PARTS, int HIDDEN, int BLOCKS>
static __global__ void __launch_bounds__(cg_cluster_block<PARTS, HIDDEN, BLOCKS, true>::THREADS, 1)
    cluster_linked_backward(const struct cg_layer *layer, struct cg_cluster_call call)
{
#if GPU_HAS_CLUSTERS
    GPU_SHARED(unsigned char, shared);
    cg_cluster_backward_steps<cg_cluster_backward_shape<PARTS, HIDDEN, BLOCKS, true>>(layer, call, shared);
#endif
}

struct kernels {
    template <int PARTS, int HIDDEN, int BLOCKS> static int run(const struct cg_cluster_request &request)
    {
        typedef cg_cluster_backward_shape<PARTS, HIDDEN, BLOCKS, true> S;
        return cg_cluster_run(request, S::SIZES, cluster_linked_backward<PARTS, HIDDEN, BLOCKS>);
    }
};

extern "C" int cg_cluster_linked_backward(void *stream, const struct cg_layer *layer, int64_t directions,
                                          const struct cg_cluster *cluster, int64_t sequences)
{
    return cg_cluster_start_steps<kernels>(stream, layer, directions, cluster, cluster->together[1], sequences);
}

extern "C" int cg_cluster_count_linked_backward(struct cg_cluster *cluster, int32_t multiprocessors)
{
    return cg_cluster_count<kernels>(cluster, multiprocessors, &cluster->together[1]);
}
