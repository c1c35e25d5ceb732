/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant resident, where blocks publish the gradients of their gates. See resident.h. */
#ifndef CG_RESIDENT_GATES_H
#define CG_RESIDENT_GATES_H

#include "cuda-generic/recurrent/resident/resident_gradient.h"
#include "cuda-generic/recurrent/resident/resident_launch.h"
#include "cuda-generic/recurrent/resident/resident_product.h"

/* Publishes the gradients of the gates' sums over h. All lanes of the warp call. */
template <int PARTS>
static __device__ __forceinline__ void cg_resident_publish_gates(const struct cg_resident_place &p,
                                                                 const struct cg_resident_call &call, uint32_t *half,
                                                                 const struct cg_resident_cell &cell, bool there,
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

template <int PARTS, int TILES> struct cg_resident_gates_pass {
    cg_resident_product<PARTS, TILES, PARTS == 2 ? 4 : 8, true> product;

    __device__ __forceinline__ cg_resident_gates_pass(const struct cg_resident_place &place,
                                                      const struct cg_resident_call &of)
        : product(place, of, cg_resident_half(place, place.published))
    {
    }
    static __device__ __forceinline__ void load(const struct cg_resident_place &p, const struct cg_resident &r)
    {
        cg_resident_load_columns<PARTS>(p, r);
    }
    __device__ __forceinline__ void begin(int from, int received)
    {
        if (received > 0)
            product.run(from, received);
    }
    __device__ __forceinline__ float receive(const struct cg_resident_cell &cell, int from, int received, int,
                                             int) const
    {
        return cell.there && cell.column < from + received ? product.get(cell.own, cell.column - from) : 0.0f;
    }
    __device__ __forceinline__ void put(const struct cg_resident_cell &cell, int, bool there, const float (&v)[4]) const
    {
        const struct cg_resident_place &p = product.p;
        cg_resident_publish_gates<PARTS>(p, product.call, cg_resident_half(p, p.published + 1), cell, there, v);
    }
    __device__ __forceinline__ void finish(int, int) const
    {
    }
};

#endif
