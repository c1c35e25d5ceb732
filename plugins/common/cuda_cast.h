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

/* y += x in float32, where x has 16 bits. [queue] */
int gpu_cast_add(void *stream, uint32_t from, int64_t elems, const void *x, float *y);

#ifdef __cplusplus
}
#endif

#endif
