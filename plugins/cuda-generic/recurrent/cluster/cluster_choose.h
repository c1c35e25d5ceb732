/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the kernel of a shape, and launches it or asks the device about it. See cluster.h. */
#ifndef CG_CLUSTER_CHOOSE_H
#define CG_CLUSTER_CHOOSE_H

#include "cuda-generic/device/device.h"
#include "cuda-generic/recurrent/cluster/cluster_block.h"

struct cg_cluster_request {
    void *stream;
    const struct cg_layer *layer;
    int64_t directions, sequences;
    const struct cg_cluster *cluster;
    int32_t together;  /* clusters that run at the same time */
    int *out_together; /* not NULL: asks for that, and launches nothing */
    int multiprocessors;
};

static inline int32_t cg_cluster_larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* A block gets more than half of the shared memory, so that a multiprocessor runs one at a time: two would share the
 * rate at which it receives. */
template <typename KERNEL>
static int cg_cluster_run(const struct cg_cluster_request &request, const struct cg_cluster_sizes &sizes, KERNEL kernel)
{
    const struct cg_cluster *cluster = request.cluster;
    const int32_t alone = cluster->room / 2 + 1024, fit = (cluster->room - sizes.head) / sizes.group;
    const dim3 threads((unsigned)sizes.threads);
    if (request.out_together)
        return gpu_count_together(kernel, cluster->blocks, sizes.threads,
                                  (size_t)cg_cluster_larger(alone, sizes.head + sizes.group), request.multiprocessors,
                                  request.out_together);
    struct cg_cluster_call call;
    call.wild = cluster->wild;
    call.share = cg_cluster_divide(request.sequences, cg_cluster_larger(request.together / (int)request.directions, 1),
                                   fit < CG_CLUSTER_GROUPS_MOST ? fit : CG_CLUSTER_GROUPS_MOST);
    const dim3 blocks((unsigned)(call.share.clusters * cluster->blocks), (unsigned)request.directions);
    const size_t bytes = (size_t)cg_cluster_larger(alone, sizes.head + call.share.groups * sizes.group);
    const struct cg_layer *layer = request.layer;
    return GPU_LAUNCH_CLUSTER(request.stream, blocks, cluster->blocks, threads, bytes, kernel, layer, call);
}

/* Calls KERNELS::run with the shape as template arguments. -1: there is no such shape. */
template <typename KERNELS, int PARTS> static int cg_cluster_choose_shape(const struct cg_cluster_request &request)
{
    const struct cg_cluster *c = request.cluster;
    if (c->hidden == 128 && c->blocks == 4)
        return KERNELS::template run<PARTS, 128, 4>(request);
    if (c->hidden == 128 && c->blocks == 8)
        return KERNELS::template run<PARTS, 128, 8>(request);
    if (c->hidden == 256 && c->blocks == 8)
        return KERNELS::template run<PARTS, 256, 8>(request);
    if (c->hidden == 256 && c->blocks == 16)
        return KERNELS::template run<PARTS, 256, 16>(request);
    if (c->hidden == 512 && c->blocks == 16)
        return KERNELS::template run<PARTS, 512, 16>(request);
    return -1;
}

template <typename KERNELS> static int cg_cluster_choose(const struct cg_cluster_request &request)
{
    return request.cluster->parts == 2 ? cg_cluster_choose_shape<KERNELS, 2>(request)
                                       : cg_cluster_choose_shape<KERNELS, 1>(request);
}

template <typename KERNELS>
static int cg_cluster_start_steps(void *stream, const struct cg_layer *layer, int64_t directions,
                                  const struct cg_cluster *cluster, int32_t together, int64_t sequences)
{
    const struct cg_cluster_request request = {stream, layer, directions, sequences, cluster, together, nullptr, 0};
    return cg_cluster_choose<KERNELS>(request);
}

template <typename KERNELS>
static int cg_cluster_count(const struct cg_cluster *cluster, int32_t multiprocessors, int32_t *out_together)
{
    const struct cg_cluster_request request = {nullptr, nullptr, 1, 0, cluster, 0, out_together, multiprocessors};
    return cg_cluster_choose<KERNELS>(request);
}

#endif
