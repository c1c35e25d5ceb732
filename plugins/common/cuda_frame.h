/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the frame of a training step (seqlstm/ext/draft/frame.h). Each returns the code of its launch. */
#ifndef GPU_CUDA_FRAME_H
#define GPU_CUDA_FRAME_H

#include <seqlstm/ext/draft/frame.h>

#ifdef __cplusplus
extern "C" {
#endif

int gpu_frame_begin(void *stream, const struct seqlstm_frame *frame); /* [queue] */
int gpu_frame_end(void *stream, const struct seqlstm_frame *frame);   /* [queue] */

#ifdef __cplusplus
}
#endif

#endif
