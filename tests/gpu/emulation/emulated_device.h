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

/* The device of a stream; of NULL: the current one of this thread. */
int emulated_get_device(const void *stream);

/* Is this thread capturing a stream? Then the capture is spoilt, because the library does what no capture allows. */
int emulated_spoil(const char *what);

/* What the device has done: a kernel (1), a copy (2) or a fill (3), in nanoseconds of emulated_read_clock. Called on
 * the thread of the stream, or with SEQLSTM_EMULATED_COSTS on that which starts the work. */
typedef void emulated_observer_fn(int kind, const char *name, double begin_ns, double end_ns);

/* From now on the observer is told; NULL: no more. */
void emulated_observe(emulated_observer_fn *observer);
double emulated_read_clock(void);

/* Do all `bytes` from `pointer` lie in one allocation of device memory? */
int emulated_owns(const void *pointer, size_t bytes);

/* The n-th call from now on that can return a reason fails, and that one alone; n >= 1. */
void emulated_fail_at(int n);
/* Stops failing. Has a call failed since? */
int emulated_disarm(void);
/* Streams, events and captures that are not destroyed; bytes of device memory that are not released. */
int emulated_count_alive(void);
size_t emulated_count_memory(void);

#ifdef __cplusplus
}
#endif

#endif
