/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the kernel of a division, and launches it or asks the device about it. See resident.h. */
#ifndef CG_RESIDENT_LAUNCH_H
#define CG_RESIDENT_LAUNCH_H

#include "cuda-generic/recurrent/resident/resident_block.h"

struct cg_resident_request {
    void *stream;
    const struct cg_layer *layer;
    const struct cg_resident *resident;
    uint32_t *exchange;
    int64_t sequences;
    int *out_blocks; /* not NULL: asks how many blocks run at the same time, and launches nothing */
    int multiprocessors;
};

template <typename KERNEL> static int cg_resident_start(const struct cg_resident_request &request, KERNEL kernel)
{
    const struct cg_resident &r = *request.resident;
    if (request.out_blocks)
        return gpu_count_together(kernel, 1, CG_RESIDENT_THREADS, (size_t)r.shared_bytes, request.multiprocessors,
                                  request.out_blocks);
    struct cg_resident_call call;
    call.r = r;
    call.groups = request.sequences < r.groups ? (int32_t)request.sequences : r.groups;
    call.columns = cg_resident_count_columns(request.sequences, call.groups);
    call.exchange = request.exchange;
    const dim3 grid((unsigned)(call.groups * r.blocks), (unsigned)r.together);
    const struct cg_layer *layer = request.layer;
    return GPU_LAUNCH_GRID(request.stream, grid, dim3(CG_RESIDENT_THREADS), (size_t)r.shared_bytes, kernel, layer,
                           call);
}

extern "C" {
/* cg_resident_backward and cg_resident_count_backward for blocks that send parts of the gradient; the same, and
 * forward, for linked cells. */
int cg_resident_scatter(const struct cg_resident_request *request);
int cg_resident_scatter_linked(const struct cg_resident_request *request);
int cg_resident_forward_linked(const struct cg_resident_request *request);
int cg_resident_backward_linked(const struct cg_resident_request *request);
}

/* Calls KERNELS::run with the number of parts and tiles as template arguments. MOST: tiles of a value with one part. */
template <typename KERNELS, int MOST> static int cg_resident_choose(const struct cg_resident_request &request)
{
    const struct cg_resident *r = request.resident;
    if (r->parts == 2)
        return r->row_tiles == 2 ? KERNELS::template run<2, 2>(request) : KERNELS::template run<2, 1>(request);
    return r->row_tiles == MOST ? KERNELS::template run<1, MOST>(request) : KERNELS::template run<1, 1>(request);
}

/* Likewise for kernels that send parts of the gradient: with the number of parts of a value, and of steps of 16 gates.
 */
template <typename KERNELS> static int cg_resident_choose_steps(const struct cg_resident_request &request)
{
    const int steps = request.resident->segment / 16;
    if (request.resident->parts == 2)
        return steps == 2   ? KERNELS::template run<2, 2>(request)
               : steps == 4 ? KERNELS::template run<2, 4>(request)
                            : KERNELS::template run<2, 8>(request);
    return steps == 2   ? KERNELS::template run<1, 2>(request)
           : steps == 4 ? KERNELS::template run<1, 4>(request)
                        : KERNELS::template run<1, 8>(request);
}

#endif
