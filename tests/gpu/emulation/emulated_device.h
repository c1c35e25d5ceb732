/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated device for libraries that bring work of their own (fake_cudnn.c): what a driver would give them. */
#ifndef SEQLSTM_TESTS_GPU_EMULATED_DEVICE_H
#define SEQLSTM_TESTS_GPU_EMULATED_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Does its work on the stream's thread, where device memory may be touched. Returns 0, or else says in `failure` what
 * went wrong: the stream then has failed. */
typedef int emulated_work_fn(void *context, char *failure, size_t capacity);

/* Queues work, in order with all other of the stream. `context` is freed with `release` afterwards. */
void emulated_submit(void *stream, emulated_work_fn *work, void *context, void (*release)(void *context));

/* Is a stream captured by this thread? If so the capture is spoilt: the library does what no capture allows. */
int emulated_spoil(const char *what);

/* Do all `bytes` from `pointer` lie in one allocation of device memory? */
int emulated_owns(const void *pointer, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
