/* SPDX-License-Identifier: Apache-2.0 */
/* The extension "recorder/1" of the CUDA plugins: kernels, copies and fills with the times of the device, from CUPTI,
 * and the memory that is in use. */
#ifndef GPU_CUDA_RECORDER_H
#define GPU_CUDA_RECORDER_H

#include <seqlstm/ext/recorder.h>

extern const struct seqlstm_recorder gpu_recorder;

/* The name of a function in a mangled name: "gemm" of "_ZN12_GLOBAL__N_14gemmILi4EEEvPf"; other names as they are. */
void gpu_recorder_name(const char *mangled, char *out, size_t capacity);

#endif
