/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between number types on the device. Each function returns the code of its launch (common/cuda_runtime.h). */
#ifndef GPU_CUDA_CAST_H
#define GPU_CUDA_CAST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = x, rounded to nearest even. Types: SEQLSTM_DTYPE_FLOAT32, FLOAT64, BFLOAT16 or FLOAT16. [queue] */
int gpu_cast(void *stream, uint32_t from, uint32_t to, int64_t elems, const void *x, void *y);

/* y = x, or with `add`, y += x in float32, of up to GPU_CAST_PARTS ranges in one launch. Types: as for gpu_cast,
 * without FLOAT64. [queue] */
enum { GPU_CAST_PARTS = 64 };
struct gpu_cast_part {
    const void *x;
    void *y;
    int64_t elems;
};
int gpu_cast_parts(void *stream, uint32_t from, uint32_t to, const struct gpu_cast_part *parts, int64_t count,
                   int32_t add);

#ifdef __cplusplus
}
#endif

#endif
