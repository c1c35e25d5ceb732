/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated device for libraries with work of their own (fake_cudnn.c): what a driver would provide for them. */
#ifndef SEQLSTM_TESTS_GPU_EMULATED_DEVICE_H
#define SEQLSTM_TESTS_GPU_EMULATED_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Does its work on the stream's thread, where device memory may be accessed. Returns 0, or another value after writing
 * the reason to `failure`; the stream has then failed. */
typedef int emulated_work_fn(void *context, char *failure, size_t capacity);

/* Queues work in order with all other work of the stream. `context` is freed with `release` afterwards. */
void emulated_submit(void *stream, emulated_work_fn *work, void *context, void (*release)(void *context));

/* Is this thread capturing a stream? Then the capture is spoilt, because the library does what no capture allows. */
int emulated_spoil(const char *what);

/* Do all `bytes` from `pointer` lie in one allocation of device memory? */
int emulated_owns(const void *pointer, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
