/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the variant small: the cell with every option. See small.h. */
#include "cuda-generic/recurrent/kernels/small.h"
#include "cuda-generic/recurrent/kernels/small_cell_forward.h"
#include "cuda-generic/recurrent/kernels/small_launch.h"

template <int WIDTH, int ROWS> using shape = cg_small_shape<WIDTH, ROWS, CG_SMALL_CELL>;

template <class S>
static __global__ void __launch_bounds__(S::THREADS, S::LEAST_BLOCKS) forward(const struct cg_layer *layers)
{
    cg_small_run_forward<cg_small_cell<S>>(layers);
}

template <class S> using starter = cg_small_starter<S, forward<S>>;

extern "C" int cg_small_cell_forward_make(int64_t hidden, int32_t multiprocessors, struct cg_small *out_small)
{
    return cg_small_ask_all<starter, shape>(hidden, multiprocessors, out_small);
}

extern "C" int cg_small_cell_forward(void *stream, const struct cg_layer *layer, int64_t directions,
                                     const struct cg_small *small, int64_t hidden, int64_t sequences)
{
    return cg_small_start<starter, shape>(stream, layer, directions, small, hidden, sequences);
}
