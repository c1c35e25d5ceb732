/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of the kernels of the variant small: which of them a layer and a batch get. See small.h. */
#ifndef CG_SMALL_LAUNCH_H
#define CG_SMALL_LAUNCH_H

#include "cuda-generic/recurrent/kernels/small_lane.h"

/* The blocks or clusters of kernel S that the device runs at the same time. */
template <class S>
static int cg_small_ask(void (*kernel)(const struct cg_layer *), int32_t multiprocessors, int32_t *out_together)
{
    int count = 0;
    const int code =
        gpu_count_together(kernel, S::BLOCKS, S::THREADS, S::SHARED_FLOATS * sizeof(float), multiprocessors, &count);
    *out_together = count;
    return code;
}

template <class S>
static int cg_small_launch(void *stream, void (*kernel)(const struct cg_layer *), const struct cg_layer *layer,
                           int64_t directions, int64_t sequences)
{
    const dim3 blocks((unsigned)((sequences + S::ROWS - 1) / S::ROWS * S::BLOCKS), (unsigned)directions);
    const size_t shared = S::SHARED_FLOATS * sizeof(float);
    return S::BLOCKS > 1 ? GPU_LAUNCH_CLUSTER(stream, blocks, S::BLOCKS, S::THREADS, shared, kernel, layer)
                         : GPU_LAUNCH_LARGE(stream, blocks, S::THREADS, shared, kernel, layer);
}

/* Both for one shape of a kernel. */
template <class S, void (*KERNEL)(const struct cg_layer *)> struct cg_small_starter {
    static int ask(int32_t multiprocessors, int32_t *out_together)
    {
        return cg_small_ask<S>(KERNEL, multiprocessors, out_together);
    }
    static int start(void *stream, const struct cg_layer *layer, int64_t directions, int64_t sequences)
    {
        return cg_small_launch<S>(stream, KERNEL, layer, directions, sequences);
    }
};

static inline bool cg_small_is_full(int64_t hidden)
{
    return hidden == 32 || hidden == 64 || hidden == 128;
}

template <template <class> class STARTER, template <int, int> class SHAPE, int WIDTH>
static int cg_small_ask_width(int32_t multiprocessors, struct cg_small *out_small)
{
    const int one = STARTER<SHAPE<WIDTH, 1>>::ask(multiprocessors, &out_small->together[0]);
    const int two = STARTER<SHAPE<WIDTH, 2>>::ask(multiprocessors, &out_small->together[1]);
    const int four = STARTER<SHAPE<WIDTH, 4>>::ask(multiprocessors, &out_small->together[2]);
    return one != 0 ? one : two != 0 ? two : four;
}

/* The widest kernels: cells with options have them for one block only. */
template <template <int, int> class SHAPE> struct cg_small_widest {
    enum { WIDTH = SHAPE<32, 1>::PLAIN ? CG_SMALL_MOST : CG_SMALL_BLOCK_MOST };
};

template <template <class> class STARTER, template <int, int> class SHAPE>
static int cg_small_ask_all(int64_t hidden, int32_t multiprocessors, struct cg_small *out_small)
{
    return hidden <= 32 ? cg_small_ask_width<STARTER, SHAPE, 32>(multiprocessors, out_small)
           : hidden <= 64
               ? cg_small_ask_width<STARTER, SHAPE, 64>(multiprocessors, out_small)
               : cg_small_ask_width<STARTER, SHAPE, cg_small_widest<SHAPE>::WIDTH>(multiprocessors, out_small);
}

template <template <class> class STARTER, template <int, int> class SHAPE, int WIDTH>
static int cg_small_start_width(void *stream, const struct cg_layer *layer, int64_t directions, int rows,
                                int64_t sequences)
{
    return rows == 1   ? STARTER<SHAPE<WIDTH, 1>>::start(stream, layer, directions, sequences)
           : rows == 2 ? STARTER<SHAPE<WIDTH, 2>>::start(stream, layer, directions, sequences)
                       : STARTER<SHAPE<WIDTH, 4>>::start(stream, layer, directions, sequences);
}

template <template <class> class STARTER, template <int, int> class SHAPE>
static int cg_small_start(void *stream, const struct cg_layer *layer, int64_t directions, const struct cg_small *small,
                          int64_t hidden, int64_t sequences)
{
    const int rows = cg_small_choose(small, directions, sequences);
    return hidden <= 32   ? cg_small_start_width<STARTER, SHAPE, 32>(stream, layer, directions, rows, sequences)
           : hidden <= 64 ? cg_small_start_width<STARTER, SHAPE, 64>(stream, layer, directions, rows, sequences)
                          : cg_small_start_width<STARTER, SHAPE, cg_small_widest<SHAPE>::WIDTH>(
                                stream, layer, directions, rows, sequences);
}

#endif
