/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant resident, where blocks publish the gradients of their gates. See resident.h. */
#include "cuda-generic/recurrent/resident/resident_gradient.h"
#include "cuda-generic/recurrent/resident/resident_launch.h"
#include "cuda-generic/recurrent/resident/resident_product.h"

/* Publishes the gradients of the gates' sums over h. All lanes of the warp call. */
template <int PARTS>
static __device__ __forceinline__ void publish(const struct cg_resident_place &p, const struct cg_resident_call &call,
                                               uint32_t *half, const struct cg_resident_cell &cell, bool there,
                                               const float (&v)[4])
{
    const int units = call.r.units;
    const float most = gpu_bits_float(cg_resident_max_units(cg_cluster_most(v), units));
    if (!there)
        return;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        if (j * units < call.r.segment) /* beyond the last gate, zeros */
            cg_resident_put<PARTS>(call, half, cell.column, p.block * call.r.segment + j * units + cell.own,
                                   v[j] * cg_split_scale(most));
    if (cell.own == 0)
        cg_resident_put_scale(p, call, half, cell.column, cg_split_inverse(most));
}

/* All cells of columns [from, from + count), after their product. `next`: what the thread's first one reads. */
template <class PRODUCT, int PARTS>
static __device__ __forceinline__ void run_cells(const PRODUCT &product, const struct cg_resident_call &call,
                                                 const struct cg_resident_turns &turns, int from, int count, bool usual,
                                                 struct cg_resident_past next, struct cg_resident_held *held)
{
    const struct cg_resident_place &p = product.p;
    const struct cg_layer &y = *p.y;
    const int units = call.r.units, cells = count * units;
    for (int e = p.thread; e - p.lane < cells; e += CG_RESIDENT_THREADS) {
        const struct cg_resident_cell cell = cg_resident_get_cell(p, call, turns, from, count, e);
        const struct cg_resident_past past = next;
        float v[4] = {0, 0, 0, 0};
        cg_resident_store_held(y, held);
        cg_resident_load_past(y, cg_resident_get_cell(p, call, turns, from, count, e + CG_RESIDENT_THREADS), turns,
                              &next);
        const float back = cell.returns ? product.get(cell.own, cell.column - from) : 0.0f;
        cg_resident_run_cell(p, units, cell, past, turns.now, back, usual, held, v);
        publish<PARTS>(p, call, cg_resident_half(p, p.epoch + 1), cell, e < cells && cell.column < turns.active, v);
    }
}

template <int PARTS, int TILES> struct cg_resident_backward_pass {
    static __device__ __forceinline__ void run(const struct cg_resident_place &p, const struct cg_resident_call &call,
                                               const struct cg_resident_turns &turns, int from, int count, bool usual,
                                               const struct cg_resident_past &next, struct cg_resident_held *held)
    {
        cg_resident_product<PARTS, TILES> product(p, call, cg_resident_half(p, p.epoch));
        const int multiplied = turns.before - from < count ? turns.before - from : count;
        if (multiplied > 0)
            product.run(from, multiplied);
        run_cells<cg_resident_product<PARTS, TILES>, PARTS>(product, call, turns, from, count, usual, next, held);
    }
};

template <int PARTS, int TILES>
static __global__ void __launch_bounds__(CG_RESIDENT_THREADS, 1)
    resident_backward(const struct cg_layer *layers, const __grid_constant__ struct cg_resident_call call)
{
    GPU_SHARED(unsigned char, shared);
    struct cg_resident_place p = cg_resident_begin(layers, call, shared);
    cg_resident_load_columns<PARTS>(p, call.r);
    __syncthreads();
    cg_resident_run_turns<cg_resident_backward_pass<PARTS, TILES>>(p, call);
}

struct cg_resident_backward_kernels {
    template <int PARTS, int TILES> static int run(const struct cg_resident_request &request)
    {
        return cg_resident_start(request, resident_backward<PARTS, TILES>);
    }
};

extern "C" int cg_resident_backward(void *stream, const struct cg_layer *layer, const struct cg_resident *resident,
                                    uint32_t *exchange, int64_t sequences)
{
    const struct cg_resident_request request = {stream, layer, resident, exchange, sequences, nullptr, 0};
    return resident->scatter ? cg_resident_scatter(&request)
                             : cg_resident_choose<cg_resident_backward_kernels>(request);
}

extern "C" int cg_resident_count_backward(const struct cg_resident *resident, int32_t multiprocessors, int *out_blocks)
{
    const struct cg_resident_request request = {nullptr, nullptr, resident, nullptr, 0, out_blocks, multiprocessors};
    return resident->scatter ? cg_resident_scatter(&request)
                             : cg_resident_choose<cg_resident_backward_kernels>(request);
}
